// Package hns models the Host Networking Service of one Windows node: its
// networks, endpoints, namespaces, load balancers and routes, in the JSON of
// HCN v2 and HNS v1, validated, with the error codes that HNS gives.
//
// The way of a call shows in the names of the files:
//
//	call*.go    a request's JSON becomes an object or a modification of one
//	policy*.go  policies are decoded, once, into one Go type for each policy type
//	v1*.go      the same for HNS v1; dump*.go for output that a user took from a node
//	check_*.go  the object is checked, with HNS's error codes
//	admit_*.go  what HNS adds is filled in, and the [Service] keeps the object
//	change.go   listeners are told of the change
//	compile.go  a node then asks a [Compiler] for the rules of its ports
//	rules_*.go  and each kind of policy and load balancer becomes VFP rules
//
// The package must know no Kubernetes word: no Service, no Pod, no network
// plugin. What a build can do it asks package builds, never a build number.
//
// Objects that a Service hands out are snapshots: a change makes a new object
// and leaves the old one as it was. Do not write to them.
package hns
