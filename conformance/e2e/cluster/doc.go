// Package cluster makes a lab that runs a Kubernetes cluster: the control plane in the
// namespace of a Linux node, and each node's kubelet and kube-proxy in its own.
package cluster
