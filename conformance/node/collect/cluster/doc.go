// Package cluster collects a bundle (package bundle) of a cluster from outside: objects of
// Kubernetes, and on request what the collector (package collect) reads on its Windows nodes,
// in a pod that is made for that and removed again.
//
// It uses kubectl, which users of a cluster have, with its contexts, proxies and login
// plugins. Each [Step] says what it reads and by which command, so that anybody can run it. A
// step that fails, for lack of permission too, is noted in the bundle, and the others go on.
//
// Secrets are never asked for. Values of variables, and what looks like a password or a token in
// arguments, annotations, ConfigMaps and messages, are removed ([Redact]). Names, labels and
// addresses stay, since they decide what reaches what.
//
// The package must not know what an object means for a packet, and it knows no lab.
package cluster
