package findings_test

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/reports/findings"
)

var update = flag.Bool("update", false, "write the golden files")

const (
	k14, k19, k20 = "Kubernetes 1.14, Windows Server 2019 (10.0.17763), overlay", "Kubernetes 1.19, Windows Server 2019 (10.0.17763), overlay",
		"Kubernetes 1.20, Windows Server 2019 (10.0.17763), overlay"
)

// oneFileDocument is a check of one file against one setting.
func oneFileDocument() *findings.Document {
	return &findings.Document{Schema: findings.Schema, Tool: "winlab v0.1.0-sample", Command: "winlab check --kubernetes 1.20 pod.yaml",
		Settings: []string{k20}, Files: 1, Documents: 2, Read: []string{"pod.yaml"},
		Passed: map[string]int{"ConfigMap": 1},
		Findings: []findings.Finding{
			{File: "pod.yaml", Line: 19, Column: 24, Subject: "Pod web", Field: "spec.containers[0].securityContext.readOnlyRootFilesystem",
				Level: findings.Error, Claim: "readonly-rootfs", ClaimTitle: "Read-only root file systems are not possible",
				Effect: "unsupported", EffectWords: "the documents say that it is not supported; how it fails they do not say",
				Message: "readOnlyRootFilesystem is not possible on Windows: the registry and system processes need to write",
				Write:   "mount what must not change as a read-only volume"},
			{File: "pod.yaml", Line: 7, Column: 16, Subject: "Pod web", Field: "spec.dnsPolicy", Level: findings.Warning,
				Claim: "dns-policy-host-net", ClaimTitle: "ClusterFirstWithHostNet has no effect",
				Effect: "ignored", EffectWords: "it is accepted and has no effect",
				Message: "dnsPolicy ClusterFirstWithHostNet has no effect on Windows: pods cannot share the node's network",
				Write:   "dnsPolicy: ClusterFirst"},
			{File: "pod.yaml", Line: 7, Column: 16, Subject: "Pod web", Field: "spec.dnsPolicy", Level: findings.Info, Claim: "a-note",
				Message: "good to know"},
		}}
}

// several is a check of several files against several settings, with a
// finding about a setting, documents that could not be read, and text that
// would like to act on a terminal.
func several() *findings.Document {
	return &findings.Document{Schema: findings.Schema, Tool: "winlab v0.1.0-sample", Command: "winlab check --all-settings dir",
		Settings: []string{k14, k19, k20, strings.Replace(k20, "overlay", "l2bridge", 1)}, Files: 4, Documents: 9,
		Read: []string{"dir/a b.yaml", "dir/bad.yaml", "dir/clean.yaml", "dir/web.yaml"},
		Findings: []findings.Finding{
			{File: "dir/web.yaml", Line: 3, Column: 1, Subject: "Service shop/web", Field: "spec.sessionAffinityConfig", Level: findings.Warning,
				Claim: "affinity-timeout", Effect: "different", EffectWords: "it works differently from Linux", Message: "the timeout is not honoured",
				Settings: []string{"Kubernetes 1.14, 1.19"}},
			{File: "dir/web.yaml", Line: 30, Column: 5, Subject: "Deployment shop/web", Level: findings.Error, Claim: "mixed-os",
				Effect: "rejected-by-api", EffectWords: "the API server refuses it", Message: "spec.os.name is \x1b[31mlinux\x1b[0m",
				Write: "two Deployments:\none for each system", Settings: []string{"Kubernetes 1.20, overlay", "Kubernetes 1.20, l2bridge", "a", "b",
					"c", "d"}},
			{File: "dir/web.yaml", Line: 31, Subject: "Deployment shop/web", Level: findings.Error, Claim: "mixed-os", Effect: "rejected-by-api",
				EffectWords: "the API server refuses it", Message: "the same again"},
			{File: "dir/a b.yaml", Level: findings.Error, Claim: "image-base", ClaimTitle: "The image's base matches the host", Effect: "fails",
				EffectWords: "it is accepted, and what it asks for fails", Message: "the image is for 1803 \u202e"},
			{Level: findings.Warning, Claim: "sac-out-of-support", Effect: "unlisted", EffectWords: "the documents do not list it",
				Message: "Windows Server, version 1803 is not listed for Kubernetes 1.20", Write: "use Windows Server 2019",
				Settings: []string{"Kubernetes 1.20"}},
		},
		Mistakes: []findings.Mistake{{File: "dir/bad.yaml", Line: 4, Column: 3, Message: "the key \"spec\" is here twice"},
			{File: "dir/bad.yaml", Message: "binary\x00data"}}}
}

// ill is what the doctor finds in a folder.
func ill() *findings.Document {
	return &findings.Document{Schema: findings.Schema, Tool: "winlab v0.1.0-sample", Command: "winlab doctor node", Settings: []string{k20},
		Assumed: []string{"--network", "--runtime"}, Files: 7, Documents: 7,
		Healthy:     []string{"kubelet has --hostname-override", "cbr0 is an l2bridge network"},
		NotExamined: []string{"HNS endpoints: take them with Get-HnsEndpoint"},
		Known: []findings.KnownIssue{{ID: 705, Title: "kube-proxy loses a load balancer",
			Lines: []string{"node/kube-proxy.log:3: The switch-port was not found"}}},
		Findings: []findings.Finding{{File: "node/kube-proxy.txt", Line: 1, Column: 8, Subject: "kube-proxy", Level: findings.Error,
			Claim: "trouble-source-vip", ClaimTitle: "No source VIP on an overlay",
			Message: "kube-proxy has no --source-vip, and the network is an overlay",
			Symptom: "pods do not reach Services whose backends are on other nodes", Cause: "kube-proxy does not know the source VIP",
			CauseID: "source-vip-missing", Evidence: []string{"node/kube-proxy.txt:1: --proxy-mode=kernelspace",
				"node/hnsnetworks.json:14: \"Type\": \"Overlay\""}, Write: "start kube-proxy with --source-vip=10.244.1.2"}}}
}

var documents = map[string]func() *findings.Document{"one": oneFileDocument, "several": several, "doctor": ill,
	"empty": func() *findings.Document { return &findings.Document{} },
	"unchecked": func() *findings.Document {
		return &findings.Document{Settings: []string{k20}, Files: 1, Documents: 2, Read: []string{"cm.yaml"},
			Passed: map[string]int{"ConfigMap": 2}}
	},
	"clean": func() *findings.Document {
		return &findings.Document{Settings: []string{k20}, Files: 2, Documents: 3, Read: []string{"a.yaml", "b.yaml"}}
	}}

var forms = map[string]func(io.Writer, *findings.Document) error{
	"txt": func(w io.Writer, d *findings.Document) error { return findings.Text(w, d, findings.TextOptions{}) },
	"colour.txt": func(w io.Writer, d *findings.Document) error {
		return findings.Text(w, d, findings.TextOptions{Color: true})
	},
	"json": findings.JSON, "sarif": findings.SARIF, "xml": findings.JUnit,
}

func TestGolden(t *testing.T) {
	for name, doc := range documents {
		for ext, write := range forms {
			if ext == "colour.txt" && name == "one" {
				continue
			}
			var b bytes.Buffer
			if err := write(&b, doc()); err != nil {
				t.Errorf("%s.%s: %v", name, ext, err)
				continue
			}
			file := filepath.Join("testdata", name+"."+ext)
			if *update {
				if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Errorf("%v (run go test with -update)", err)
			} else if !bytes.Equal(b.Bytes(), want) {
				t.Errorf("%s differs; look at it and run go test -update:\n%s", file, b.String())
			}
		}
	}
}

// TestTheOrderOfFindingsMakesNoDifference: the same findings in another order
// give the same bytes, and the caller's document stays as it is.
func TestTheOrderOfFindingsMakesNoDifference(t *testing.T) {
	for ext, write := range forms {
		var a, b bytes.Buffer
		doc := several()
		if err := write(&a, doc); err != nil {
			t.Fatal(err)
		}
		if doc.Findings[0].File != several().Findings[0].File {
			t.Errorf("%s: the document was sorted in place", ext)
		}
		slices.Reverse(doc.Findings)
		slices.Reverse(doc.Mistakes)
		if err := write(&b, doc); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Errorf("%s: two orders give two outputs", ext)
		}
	}
}

// TestNothingFromAFileActsOnATerminal: escapes are written as text, whatever
// field they are in.
func TestNothingFromAFileActsOnATerminal(t *testing.T) {
	evil := "\x1b]0;x\x07\u202e\u009b31m\x00\r"
	f := findings.Finding{File: evil, Line: 1, Column: 1, Subject: evil, Field: evil, Level: findings.Level(evil), Claim: evil,
		ClaimTitle: evil, Effect: evil, EffectWords: evil, Message: evil, Write: evil, Settings: []string{evil}}
	g := f
	g.Symptom, g.Cause, g.CauseID, g.Evidence = evil, evil, evil, []string{evil, "x:1: " + evil}
	doc := &findings.Document{Tool: evil, Command: evil, Settings: []string{evil, "b"}, Read: []string{evil}, Files: 1, Documents: 2,
		Findings: []findings.Finding{f, g, {Claim: evil, Message: evil}},
		Mistakes: []findings.Mistake{{File: evil, Message: evil}}, Passed: map[string]int{evil: 1}, Healthy: []string{evil},
		NotExamined: []string{evil}, Known: []findings.KnownIssue{{ID: 1, Title: evil, Lines: []string{evil}}}}
	for ext, write := range forms {
		var b bytes.Buffer
		if err := write(&b, doc); err != nil {
			t.Fatal(err)
		}
		s := b.String()
		if ext == "colour.txt" {
			for _, own := range []string{"\x1b[1;31m", "\x1b[1;33m", "\x1b[1;34m", "\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[32m", "\x1b[m"} {
				s = strings.ReplaceAll(s, own, "")
			}
		}
		if i := strings.IndexAny(s, "\x1b\x07\u202e\u009b\x00\r"); i >= 0 {
			t.Errorf("%s: a control character got through at %q", ext, s[max(0, i-40):i+8])
		}
	}
}
