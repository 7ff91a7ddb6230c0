// Package hns models the Host Networking Service of one Windows node: its
// networks, endpoints, namespaces, load balancers and routes, in the JSON of
// HCN v2 and HNS v1, validated, with the error codes that HNS gives.
//
// The names of the files follow a call from its JSON to the rules:
//
//	call*.go    a request's JSON becomes an object or a modification of one
//	policy*.go  policies are decoded, once, into one Go type for each policy type
//	v1*.go      the same for HNS v1; dump*.go for output that a user took from a node
//	check_*.go  the object is checked, with HNS's error codes
//	admit_*.go  what HNS adds is filled in, and the [Service] keeps the object
//	change.go   listeners are notified of the change
//	compile.go  a node then asks a [Compiler] for the rules of its ports
//	rules_*.go  and each kind of policy and load balancer becomes VFP rules
//
// The package must not know Kubernetes: no Service, no Pod, no network plugin.
// It asks package builds what a build can do, and never compares build numbers.
//
// Objects that a Service hands out are snapshots: a change makes a new object
// and leaves the old one as it was. Do not write to them.
package hns
