// Package cri is the container runtime of a node of a simulated cluster: it speaks CRI to
// the node's kubelet. A sandbox is a pod of a lab that runs, a container a process in it.
//
//	r, err := cri.New(cri.Options{Node: node, OS: "windows", Images: store, Streaming: listener})
//	go r.Serve(endpoint)
//	defer r.Close()
//
// It behaves like containerd, because the kubelet and the Kubernetes suites know its
// texts, reasons and exit codes. Comments about containerd rest on its documentation and
// on api.proto of k8s.io/cri-api. The runtime therefore reports the name containerd, with
// a version that shows what it is (see [runtimeVersion]).
//
// A [Node] decides what a container is made of. The package must not know
// labs, namespaces or Wine, nor any control plane.
//
// # What is kept
//
// Sandboxes and containers belong to the Runtime, not to a connection: they survive a
// server that stops and serves again, as containerd's containers do. When the process
// ends, all of them end.
//
// # What is recorded only
//
// Seccomp, AppArmor and SELinux profiles, sysctls, devices, CPU and memory
// limits, credential specs: they come back in the status, and a Node may obey them.
// Limits that are changed later (UpdateContainerResources) come back, but are not enforced.
package cri
