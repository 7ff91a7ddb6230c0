package hcn

import "github.com/winlab-dev/winlab/sim/trace/evidence"

// What this package holds true about the HNS service.
var (
	_ = evidence.New("hcn.handles", evidence.Stated,
		"HCN handles are RPC context handles: each belongs to the process that opened it and ends with it. The handle of a deleted object stays; calls on it do not find the object.",
		"Microsoft Learn, RPC context handles for HCN", "Microsoft Learn, RPC context handles: a server context ends with its client")
	_ = evidence.New("hcn.closed-handle", evidence.Inferred,
		"A call on a closed handle, or on one of another kind or process, fails with 0x80070006: with this code RPC refuses a context handle that it does not know (RPC_X_SS_CONTEXT_MISMATCH).")
	_ = evidence.New("hcn.error-record", evidence.Stated,
		"A failed call of HCN v2 gives the HRESULT and a JSON record with Success, Error and ErrorCode.",
		"Microsoft Learn, HCN common scenarios (ErrorSchema)")
	_ = evidence.New("hcn.v1-reply", evidence.Code,
		"HNSCall returns S_OK with a JSON reply of Success, Error and Output, even when HNS refuses the request.",
		"microsoft/hnslib internal/hns/hnsfuncs.go")
	_ = evidence.New("hcn.filter", evidence.Code,
		"Queries filter by fields of the v1 and v2 views: Name, ID, VirtualNetwork; a field that an object does not have matches nothing.",
		"microsoft/hnslib hcn/hcnendpoint.go ListEndpointsOfNetwork (the v1 name is needed)",
		"microsoft/hnslib hcn/hcnnetwork.go GetNetworkByName")
	_ = evidence.New("hcn.create-id", evidence.Inferred,
		"The id of a new object is the GUID of the call, else the ID of the settings, else one that HNS makes. Callers pass the zero GUID.",
		"microsoft/hnslib hcn/hcnnetwork.go createNetwork")
	_ = evidence.New("hcn.non-persistent", evidence.Inferred,
		"A network with flag 8 (EnableNonPersistent) and its endpoints are gone after a restart of HNS. Everything else comes back, except handles.",
		"microsoft/hnslib hcn/hcnnetwork.go NetworkFlags")
	_ = evidence.New("hcn.service-stopped", evidence.Stated,
		"While HNS does not run, calls fail with 0x6d9, no more endpoints available from the endpoint mapper.",
		"docker/for-win issue 6535")
	_ = evidence.New("hcn.endpoint-port", evidence.Inferred,
		"ModifyEndpoint with resource type Port attaches and detaches a virtual machine like HNS v1's attach.",
		"microsoft/hnslib hcn/hcnendpoint.go VmEndpointRequest")
	_ = evidence.New("hcn.hot-attach", evidence.Code,
		"A program of HNS v1 attaches a container to an endpoint through the Host Compute Service: it opens the compute system and modifies it with resource type Network, request Add or Remove, and the endpoint's id as settings.",
		"Microsoft/hcsshim hnsendpoint.go HotAttachEndpoint, modifyNetworkEndpoint",
		"Microsoft/hcsshim internal/hcs/system.go OpenComputeSystem, Modify",
		"containernetworking/plugins pkg/hns/endpoint_windows.go AddHnsEndpoint")
	_ = evidence.New("hcn.hot-attach-result", evidence.Inferred,
		"The Host Compute Service then attaches the container as HNS v1's attach with system type Container does, and passes on the error of HNS. The endpoint of a container that has ended stays as it was.")
	_ = evidence.New("hcn.compute-errors", evidence.Stated,
		"A compute system that does not exist is 0xC037010E, one that has ended 0xC0370110, settings that are not JSON 0xC037010D, a resource that cannot be modified 0x80070032.",
		"Microsoft Learn, HCS: HRESULT values", "Microsoft/hcsshim internal/hcs/errors.go")
	_ = evidence.New("hcn.network-extension", evidence.Inferred,
		"ModifyNetwork with resource type Extension and an Id and IsEnabled does what a VSwitchExtension policy does: it turns an extension of the network's switch on or off.",
		"MicrosoftDocs HNS_Schema.md NetworkResourceType, Extension, VSwitchExtensionNetworkPolicySetting")
	_ = evidence.New("hcn.modify-unserved", evidence.Unknown,
		"What ModifyNetwork does with the resource types Subnet and IPSubnet (schema 2.6), and any call with the request type Reset, is not published, and neither hcsshim nor hnslib makes such a request. They are refused with 0x803b0015.",
		"MicrosoftDocs HNS_Schema.md NetworkResourceType, ModifyRequestType", "microsoft/hnslib hcn/hcn.go RequestType")
	_ = evidence.New("hcn.endpoint-stats", evidence.Inferred,
		"The counters of /endpointstats are zero, because the service does not have a switch.")
)
