/* SIO_UDP_NETRESET, which Windows has and Wine 8 does not. Go programs turn off with it,
 * on each UDP socket, that a receive fails with WSAENETRESET after an ICMP error, and have
 * no socket where they cannot (Go: net/fd_windows.go). Wine's receive never fails so: it is
 * off already. */
#include <winsock2.h>
#include <windows.h>

#define UDP_NETRESET 0x9800000f /* mstcpip.h: _WSAIOW(IOC_VENDOR, 15) */

static int(WSAAPI *real_ioctl)(SOCKET, DWORD, LPVOID, DWORD, LPVOID, DWORD, LPDWORD, LPWSAOVERLAPPED, LPWSAOVERLAPPED_COMPLETION_ROUTINE);

static int WSAAPI ioctl_of(SOCKET s, DWORD code, LPVOID in, DWORD in_size, LPVOID out, DWORD out_size, LPDWORD returned, LPWSAOVERLAPPED overlapped, LPWSAOVERLAPPED_COMPLETION_ROUTINE done)
{
	if (code == UDP_NETRESET && in != NULL && in_size >= sizeof(DWORD) && *(DWORD *)in == 0 && overlapped == NULL) {
		if (returned != NULL)
			*returned = 0;
		return 0;
	}
	return real_ioctl(s, code, in, in_size, out, out_size, returned, overlapped, done);
}
