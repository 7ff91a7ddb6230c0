// Package kind makes a Kubernetes cluster with kind (sigs.k8s.io/kind) for a run of the
// suite, and takes it away: a control plane and Linux nodes in containers of Docker,
// podman or nerdctl.
//
// It has no Windows node, and simulated Windows nodes do not join it
// (docs/decisions/simulated-cluster.md says why). A run on it tries what needs no
// Windows node.
//
// The package must not know what is tried on the cluster.
package kind
