/* Symbolic links, which Wine 8 does not make: its CreateSymbolicLinkW says that it has, and
 * does nothing. The kubelet writes ConfigMaps, Secrets and service account tokens by links
 * (k8s.io/kubernetes pkg/volume/util/atomic_writer.go), so that they change at once.
 *
 * A link of a program whose environment has WINLAB_SYMLINKS is one of Linux, which Wine
 * follows and whose programs on this machine see, too. It is made, read and removed by
 * system calls of Linux: a Windows program under Wine is a process of Linux. What is
 * covered is what Go calls: os.Symlink, Readlink, Remove and RemoveAll. Lstat shows what a
 * link leads to. */
#include <stdint.h>
#include <string.h>
#include <windows.h>
#include <winternl.h>

#define PATH_BYTES 4096

enum { SYS_close = 3, SYS_rename = 82, SYS_creat = 85, SYS_unlink = 87, SYS_symlink = 88, SYS_readlink = 89 };

static long long linux_call(long long number, const void *a, const void *b, size_t c)
{
	long long result;

	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return result;
}

static char *(__cdecl *unix_name)(LPCWSTR);   /* of Wine: where a path is on this machine, on the heap */
static LPWSTR(__cdecl *windows_name)(LPCSTR); /* and the opposite */
static HANDLE(WINAPI *real_create)(LPCWSTR, DWORD, DWORD, LPSECURITY_ATTRIBUTES, DWORD, DWORD, HANDLE);
static BOOL(WINAPI *real_control)(HANDLE, DWORD, LPVOID, DWORD, LPVOID, DWORD, LPDWORD, LPOVERLAPPED);
static BOOL(WINAPI *real_delete)(LPCWSTR);
static BOOL(WINAPI *real_remove)(LPCWSTR);
static NTSTATUS(NTAPI *real_open)(PHANDLE, ACCESS_MASK, POBJECT_ATTRIBUTES, PIO_STATUS_BLOCK, ULONG, ULONG);

/* Open links: which handle is of which. Wine has no handle of a link itself. */
static struct {
	HANDLE handle;
	char target[PATH_BYTES];
} opened[16];
static unsigned next_opened;
static SRWLOCK opened_lock = SRWLOCK_INIT;

/* link_at reads the link at a path; FALSE when there is none. */
static BOOL link_at(const char *path, char target[PATH_BYTES])
{
	long long n = linux_call(SYS_readlink, path, target, PATH_BYTES - 1);

	if (n <= 0)
		return FALSE;
	target[n] = 0;
	return TRUE;
}

/* unlink_at removes the link at a path of Windows; FALSE when there is none. */
static BOOL unlink_at(LPCWSTR path)
{
	char target[PATH_BYTES], *at = unix_name(path);
	BOOL gone = at != NULL && link_at(at, target) && linux_call(SYS_unlink, at, NULL, 0) == 0;

	if (at)
		HeapFree(GetProcessHeap(), 0, at);
	return gone;
}

static BOOL WINAPI delete_of(LPCWSTR path) { return unlink_at(path) || real_delete(path); }
static BOOL WINAPI remove_of(LPCWSTR path) { return unlink_at(path) || real_remove(path); }

static BOOLEAN WINAPI symlink_of(LPCWSTR link, LPCWSTR target, DWORD flags)
{
	char to[PATH_BYTES], *at = unix_name(link), *absolute = NULL;
	long long failed = -2; /* ENOENT: the folder of the link is not there */

	(void)flags; /* of Linux, a link of a file and one of a folder are the same */
	/* With a drive, or from the root of the present one. */
	if ((target[0] && target[1] == ':') || ((target[0] == '\\' || target[0] == '/') && target[1] != target[0])) {
		if ((absolute = unix_name(target)) != NULL && strlen(absolute) < PATH_BYTES)
			strcpy(to, absolute);
		else
			to[0] = 0;
	} else if (WideCharToMultiByte(CP_UTF8, 0, target, -1, to, PATH_BYTES, NULL, NULL) == 0) {
		to[0] = 0;
	}
	for (char *p = to; !absolute && *p; p++)
		if (*p == '\\')
			*p = '/';
	if (at != NULL && to[0])
		failed = linux_call(SYS_symlink, to, at, 0);
	if (at)
		HeapFree(GetProcessHeap(), 0, at);
	if (absolute)
		HeapFree(GetProcessHeap(), 0, absolute);
	switch (failed) {
	case 0:
		return TRUE;
	case -17: /* EEXIST */
		SetLastError(ERROR_ALREADY_EXISTS);
		break;
	case -2: /* ENOENT */
		SetLastError(ERROR_PATH_NOT_FOUND);
		break;
	default:
		SetLastError(ERROR_ACCESS_DENIED);
	}
	return FALSE;
}

static HANDLE WINAPI create_of(LPCWSTR path, DWORD access, DWORD share, LPSECURITY_ATTRIBUTES security, DWORD how, DWORD flags, HANDLE like)
{
	char target[PATH_BYTES], *at = NULL;
	BOOL link = flags & FILE_FLAG_OPEN_REPARSE_POINT && (at = unix_name(path)) != NULL && link_at(at, target);
	HANDLE h = real_create(path, access, share, security, how, flags, like);

	if (at)
		HeapFree(GetProcessHeap(), 0, at);
	if (h == INVALID_HANDLE_VALUE)
		return h;
	DWORD error = GetLastError();
	AcquireSRWLockExclusive(&opened_lock);
	for (unsigned i = 0; i < ARRAYSIZE(opened); i++)
		if (opened[i].handle == h) /* the number of one that was closed */
			opened[i].handle = NULL;
	if (link) {
		opened[next_opened].handle = h;
		strcpy(opened[next_opened].target, target);
		next_opened = (next_opened + 1) % ARRAYSIZE(opened);
	}
	ReleaseSRWLockExclusive(&opened_lock);
	SetLastError(error);
	return h;
}

/* The answer of FSCTL_GET_REPARSE_POINT for a link: REPARSE_DATA_BUFFER of ntifs.h. */
struct reparse {
	ULONG tag;
	USHORT length, reserved;
	USHORT substitute, substitute_length, print, print_length;
	ULONG flags;
	WCHAR path[];
};

static BOOL answer(const char *target, LPVOID out, DWORD size, LPDWORD returned)
{
	BOOL absolute = target[0] == '/';
	WCHAR text[PATH_BYTES + 8], *named = absolute ? windows_name(target) : NULL;
	struct reparse *r = out;
	USHORT bytes;

	if (absolute && named == NULL)
		return FALSE;
	if (absolute) {
		lstrcpyW(text, L"\\??\\");
		lstrcpynW(text + 4, named, PATH_BYTES);
		HeapFree(GetProcessHeap(), 0, named);
	} else {
		MultiByteToWideChar(CP_UTF8, 0, target, -1, text, PATH_BYTES);
		for (WCHAR *p = text; *p; p++)
			if (*p == '/')
				*p = '\\';
	}
	bytes = (USHORT)(lstrlenW(text) * sizeof(WCHAR));
	if (size < sizeof *r + 2 * bytes) {
		SetLastError(ERROR_INSUFFICIENT_BUFFER);
		return FALSE;
	}
	*r = (struct reparse){.tag = IO_REPARSE_TAG_SYMLINK, .length = (USHORT)(sizeof *r - 8 + 2 * bytes), .substitute_length = bytes, .print = bytes, .print_length = bytes, .flags = !absolute};
	memcpy(r->path, text, bytes);
	memcpy((BYTE *)r->path + bytes, text, bytes);
	*returned = (DWORD)(sizeof *r + 2 * bytes);
	return TRUE;
}

static BOOL WINAPI control_of(HANDLE h, DWORD code, LPVOID in, DWORD in_size, LPVOID out, DWORD out_size, LPDWORD returned, LPOVERLAPPED overlapped)
{
	char target[PATH_BYTES];
	BOOL link = FALSE;

	if (code == FSCTL_GET_REPARSE_POINT && returned != NULL) {
		AcquireSRWLockShared(&opened_lock);
		for (unsigned i = 0; !link && i < ARRAYSIZE(opened); i++)
			if (opened[i].handle == h && (link = TRUE))
				strcpy(target, opened[i].target);
		ReleaseSRWLockShared(&opened_lock);
		if (link)
			return answer(target, out, out_size, returned);
		SetLastError(ERROR_NOT_A_REPARSE_POINT); /* as Windows says; Wine does not know the code */
		return FALSE;
	}
	return real_control(h, code, in, in_size, out, out_size, returned, overlapped);
}

/* Go's RemoveAll opens what it removes below a folder's handle, and says on the handle that
 * it shall go, which Wine does to what a link leads to. So an empty file takes the place of
 * a link that is opened for that. */
static NTSTATUS NTAPI open_of(PHANDLE h, ACCESS_MASK access, POBJECT_ATTRIBUTES o, PIO_STATUS_BLOCK io, ULONG share, ULONG options)
{
	WCHAR path[PATH_BYTES];
	char target[PATH_BYTES], instead[PATH_BYTES], *at;

	if (access & DELETE && options & 0x200000 /* FILE_OPEN_REPARSE_POINT */ && o->RootDirectory && o->ObjectName) {
		DWORD n = GetFinalPathNameByHandleW(o->RootDirectory, path, PATH_BYTES, VOLUME_NAME_DOS);
		unsigned name = o->ObjectName->Length / sizeof(WCHAR);

		if (n > 0 && n + name + 2 < PATH_BYTES) {
			path[n] = '\\';
			memcpy(path + n + 1, o->ObjectName->Buffer, name * sizeof(WCHAR));
			path[n + 1 + name] = 0;
			if ((at = unix_name(path)) != NULL) {
				if (link_at(at, target) && strlen(at) + 9 < sizeof instead) {
					strcat(strcpy(instead, at), ".winlab~");
					long long file = linux_call(SYS_creat, instead, (void *)0600, 0);
					if (file >= 0) {
						linux_call(SYS_close, (void *)file, NULL, 0);
						linux_call(SYS_rename, instead, at, 0);
					}
				}
				HeapFree(GetProcessHeap(), 0, at);
			}
		}
	}
	return real_open(h, access, o, io, share, options);
}

/* Go's RemoveAll first asks for removal as POSIX has it, and then as older Windows has it
 * when no such class of information exists. Wine 8 says that it does not
 * implement it, which ends Go's attempt. */
static NTSTATUS(NTAPI *real_set)(HANDLE, PIO_STATUS_BLOCK, PVOID, ULONG, int);

static NTSTATUS NTAPI set_of(HANDLE h, PIO_STATUS_BLOCK io, PVOID what, ULONG length, int class)
{
	NTSTATUS status = real_set(h, io, what, length, class);

	if (class == 64 /* FileDispositionInformationEx */ && status == (NTSTATUS)0xC0000002 /* STATUS_NOT_IMPLEMENTED */)
		return (NTSTATUS)0xC0000003; /* STATUS_INVALID_INFO_CLASS */
	return status;
}

/* symbolic_links replaces what has to do with links. */
static void symbolic_links(struct exports *nt, struct exports *k)
{
	/* Functions of Wine's kernel32.dll may be those of another DLL. */
	HMODULE kernel = (HMODULE)k->base;
	unix_name = (void *)GetProcAddress(kernel, "wine_get_unix_file_name");
	windows_name = (void *)GetProcAddress(kernel, "wine_get_dos_file_name");
	real_create = (void *)GetProcAddress(kernel, "CreateFileW");
	real_control = (void *)GetProcAddress(kernel, "DeviceIoControl");
	real_delete = (void *)GetProcAddress(kernel, "DeleteFileW");
	real_remove = (void *)GetProcAddress(kernel, "RemoveDirectoryW");
	real_open = (void *)GetProcAddress((HMODULE)nt->base, "NtOpenFile");
	if (unix_name && windows_name && real_create && real_control && real_delete && real_remove && real_open) {
		replace(k, "CreateSymbolicLinkW", (void *)symlink_of);
		replace(k, "CreateFileW", (void *)create_of);
		replace(k, "DeviceIoControl", (void *)control_of);
		replace(k, "DeleteFileW", (void *)delete_of);
		replace(k, "RemoveDirectoryW", (void *)remove_of);
		replace(nt, "NtOpenFile", (void *)open_of);
	}
}

static BOOL is_set(const char *name) { return GetEnvironmentVariableA(name, NULL, 0) != 0; }

/* files is called once, before the program's own code. */
static void files(void)
{
	struct exports e, k;
	BOOL links = is_set("WINLAB_SYMLINKS"), memory = is_set("WINLAB_MEMORY");

	if (!exports_of(&e, "ntdll.dll"))
		return;
	if ((real_set = (void *)GetProcAddress((HMODULE)e.base, "NtSetInformationFile")) != NULL)
		replace(&e, "NtSetInformationFile", (void *)set_of);
	if ((links || memory) && exports_of(&k, "kernel32.dll")) {
		if (links)
			symbolic_links(&e, &k);
		if (memory)
			node_memory(&k);
		exports_done(&k);
	}
	exports_done(&e);
}
