/* Names, as the DNS client of Windows looks them up.
 *
 * Wine asks the resolver of Linux, which completes a name that has a dot in it; Windows
 * takes such a name for complete. winlab answers for Windows: programs whose environment has
 * WINLAB_TOOLS ask there, as its own programs do (tool.c has the protocol). What the hosts
 * file has, addresses and the machine's own name are left to Wine. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <winsock2.h>
#include <ws2tcpip.h>
#include <windows.h>

#include "exports.h"

#define LONGEST 512 /* UTF-8 of a name, which has 255 characters at the most */

static int(WSAAPI *real_names)(PCWSTR, PCWSTR, const ADDRINFOW *, PADDRINFOW *);
static SOCKET(WSAAPI *open_socket)(int, int, int);
static int(WSAAPI *connect_socket)(SOCKET, const struct sockaddr *, int);
static int(WSAAPI *send_bytes)(SOCKET, const char *, int, int);
static int(WSAAPI *receive_bytes)(SOCKET, char *, int, int);
static int(WSAAPI *end_sending)(SOCKET, int);
static int(WSAAPI *close_socket)(SOCKET);
static int(WSAAPI *own_name)(char *, int);
static struct sockaddr_in relay;

/* in_hosts reports whether the hosts file has a name. */
static BOOL in_hosts(const char *name)
{
	char path[MAX_PATH], line[1024];
	FILE *file;
	BOOL found = FALSE;

	if (GetSystemDirectoryA(path, sizeof path - 32) == 0)
		return FALSE;
	strcat(path, "\\drivers\\etc\\hosts");
	if ((file = fopen(path, "r")) == NULL)
		return FALSE;
	while (!found && fgets(line, sizeof line, file) != NULL) {
		char *word;

		line[strcspn(line, "#\r\n")] = 0;
		strtok(line, " \t"); /* the address */
		while (!found && (word = strtok(NULL, " \t")) != NULL)
			found = _stricmp(word, name) == 0;
	}
	fclose(file);
	return found;
}

/* ask returns what winlab says to a question for a name, as text to be freed: an address
 * in each line, nothing when there is none, NULL when no server answers. */
static char *ask(const char *name)
{
	static const char what[] = "getaddrinfo";
	char *text = malloc(8192), *body;
	int n = 0, got, code;
	long out, err;
	SOCKET s = open_socket(AF_INET, SOCK_STREAM, 0);

	if (text == NULL || s == INVALID_SOCKET || connect_socket(s, (struct sockaddr *)&relay, sizeof relay) ||
	    send_bytes(s, what, sizeof what, 0) != sizeof what || send_bytes(s, name, (int)strlen(name) + 1, 0) != (int)strlen(name) + 1 ||
	    end_sending(s, SD_SEND))
		goto failed;
	while (n < 8191 && (got = receive_bytes(s, text + n, 8191 - n, 0)) > 0)
		n += got;
	text[n] = 0;
	if (sscanf(text, "%d %ld %ld", &code, &out, &err) != 3 || (body = strchr(text, '\n')) == NULL)
		goto failed;
	close_socket(s);
	if (code != 0 || out < 0 || out > n - (body + 1 - text))
		out = 0;
	memmove(text, body + 1, out);
	text[out] = 0;
	return text;
failed:
	if (s != INVALID_SOCKET)
		close_socket(s);
	free(text);
	return NULL;
}

static int WSAAPI names_of(PCWSTR name, PCWSTR service, const ADDRINFOW *hints, PADDRINFOW *result)
{
	ADDRINFOW numeric = {0}, *address;
	char utf8[LONGEST], own[LONGEST], *text;
	PADDRINFOW *end = result;

	if (name == NULL || result == NULL || (hints != NULL && hints->ai_flags & AI_NUMERICHOST) ||
	    WideCharToMultiByte(CP_UTF8, 0, name, -1, utf8, sizeof utf8, NULL, NULL) == 0)
		return real_names(name, service, hints, result);
	if (hints != NULL)
		numeric = *hints;
	numeric.ai_flags |= AI_NUMERICHOST;
	if (real_names(name, service, &numeric, result) == 0)
		return 0; /* an address */
	if (utf8[0] == 0 || _stricmp(utf8, "localhost") == 0 || (own_name(own, sizeof own) == 0 && _stricmp(utf8, own) == 0) || in_hosts(utf8))
		return real_names(name, service, hints, result);
	if ((text = ask(utf8)) == NULL) {
		SetLastError(WSATRY_AGAIN);
		return WSATRY_AGAIN;
	}
	*result = NULL;
	for (char *line = strtok(text, "\r\n"); line != NULL; line = strtok(NULL, "\r\n")) {
		WCHAR wide[64];

		/* One of another family than was asked for is refused. */
		if (MultiByteToWideChar(CP_UTF8, 0, line, -1, wide, 64) == 0 || real_names(wide, service, &numeric, &address) != 0)
			continue;
		for (*end = address; *end != NULL;)
			end = &(*end)->ai_next;
	}
	free(text);
	if (*result == NULL) {
		SetLastError(WSAHOST_NOT_FOUND);
		return WSAHOST_NOT_FOUND;
	}
	return 0;
}

/* look_up is called once, before the program looks a name up. */
static void look_up(struct exports *e)
{
	char at[64];
	DWORD n = GetEnvironmentVariableA("WINLAB_TOOLS", at, sizeof at);
	HMODULE dll = (HMODULE)e->base;
	unsigned int a, b, c, d, port;

	if (n == 0 || n >= sizeof at || sscanf(at, "%u.%u.%u.%u:%u", &a, &b, &c, &d, &port) != 5)
		return;
	relay.sin_family = AF_INET;
	relay.sin_addr.s_addr = a | b << 8 | c << 16 | d << 24;
	relay.sin_port = __builtin_bswap16((uint16_t)port);
	open_socket = (void *)GetProcAddress(dll, "socket");
	connect_socket = (void *)GetProcAddress(dll, "connect");
	send_bytes = (void *)GetProcAddress(dll, "send");
	receive_bytes = (void *)GetProcAddress(dll, "recv");
	end_sending = (void *)GetProcAddress(dll, "shutdown");
	close_socket = (void *)GetProcAddress(dll, "closesocket");
	own_name = (void *)GetProcAddress(dll, "gethostname");
	real_names = replace(e, "GetAddrInfoW", (void *)names_of);
}
