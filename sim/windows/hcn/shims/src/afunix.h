/* Listeners of family AF_UNIX, which Windows has since version 1803 and Wine 8 does not have.
 * The kubelet has one, for plugins of devices (k8s.io/kubernetes
 * pkg/kubelet/cm/devicemanager/plugin/v1beta1/server.go), and does not start without.
 *
 * Such a listener becomes one of TCP on loopback, and the file at its path says on which
 * port. Programs that connect to a path are refused as Wine refuses them: on these nodes
 * there are none.
 *
 * Programs whose environment has WINLAB_AF_UNIX have them. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <winsock2.h>
#include <windows.h>

#include "exports.h"

#define UNIX_PATH 108

struct path_address { /* sockaddr_un of afunix.h */
	ADDRESS_FAMILY family;
	char path[UNIX_PATH];
};

static struct listener {
	SOCKET socket;
	struct path_address at;
} listeners[8];

#define COUNT (sizeof listeners / sizeof listeners[0])

static SOCKET(WSAAPI *real_socket)(int, int, int, LPWSAPROTOCOL_INFOW, GROUP, DWORD);
static int(WSAAPI *real_bind)(SOCKET, const struct sockaddr *, int);
static int(WSAAPI *real_name)(SOCKET, struct sockaddr *, int *);
static int(WSAAPI *real_close)(SOCKET);

static struct listener *listener_of(SOCKET s)
{
	for (unsigned i = 0; i < COUNT; i++)
		if (listeners[i].socket == s)
			return &listeners[i];
	return NULL;
}

static SOCKET WSAAPI socket_of(int family, int type, int protocol, LPWSAPROTOCOL_INFOW info, GROUP group, DWORD flags)
{
	struct listener *l;
	SOCKET s;

	if (family != AF_UNIX || type != SOCK_STREAM || info != NULL)
		return real_socket(family, type, protocol, info, group, flags);
	s = real_socket(AF_INET, SOCK_STREAM, IPPROTO_TCP, NULL, group, flags);
	for (unsigned i = 0; s != INVALID_SOCKET && i < COUNT; i++) {
		l = &listeners[i];
		if (InterlockedCompareExchange64((LONG64 *)&l->socket, (LONG64)s, 0) == 0) {
			l->at.family = AF_UNIX;
			return s;
		}
	}
	if (s != INVALID_SOCKET) {
		real_close(s);
		SetLastError(WSAEMFILE);
	}
	return INVALID_SOCKET;
}

static int WSAAPI bind_to(SOCKET s, const struct sockaddr *name, int length)
{
	const struct path_address *at = (const void *)name;
	struct sockaddr_in loopback = {.sin_family = AF_INET, .sin_addr.s_addr = 0x0100007f};
	struct listener *l = listener_of(s);
	char path[UNIX_PATH + 1] = {0}, text[64];
	int size = sizeof loopback;
	DWORD written;
	HANDLE file;

	if (l == NULL || name == NULL || length < (int)sizeof(ADDRESS_FAMILY) || at->family != AF_UNIX)
		return real_bind(s, name, length);
	memcpy(path, at->path, length - sizeof(ADDRESS_FAMILY) < UNIX_PATH ? length - sizeof(ADDRESS_FAMILY) : UNIX_PATH);
	if (real_bind(s, (struct sockaddr *)&loopback, sizeof loopback) || real_name(s, (struct sockaddr *)&loopback, &size))
		return SOCKET_ERROR;
	file = CreateFileA(path, GENERIC_WRITE, 0, NULL, CREATE_NEW, FILE_ATTRIBUTE_NORMAL, NULL);
	if (file == INVALID_HANDLE_VALUE) {
		SetLastError(GetLastError() == ERROR_FILE_EXISTS ? WSAEADDRINUSE : WSAEINVAL);
		return SOCKET_ERROR;
	}
	snprintf(text, sizeof text, "tcp 127.0.0.1:%u\n", __builtin_bswap16(loopback.sin_port));
	WriteFile(file, text, (DWORD)strlen(text), &written, NULL);
	CloseHandle(file);
	strcpy(l->at.path, path);
	return 0;
}

static int WSAAPI name_of(SOCKET s, struct sockaddr *name, int *length)
{
	struct listener *l = listener_of(s);

	if (l == NULL)
		return real_name(s, name, length);
	if (*length < (int)sizeof l->at) {
		SetLastError(WSAEFAULT);
		return SOCKET_ERROR;
	}
	memcpy(name, &l->at, sizeof l->at);
	*length = sizeof l->at;
	return 0;
}

static int WSAAPI close_of(SOCKET s)
{
	struct listener *l = listener_of(s);

	if (l != NULL) {
		memset(&l->at, 0, sizeof l->at);
		InterlockedExchange64((LONG64 *)&l->socket, 0);
	}
	return real_close(s);
}

/* unix_listeners is called once, before the program makes a socket. */
static void unix_listeners(struct exports *e)
{
	if (GetEnvironmentVariableA("WINLAB_AF_UNIX", NULL, 0) == 0)
		return;
	real_socket = replace(e, "WSASocketW", (void *)socket_of);
	real_bind = replace(e, "bind", (void *)bind_to);
	real_name = replace(e, "getsockname", (void *)name_of);
	real_close = replace(e, "closesocket", (void *)close_of);
}
