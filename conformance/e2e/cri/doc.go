// Package cri is the container runtime of a node of a simulated cluster: it speaks CRI to
// the node's kubelet. A sandbox is a pod of a lab that runs, a container a process in it.
//
//	r, err := cri.New(cri.Options{Node: node, OS: "windows", Images: store, Streaming: listener})
//	go r.Serve(endpoint)
//	defer r.Close()
//
// It behaves as containerd does, whose texts, reasons and exit codes the kubelet and the
// Kubernetes suites know: what is said of containerd in comments was read in its
// documentation and in api.proto of k8s.io/cri-api. So it calls itself containerd, with a
// version that shows what it is (see [runtimeVersion]).
//
// What a container is made of is the business of a [Node]. The package must not know
// labs, namespaces or Wine, nor any control plane.
//
// # What is kept
//
// Sandboxes and containers belong to the Runtime, not to a connection: a server that
// stops and serves again has them all, as containerd's containers outlive it. When the
// process ends, all end with it.
//
// # What is recorded only
//
// Seccomp, AppArmor and SELinux profiles, sysctls, devices, CPU and memory
// limits, credential specs: they come back in the status, and a Node may obey them.
// Limits that are changed later (UpdateContainerResources) come back and are not held.
package cri
