/* Paths that begin with a slash. Of Windows, /var/run is a path from the root of the present
 * drive; Wine takes it for one of this machine (RtlGetFullPathName_U: find_drive_root), which
 * is drive Z. Go programs that know Linux have such paths: a client in a pod reads
 * /var/run/secrets/kubernetes.io/serviceaccount/token.
 *
 * kernelbase.dll and kernel32.dll ask ntdll.dll what a path is; here the pointers by which
 * they do so are changed, and a slash at the beginning becomes a backslash. */
#include <string.h>
#include <windows.h>
#include <winternl.h>

static NTSTATUS(WINAPI *real_to_nt_status)(const WCHAR *, UNICODE_STRING *, WCHAR **, void *);
static BOOLEAN(WINAPI *real_to_nt)(const WCHAR *, UNICODE_STRING *, WCHAR **, void *);
static ULONG(WINAPI *real_full)(const WCHAR *, ULONG, WCHAR *, WCHAR **);

/* rooted is the path as Windows means it; copy is to be freed, and NULL for the path itself. */
static const WCHAR *rooted(const WCHAR *path, WCHAR **copy)
{
	*copy = NULL;
	if (path == NULL || path[0] != '/' || path[1] == '/' || path[1] == '\\')
		return path;
	*copy = HeapAlloc(GetProcessHeap(), 0, (lstrlenW(path) + 1) * sizeof *path);
	if (*copy == NULL)
		return path;
	lstrcpyW(*copy, path);
	(*copy)[0] = '\\';
	return *copy;
}

static void done(WCHAR *copy)
{
	if (copy)
		HeapFree(GetProcessHeap(), 0, copy);
}

static NTSTATUS WINAPI to_nt_status_of(const WCHAR *path, UNICODE_STRING *nt, WCHAR **file, void *directory)
{
	WCHAR *copy;
	NTSTATUS status = real_to_nt_status(rooted(path, &copy), nt, file, directory);

	done(copy);
	return status;
}

static BOOLEAN WINAPI to_nt_of(const WCHAR *path, UNICODE_STRING *nt, WCHAR **file, void *directory)
{
	WCHAR *copy;
	BOOLEAN ok = real_to_nt(rooted(path, &copy), nt, file, directory);

	done(copy);
	return ok;
}

static ULONG WINAPI full_of(const WCHAR *path, ULONG size, WCHAR *buffer, WCHAR **file)
{
	WCHAR *copy;
	ULONG n = real_full(rooted(path, &copy), size, buffer, file);

	done(copy);
	return n;
}

/* imported changes a module's pointer to a function of another DLL. */
static void imported(const char *module, const char *dll, const char *name, void *by)
{
	BYTE *base = (BYTE *)GetModuleHandleA(module);
	IMAGE_NT_HEADERS64 *nt;
	IMAGE_IMPORT_DESCRIPTOR *d;
	DWORD before;

	if (base == NULL)
		return;
	nt = (IMAGE_NT_HEADERS64 *)(base + ((IMAGE_DOS_HEADER *)base)->e_lfanew);
	if (nt->OptionalHeader.DataDirectory[IMAGE_DIRECTORY_ENTRY_IMPORT].VirtualAddress == 0)
		return;
	for (d = (void *)(base + nt->OptionalHeader.DataDirectory[IMAGE_DIRECTORY_ENTRY_IMPORT].VirtualAddress); d->Name; d++) {
		IMAGE_THUNK_DATA64 *names = (void *)(base + d->OriginalFirstThunk), *pointers = (void *)(base + d->FirstThunk);

		if (_stricmp((char *)base + d->Name, dll) != 0)
			continue;
		for (; names->u1.AddressOfData; names++, pointers++) {
			if (names->u1.Ordinal & IMAGE_ORDINAL_FLAG64 || strcmp((char *)((IMAGE_IMPORT_BY_NAME *)(base + names->u1.AddressOfData))->Name, name) != 0)
				continue;
			if (VirtualProtect(pointers, sizeof *pointers, PAGE_READWRITE, &before)) {
				pointers->u1.Function = (ULONGLONG)(uintptr_t)by;
				VirtualProtect(pointers, sizeof *pointers, before, &before);
			}
		}
	}
}

/* slashes is called once, before the program's own code. */
static void slashes(void)
{
	HMODULE nt = GetModuleHandleA("ntdll.dll");
	static const char *const modules[] = {"kernelbase.dll", "kernel32.dll"};

	real_to_nt_status = (void *)GetProcAddress(nt, "RtlDosPathNameToNtPathName_U_WithStatus");
	real_to_nt = (void *)GetProcAddress(nt, "RtlDosPathNameToNtPathName_U");
	real_full = (void *)GetProcAddress(nt, "RtlGetFullPathName_U");
	if (!real_to_nt_status || !real_to_nt || !real_full)
		return;
	for (unsigned i = 0; i < ARRAYSIZE(modules); i++) {
		imported(modules[i], "ntdll.dll", "RtlDosPathNameToNtPathName_U_WithStatus", (void *)to_nt_status_of);
		imported(modules[i], "ntdll.dll", "RtlDosPathNameToNtPathName_U", (void *)to_nt_of);
		imported(modules[i], "ntdll.dll", "RtlGetFullPathName_U", (void *)full_of);
	}
}
