// Package cluster takes a bundle (package bundle) of a cluster from outside: objects of
// Kubernetes, and on request what the collector (package collect) reads on its Windows nodes,
// in a pod that is made for that and removed again.
//
// It asks with kubectl, which people who have a cluster have, with its contexts, proxies and
// programs that log in. Each [Step] says what it reads and by which command, so that anybody can
// run it; one that fails is noted in the bundle, and the others go on. A thing that may not be
// read is one that failed.
//
// Secrets are never asked for. Values of variables, and what looks like a password or a token in
// arguments, annotations, ConfigMaps and messages, are taken out ([Redact]). Names, labels and
// addresses stay, since they decide what reaches what.
//
// The package must not know what an object means for a packet, and it knows no lab.
package cluster
