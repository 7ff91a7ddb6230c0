// Package kubeproxy models what kube-proxy programs on a node: HNS remote endpoints and
// load balancers in kernelspace mode on Windows, listeners in the old userspace mode on
// Windows, netfilter rules on Linux. It follows the source of each Kubernetes version
// (pkg/proxy/winkernel, pkg/proxy/winuserspace, pkg/proxy/iptables); versions.go is the
// table of what each version of the kernelspace mode changed, bugs included. It must
// not know packets, VFP rules, plugins or lab files: it turns Services into objects.
//
// A sync goes through these files: proxier.go finds what changed and cleans up,
// endpoints.go lists the endpoints of HNS and makes remote ones, sync.go chooses the
// backends of a Service port and says which load balancers it needs, and
// loadbalancer.go finds, changes, makes or replaces each of them.
package kubeproxy
