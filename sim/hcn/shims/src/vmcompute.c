/* vmcompute.dll: HNSCall of HNS v1, forwarded to winlab's HNS service. */
#include "wire.h"

__declspec(dllexport) HRESULT WINAPI HNSCall(PCWSTR method, PCWSTR path, PCWSTR request, PWSTR *response)
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
