/* The socket to the service. Under Wine before version 10 it is one of Linux, used by system
 * calls: a Windows program under Wine is a process of Linux. It is the Unix socket beside the
 * service's address (near_linux.go of the service), which spares TCP, and where there is
 * none TCP. Each send or receive of
 * Wine's winsock asks its server once or twice, another process (Wine 8:
 * dlls/ntdll/unix/socket.c sock_send, sock_recv), so that a call to HNS meant some ten
 * changes between processes of which two were to the service.
 *
 * Wine 10 and later takes system calls of Windows code for those of Windows (ntdll: syscall
 * emulation by Syscall User Dispatch, Wine bug 48291). There, where the version is not
 * known, and when WINLAB_WINSOCK is set, the socket is winsock's. */
#ifndef WINLAB_SOCKETS_H
#define WINLAB_SOCKETS_H

#include <string.h>
#include <winsock2.h>
#include <windows.h>

static SOCKET conn = INVALID_SOCKET;
static BOOL direct; /* conn is a descriptor of Linux */

enum { SYS_CLOSE = 3, SYS_SOCKET = 41, SYS_CONNECT = 42, SYS_SENDTO = 44, SYS_RECVFROM = 45, SYS_SETSOCKOPT = 54 };

/* Numbers of Linux on x86-64, where those of winsock differ. */
enum { LINUX_EINTR = 4, LINUX_EISCONN = 106, LINUX_SOL_SOCKET = 1, LINUX_RCVTIMEO = 20, LINUX_CLOEXEC = 02000000, LINUX_NOSIGNAL = 0x4000 };

/* A call again when a signal came: Wine stops threads by signals. */
static long long linux_call(long long number, long long a, const void *b, long long c, long long d, const void *e)
{
	register long long r10 __asm__("r10") = d;
	register const void *r8 __asm__("r8") = e;
	register long long r9 __asm__("r9") = 0;
	long long result;

	do
		__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
	while (result == -LINUX_EINTR);
	return result;
}

/* Whether system calls are Linux's. */
static BOOL linux_below(void)
{
	const char *(__cdecl *version)(void) = (void *)GetProcAddress(GetModuleHandleA("ntdll.dll"), "wine_get_version");
	const char *v = version ? version() : "";

	return v[0] >= '1' && v[0] <= '9' && v[1] == '.' && GetEnvironmentVariableA("WINLAB_WINSOCK", NULL, 0) == 0;
}

/* How long a receive may take, in milliseconds; 0 is for ever. */
static void limit(DWORD ms)
{
	long long time[2] = { ms / 1000, ms % 1000 * 1000 }; /* struct timeval */

	if (direct)
		linux_call(SYS_SETSOCKOPT, conn, (void *)LINUX_SOL_SOCKET, LINUX_RCVTIMEO, (long long)(ULONG_PTR)time, (void *)sizeof time);
	else
		setsockopt(conn, SOL_SOCKET, SO_RCVTIMEO, (char *)&ms, sizeof ms);
}

static void close_socket(void)
{
	if (conn == INVALID_SOCKET)
		return;
	if (direct)
		linux_call(SYS_CLOSE, conn, NULL, 0, 0, NULL);
	else
		closesocket(conn);
	conn = INVALID_SOCKET;
}

/* Connects a socket of Linux. */
static BOOL connect_direct(int family, int protocol, const void *to, int length)
{
	int one = 1;
	long long result = linux_call(SYS_SOCKET, family, (void *)(SOCK_STREAM | LINUX_CLOEXEC), protocol, 0, NULL);

	if (result < 0)
		return FALSE;
	conn = (SOCKET)result;
	if (protocol == IPPROTO_TCP)
		linux_call(SYS_SETSOCKOPT, conn, (void *)IPPROTO_TCP, TCP_NODELAY, (long long)(ULONG_PTR)&one, (void *)sizeof one);
	result = linux_call(SYS_CONNECT, conn, to, length, 0, NULL);
	if (result == 0 || result == -LINUX_EISCONN) /* the latter after a signal */
		return TRUE;
	close_socket();
	return FALSE;
}

/* Connects to the Unix socket beside a loopback address. Its name is not a file: it begins with
 * a zero and ends where the length says (unix(7): abstract). */
static BOOL connect_near(const struct sockaddr_in *to)
{
	struct {
		unsigned short family;
		char name[108];
	} at = { AF_UNIX, "" };
	int n = wsprintfA(at.name + 1, "winlab-hcn-127.0.0.1:%u", (unsigned)ntohs(to->sin_port));

	return connect_direct(AF_UNIX, 0, &at, (int)sizeof at.family + 1 + n);
}

static BOOL connect_to(const struct sockaddr_in *to)
{
	static BOOL started;
	WSADATA data;
	int one = 1;

	direct = linux_below();
	if (direct)
		return connect_near(to) || connect_direct(AF_INET, IPPROTO_TCP, to, sizeof *to);
	if (!started && WSAStartup(MAKEWORD(2, 2), &data) != 0)
		return FALSE;
	started = TRUE;
	conn = socket(AF_INET, SOCK_STREAM, IPPROTO_TCP);
	if (conn == INVALID_SOCKET)
		return FALSE;
	setsockopt(conn, IPPROTO_TCP, TCP_NODELAY, (char *)&one, sizeof one);
	return connect(conn, (const struct sockaddr *)to, sizeof *to) == 0;
}

static int send_some(const char *p, int n)
{
	return direct ? (int)linux_call(SYS_SENDTO, conn, p, n, LINUX_NOSIGNAL, NULL) : send(conn, p, n, 0);
}

static int receive_some(char *p, int n)
{
	return direct ? (int)linux_call(SYS_RECVFROM, conn, p, n, 0, NULL) : recv(conn, p, n, 0);
}

#endif
