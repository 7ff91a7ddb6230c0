// Package cri is the container runtime of a simulated cluster: it speaks CRI to the
// kubelets, and its sandboxes and containers are pods and programs of a lab that runs.
package cri
