/* bcryptprimitives.dll: ProcessPrng, which Go programs need to start and Wine
 * before version 9 does not have. */
#include <windows.h>

BOOLEAN NTAPI SystemFunction036(PVOID buffer, ULONG length); /* RtlGenRandom, in advapi32 */

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE buffer, SIZE_T length)
{
	while (length > 0) {
		ULONG n = length > 1 << 20 ? 1 << 20 : (ULONG)length;

		if (!SystemFunction036(buffer, n))
			return FALSE;
		buffer += n;
		length -= n;
	}
	return TRUE;
}
