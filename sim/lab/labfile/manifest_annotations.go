package labfile

import (
	"maps"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/trace"
)

// annotations are those of a Service that count: kube-proxy on Windows reads them.
var annotations = []string{"preserve-destination", "winProxyOptimization"}

// podAnnotations are the beginnings of annotations of pods that some program on a node
// reads for the pod's network, and why nothing follows from them here.
var podAnnotations = map[string]string{
	"kubernetes.io/ingress-bandwidth":                   "the runtime hands it to plugins with the capability bandwidth; how fast packets go is not simulated",
	"kubernetes.io/egress-bandwidth":                    "the runtime hands it to plugins with the capability bandwidth; how fast packets go is not simulated",
	"k8s.v1.cni.cncf.io/":                               "Multus reads it: the pod has the network of the lab's plugin and no other",
	"v1.multus-cni.io/":                                 "Multus reads it: the pod has the network of the lab's plugin and no other",
	"cni.projectcalico.org/":                            "Calico's plugin reads it, and its model does not; pin an address with pods: {address}",
	"k8s.ovn.org/":                                      "ovn-kubernetes reads it, and its model does not",
	"ovn.kubernetes.io/":                                "Kube-OVN reads it, and it is none of a lab's plugins; pin an address with pods: {address}",
	"ipam.antrea.io/":                                   "Antrea reads it, and it is none of a lab's plugins; pin an address with pods: {address}",
	"vpc.amazonaws.com/":                                "the VPC resource controller writes the pod's address there and vpc-bridge reads it; a lab gives addresses itself: pin one with pods: {address}",
	"sidecar.istio.io/":                                 "a proxy in the pod may take its connections; such proxies are not simulated",
	"traffic.sidecar.istio.io/":                         "a proxy in the pod may take its connections; such proxies are not simulated",
	"linkerd.io/":                                       "a proxy in the pod may take its connections; such proxies are not simulated",
	"config.linkerd.io/":                                "a proxy in the pod may take its connections; such proxies are not simulated",
	"microsoft.com/hostprocess-":                        "the runtime reads it; whether the pod has the node's network is what hostNetwork says",
	"experimental.windows.kubernetes.io/isolation-type": "kubelets before 1.21 could make a Hyper-V container of it; containers are taken to be process-isolated",
	"pod.beta.kubernetes.io/hostname":                   "early Kubernetes made a DNS name of it; write hostname and subdomain",
	"pod.beta.kubernetes.io/subdomain":                  "early Kubernetes made a DNS name of it; write hostname and subdomain",
}

// silentAnnotations are the beginnings of annotations that say nothing about packets.
var silentAnnotations = map[string]string{
	"checksum/": "why pods are replaced", "cluster-autoscaler.kubernetes.io/": "where pods are placed", "kubernetes.io/psp": "rights", "kubernetes.io/config.": "where the pod comes from",
	"kubernetes.io/created-by": "where the pod comes from", "container.apparmor.security.beta.kubernetes.io/": "rights", "seccomp.security.alpha.kubernetes.io/": "rights",
	"kubectl.kubernetes.io/": "notes of kubectl", "meta.helm.sh/": "notes of Helm", "deployment.kubernetes.io/": "notes of a controller", "argocd.argoproj.io/": "notes of Argo CD",
	"prometheus.io/": "who reads measurements", "kubernetes.io/description": "a note", "kubernetes.io/change-cause": "a note",
}

// labelProxyName is the label of a Service that another program than kube-proxy serves.
const labelProxyName = "service.kubernetes.io/service-proxy-name"

// annotated notes the annotations of a Service from which nothing follows.
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

// podAnnotated notes the annotations of a pod, or of a template of pods, from which
// nothing follows: none counts, for no program that a lab runs reads one.
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
