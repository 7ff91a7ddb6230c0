/* nsi.dll: network tables. Wine's own library, wine_nsi.dll, asks a driver, which a
 * service starts; wineboot.c starts none. So they are started here, when the first
 * program loads this library: it is one that lists addresses, routes or connections or
 * sends an echo request (ipconfig, netstat, route, ping), by iphlpapi.dll. */
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

enum { LIMIT_MS = 60000 };

/* The driver is there. */
static BOOL up(void)
{
	HANDLE h = CreateFileW(L"\\\\.\\Nsi", 0, FILE_SHARE_READ | FILE_SHARE_WRITE, NULL, OPEN_EXISTING, 0, NULL);

	if (h == INVALID_HANDLE_VALUE)
		return FALSE;
	CloseHandle(h);
	return TRUE;
}

/* Has services.exe started, as Wine's wineboot does (programs/wineboot/wineboot.c,
 * start_services_process): it sets the event when its drivers are up. Where nothing waits
 * for the request (wineboot.c), it is this program's child. */
static void services(void)
{
	STARTUPINFOW si = { .cb = sizeof si };
	PROCESS_INFORMATION pi;
	WCHAR path[] = L"C:\\windows\\system32\\services.exe";
	HANDLE started = CreateEventW(NULL, TRUE, FALSE, L"__wine_SvcctlStarted");
	HANDLE wanted = OpenEventW(EVENT_MODIFY_STATE, FALSE, L"winlab-services-wanted");

	if (wanted) {
		SetEvent(wanted);
		WaitForSingleObject(started, LIMIT_MS);
		CloseHandle(wanted);
	} else if (CreateProcessW(path, NULL, NULL, NULL, FALSE, DETACHED_PROCESS, NULL, NULL, &si, &pi)) {
		HANDLE all[2] = { started, pi.hProcess };

		WaitForMultipleObjects(2, all, FALSE, LIMIT_MS);
		CloseHandle(pi.hThread);
		CloseHandle(pi.hProcess);
	}
	if (started)
		CloseHandle(started);
}

BOOL WINAPI DllMain(HINSTANCE dll, DWORD reason, LPVOID reserved)
{
	(void)dll, (void)reserved;
	if (reason == DLL_PROCESS_ATTACH && !up()) {
		HANDLE one = CreateMutexW(NULL, FALSE, L"winlab-services");

		if (one && WaitForSingleObject(one, LIMIT_MS) != WAIT_TIMEOUT) {
			if (!up())
				services();
			ReleaseMutex(one);
		}
		if (one)
			CloseHandle(one);
	}
	return TRUE;
}
