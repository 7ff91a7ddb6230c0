/* pdh.dll: the performance counters that the kubelet reads of its node
 * (k8s.io/kubernetes pkg/kubelet/winstats/perfcounters.go and network_stats.go), which
 * Wine's does not have. The values are those of this machine, as Wine's other calls show it;
 * the network adapters are those of the network namespace. */
#include <winsock2.h>
#include <ws2tcpip.h>
#include <windows.h>
#include <iphlpapi.h>
#include <netioapi.h>
#include <pdh.h>
#include <pdhmsg.h>
#include <wchar.h>

enum counter {
	PROCESSOR_TIME = 1,
	PRIVATE_WORKING_SET,
	COMMITTED_BYTES,
	/* The rest have an instance for each network adapter. */
	PACKETS_RECEIVED,
	PACKETS_SENT,
	BYTES_RECEIVED,
	BYTES_SENT,
	RECEIVED_DISCARDED,
	RECEIVED_ERRORS,
	OUTBOUND_DISCARDED,
	OUTBOUND_ERRORS,
	COUNTERS
};

static const struct {
	const WCHAR *path;
	const WCHAR *instance;
	BOOL rate; /* per second, since the last collection */
} known[COUNTERS] = {
	[PROCESSOR_TIME] = {L"\\Processor(_Total)\\% Processor Time", L"_Total", FALSE},
	[PRIVATE_WORKING_SET] = {L"\\Process(_Total)\\Working Set - Private", L"_Total", FALSE},
	[COMMITTED_BYTES] = {L"\\Memory\\Committed Bytes", L"", FALSE},
	[PACKETS_RECEIVED] = {L"\\Network Adapter(*)\\Packets Received/sec", NULL, TRUE},
	[PACKETS_SENT] = {L"\\Network Adapter(*)\\Packets Sent/sec", NULL, TRUE},
	[BYTES_RECEIVED] = {L"\\Network Adapter(*)\\Bytes Received/sec", NULL, TRUE},
	[BYTES_SENT] = {L"\\Network Adapter(*)\\Bytes Sent/sec", NULL, TRUE},
	[RECEIVED_DISCARDED] = {L"\\Network Adapter(*)\\Packets Received Discarded", NULL, FALSE},
	[RECEIVED_ERRORS] = {L"\\Network Adapter(*)\\Packets Received Errors", NULL, FALSE},
	[OUTBOUND_DISCARDED] = {L"\\Network Adapter(*)\\Packets Outbound Discarded", NULL, FALSE},
	[OUTBOUND_ERRORS] = {L"\\Network Adapter(*)\\Packets Outbound Errors", NULL, FALSE},
};

/* Adapters of a query; a namespace has one. */
#define ADAPTERS 16

struct instance {
	WCHAR name[IF_MAX_STRING_SIZE + 1];
	ULONGLONG count;
	double value;
};

/* A query has one counter: that is how the kubelet asks. */
struct query {
	enum counter counter;
	ULONGLONG idle, total; /* of all processors, in 100 ns, at the last collection */
	double value;
	ULONGLONG when; /* of the last collection, in ms */
	DWORD adapters;
	struct instance adapter[ADAPTERS];
};

static ULONGLONG number(FILETIME t)
{
	return (ULONGLONG)t.dwHighDateTime << 32 | t.dwLowDateTime;
}

static enum counter find(const WCHAR *path)
{
	for (int i = PROCESSOR_TIME; i < COUNTERS; i++)
		if (_wcsicmp(path, known[i].path) == 0)
			return i;
	return 0;
}

#undef PdhOpenQuery /* Windows exports it under the old name, too */
__declspec(dllexport) PDH_FUNCTION PdhOpenQuery(LPCWSTR source, DWORD_PTR user, PDH_HQUERY *out)
{
	(void)user;
	if (source != NULL || out == NULL)
		return PDH_INVALID_ARGUMENT;
	*out = HeapAlloc(GetProcessHeap(), HEAP_ZERO_MEMORY, sizeof(struct query));
	return *out ? ERROR_SUCCESS : PDH_MEMORY_ALLOCATION_FAILURE;
}

__declspec(dllexport) PDH_FUNCTION PdhCloseQuery(PDH_HQUERY q)
{
	HeapFree(GetProcessHeap(), 0, q);
	return ERROR_SUCCESS;
}

__declspec(dllexport) PDH_FUNCTION PdhValidatePathW(LPCWSTR path)
{
	return find(path) ? ERROR_SUCCESS : PDH_CSTATUS_NO_OBJECT;
}

__declspec(dllexport) PDH_FUNCTION PdhAddEnglishCounterW(PDH_HQUERY q, LPCWSTR path, DWORD_PTR user, PDH_HCOUNTER *out)
{
	struct query *query = q;

	(void)user;
	if (query == NULL || query->counter != 0)
		return PDH_INVALID_ARGUMENT;
	if ((query->counter = find(path)) == 0)
		return PDH_CSTATUS_NO_OBJECT;
	*out = query;
	return ERROR_SUCCESS;
}

__declspec(dllexport) PDH_FUNCTION PdhAddCounterW(PDH_HQUERY q, LPCWSTR path, DWORD_PTR user, PDH_HCOUNTER *out)
{
	return PdhAddEnglishCounterW(q, path, user, out);
}

static ULONGLONG count(enum counter c, const MIB_IF_ROW2 *row)
{
	switch (c) {
	case PACKETS_RECEIVED:
		return row->InUcastPkts + row->InNUcastPkts;
	case PACKETS_SENT:
		return row->OutUcastPkts + row->OutNUcastPkts;
	case BYTES_RECEIVED:
		return row->InOctets;
	case BYTES_SENT:
		return row->OutOctets;
	case RECEIVED_DISCARDED:
		return row->InDiscards;
	case RECEIVED_ERRORS:
		return row->InErrors;
	case OUTBOUND_DISCARDED:
		return row->OutDiscards;
	case OUTBOUND_ERRORS:
		return row->OutErrors;
	default:
		return 0;
	}
}

/* A counter of all adapters but loopback, which is none of its object. */
static PDH_STATUS collect_adapters(struct query *query)
{
	MIB_IF_TABLE2 *table;
	ULONGLONG now = GetTickCount64();
	DWORD n = 0;

	if (GetIfTable2(&table) != NO_ERROR)
		return PDH_NO_DATA;
	for (ULONG i = 0; i < table->NumEntries && n < ADAPTERS; i++) {
		const MIB_IF_ROW2 *row = &table->Table[i];
		struct instance *a = &query->adapter[n];
		ULONGLONG c = count(query->counter, row);

		if (row->Type == IF_TYPE_SOFTWARE_LOOPBACK)
			continue;
		/* The first collection has nothing to compare with, nor has one after adapters came or went. */
		BOOL known_before = n < query->adapters && wcscmp(a->name, row->Description) == 0;
		if (!known[query->counter].rate)
			a->value = (double)c;
		else if (known_before && now > query->when && c >= a->count)
			a->value = 1000.0 * (double)(c - a->count) / (double)(now - query->when);
		else
			a->value = 0;
		lstrcpynW(a->name, row->Description, IF_MAX_STRING_SIZE + 1);
		a->count = c;
		n++;
	}
	FreeMibTable(table);
	query->adapters = n;
	query->when = now;
	return ERROR_SUCCESS;
}

__declspec(dllexport) PDH_FUNCTION PdhCollectQueryData(PDH_HQUERY q)
{
	struct query *query = q;
	FILETIME idle, kernel, user;
	MEMORYSTATUSEX memory = {.dwLength = sizeof memory};

	switch (query->counter) {
	case PROCESSOR_TIME:
		if (!GetSystemTimes(&idle, &kernel, &user))
			return PDH_NO_DATA;
		ULONGLONG total = number(kernel) + number(user); /* kernel time has the idle time in it */
		if (total > query->total && query->total != 0)
			query->value = 100.0 * (1 - (double)(number(idle) - query->idle) / (double)(total - query->total));
		query->idle = number(idle);
		query->total = total;
		return ERROR_SUCCESS;
	case PRIVATE_WORKING_SET:
		if (!GlobalMemoryStatusEx(&memory))
			return PDH_NO_DATA;
		query->value = (double)(memory.ullTotalPhys - memory.ullAvailPhys);
		return ERROR_SUCCESS;
	case COMMITTED_BYTES:
		if (!GlobalMemoryStatusEx(&memory))
			return PDH_NO_DATA;
		query->value = (double)(memory.ullTotalPageFile - memory.ullAvailPageFile);
		return ERROR_SUCCESS;
	default:
		if (query->counter >= PACKETS_RECEIVED)
			return collect_adapters(query);
		return PDH_NO_DATA;
	}
}

__declspec(dllexport) PDH_FUNCTION PdhGetFormattedCounterValue(PDH_HCOUNTER c, DWORD format, LPDWORD type, PPDH_FMT_COUNTERVALUE value)
{
	struct query *query = c;

	if (!(format & PDH_FMT_DOUBLE) || known[query->counter].instance == NULL) /* several values */
		return PDH_INVALID_ARGUMENT;
	if (type)
		*type = 0;
	value->CStatus = PDH_CSTATUS_VALID_DATA;
	value->doubleValue = query->value;
	return ERROR_SUCCESS;
}

/* The items, and behind them their names. */
__declspec(dllexport) PDH_FUNCTION PdhGetFormattedCounterArrayW(PDH_HCOUNTER c, DWORD format, LPDWORD size, LPDWORD number_of_items, PPDH_FMT_COUNTERVALUE_ITEM_W items)
{
	struct query *query = c;
	BOOL adapters = known[query->counter].instance == NULL;
	DWORD n = adapters ? query->adapters : 1, need = n * sizeof *items;
	WCHAR *text = (WCHAR *)(items + n);

	if (!(format & PDH_FMT_DOUBLE))
		return PDH_INVALID_ARGUMENT;
	for (DWORD i = 0; i < n; i++)
		need += (wcslen(adapters ? query->adapter[i].name : known[query->counter].instance) + 1) * sizeof *text;
	*number_of_items = n;
	if (*size < need) {
		*size = need;
		return PDH_MORE_DATA;
	}
	for (DWORD i = 0; i < n; i++) {
		items[i].szName = wcscpy(text, adapters ? query->adapter[i].name : known[query->counter].instance);
		text += wcslen(text) + 1;
		items[i].FmtValue.CStatus = PDH_CSTATUS_VALID_DATA;
		items[i].FmtValue.doubleValue = adapters ? query->adapter[i].value : query->value;
	}
	*size = need;
	return ERROR_SUCCESS;
}
