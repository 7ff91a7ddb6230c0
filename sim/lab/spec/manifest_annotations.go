package spec

import (
	"maps"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/trace"
)

// annotations are those of a Service that count: kube-proxy on Windows reads them.
var annotations = []string{"preserve-destination", "winProxyOptimization"}

// silentAnnotations are the beginnings of annotations that say nothing about packets.
var silentAnnotations = map[string]string{
	"kubectl.kubernetes.io/": "notes of kubectl", "meta.helm.sh/": "notes of Helm", "deployment.kubernetes.io/": "notes of a controller", "argocd.argoproj.io/": "notes of Argo CD",
	"prometheus.io/": "who reads measurements", "kubernetes.io/description": "a note", "kubernetes.io/change-cause": "a note",
}

// labelProxyName is the label of a Service that another program than kube-proxy serves.
const labelProxyName = "service.kubernetes.io/service-proxy-name"

// proxyLabels are labels of a Service that keep kube-proxy away from it and that nobody
// follows (kubernetes/kubernetes cmd/kube-proxy/app/server.go, noHeadlessEndpoints).
var proxyLabels = map[string]string{
	"service.kubernetes.io/headless": "kube-proxy passes over a Service with this label, and its model does not",
}

// annotated notes the annotations and labels of a Service from which nothing follows.
func (m *Manifests) annotated(metadata any, origin *trace.Origin) {
	meta, _ := metadata.(map[string]any)
	keys := func(part string) []string {
		set, _ := meta[part].(map[string]any)
		return slices.Sorted(maps.Keys(set))
	}
	note := func(what, why string) {
		m.NotModelled = trace.AddNotice(m.NotModelled, trace.Notice{What: what + " of " + origin.What, Why: why, At: origin})
	}
	for _, key := range keys("annotations") {
		if !slices.Contains(annotations, key) && !isSilent(key) {
			note("annotation "+key, "no program in this lab reads it; "+strings.Join(annotations, " and ")+" are those that kube-proxy does")
		}
	}
	for _, key := range keys("labels") {
		if why := proxyLabels[key]; why != "" {
			note("label "+key, why)
		}
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
