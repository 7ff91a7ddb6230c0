/* iphlpapi.dll: the network adapters of a node. GetAdaptersAddresses answers from
 * the environment variable WINLAB_ADAPTERS,
 *
 *     NAME|MAC|ADDRESS/BITS,ADDRESS/BITS;NAME|...      Ethernet|00-15-5D-01-02-03|192.168.1.11/24
 *
 * and adds the loopback adapter. Without the variable it is Wine's, which shows the
 * adapters of the machine; so are all other functions (iphlpapi.def): of this
 * library, Go programs ask GetAdaptersAddresses only (net/interface_windows.go).
 *
 * Wine's own library is wine_iphlpapi.dll (sim/real/wine puts it there). */
#define WIN32_LEAN_AND_MEAN
#include <winsock2.h>
#include <ws2tcpip.h>
#include <windows.h>
#include <iphlpapi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The caller's memory, filled from its start. Where it is too small (or absent),
 * size still grows, so that the caller learns how much is needed. */
struct block {
	char *memory;
	size_t room, size;
};

static void *take(struct block *b, size_t n)
{
	size_t at = b->size;

	b->size += (n + 7) & ~(size_t)7;
	return b->size <= b->room ? memset(b->memory + at, 0, n) : NULL;
}

static WCHAR *wide(struct block *b, const char *text)
{
	int n = MultiByteToWideChar(CP_UTF8, 0, text, -1, NULL, 0);
	WCHAR *w = take(b, n * sizeof(WCHAR));

	if (w)
		MultiByteToWideChar(CP_UTF8, 0, text, -1, w, n);
	return w;
}

static char *bytes(struct block *b, const char *text)
{
	char *s = take(b, strlen(text) + 1);

	return s ? strcpy(s, text) : NULL;
}

/* The part of a text before a separator; rest goes behind it, or to the end. */
static char *part(char **rest, char separator)
{
	char *p = *rest, *end = strchr(p, separator);

	*rest = end ? end + 1 : p + strlen(p);
	if (end)
		*end = 0;
	return p;
}

/* "00-15-5D-01-02-03" */
static BOOL read_mac(const char *text, BYTE mac[6])
{
	if (strlen(text) != 17)
		return FALSE;
	for (int i = 0; i < 6; i++) {
		char *end;

		mac[i] = (BYTE)strtoul(text + 3 * i, &end, 16);
		if (end != text + 3 * i + 2 || (i < 5 && *end != '-' && *end != ':'))
			return FALSE;
	}
	return TRUE;
}

/* One address, "192.168.1.11/24", appended to the adapter's when it is of the family
 * asked for. Returns FALSE when it is none. */
static BOOL add_address(struct block *b, PIP_ADAPTER_UNICAST_ADDRESS **next, char *text, ULONG family)
{
	char *bits = text, *host = part(&bits, '/'), *end;
	union {
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} sa;
	PIP_ADAPTER_UNICAST_ADDRESS a;
	unsigned long length = strtoul(bits, &end, 10);
	BOOL six = strchr(host, ':') != NULL;
	int size = six ? sizeof sa.v6 : sizeof sa.v4;
	void *copy;

	memset(&sa, 0, sizeof sa);
	sa.v4.sin_family = six ? AF_INET6 : AF_INET; /* at the same place in both */
	if (end == bits || *end || length > (six ? 128 : 32) ||
	    inet_pton(sa.v4.sin_family, host, six ? (void *)&sa.v6.sin6_addr : (void *)&sa.v4.sin_addr) != 1)
		return FALSE;
	if (family != AF_UNSPEC && family != (six ? AF_INET6 : AF_INET))
		return TRUE;
	a = take(b, sizeof *a);
	copy = take(b, size);
	if (!a || !copy)
		return TRUE;
	a->Length = sizeof *a;
	a->Flags = IP_ADAPTER_ADDRESS_DNS_ELIGIBLE;
	a->Address.lpSockaddr = memcpy(copy, &sa, size);
	a->Address.iSockaddrLength = size;
	a->PrefixOrigin = IpPrefixOriginManual;
	a->SuffixOrigin = IpSuffixOriginManual;
	a->DadState = IpDadStatePreferred;
	a->ValidLifetime = a->PreferredLifetime = a->LeaseLifetime = 0xffffffff;
	a->OnLinkPrefixLength = (UINT8)length;
	**next = a;
	*next = &a->Next;
	return TRUE;
}

/* One adapter, "NAME|MAC|ADDRESSES"; loopback has no MAC. Its index counts from 1,
 * which is loopback's. */
static BOOL add_adapter(struct block *b, PIP_ADAPTER_ADDRESSES **next, ULONG index, char *text, ULONG family)
{
	char *name = part(&text, '|'), *mac = part(&text, '|'), id[40], *guid;
	WCHAR *suffix, *friendly;
	PIP_ADAPTER_UNICAST_ADDRESS none, *address = &none;
	PIP_ADAPTER_ADDRESSES a = take(b, sizeof *a);
	BYTE physical[6];

	if (!*name || (*mac && !read_mac(mac, physical)))
		return FALSE;
	snprintf(id, sizeof id, "{57494E4C-4142-4000-8000-%012lX}", index); /* adapters are named by GUIDs */
	if (a) {
		a->Length = sizeof *a;
		a->IfIndex = a->Ipv6IfIndex = index;
		a->IfType = *mac ? IF_TYPE_ETHERNET_CSMACD : IF_TYPE_SOFTWARE_LOOPBACK;
		a->OperStatus = IfOperStatusUp;
		a->Mtu = *mac ? 1500 : 0xffffffff;
		a->TransmitLinkSpeed = a->ReceiveLinkSpeed = *mac ? 10000000000 : 1073741824;
		a->ConnectionType = NET_IF_CONNECTION_DEDICATED;
		a->Luid.Info.IfType = a->IfType;
		a->Luid.Info.NetLuidIndex = index;
		for (int i = 0; i < 16; i++)
			a->ZoneIndices[i] = index;
		if (*mac) {
			a->PhysicalAddressLength = 6;
			memcpy(a->PhysicalAddress, physical, 6);
		}
		address = &a->FirstUnicastAddress;
		**next = a;
		*next = &a->Next;
	}
	guid = bytes(b, id);
	suffix = wide(b, "");
	friendly = wide(b, name);
	if (friendly) { /* then all of the above are there too */
		a->AdapterName = guid;
		a->DnsSuffix = suffix;
		a->FriendlyName = a->Description = friendly;
	}
	while (*text)
		if (!add_address(b, &address, part(&text, ','), family))
			return FALSE;
	return TRUE;
}

/* Calls Wine's function of the same name. */
static ULONG wine(ULONG family, ULONG flags, PVOID reserved, PIP_ADAPTER_ADDRESSES out, PULONG size)
{
	HMODULE dll = LoadLibraryA("wine_iphlpapi.dll");
	ULONG(WINAPI *f)(ULONG, ULONG, PVOID, PIP_ADAPTER_ADDRESSES, PULONG);

	f = dll ? (void *)GetProcAddress(dll, "GetAdaptersAddresses") : NULL;
	return f ? f(family, flags, reserved, out, size) : ERROR_NOT_SUPPORTED;
}

/* WINLAB_ADAPTERS as UTF-8, from HeapAlloc; NULL when there is none. */
static char *variable(void)
{
	DWORD units = GetEnvironmentVariableW(L"WINLAB_ADAPTERS", NULL, 0);
	WCHAR *w = units ? HeapAlloc(GetProcessHeap(), 0, units * sizeof *w) : NULL;
	char *text = w ? HeapAlloc(GetProcessHeap(), HEAP_ZERO_MEMORY, units * 3) : NULL;

	if (text && GetEnvironmentVariableW(L"WINLAB_ADAPTERS", w, units))
		WideCharToMultiByte(CP_UTF8, 0, w, -1, text, (int)units * 3, NULL, NULL);
	HeapFree(GetProcessHeap(), 0, w);
	return text;
}

ULONG WINAPI GetAdaptersAddresses(ULONG family, ULONG flags, PVOID reserved, PIP_ADAPTER_ADDRESSES out, PULONG size)
{
	char loopback[] = "Loopback Pseudo-Interface 1||127.0.0.1/8,::1/128", *list = variable(), *rest = list;
	PIP_ADAPTER_ADDRESSES none, *next = &none;
	struct block b = { (char *)out, 0, 0 };
	ULONG index = 1;
	BOOL ok = TRUE;

	if (!list)
		return wine(family, flags, reserved, out, size);
	if (size && (family == AF_UNSPEC || family == AF_INET || family == AF_INET6)) {
		b.room = out ? *size : 0;
		while (ok && *rest)
			ok = add_adapter(&b, &next, ++index, part(&rest, ';'), family);
		ok = ok && add_adapter(&b, &next, 1, loopback, family); /* last, as on Windows */
	}
	HeapFree(GetProcessHeap(), 0, list);
	if (b.size == 0)
		return ERROR_INVALID_PARAMETER;
	if (!ok)
		return ERROR_INVALID_DATA; /* WINLAB_ADAPTERS is not in the form above */
	*size = (ULONG)b.size;
	return b.size <= b.room ? ERROR_SUCCESS : ERROR_BUFFER_OVERFLOW;
}
