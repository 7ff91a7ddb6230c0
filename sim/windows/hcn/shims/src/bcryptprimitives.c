/* bcryptprimitives.dll: ProcessPrng, which Go programs need to start and Wine
 * before version 9 does not have. It is the first that a Go program calls, so what else
 * must happen before its own code happens here, too. */
#include "afunix.h"

BOOLEAN NTAPI SystemFunction036(PVOID buffer, ULONG length); /* RtlGenRandom, in advapi32 */

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE buffer, SIZE_T length)
{
	static LONG called;

	if (InterlockedExchange(&called, 1) == 0)
		unix_listeners();
	while (length > 0) {
		ULONG n = length > 1 << 20 ? 1 << 20 : (ULONG)length;

		if (!SystemFunction036(buffer, n))
			return FALSE;
		buffer += n;
		length -= n;
	}
	return TRUE;
}
