/* computenetwork.dll: the calls of HCN v2, each forwarded to winlab's HNS
 * service. Signatures as in computenetwork.h of the Windows SDK. */
#include "wire.h"

#define EXPORT __declspec(dllexport) HRESULT WINAPI

static HRESULT with_text(int verb, int kind, void *handle, const GUID *id, PCWSTR text,
			 void **made, PWSTR *output, PWSTR *record)
{
	struct reply r;
	BOOL again = verb == ENUMERATE || verb == OPEN || verb == QUERY || verb == CLOSE;

	r = call(verb, kind, (ULONG_PTR)handle, id, text ? 1 : 0, &text, again);
	if (made)
		*made = (void *)(ULONG_PTR)r.handle;
	give(output, r.output);
	give(record, r.record);
	return r.hr;
}

#define COMMON(Name, Names, kind)                                                         \
	EXPORT HcnEnumerate##Names(PCWSTR query, PWSTR *ids, PWSTR *record)               \
	{                                                                                 \
		if (!ids)                                                                 \
			return E_POINTER;                                                 \
		return with_text(ENUMERATE, kind, NULL, NULL, query ? query : L"", NULL, ids, record); \
	}                                                                                 \
	EXPORT HcnOpen##Name(const GUID *id, void **made, PWSTR *record)                  \
	{                                                                                 \
		if (!id || !made)                                                         \
			return E_POINTER;                                                 \
		return with_text(OPEN, kind, NULL, id, NULL, made, NULL, record);         \
	}                                                                                 \
	EXPORT HcnModify##Name(void *handle, PCWSTR settings, PWSTR *record)              \
	{                                                                                 \
		return with_text(MODIFY, kind, handle, NULL, settings ? settings : L"", NULL, NULL, record); \
	}                                                                                 \
	EXPORT HcnQuery##Name##Properties(void *handle, PCWSTR query, PWSTR *properties, PWSTR *record) \
	{                                                                                 \
		if (!properties)                                                          \
			return E_POINTER;                                                 \
		return with_text(QUERY, kind, handle, NULL, query ? query : L"", NULL, properties, record); \
	}                                                                                 \
	EXPORT HcnDelete##Name(const GUID *id, PWSTR *record)                             \
	{                                                                                 \
		if (!id)                                                                  \
			return E_POINTER;                                                 \
		return with_text(DELETE_, kind, NULL, id, NULL, NULL, NULL, record);      \
	}                                                                                 \
	EXPORT HcnClose##Name(void *handle)                                               \
	{                                                                                 \
		return with_text(CLOSE, kind, handle, NULL, NULL, NULL, NULL, NULL);      \
	}

#define CREATE_CALL(Name, kind)                                                           \
	EXPORT HcnCreate##Name(const GUID *id, PCWSTR settings, void **made, PWSTR *record) \
	{                                                                                 \
		if (!made)                                                                \
			return E_POINTER;                                                 \
		return with_text(CREATE, kind, NULL, id, settings ? settings : L"", made, NULL, record); \
	}

COMMON(Network, Networks, NETWORK)
COMMON(Endpoint, Endpoints, ENDPOINT)
COMMON(Namespace, Namespaces, NAMESPACE)
COMMON(LoadBalancer, LoadBalancers, LOADBALANCER)
COMMON(SdnRoute, SdnRoutes, SDNROUTE)
CREATE_CALL(Network, NETWORK)
CREATE_CALL(Namespace, NAMESPACE)
CREATE_CALL(LoadBalancer, LOADBALANCER)
CREATE_CALL(SdnRoute, SDNROUTE)

/* An endpoint is created on an open network. */
EXPORT HcnCreateEndpoint(void *network, const GUID *id, PCWSTR settings, void **made, PWSTR *record)
{
	if (!made)
		return E_POINTER;
	return with_text(CREATE, ENDPOINT, network, id, settings ? settings : L"", made, NULL, record);
}
