/* iphlpapi.dll: the network adapters of a node. GetAdaptersAddresses answers from
 * the environment variable WINLAB_ADAPTERS,
 *
 *     NAME|MAC|ADDRESS/BITS,ADDRESS/BITS;NAME|...      Ethernet|00-15-5D-01-02-03|192.168.1.11/24
 *
 * and adds the loopback adapter; GetUnicastIpAddressTable shows the same addresses.
 * GetIpForwardTable2 answers from WINLAB_ROUTES, with the numbers that the adapters
 * have there, from 2 on, and the next hop 0.0.0.0 for what is on the link:
 *
 *     PREFIX|NEXT HOP|ADAPTER|METRIC;...               0.0.0.0/0|192.168.1.1|2|256
 *
 * GetIpInterfaceTable answers from WINLAB_FORWARDING, which for IPv4 has 1 for each
 * adapter that forwards and 0 for one that does not: "1,1,0".
 *
 * Without its variable a function is Wine's, which shows what the machine has; so
 * are all other functions (iphlpapi.def): of this library, Go programs themselves ask
 * GetAdaptersAddresses only (net/interface_windows.go).
 *
 * Wine's own library is wine_iphlpapi.dll (sim/real/wine puts it there). */
#define WIN32_LEAN_AND_MEAN
#include <winsock2.h>
#include <ws2tcpip.h>
#include <windows.h>
#include <iphlpapi.h>
#include <netioapi.h>
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

/* A function of Wine's. */
static void *of_wine(const char *name)
{
	HMODULE dll = LoadLibraryA("wine_iphlpapi.dll");

	return dll ? (void *)GetProcAddress(dll, name) : NULL;
}

/* Calls Wine's function of the same name. */
static ULONG wine(ULONG family, ULONG flags, PVOID reserved, PIP_ADAPTER_ADDRESSES out, PULONG size)
{
	ULONG(WINAPI *f)(ULONG, ULONG, PVOID, PIP_ADAPTER_ADDRESSES, PULONG) = of_wine("GetAdaptersAddresses");

	return f ? f(family, flags, reserved, out, size) : ERROR_NOT_SUPPORTED;
}

/* A variable as UTF-8, from HeapAlloc; NULL when there is none. */
static char *variable(const WCHAR *name)
{
	DWORD units = GetEnvironmentVariableW(name, NULL, 0);
	WCHAR *w = units ? HeapAlloc(GetProcessHeap(), 0, units * sizeof *w) : NULL;
	char *text = w ? HeapAlloc(GetProcessHeap(), HEAP_ZERO_MEMORY, units * 3) : NULL;

	if (text && GetEnvironmentVariableW(name, w, units))
		WideCharToMultiByte(CP_UTF8, 0, w, -1, text, (int)units * 3, NULL, NULL);
	HeapFree(GetProcessHeap(), 0, w);
	return text;
}

ULONG WINAPI GetAdaptersAddresses(ULONG family, ULONG flags, PVOID reserved, PIP_ADAPTER_ADDRESSES out, PULONG size)
{
	char loopback[] = "Loopback Pseudo-Interface 1||127.0.0.1/8,::1/128", *list = variable(L"WINLAB_ADAPTERS"), *rest = list;
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

/* Calls Wine's function that makes a table. */
static ULONG wine_table(const char *name, ADDRESS_FAMILY family, void **table)
{
	ULONG(WINAPI *f)(ADDRESS_FAMILY, void **) = of_wine(name);

	return f ? f(family, table) : ERROR_NOT_SUPPORTED;
}

/* An address, or a prefix when bits is not NULL. */
static BOOL read_address(char *text, SOCKADDR_INET *out, UINT8 *bits)
{
	char *length = text, *host = part(&length, '/'), *end;
	BOOL six = strchr(host, ':') != NULL;
	unsigned long n;

	memset(out, 0, sizeof *out);
	out->si_family = six ? AF_INET6 : AF_INET;
	if (inet_pton(out->si_family, host, six ? (void *)&out->Ipv6.sin6_addr : (void *)&out->Ipv4.sin_addr) != 1)
		return FALSE;
	if (!bits)
		return *length == 0;
	n = strtoul(length, &end, 10);
	*bits = (UINT8)n;
	return end != length && !*end && n <= (six ? 128 : 32);
}

/* How many parts a list has at most. */
static size_t count(const char *list, char separator)
{
	size_t n = 1;

	for (; *list; list++)
		n += *list == separator;
	return n;
}

static void set_luid(NET_LUID *luid, ULONG index)
{
	luid->Value = 0;
	luid->Info.IfType = index == 1 ? IF_TYPE_SOFTWARE_LOOPBACK : IF_TYPE_ETHERNET_CSMACD;
	luid->Info.NetLuidIndex = index;
}

/* The tables are on the heap of the process, where FreeMibTable of Wine looks for them. */
static void *new_table(size_t head, size_t row, size_t rows)
{
	return HeapAlloc(GetProcessHeap(), HEAP_ZERO_MEMORY, head + row * rows);
}

NETIO_STATUS WINAPI GetIpForwardTable2(ADDRESS_FAMILY family, PMIB_IPFORWARD_TABLE2 *out)
{
	char *list = variable(L"WINLAB_ROUTES"), *rest = list;
	PMIB_IPFORWARD_TABLE2 t;
	BOOL ok = TRUE;

	if (!list)
		return wine_table("GetIpForwardTable2", family, (void **)out);
	t = new_table(sizeof *t, sizeof t->Table[0], count(list, ';'));
	while (t && ok && *rest) {
		char *text = part(&rest, ';'), *prefix = part(&text, '|'), *hop = part(&text, '|'), *index = part(&text, '|');
		PMIB_IPFORWARD_ROW2 r = &t->Table[t->NumEntries];

		ok = read_address(prefix, &r->DestinationPrefix.Prefix, &r->DestinationPrefix.PrefixLength) && read_address(hop, &r->NextHop, NULL);
		r->InterfaceIndex = strtoul(index, NULL, 10);
		set_luid(&r->InterfaceLuid, r->InterfaceIndex);
		r->Metric = strtoul(text, NULL, 10);
		r->Protocol = MIB_IPPROTO_NETMGMT;
		r->ValidLifetime = r->PreferredLifetime = 0xffffffff;
		if (family == AF_UNSPEC || family == r->DestinationPrefix.Prefix.si_family)
			t->NumEntries++;
		else
			memset(r, 0, sizeof *r);
	}
	HeapFree(GetProcessHeap(), 0, list);
	if (!t || !ok) {
		HeapFree(GetProcessHeap(), 0, t);
		return t ? ERROR_INVALID_DATA : ERROR_NOT_ENOUGH_MEMORY;
	}
	*out = t;
	return NO_ERROR;
}

NETIO_STATUS WINAPI GetIpInterfaceTable(ADDRESS_FAMILY family, PMIB_IPINTERFACE_TABLE *out)
{
	char *list = variable(L"WINLAB_FORWARDING"), *rest = list;
	PMIB_IPINTERFACE_TABLE t;
	ULONG index = 1;

	if (!list)
		return wine_table("GetIpInterfaceTable", family, (void **)out);
	t = new_table(sizeof *t, sizeof t->Table[0], count(list, ','));
	while (t && family != AF_INET6 && *rest) {
		PMIB_IPINTERFACE_ROW r = &t->Table[t->NumEntries++];

		r->ForwardingEnabled = *part(&rest, ',') == '1';
		r->Family = AF_INET;
		r->InterfaceIndex = ++index;
		set_luid(&r->InterfaceLuid, index);
		r->NlMtu = 1500;
		r->Connected = TRUE;
	}
	HeapFree(GetProcessHeap(), 0, list);
	if (!t)
		return ERROR_NOT_ENOUGH_MEMORY;
	*out = t;
	return NO_ERROR;
}

NETIO_STATUS WINAPI GetUnicastIpAddressTable(ADDRESS_FAMILY family, PMIB_UNICASTIPADDRESS_TABLE *out)
{
	char *list = variable(L"WINLAB_ADAPTERS"), *rest = list;
	PMIB_UNICASTIPADDRESS_TABLE t;
	ULONG index = 1;
	BOOL ok = TRUE;

	if (!list)
		return wine_table("GetUnicastIpAddressTable", family, (void **)out);
	t = new_table(sizeof *t, sizeof t->Table[0], count(list, ';') + count(list, ','));
	while (t && ok && *rest) {
		char *text = part(&rest, ';');

		part(&text, '|');
		part(&text, '|');
		index++;
		while (ok && *text) {
			PMIB_UNICASTIPADDRESS_ROW r = &t->Table[t->NumEntries];

			ok = read_address(part(&text, ','), &r->Address, &r->OnLinkPrefixLength);
			r->InterfaceIndex = index;
			set_luid(&r->InterfaceLuid, index);
			r->PrefixOrigin = IpPrefixOriginManual;
			r->SuffixOrigin = IpSuffixOriginManual;
			r->DadState = IpDadStatePreferred;
			r->ValidLifetime = r->PreferredLifetime = 0xffffffff;
			if (family == AF_UNSPEC || family == r->Address.si_family)
				t->NumEntries++;
			else
				memset(r, 0, sizeof *r);
		}
	}
	HeapFree(GetProcessHeap(), 0, list);
	if (!t || !ok) {
		HeapFree(GetProcessHeap(), 0, t);
		return t ? ERROR_INVALID_DATA : ERROR_NOT_ENOUGH_MEMORY;
	}
	*out = t;
	return NO_ERROR;
}
