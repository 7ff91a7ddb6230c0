// Package cluster turns a running lab into a Kubernetes cluster:
//
//	p, err := cluster.BuildPrograms(ctx, ".", "1.37.0")
//	c, err := cluster.Up(ctx, cluster.Options{Lab: f, Programs: p, Runtime: r})
//	defer c.Close()
//	nodes, err := c.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
//
// The control plane is the real one, in the namespace of the first Linux node with its
// address in the lab. Each node's kubelet is the real one of its system, in the node's
// namespace; kubelet.exe runs under Wine. So every address of the cluster belongs to a
// namespace, and all traffic between the components goes through the lab's wires:
// the API server reaches a kubelet at port 10250 of the node's address.
//
// What kubelet.exe needs that Wine lacks are DLLs (package shims) and values of the
// registry (package wine): the program itself is unmodified.
//
// The package must not know what containers are: the caller brings a runtime for each
// node.
package cluster
