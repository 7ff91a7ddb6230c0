/* pdh.dll: the performance counters that the kubelet reads of its node
 * (k8s.io/kubernetes pkg/kubelet/winstats/perfcounters.go), which Wine's has not. The
 * values are those of this machine, as Wine's other calls show it. */
#include <windows.h>
#include <pdh.h>
#include <pdhmsg.h>
#include <wchar.h>

enum counter { PROCESSOR_TIME = 1, PRIVATE_WORKING_SET, COMMITTED_BYTES };

static const struct {
	const WCHAR *path;
	const WCHAR *instance;
} known[] = {
	[PROCESSOR_TIME] = {L"\\Processor(_Total)\\% Processor Time", L"_Total"},
	[PRIVATE_WORKING_SET] = {L"\\Process(_Total)\\Working Set - Private", L"_Total"},
	[COMMITTED_BYTES] = {L"\\Memory\\Committed Bytes", L""},
};

/* A query has one counter: that is how the kubelet asks. */
struct query {
	enum counter counter;
	ULONGLONG idle, total; /* of all processors, in 100 ns, at the last collection */
	double value;
};

static ULONGLONG number(FILETIME t)
{
	return (ULONGLONG)t.dwHighDateTime << 32 | t.dwLowDateTime;
}

static enum counter find(const WCHAR *path)
{
	for (int i = PROCESSOR_TIME; i <= COMMITTED_BYTES; i++)
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
	}
	return PDH_NO_DATA;
}

__declspec(dllexport) PDH_FUNCTION PdhGetFormattedCounterValue(PDH_HCOUNTER c, DWORD format, LPDWORD type, PPDH_FMT_COUNTERVALUE value)
{
	struct query *query = c;

	if (!(format & PDH_FMT_DOUBLE))
		return PDH_INVALID_ARGUMENT;
	if (type)
		*type = 0;
	value->CStatus = PDH_CSTATUS_VALID_DATA;
	value->doubleValue = query->value;
	return ERROR_SUCCESS;
}

__declspec(dllexport) PDH_FUNCTION PdhGetFormattedCounterArrayW(PDH_HCOUNTER c, DWORD format, LPDWORD size, LPDWORD count, PPDH_FMT_COUNTERVALUE_ITEM_W items)
{
	struct query *query = c;
	DWORD need = sizeof *items;

	if (!(format & PDH_FMT_DOUBLE))
		return PDH_INVALID_ARGUMENT;
	if (*size < need) {
		*size = need;
		*count = 1;
		return PDH_MORE_DATA;
	}
	items[0].szName = (WCHAR *)known[query->counter].instance;
	items[0].FmtValue.CStatus = PDH_CSTATUS_VALID_DATA;
	items[0].FmtValue.doubleValue = query->value;
	*size = need;
	*count = 1;
	return ERROR_SUCCESS;
}
