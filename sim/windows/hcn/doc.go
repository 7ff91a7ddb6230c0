// Package hcn serves a simulated HNS to programs: the calls of HCN v2 and of
// HNS v1, over loopback, as computenetwork.dll and vmcompute.dll offer them on
// Windows. The DLLs in the folder shims forward each call to a [Server], so
// unmodified Windows programs under Wine program a [hns.Service].
//
// A call passes through three stages, and none calls one before it:
//
//  1. The wire (server.go, talk.go, wire.go): a frame becomes a request, a response a frame.
//  2. The session (session.go): a handle becomes the id of its object, and the
//     request an operation. What comes of it becomes a response: an HRESULT, a new
//     handle, JSON.
//  3. The operation (operation.go, filter.go; v1.go for the paths of HNS v1;
//     compute.go): it reads the JSON of its settings and calls the [hns.Service],
//     after the journal has it (store.go). It knows no handle and no client, so a
//     journal of operations makes the same objects again.
//
// The package must not know Kubernetes or the programs that call it, and it has
// no rule about HNS objects: what is valid, what a build can do and which error
// it gives is for package hns. Here are handles, queries, the v1 paths,
// HRESULTs, the state on disk, the call log and the wire. Of the Host Compute
// Service there is what a program needs to attach a container to an endpoint of
// HNS v1; whoever starts and ends containers reports that to the [Service].
//
// # The wire protocol, version 1
//
// One connection per process. A client in Go on Linux takes the Unix socket with the abstract name
// "winlab-hcn-127.0.0.1:PORT" beside the loopback address, where there is one, and TCP otherwise. So
// do the DLLs under Wine before version 10, by system calls of Linux; where these are not Linux's
// (Wine 10 and later, Windows) or WINLAB_WINSOCK is set, they take TCP by winsock. All numbers are
// little-endian, all text is UTF-8. The client begins:
//
//	"WHCN"  version u16  length u16  name of the client
//
// and the server answers "WHCN" version u16, zero u16. When it does not speak
// the client's version, it answers with its own and closes. Frames follow in
// both directions, each a length u32 of what comes after it. A request is
//
//	sequence u32  verb u8  kind u8  handle u64  GUID [16]  count u8  count × (length u32, text)
//
// and a response is
//
//	sequence u32  HRESULT u32  handle u64  count u8  count × (length u32, text)
//
// with the texts output (properties, ids, the v1 reply) and error record. The GUID has
// the memory layout of Windows. Verbs and kinds are those of wire.go. The texts of a
// request are: Enumerate and Query: the query. Create and Modify: the settings (the
// handle of HcnCreateEndpoint is the network's). HNSCall: method, path, request. Open
// of a compute system: its id. A client may send requests ahead; answers come in the
// order of the requests. After [Watch] the server sends a response with a line of the
// call log for every call, until the connection ends. A request longer than
// [maxRequest], not of this form, or not whole a minute after its first byte ends the
// connection, and with it the client's handles; so do answers that are not read. A
// client may be silent between requests for as long as it likes. An answer does not wait
// for a request that has only begun. The service's log says why a connection was closed.
package hcn
