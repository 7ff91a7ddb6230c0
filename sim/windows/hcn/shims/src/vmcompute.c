/* vmcompute.dll: HNSCall of HNS v1, and what of the Host Compute Service a program
 * needs to attach a container to an endpoint (hcsshim HotAttachEndpoint), each
 * forwarded to winlab's HNS service. Signatures as in hcsshim
 * internal/vmcompute/vmcompute.go. */
#include "wire.h"

#define EXPORT __declspec(dllexport) HRESULT WINAPI

EXPORT HNSCall(PCWSTR method, PCWSTR path, PCWSTR request, PWSTR *response)
{
	const WCHAR *texts[3] = { method, path, request };
	struct reply r;

	if (!method || !path || !response)
		return E_POINTER;
	r = call(HNSCALL, NONE, 0, NULL, 3, texts, wcscmp(method, L"GET") == 0);
	give(response, r.output);
	give(NULL, r.record);
	return r.hr;
}

static HRESULT compute(int verb, void *system, PCWSTR text, void **made, PWSTR *output, PWSTR *result)
{
	struct reply r;

	if (!text)
		text = L"";
	r = call(verb, COMPUTESYSTEM, (ULONG_PTR)system, NULL, 1, &text, verb != MODIFY);
	if (made)
		*made = (void *)(ULONG_PTR)r.handle;
	give(output, r.output);
	give(result, r.record);
	return r.hr;
}

EXPORT HcsOpenComputeSystem(PCWSTR id, void **system, PWSTR *result)
{
	if (!id || !system)
		return E_POINTER;
	return compute(OPEN, NULL, id, system, NULL, result);
}

EXPORT HcsGetComputeSystemProperties(void *system, PCWSTR query, PWSTR *properties, PWSTR *result)
{
	if (!properties)
		return E_POINTER;
	return compute(QUERY, system, query, NULL, properties, result);
}

EXPORT HcsModifyComputeSystem(void *system, PCWSTR settings, PWSTR *result)
{
	return compute(MODIFY, system, settings, NULL, NULL, result);
}

EXPORT HcsCloseComputeSystem(void *system)
{
	return compute(CLOSE, system, NULL, NULL, NULL, NULL);
}

/* A program that opens a system registers for its events. There are none: the
 * callback is never called. */
EXPORT HcsRegisterComputeSystemCallback(void *system, void *callback, void *context, void **registered)
{
	(void)context;
	if (!callback || !registered)
		return E_POINTER;
	*registered = system;
	return S_OK;
}

EXPORT HcsUnregisterComputeSystemCallback(void *registered)
{
	(void)registered;
	return S_OK;
}
