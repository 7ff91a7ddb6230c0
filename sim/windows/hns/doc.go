// Package hns models the Host Networking Service of one Windows node: its
// networks, endpoints, namespaces, load balancers and routes, in the JSON of
// HCN v2 and HNS v1, validated, with the error codes that HNS gives.
//
// A [Service] holds the objects and compiles nothing by itself: the files
// compile*.go and rules*.go turn its objects into VFP rules. The package must
// know no Kubernetes word: no Service, no Pod, no network plugin. What a build
// can do it asks package builds, never a build number.
//
// Objects that a Service hands out are snapshots: a change makes a new object
// and leaves the old one as it was. Do not write to them.
package hns
