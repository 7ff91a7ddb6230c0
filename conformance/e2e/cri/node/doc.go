// Package node gives a machine of a lab that runs a container runtime: sandboxes are pods
// that its network plugin attaches, containers are processes in them.
//
//	r, err := node.Start(ctx, node.Options{Net: net, Node: n, Machine: "node/win1", ...})
//	defer r.Close()
//	// r.Endpoint() is for the kubelet of the machine
//
// The package joins what [cri] asks of a node with what package live has. It must not
// know Kubernetes' objects beyond CRI, nor how a kubelet is started.
package node
