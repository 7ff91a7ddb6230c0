package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/conformance/node/observed"
)

// BugReport fills in the five fields that a bug report has (claim
// bug-report-contents), as Markdown: what the folder does not know stays as a
// question. It contains addresses and names of the cluster, so whoever sends it
// should read it first.
func BugReport(n *observed.Node, t claims.Target) string {
	x := newNodeFacts(n, t)
	var b strings.Builder
	line := func(what, value, question string) {
		if value == "" {
			value = "(" + question + ")"
		}
		fmt.Fprintf(&b, "- %s: %s\n", what, value)
	}
	version, image, kernel, runtime := x.t.Kubernetes, "", "", ""
	if x.me != nil {
		version, image, kernel, runtime = x.me.Version, x.me.OSImage, x.me.Kernel, x.me.Runtime
	}
	if kernel == "" {
		kernel = n.Build.Value
	}
	b.WriteString("### Kubernetes version\n\n")
	line("kubelet", version, "kubectl version")
	b.WriteString("\n### Environment\n\n")
	line("cloud provider or hardware", "", "which one?")
	line("operating system", strings.TrimSpace(image+" "+kernel), "cmd /c ver")
	line("container runtime", runtime, "docker version, or containerd --version")
	line("network", x.networkWords(), "which plugin, with which configuration?")
	for _, s := range x.n.Subjects {
		if s.On == "cni" || s.On == "net-conf" || s.On == "subnet-env" {
			fmt.Fprintf(&b, "  - attached: %s\n", s.File)
		}
	}
	b.WriteString("\n### Steps to reproduce\n\n")
	if len(n.Trials) == 0 {
		b.WriteString("1. (what was done, what was expected, what came instead?)\n")
	}
	for i, tr := range n.Trials {
		outcome := "no answer"
		if tr.OK {
			outcome = "answered"
		}
		from := tr.From
		if from == "" {
			from = "somebody"
		}
		to := tr.Host
		if tr.Port > 0 {
			to = fmt.Sprintf("%s port %d", to, tr.Port)
		}
		fmt.Fprintf(&b, "%d. %s from a %s to %s: %s (%s:%d)\n", i+1, tr.Tool, from, to, outcome, tr.Place.File, tr.Place.Line)
	}
	b.WriteString("\n### Logs\n\n")
	logs := 0
	for _, f := range n.Files {
		if slices.Contains(f.As, observed.ListLogs) {
			logs++
			fmt.Fprintf(&b, "- %s\n", f.Name)
		}
	}
	if logs == 0 {
		b.WriteString("- (the logs of kubelet, kube-proxy and the network's agent)\n")
	}
	b.WriteString("\n/sig windows\n")
	return b.String()
}

func (x *nodeFacts) networkWords() string {
	var parts []string
	if x.plugin != "" {
		parts = append(parts, x.plugin)
	}
	if x.delegate != "" {
		parts = append(parts, "with "+x.delegate)
	}
	for _, n := range x.pods {
		if n.Type != "" {
			parts = append(parts, fmt.Sprintf("HNS network %s (%s)", n.Name, n.Type))
			break
		}
	}
	return strings.Join(parts, " ")
}
