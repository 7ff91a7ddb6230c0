package resulttest

import (
	"slices"

	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// staticSpec is a claim that needs no lab, with its checks.
type staticSpec struct {
	claim   result.Claim
	statics []result.Static
}

func source(section string) []result.Source {
	return []result.Source{{Doc: "Intro to Windows support in Kubernetes", Section: section, Version: "1.17-1.20"}}
}

func rule(where, on, field, level, effect, says, write, bad, good string, pass bool) result.Static {
	pods := ""
	if on == "pod" {
		pods = "windows"
	}
	s := result.Static{Kind: "rule", Where: where,
		Check: result.Check{Level: result.Model, What: on + ": " + field + " set", Expect: "found", Got: "found", Summary: says, Pass: pass},
		Rule: &result.Rule{On: on, Pods: pods, Unless: "--config set", Field: field, When: "set", Level: level, Effect: effect, Says: says,
			Write: write, Bad: bad, Good: good}}
	if !pass {
		s.Got, s.Summary = "not found", "The example is not found in Kubernetes 1.20, Windows Server 2019 (10.0.17763)."
	}
	return s
}

func static(kind, where, what, want, got string) result.Static {
	return result.Static{Kind: kind, Where: where, Check: result.Check{Level: result.Model, What: what, Expect: want, Got: got,
		Pass: want == got, Grade: evidence.Stated}}
}

func input(k result.Static, text string) result.Static {
	k.Input = text
	return k
}

func disputed(k result.Static) result.Static {
	k.Dispute, k.Explained = &result.Dispute{By: 1, Against: 2, Model: "against"}, !k.Pass
	return k
}

var statics = []staticSpec{
	{result.Claim{ID: "hostnetwork", Area: "pods", Title: "No host network", Text: "A Windows pod cannot share the network of its node.",
		Sources: source("Pod"),
		History: []result.Status{{Where: "Kubernetes 1.14 to 1.20", Status: "unsupported"},
			{Where: "Kubernetes 1.26 and later", Status: "alpha", Says: "Behind a feature gate."}}},
		[]result.Static{
			rule("Kubernetes 1.14 to 1.20", "pod", "spec.hostNetwork", "error", "rejected-by-kubelet", "hostNetwork is not possible on Windows",
				"hostNetwork: false", "spec: {hostNetwork: true}", "spec: {hostNetwork: false}", true),
			rule("Kubernetes 1.26 and later", "pod", "spec.hostNetwork", "warning", "unsupported", "hostNetwork is behind a gate", "",
				"spec: {hostNetwork: true}", "", true)}},
	{result.Claim{ID: "readonly-rootfs", Area: "pods", Title: "No read-only root file system",
		Text: "The registry and system processes need to write.", Sources: source("API"),
		History: []result.Status{{Where: "Kubernetes 1.17 to 1.20", Status: "unsupported"}}},
		[]result.Static{rule("Kubernetes 1.17 to 1.20", "pod", "spec.containers[*].securityContext.readOnlyRootFilesystem", "error", "ignored",
			"readOnlyRootFilesystem is not possible on Windows", "mount what must not change read-only",
			"spec:\n  containers:\n  - securityContext:\n      readOnlyRootFilesystem: true\n", "", false)}},
	{result.Claim{ID: "windows-build-label", Area: "scheduling", Title: "Nodes have a label with their build",
		Text: "The label tells releases apart.", Disputed: true,
		Sources: []result.Source{{Doc: "Guide for scheduling", Section: "Labels", Version: "1.17-1.20", Says: "Every node has the label."},
			{Doc: "Guide for scheduling", Section: "Table", Version: "1.17-1.20", Says: "Two releases have no value."}},
		History: []result.Status{{Where: "Kubernetes 1.17 and later", Status: "stable"}}},
		[]result.Static{
			input(static("placement", "Kubernetes 1.17 and later", "a pod is placed among win2019, win2004, linux1", "fits win2019, runs on win2019",
				"fits win2019, runs on win2019"), "spec: {nodeSelector: {node.kubernetes.io/windows-build: 10.0.17763}}"),
			disputed(input(static("placement", "everywhere", "a pod without a selector on win2019, linux1", "fits linux1, win2019, runs on linux1",
				"fits linux1, win2019, runs on linux1, win2019"), "spec:\n  nodeSelector: {}\n"))}},
	{result.Claim{ID: "allocatable", Area: "scheduling", Title: "Allocatable is capacity less reserves",
		Text: "Reserves count; nothing enforces them.", Sources: source("Resources"),
		History: []result.Status{{Where: "Kubernetes 1.14 and later", Status: "stable"}}},
		[]result.Static{static("resources", "Kubernetes 1.14 and later", "kubelet --kube-reserved=cpu=1 on 4 CPUs: allocatable.cpu", "3", "3")}},
	{result.Claim{ID: "trouble-source-vip", Area: "trouble", Title: "Services fail on an overlay without a source VIP",
		Text: "kube-proxy needs the address that the overlay gives it.", Sources: source("Troubleshooting"),
		Trouble: &result.Trouble{Symptom: "Pods do not reach Services whose backends are on other nodes.",
			Cause: "kube-proxy runs without --source-vip.", Cure: "Start kube-proxy with --source-vip."},
		History: []result.Status{{Where: "Kubernetes 1.14 to 1.20, overlay", Status: "stable"}}},
		[]result.Static{
			static("doctor", "Kubernetes 1.14 to 1.20, overlay", "the folder overlay-no-source-vip", "finds source-vip-missing",
				"finds source-vip-missing"),
			rule("Kubernetes 1.14 to 1.20, overlay", "kube-proxy", "--source-vip", "error", "fails", "kube-proxy has no source VIP",
				"--source-vip=ADDRESS", "kube-proxy.exe --v=4", "kube-proxy.exe --source-vip=10.244.1.2", true)}},
	{result.Claim{ID: "two-editions", Area: "pods", Title: "What an image needs to be built", Text: "Two editions of the documents differ.",
		Disputed: true, Unchecked: "a statement about documents", Needs: "nothing",
		Sources: []result.Source{{Doc: "Guide", Version: "1.14", Says: "Any machine."},
			{Doc: "Guide", Version: "1.20", Says: "A Windows machine."}}}, nil},
	{result.Claim{ID: "csi-proxy", Area: "pods", Title: "Storage needs a proxy on the node",
		Text: "Plugins ask a proxy to do what they may not.", Unchecked: "a cluster with storage shows it", Needs: "cluster",
		Sources: source("Storage"),
		History: []result.Status{{Where: "Kubernetes 1.18", Status: "alpha"}, {Where: "Kubernetes 1.19 and later", Status: "beta"}}}, nil},
}

var staticAreas = []result.Area{{ID: "pods", Title: "Pods and containers"}, {ID: "scheduling", Title: "Scheduling and resources"},
	{ID: "trouble", Title: "Troubleshooting"}}

// addStatics adds the areas, claims and checks that need no lab, and says of
// every claim what checks it.
func addStatics(doc *result.Document) {
	doc.Areas = append(slices.Clone(doc.Areas), staticAreas...)
	for _, s := range statics {
		doc.Claims = append(doc.Claims, s.claim)
		for _, k := range s.statics {
			k.Claim = s.claim.ID
			doc.Statics = append(doc.Statics, k)
		}
	}
	flows := map[string]bool{}
	for _, c := range doc.Cells {
		flows[c.Claim] = true
	}
	for i := range doc.Claims {
		c := &doc.Claims[i]
		if flows[c.ID] {
			c.CheckedBy = append(c.CheckedBy, "flow")
		}
		for _, k := range doc.Statics {
			if k.Claim == c.ID && !slices.Contains(c.CheckedBy, k.Kind) {
				c.CheckedBy = append(c.CheckedBy, k.Kind)
			}
		}
		if len(c.CheckedBy) == 0 && c.Needs == "" {
			c.Needs = "lab"
		}
	}
}

// systems are in three groups, as documents describe them.
var systems = []result.System{
	{Number: 2, ID: "rras-l3", Group: "Network designs", Title: "Host routing with RRAS (1.5)",
		Text: "Windows nodes with two network cards forward between them.", Claims: []string{"rras-forwarding", "ovs-udp"},
		Designs: []string{"ovs-l3"}, Missing: "The second card of a node."},
	{Number: 3, ID: "l2bridge-hostgw", Group: "Network designs", Title: "flannel host-gw on l2bridge",
		Text: "Routes on every host lead to the pods of the others.",
		Claims: []string{"pod-to-pod-same-node", "pod-to-pod-cross-node", "ping-outside", "driver-mac", "hairpin", "clusterip-split",
			"max-endpoints"}, Designs: []string{"l2bridge-flannel-host-gw"}, Code: []string{"sim/kube/cni", "sim/windows/hns"}},
	{Number: 8, ID: "overlay-flannel", Group: "Network designs", Title: "flannel VXLAN on overlay",
		Text: "Frames between nodes are in a tunnel.", Claims: []string{"pod-to-node", "clusterip-split", "ping-outside", "driver-vxlan",
			"trouble-source-vip"}, Designs: []string{"overlay-flannel-vxlan"}, Code: []string{"sim/kube/cni"}},
	{Number: 26, ID: "rt-hyperv", Group: "Runtimes", Title: "Hyper-V isolation", Text: "Containers in virtual machines of their own.",
		Claims: []string{"csi-proxy"}, Missing: "All of it: no model runs a virtual machine."},
	{Number: 32, ID: "sched", Group: "Models without packets", Title: "Scheduling", Text: "Which node a pod can land on, and why not.",
		Claims: []string{"windows-build-label", "allocatable"}, Code: []string{"sim/kube/schedule", "sim/kube/resources"}},
	{Number: 35, ID: "linter", Group: "Models without packets", Title: "Manifests and configuration",
		Text: "What fields and flags do on Windows.", Claims: []string{"hostnetwork", "readonly-rootfs", "trouble-source-vip"},
		Code: []string{"conformance/check"}},
}
