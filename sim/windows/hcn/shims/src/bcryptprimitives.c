/* bcryptprimitives.dll: ProcessPrng, which Go programs need to start and Wine
 * before version 9 does not have. It is the first that a Go program calls, so what else
 * must happen before its own code happens here, too. */
#include "afunix.h"
#include "memory.h"
#include "links.h"
#include "names.h"
#include "paths.h"
#include "udp.h"

BOOLEAN NTAPI SystemFunction036(PVOID buffer, ULONG length); /* RtlGenRandom, in advapi32 */

/* sockets is called once, before the program makes one. */
static void sockets(void)
{
	struct exports e;

	if (!exports_of(&e, "ws2_32.dll"))
		return;
	real_ioctl = replace(&e, "WSAIoctl", (void *)ioctl_of);
	look_up(&e);
	unix_listeners(&e);
	exports_done(&e);
}

static void before_main(void)
{
	sockets();
	slashes();
	files();
}

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE buffer, SIZE_T length)
{
	static LONG called;

	if (InterlockedExchange(&called, 1) == 0)
		before_main();
	while (length > 0) {
		ULONG n = length > 1 << 20 ? 1 << 20 : (ULONG)length;

		if (!SystemFunction036(buffer, n))
			return FALSE;
		buffer += n;
		length -= n;
	}
	return TRUE;
}
