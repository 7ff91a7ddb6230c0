/* Functions of a DLL of Wine's in whose place a program gets others.
 *
 * Go finds the functions of ws2_32.dll by name when it first needs one; so its table of
 * exports is changed before. The new functions are reached by a jump in the unused end of
 * its code's last page, since an entry of the table cannot lead out of the DLL. */
#pragma once
#include <stdio.h>
#include <string.h>
#include <windows.h>

#define JUMP 16
#define JUMPS 7 /* the most that are needed */

struct exports {
	BYTE *base;
	IMAGE_EXPORT_DIRECTORY *directory;
	BYTE *room, *end; /* of jumps */
};

/* unused is room for jumps at the end of the last page of a DLL's code; NULL for none. */
static BYTE *unused(BYTE *base, IMAGE_NT_HEADERS64 *nt, DWORD need)
{
	IMAGE_SECTION_HEADER *s = IMAGE_FIRST_SECTION(nt);

	for (int i = 0; i < nt->FileHeader.NumberOfSections; i++) {
		DWORD end = s[i].VirtualAddress + s[i].Misc.VirtualSize, start = (end + 15) & ~15u;

		if (s[i].Characteristics & IMAGE_SCN_MEM_EXECUTE && start + need <= ((end + 4095) & ~4095u))
			return base + start;
	}
	return NULL;
}

/* exports_of opens the table of a DLL; FALSE when that cannot be done. */
static BOOL exports_of(struct exports *e, const char *dll)
{
	IMAGE_NT_HEADERS64 *nt;
	DWORD before;

	if ((e->base = (BYTE *)LoadLibraryA(dll)) == NULL)
		return FALSE;
	nt = (IMAGE_NT_HEADERS64 *)(e->base + ((IMAGE_DOS_HEADER *)e->base)->e_lfanew);
	e->directory = (IMAGE_EXPORT_DIRECTORY *)(e->base + nt->OptionalHeader.DataDirectory[IMAGE_DIRECTORY_ENTRY_EXPORT].VirtualAddress);
	if ((e->room = unused(e->base, nt, JUMPS * JUMP)) == NULL || !VirtualProtect(e->room, JUMPS * JUMP, PAGE_EXECUTE_READWRITE, &before)) {
		fprintf(stderr, "winlab: no room for functions of its own in %s\n", dll);
		return FALSE;
	}
	e->end = e->room;
	return TRUE;
}

/* exports_done protects the jumps again. */
static void exports_done(struct exports *e)
{
	DWORD before;

	VirtualProtect(e->room, JUMPS * JUMP, PAGE_EXECUTE_READ, &before);
}

/* replace makes the exported function be another; the one that it was before is returned,
 * NULL when there is no such export. */
static void *replace(struct exports *e, const char *name, void *by)
{
	const DWORD *names = (DWORD *)(e->base + e->directory->AddressOfNames);
	const WORD *ordinals = (WORD *)(e->base + e->directory->AddressOfNameOrdinals);
	DWORD *functions = (DWORD *)(e->base + e->directory->AddressOfFunctions), before;

	for (DWORD i = 0; i < e->directory->NumberOfNames; i++) {
		DWORD *f = &functions[ordinals[i]];
		void *was = e->base + *f;

		if (strcmp((char *)e->base + names[i], name) != 0)
			continue;
		memcpy(e->end, "\x48\xb8", 2); /* mov rax, by */
		memcpy(e->end + 2, &by, 8);
		memcpy(e->end + 10, "\xff\xe0", 2); /* jmp rax */
		if (!VirtualProtect(f, sizeof *f, PAGE_READWRITE, &before))
			return NULL;
		*f = (DWORD)(e->end - e->base);
		VirtualProtect(f, sizeof *f, before, &before);
		e->end += JUMP;
		return was;
	}
	return NULL;
}
