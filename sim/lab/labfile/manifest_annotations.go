package labfile

import (
	"maps"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/trace"
)

// annotations are the Service annotations that have an effect: kube-proxy on Windows reads them.
var annotations = []string{"preserve-destination", "winProxyOptimization"}

// podAnnotations are prefixes of pod annotations that some program on a node reads for the pod's
// network, and why they have no effect here.
var podAnnotations = map[string]string{
	"kubernetes.io/ingress-bandwidth":                   "the runtime passes it to plugins with the bandwidth capability; how fast packets go is not simulated",
	"kubernetes.io/egress-bandwidth":                    "the runtime passes it to plugins with the bandwidth capability; how fast packets go is not simulated",
	"k8s.v1.cni.cncf.io/":                               "Multus reads it; in a lab the pod has only the network of the lab's plugin",
	"v1.multus-cni.io/":                                 "Multus reads it; in a lab the pod has only the network of the lab's plugin",
	"cni.projectcalico.org/":                            "Calico's plugin reads it, but its model does not; pin an address with pods: {address}",
	"k8s.ovn.org/":                                      "ovn-kubernetes reads it, but its model does not",
	"ovn.kubernetes.io/":                                "Kube-OVN reads it, but a lab cannot have Kube-OVN; pin an address with pods: {address}",
	"ipam.antrea.io/":                                   "Antrea reads it, but Antrea's IPAM is not modelled; pin an address with pods: {address}",
	"vpc.amazonaws.com/":                                "the VPC resource controller writes the pod's address there and vpc-bridge reads it; a lab gives addresses itself: pin one with pods: {address}",
	"sidecar.istio.io/":                                 "a proxy in the pod may intercept its connections; such proxies are not simulated",
	"traffic.sidecar.istio.io/":                         "a proxy in the pod may intercept its connections; such proxies are not simulated",
	"linkerd.io/":                                       "a proxy in the pod may intercept its connections; such proxies are not simulated",
	"config.linkerd.io/":                                "a proxy in the pod may intercept its connections; such proxies are not simulated",
	"microsoft.com/hostprocess-":                        "the runtime reads it; hostNetwork says whether the pod uses the node's network",
	"experimental.windows.kubernetes.io/isolation-type": "kubelets before 1.21 could run it as a Hyper-V container; containers are assumed to be process-isolated",
	"pod.beta.kubernetes.io/hostname":                   "early Kubernetes derived a DNS name from it; write hostname and subdomain",
	"pod.beta.kubernetes.io/subdomain":                  "early Kubernetes derived a DNS name from it; write hostname and subdomain",
}

// silentAnnotations are prefixes of annotations that do not concern packets.
var silentAnnotations = map[string]string{
	"checksum/": "why pods are replaced", "cluster-autoscaler.kubernetes.io/": "where pods are placed", "kubernetes.io/psp": "rights",
	"kubernetes.io/config.":    "where the pod comes from",
	"kubernetes.io/created-by": "where the pod comes from", "container.apparmor.security.beta.kubernetes.io/": "rights",
	"seccomp.security.alpha.kubernetes.io/": "rights",
	"kubectl.kubernetes.io/":                "notes of kubectl", "meta.helm.sh/": "notes of Helm",
	"deployment.kubernetes.io/": "notes of a controller",
	"argocd.argoproj.io/":       "notes of Argo CD",
	"prometheus.io/":            "who reads measurements", "kubernetes.io/description": "a note", "kubernetes.io/change-cause": "a note",
}

// labelProxyName is the label of a Service that another program than kube-proxy serves.
const labelProxyName = "service.kubernetes.io/service-proxy-name"

// annotated adds notices for annotations of a Service that have no effect.
func (m *Manifests) annotated(metadata any, origin *trace.Origin) {
	meta, _ := metadata.(map[string]any)
	keys := func(part string) []string {
		set, _ := meta[part].(map[string]any)
		return slices.Sorted(maps.Keys(set))
	}
	note := func(what, why string) {
		m.note(trace.Notice{What: what + " of " + origin.What, Why: why, At: origin})
	}
	for _, key := range keys("annotations") {
		if !slices.Contains(annotations, key) && !isSilent(key) {
			note("annotation "+key, "no program in this lab reads it; "+strings.Join(annotations, " and ")+" are those that kube-proxy does")
		}
	}
}

// podAnnotated adds notices for annotations of a pod, or of a pod template, that have no effect:
// none has, because no program that a lab runs reads any.
func (m *Manifests) podAnnotated(metadata any, origin *trace.Origin) {
	set, _ := valueAt(metadata, "annotations").(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(set)) {
		if isSilent(key) {
			continue
		}
		why := "no program in this lab reads it"
		for prefix, reads := range podAnnotations {
			if strings.HasPrefix(key, prefix) {
				why = reads
			}
		}
		m.note(trace.Notice{What: "annotation " + key + " of " + origin.What, Why: why, At: origin})
	}
}

func isSilent(annotation string) bool {
	for prefix := range silentAnnotations {
		if strings.HasPrefix(annotation, prefix) {
			return true
		}
	}
	return false
}
