/* The memory of a node. Programs that are started with WINLAB_MEMORY, the path of a file
 * with two numbers of bytes, "TOTAL AVAILABLE", see these instead of the memory of this
 * machine: the kubelet does (k8s.io/kubernetes pkg/kubelet/winstats). What is committed is
 * what is not available; there is no page file. */
#include <stdio.h>
#include <windows.h>
#include <psapi.h>

static BOOL(WINAPI *real_status)(LPMEMORYSTATUSEX);
static BOOL(WINAPI *real_performance)(PPERFORMANCE_INFORMATION, DWORD);

static BOOL memory_of(ULONGLONG *total, ULONGLONG *available)
{
	WCHAR path[1024];
	char text[64];
	DWORD n = GetEnvironmentVariableW(L"WINLAB_MEMORY", path, ARRAYSIZE(path));
	HANDLE file;
	BOOL read;

	if (n == 0 || n >= ARRAYSIZE(path))
		return FALSE;
	file = CreateFileW(path, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL, OPEN_EXISTING, 0, NULL);
	if (file == INVALID_HANDLE_VALUE)
		return FALSE;
	read = ReadFile(file, text, sizeof text - 1, &n, NULL);
	CloseHandle(file);
	if (!read)
		return FALSE;
	text[n] = 0;
	return sscanf(text, "%llu %llu", total, available) == 2 && *total > 0 && *available <= *total;
}

static BOOL WINAPI status_of(LPMEMORYSTATUSEX s)
{
	ULONGLONG total, available;

	if (!real_status(s))
		return FALSE;
	if (memory_of(&total, &available)) {
		s->ullTotalPhys = s->ullTotalPageFile = total;
		s->ullAvailPhys = s->ullAvailPageFile = available;
		s->dwMemoryLoad = (DWORD)(100 * (total - available) / total);
	}
	return TRUE;
}

static BOOL WINAPI performance_of(PPERFORMANCE_INFORMATION p, DWORD size)
{
	ULONGLONG total, available;

	if (!real_performance(p, size))
		return FALSE;
	if (memory_of(&total, &available)) {
		p->PhysicalTotal = p->CommitLimit = total / p->PageSize;
		p->PhysicalAvailable = available / p->PageSize;
		p->CommitTotal = (total - available) / p->PageSize;
	}
	return TRUE;
}

/* node_memory replaces what asks for memory. */
static void node_memory(struct exports *kernel)
{
	real_status = (void *)GetProcAddress((HMODULE)kernel->base, "GlobalMemoryStatusEx");
	real_performance = (void *)GetProcAddress((HMODULE)kernel->base, "K32GetPerformanceInfo");
	if (real_status && real_performance) {
		replace(kernel, "GlobalMemoryStatusEx", (void *)status_of);
		replace(kernel, "K32GetPerformanceInfo", (void *)performance_of); /* psapi.dll's leads here */
	}
}
