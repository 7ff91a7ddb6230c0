/* wineboot.exe for copies of a prefix that Wine's own wineboot.exe has made. Each first
 * program of a Wine server starts wineboot.exe --init and waits for the event
 * __wineboot_event (dlls/ntdll/unix/env.c of Wine 8, run_wineboot). Wine's own computes
 * what it knows of the processor, asks DNS for this machine's name (which takes as long
 * as the resolver's time-out where no server answers) and starts services.exe with
 * its drivers: half a second, and 80 MB as long as a program runs. All of that is the same
 * in each copy.
 *
 *     wineboot.exe --save    in the prefix to copy, after Wine's own: keeps what that has
 *                            computed, in a file and in the registry's files
 *     wineboot.exe --init    takes it from there; starts no service (nsi.c does, when a
 *                            program asks for network tables)
 *     wineboot.exe           the same as the first program of a server: the event stays
 *                            until the server ends, so that no later program comes here;
 *                            and starts the next
 *     wineboot.exe --wait    starts the services when nsi.c asks for it. A program that
 *                            started them itself would leave them its error output, and
 *                            who reads that would never see its end
 *
 *     wineboot.exe --services   asks for them itself and waits until they are up; its output
 *                               should not be read by anything, since it may leave --wait behind
 *
 * It uses kernel32 and ntdll alone, which are in every process: loading more takes
 * longer than all it does. */
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#include <winternl.h>

#ifndef OBJ_OPENIF
#define OBJ_OPENIF 0x80
#endif
#ifndef OBJ_PERMANENT
#define OBJ_PERMANENT 0x10
#endif

NTSTATUS NTAPI NtCreateEvent(PHANDLE, ACCESS_MASK, POBJECT_ATTRIBUTES, ULONG, BOOLEAN);
NTSTATUS NTAPI NtOpenSection(PHANDLE, ACCESS_MASK, POBJECT_ATTRIBUTES);
NTSTATUS NTAPI RtlGetVersion(PRTL_OSVERSIONINFOEXW);

#define SAVED L"C:\\windows\\winlab-boot.bin"
#define PAGE 4096

/* The parts of KUSER_SHARED_DATA (its layout is in Microsoft's ntddk.h) that do not
 * change while a system runs. The times between them are the server's. */
static const struct { unsigned from, to; } fixed[] = {
	{ 0x004, 0x008 },  /* TickCountMultiplier */
	{ 0x02c, 0x300 },  /* image numbers to ProcessorFeatures and SuiteMask */
	{ 0x3c0, 0x3c6 },  /* ActiveProcessorCount, ActiveGroupCount */
	{ 0x3d8, PAGE },   /* XState */
};
enum { BUILD = 0x260, PRODUCT = 0x264, MAJOR = 0x26c, MINOR = 0x270, SUITE = 0x2d0 };

static char page[PAGE];

static char *shared_data(DWORD access)
{
	OBJECT_ATTRIBUTES attr = { .Length = sizeof attr };
	UNICODE_STRING name;
	HANDLE section;
	char *at;

	RtlInitUnicodeString(&name, L"\\KernelObjects\\__wine_user_shared_data");
	attr.ObjectName = &name;
	if (NtOpenSection(&section, access == FILE_MAP_WRITE ? SECTION_MAP_WRITE | SECTION_MAP_READ : SECTION_MAP_READ, &attr))
		return NULL;
	at = MapViewOfFile(section, access, 0, 0, PAGE);
	CloseHandle(section);
	return at;
}

static BOOL file(BOOL write)
{
	DWORD done = 0;
	HANDLE f = CreateFileW(SAVED, write ? GENERIC_WRITE : GENERIC_READ, FILE_SHARE_READ, NULL,
			       write ? CREATE_ALWAYS : OPEN_EXISTING, 0, NULL);

	if (f == INVALID_HANDLE_VALUE)
		return FALSE;
	if (write ? !WriteFile(f, page, PAGE, &done, NULL) : !ReadFile(f, page, PAGE, &done, NULL))
		done = 0;
	CloseHandle(f);
	return done == PAGE;
}

/* A key that is there only as long as the server runs becomes one of the registry's
 * file: its values go into another key and back. */
static BOOL keep(HKEY root, const WCHAR *name)
{
	HMODULE dll = LoadLibraryW(L"advapi32.dll");
	LSTATUS(WINAPI *create)(HKEY, LPCWSTR, DWORD, LPWSTR, DWORD, REGSAM, LPSECURITY_ATTRIBUTES, PHKEY, LPDWORD) = (void *)GetProcAddress(dll, "RegCreateKeyExW");
	LSTATUS(WINAPI *copy)(HKEY, LPCWSTR, HKEY) = (void *)GetProcAddress(dll, "RegCopyTreeW");
	LSTATUS(WINAPI *drop)(HKEY, LPCWSTR) = (void *)GetProcAddress(dll, "RegDeleteTreeW");
	HKEY other, key;

	if (!create || !copy || !drop)
		return FALSE;
	return !create(root, L"winlab-saved", 0, NULL, 0, KEY_ALL_ACCESS, NULL, &other, NULL) && !copy(root, name, other) &&
	       !drop(root, name) && !create(root, name, 0, NULL, 0, KEY_ALL_ACCESS, NULL, &key, NULL) &&
	       !copy(other, NULL, key) && !drop(root, L"winlab-saved");
}

static BOOL save(void)
{
	char *now = shared_data(FILE_MAP_READ);

	if (!now)
		return FALSE;
	for (unsigned i = 0; i < PAGE; i++)
		page[i] = now[i];
	return file(TRUE) && keep(HKEY_LOCAL_MACHINE, L"Hardware");
}

/* What the other prefix knew, with the version of this one. */
static void restore(void)
{
	RTL_OSVERSIONINFOEXW v = { .dwOSVersionInfoSize = sizeof v };
	char *now = shared_data(FILE_MAP_WRITE);

	if (!now)
		return;
	if (file(FALSE))
		for (unsigned i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
			for (unsigned at = fixed[i].from; at < fixed[i].to; at++)
				now[at] = page[at];
	if (!RtlGetVersion(&v)) {
		*(ULONG *)(now + BUILD) = v.dwBuildNumber;
		*(ULONG *)(now + PRODUCT) = v.wProductType;
		*(ULONG *)(now + MAJOR) = v.dwMajorVersion;
		*(ULONG *)(now + MINOR) = v.dwMinorVersion;
		*(ULONG *)(now + SUITE) = v.wSuiteMask;
	}
	UnmapViewOfFile(now);
}

/* Says that Wine is up: sets the event where programs wait for it, or makes it. lasting
 * is only possible where no program holds it any longer. */
static void ready(BOOL lasting)
{
	OBJECT_ATTRIBUTES attr = { .Length = sizeof attr, .Attributes = OBJ_OPENIF | (lasting ? OBJ_PERMANENT : 0) };
	UNICODE_STRING name;
	HANDLE event;

	RtlInitUnicodeString(&name, L"\\KernelObjects\\__wineboot_event");
	attr.ObjectName = &name;
	for (int tries = 0; tries < 200; tries++) {
		NTSTATUS s = NtCreateEvent(&event, EVENT_ALL_ACCESS, &attr, 0 /* NotificationEvent */, TRUE);

		if (s < 0)
			return;
		SetEvent(event);
		CloseHandle(event);
		if (!lasting || s == 0)
			return;
		Sleep(1); /* wineboot --init, which this process has waited for, is about to end */
	}
}

#define WANTED L"winlab-services-wanted"

static BOOL run(WCHAR *line, BOOL inherit, HANDLE *process)
{
	STARTUPINFOW si = { .cb = sizeof si };
	PROCESS_INFORMATION pi;

	if (!CreateProcessW(NULL, line, NULL, NULL, inherit, DETACHED_PROCESS, NULL, NULL, &si, &pi))
		return FALSE;
	CloseHandle(pi.hThread);
	*process = pi.hProcess;
	return TRUE;
}

/* Leaves a process behind that waits for the event, which it inherits. */
static void leave_waiting(void)
{
	SECURITY_ATTRIBUTES inherited = { sizeof inherited, NULL, TRUE };
	WCHAR line[] = L"C:\\windows\\system32\\wineboot.exe --wait";
	HANDLE process;

	if (CreateEventW(&inherited, FALSE, FALSE, WANTED))
		run(line, TRUE, &process);
}

/* Starts services.exe when it is wanted, again if it has ended. */
static void wait_for_want(void)
{
	HANDLE wanted = CreateEventW(NULL, FALSE, FALSE, WANTED), process;

	while (wanted && WaitForSingleObject(wanted, INFINITE) == WAIT_OBJECT_0) {
		WCHAR line[] = L"C:\\windows\\system32\\services.exe";

		if (run(line, FALSE, &process)) {
			WaitForSingleObject(process, INFINITE);
			CloseHandle(process);
		}
	}
}

/* Asks for the services. Where the first program of the server was another, nothing waits for
 * the request yet. The mutex is nsi.c's: of two that ask at once, one starts them. */
static void want(void)
{
	HANDLE started = CreateEventW(NULL, TRUE, FALSE, L"__wine_SvcctlStarted");
	HANDLE one = CreateMutexW(NULL, FALSE, L"winlab-services"), wanted;

	if (!started || !one || WaitForSingleObject(one, 60000) == WAIT_TIMEOUT)
		return;
	if (WaitForSingleObject(started, 0) != WAIT_OBJECT_0) {
		wanted = OpenEventW(EVENT_MODIFY_STATE, FALSE, WANTED);
		if (!wanted) {
			leave_waiting();
			wanted = OpenEventW(EVENT_MODIFY_STATE, FALSE, WANTED);
		}
		if (wanted && SetEvent(wanted))
			WaitForSingleObject(started, 60000);
	}
	ReleaseMutex(one);
}

/* has looks for an option in the command line. */
static BOOL has(const WCHAR *line, const WCHAR *option)
{
	for (; *line; line++) {
		int n = 0;

		while (option[n] && line[n] == option[n])
			n++;
		if (!option[n])
			return TRUE;
	}
	return FALSE;
}

void start(void)
{
	const WCHAR *line = GetCommandLineW();

	if (has(line, L" --save"))
		ExitProcess(save() ? 0 : 1);
	if (has(line, L" --services")) {
		want();
	} else if (has(line, L" --wait")) {
		wait_for_want();
	} else if (has(line, L" --init")) {
		restore();
		ready(FALSE);
	} else {
		ready(TRUE);
		leave_waiting();
	}
	ExitProcess(0);
}
