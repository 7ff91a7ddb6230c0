/* What every Go program since 1.23 wants of Windows and Wine 8 lacks. */
#include <windows.h>

BOOLEAN NTAPI SystemFunction036(PVOID, ULONG); /* RtlGenRandom */

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE buf, SIZE_T n)
{
    while (n > 0) {
        ULONG k = n > 0x10000 ? 0x10000 : (ULONG)n;
        if (!SystemFunction036(buf, k))
            return FALSE;
        buf += k;
        n -= k;
    }
    return TRUE;
}
