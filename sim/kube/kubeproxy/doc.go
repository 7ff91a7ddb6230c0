// Package kubeproxy models what kube-proxy programs on a node: HNS remote
// endpoints and load balancers in kernelspace mode on Windows, listeners in the
// old userspace mode on Windows, netfilter rules on Linux. It follows the
// source of each Kubernetes version (pkg/proxy/winkernel, pkg/proxy/winuserspace,
// pkg/proxy/iptables). It must not know packets on their way, VFP rules, plugins
// or lab files: it turns Services into objects and leaves the rest to others.
package kubeproxy
