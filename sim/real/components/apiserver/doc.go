// Package apiserver is a small Kubernetes API server on loopback, for the programs
// of one simulated cluster: enough of list, watch, get and events for kube-proxy,
// made of Kubernetes' own types. Objects are added, changed and deleted while it
// runs, by the Go program that started it.
//
// It must not know which program asks, nor HNS, Wine or labs. It checks no object,
// fills in no defaults and runs no controller: the caller that adds a Service also
// adds its endpoints, with the fields that kube-apiserver would have set. What it
// does not serve gets the Status error of a real server and a line in the log.
package apiserver
