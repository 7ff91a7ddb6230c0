/* The client side of winlab's HNS protocol, version 1 (described in the package
 * documentation of sim/windows/hcn). One connection per process and DLL, opened by the
 * first call to the address in the environment variable WINLAB_HCN. */
#ifndef WINLAB_WIRE_H
#define WINLAB_WIRE_H

#define WIN32_LEAN_AND_MEAN
#include <winsock2.h>
#include <windows.h>
#include <objbase.h>
#include <string.h>

#include "sockets.h"

enum { ENUMERATE = 1, CREATE, OPEN, MODIFY, QUERY, DELETE_, CLOSE, HNSCALL };
enum { NONE, NETWORK, ENDPOINT, NAMESPACE, LOADBALANCER, SDNROUTE, COMPUTESYSTEM };

/* How long a service may take to answer the hello, in milliseconds. When the service has
 * died, another program can listen on its port by then, and one that never answers would
 * stop this one for ever. */
enum { HELLO_MS = 30000 };

/* HNS does not run: no more endpoints available from the endpoint mapper. */
#define HR_NO_SERVICE ((HRESULT)0x800706D9)
/* HNS went away during the call. */
#define HR_CALL_FAILED ((HRESULT)0x800706BE)

struct reply {
	HRESULT hr;
	unsigned long long handle;
	WCHAR *output, *record; /* from CoTaskMemAlloc, or NULL */
};

static SRWLOCK lock = SRWLOCK_INIT;

static BOOL send_all(const char *p, size_t n)
{
	while (n > 0) {
		int sent = send_some(p, n > 1 << 20 ? 1 << 20 : (int)n);
		if (sent <= 0)
			return FALSE;
		p += sent;
		n -= sent;
	}
	return TRUE;
}

/* Bytes that have come, guarded by the lock. One receive mostly brings a whole response. */
static char input[64 << 10];
static size_t input_at, input_end;

static BOOL recv_all(char *p, size_t n)
{
	while (n > 0) {
		size_t have = input_end - input_at;
		int got;

		if (have > 0) {
			have = have < n ? have : n;
			memcpy(p, input + input_at, have);
			input_at += have;
			p += have;
			n -= have;
			continue;
		}
		got = receive_some(input, sizeof input);
		if (got <= 0)
			return FALSE;
		input_at = 0;
		input_end = got;
	}
	return TRUE;
}

static void hang_up(void)
{
	close_socket();
	input_at = input_end = 0;
}

static void put32(char *p, DWORD v) { memcpy(p, &v, 4); } /* x86-64 is little-endian */

static DWORD get32(const char *p)
{
	DWORD v;
	memcpy(&v, p, 4);
	return v;
}

/* "127.0.0.1:40123"; any other host is refused. */
static BOOL address(struct sockaddr_in *to)
{
	char text[64];
	DWORD n = GetEnvironmentVariableA("WINLAB_HCN", text, sizeof text), port = 0;
	const char *p = text + 10;

	if (n < 11 || n >= sizeof text || memcmp(text, "127.0.0.1:", 10) != 0)
		return FALSE;
	for (; *p >= '0' && *p <= '9' && port < 65536; p++)
		port = port * 10 + (*p - '0');
	if (*p || port == 0 || port > 65535)
		return FALSE;
	memset(to, 0, sizeof *to);
	to->sin_family = AF_INET;
	to->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	to->sin_port = htons((u_short)port);
	return TRUE;
}

/* The name in the call log: the program and its process id, "kube-proxy.exe/312". */
static int name(char *p, int room)
{
	char path[MAX_PATH], *base = path;
	DWORD n = GetModuleFileNameA(NULL, path, sizeof path);
	int len;

	path[n < sizeof path ? n : sizeof path - 1] = 0;
	for (char *q = path; *q; q++)
		if (*q == '\\' || *q == '/')
			base = q + 1;
	len = (int)strlen(base);
	if (len > room - 12)
		len = room - 12;
	memcpy(p, base, len);
	return len + wsprintfA(p + len, "/%lu", GetCurrentProcessId());
}

static BOOL dial(void)
{
	struct sockaddr_in to;
	char hello[8 + 200] = "WHCN\1\0";
	int n;

	if (!address(&to))
		return FALSE;
	n = name(hello + 8, 200);
	hello[6] = (char)n;
	if (!connect_to(&to)) {
		hang_up();
		return FALSE;
	}
	limit(HELLO_MS);
	if (!send_all(hello, 8 + n) || !recv_all(hello, 8) || memcmp(hello, "WHCN\1\0\0\0", 8) != 0) {
		hang_up();
		return FALSE;
	}
	limit(0);
	return TRUE;
}

/* A text of a response as UTF-16, NULL when it is empty. */
static WCHAR *wide(const char *p, DWORD n)
{
	int units = n ? MultiByteToWideChar(CP_UTF8, 0, p, (int)n, NULL, 0) : 0;
	WCHAR *w;

	if (units <= 0)
		return NULL;
	w = CoTaskMemAlloc((units + 1) * sizeof(WCHAR));
	if (!w)
		return NULL;
	MultiByteToWideChar(CP_UTF8, 0, p, (int)n, w, units);
	w[units] = 0;
	return w;
}

/* One request and its response over the open connection. */
static BOOL exchange(const char *frame, size_t n, struct reply *r)
{
	char head[4], *body;
	DWORD size, len;
	BOOL ok = FALSE;

	if (!send_all(frame, n) || !recv_all(head, 4))
		return FALSE;
	size = get32(head);
	if (size < 25 || size > 256u << 20)
		return FALSE;
	body = HeapAlloc(GetProcessHeap(), 0, size);
	if (!body)
		return FALSE;
	if (recv_all(body, size) && get32(body) == get32(frame + 4) && body[16] == 2 &&
	    (len = get32(body + 17)) <= size - 25 && get32(body + 21 + len) == size - 25 - len) {
		r->hr = (HRESULT)get32(body + 4);
		memcpy(&r->handle, body + 8, 8);
		r->output = wide(body + 21, len);
		r->record = wide(body + 25 + len, size - 25 - len);
		ok = TRUE;
	}
	HeapFree(GetProcessHeap(), 0, body);
	return ok;
}

/* Makes one call. again says that it may be made a second time when the service
 * was restarted since the last call. */
static struct reply call(int verb, int kind, unsigned long long handle, const GUID *id,
			 int count, const WCHAR *const *texts, BOOL again)
{
	static DWORD seq;
	struct reply r = { HR_NO_SERVICE, 0, NULL, NULL };
	size_t room = 4 + 31, at;
	char *frame;

	for (int i = 0; i < count; i++)
		room += 4 + (texts[i] ? wcslen(texts[i]) * 3 : 0);
	frame = HeapAlloc(GetProcessHeap(), HEAP_ZERO_MEMORY, room);
	if (!frame) {
		r.hr = E_OUTOFMEMORY;
		return r;
	}
	frame[8] = (char)verb;
	frame[9] = (char)kind;
	memcpy(frame + 10, &handle, 8);
	if (id)
		memcpy(frame + 18, id, 16);
	frame[34] = (char)count;
	at = 35;
	for (int i = 0; i < count; i++) {
		int units = texts[i] ? (int)wcslen(texts[i]) : 0, n = 0;

		if (units)
			n = WideCharToMultiByte(CP_UTF8, 0, texts[i], units, frame + at + 4, (int)(room - at - 4), NULL, NULL);
		put32(frame + at, n);
		at += 4 + n;
	}
	put32(frame, (DWORD)(at - 4));

	AcquireSRWLockExclusive(&lock);
	put32(frame + 4, ++seq);
	for (int tries = 0; tries < 2; tries++) {
		BOOL fresh = conn == INVALID_SOCKET;

		r.hr = HR_NO_SERVICE;
		if (fresh && !dial())
			break;
		if (exchange(frame, at, &r))
			break;
		hang_up();
		r.hr = HR_CALL_FAILED;
		if (fresh || !again)
			break;
	}
	ReleaseSRWLockExclusive(&lock);
	HeapFree(GetProcessHeap(), 0, frame);
	return r;
}

/* Gives a text to the caller, or frees it when he does not want it. */
static void give(WCHAR **to, WCHAR *text)
{
	if (to)
		*to = text;
	else
		CoTaskMemFree(text);
}

#endif
