package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/conformance/check/subject"
	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/internal/strict"
)

// found reads a file and asks a test about every subject that it is for. Each
// hit is a line: "LINE:COLUMN FIELD key=value ...".
func found(t *testing.T, name string, args map[string]string, text string) []string {
	t.Helper()
	docs, mistakes := strict.Read("x.yaml", strings.NewReader(text))
	if len(mistakes) > 0 {
		t.Fatal(mistakes)
	}
	all, _, _, mistakes := Read(docs, Options{})
	if len(mistakes) > 0 {
		t.Fatal(mistakes)
	}
	tests := Tests()
	i := slices.IndexFunc(tests, func(x subject.Test) bool { return x.Name == name })
	if i < 0 {
		t.Fatalf("there is no test %s", name)
	}
	c := subject.NewContext(claims.Target{Kubernetes: "1.36", Release: "2022"}, all, nil)
	var lines []string
	for _, s := range all {
		if !slices.Contains(tests[i].On, s.On) {
			continue
		}
		for _, h := range tests[i].Find(c, s, args) {
			at := h.At
			if at == nil {
				at = s.Root
			}
			words := []string{fmt.Sprintf("%d:%d", at.Line, at.Column), h.Field}
			for _, k := range slices.Sorted(maps.Keys(h.Vars)) {
				if !slices.Contains(append(tests[i].Vars, "value", "field"), k) {
					t.Errorf("the test fills {%s} in and does not declare it", k)
				}
				words = append(words, k+"="+h.Vars[k])
			}
			lines = append(lines, strings.TrimSpace(strings.Join(words, " ")))
		}
	}
	return lines
}

func podWith(spec string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers: [{name: c, image: example/c}]\n" + spec
}

const class2019 = "---\napiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: windows-2019}\nhandler: h\nscheduling: {nodeSelector: {kubernetes.io/os: windows}}\n"

func TestSchedulingTests(t *testing.T) {
	for _, tc := range []struct {
		name, test, text string
		want             []string
	}{
		{"nothing says where", "no-system-selector", podWith(""), []string{"4:1 spec why="}},
		{"a selector", "no-system-selector", podWith("  nodeSelector: {kubernetes.io/os: windows}\n"), nil},
		{"a selector on what all nodes have", "no-system-selector", podWith("  nodeSelector: {kubernetes.io/arch: amd64}\n"),
			[]string{"4:1 spec why="}},
		{"a selector on a label of one's own", "no-system-selector", podWith("  nodeSelector: {agentpool: win1}\n"), nil},
		{"a node name", "no-system-selector", podWith("  nodeName: win1\n"), nil},
		{"a RuntimeClass that selects", "no-system-selector", podWith("  runtimeClassName: windows-2019\n") + class2019, nil},
		{"a RuntimeClass that the files do not have", "no-system-selector", podWith("  runtimeClassName: other\n"), nil},
		{"a RuntimeClass that selects nothing", "no-system-selector", podWith("  runtimeClassName: plain\n") +
			"---\napiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: plain}\nhandler: h\n", []string{"4:1 spec why="}},
		{"affinity", "no-system-selector",
			podWith(
				"  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/os, operator: In, values: [linux]}]}]}}}\n"), nil},
		{"affinity that is only a wish", "no-system-selector", podWith(
			"  affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: kubernetes.io/os, operator: In, values: [linux]}]}}]}}\n"), []string{"4:1 spec why="}},
		{"what told the system is said", "no-system-selector", podWith("  os: {name: windows}\n"), []string{"4:1 spec why=spec.os.name"}},
		{"the toleration is told by its own test", "no-system-selector", podWith("  tolerations: [{key: os, operator: Exists}]\n"), nil},

		{"toleration only", "toleration-without-selector", podWith("  tolerations: [{key: os, value: windows, effect: NoSchedule}]\n"),
			[]string{"6:3 spec.tolerations"}},
		{"another toleration", "toleration-without-selector", podWith("  tolerations: [{key: gpu, operator: Exists}]\n"), nil},
		{"toleration and selector", "toleration-without-selector",
			podWith("  nodeSelector: {kubernetes.io/os: windows}\n  tolerations: [{key: os, value: windows, effect: NoSchedule}]\n"), nil},

		{"as the documents have it", "os-toleration-mismatch", podWith(
			"  tolerations: [{key: os, operator: Equal, value: windows, effect: NoSchedule}]\n"), nil},
		{"every effect", "os-toleration-mismatch", podWith("  tolerations: [{key: os, value: windows}]\n"), nil},
		{"upper case", "os-toleration-mismatch", podWith("  tolerations: [{key: os, value: Windows, effect: NoSchedule}]\n"),
			[]string{"6:17 spec.tolerations[0] because=the taint's value is windows, in lower case value=Windows"}},
		{"for another system", "os-toleration-mismatch", podWith("  tolerations: [{key: os, value: linux, effect: NoSchedule}]\n"), nil},
		{"another effect", "os-toleration-mismatch", podWith("  tolerations: [{key: os, value: windows, effect: NoExecute}]\n"),
			[]string{"6:17 spec.tolerations[0] because=the taint's effect is NoSchedule, and this one is for NoExecute value=windows"}},
		{"another effect besides the right one", "os-toleration-mismatch",
			podWith("  tolerations: [{key: os, value: windows, effect: NoExecute}, {key: os, value: windows, effect: NoSchedule}]\n"), nil},
		{"everything is tolerated", "os-toleration-mismatch", podWith(
			"  tolerations: [{key: os, value: windows, effect: NoExecute}, {operator: Exists}]\n"), nil},

		{"Exists with a value", "toleration-exists-with-value", podWith("  tolerations: [{key: os, operator: Exists, value: windows}]\n"),
			[]string{"6:52 spec.tolerations[0].value value=windows"}},
		{"Exists", "toleration-exists-with-value", podWith("  tolerations: [{key: os, operator: Exists}]\n"), nil},

		{"three numbers", "windows-build-form", podWith("  nodeSelector: {node.kubernetes.io/windows-build: 10.0.17763}\n"), nil},
		{"a revision", "windows-build-form", podWith("  nodeSelector: {node.kubernetes.io/windows-build: 10.0.17763.1432}\n"),
			[]string{`6:52 spec.nodeSelector["node.kubernetes.io/windows-build"] value=10.0.17763.1432`}},
		{"a name", "windows-build-form", podWith("  nodeSelector: {node.kubernetes.io/windows-build: ltsc2022}\n"),
			[]string{`6:52 spec.nodeSelector["node.kubernetes.io/windows-build"] value=ltsc2022`}},
		{"in affinity", "windows-build-form",
			podWith(
				"  affinity:\n    nodeAffinity:\n      requiredDuringSchedulingIgnoredDuringExecution:\n        nodeSelectorTerms:\n        - matchExpressions: [{key: node.kubernetes.io/windows-build, operator: In, values: [10.0.20348, '20348']}]\n"),
			[]string{
				"10:105 spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values[1] value=20348"}},
		{"of a class", "windows-build-form",
			"apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: w}\nhandler: h\nscheduling: {nodeSelector: {node.kubernetes.io/windows-build: '2019'}}\n", []string{`5:63 scheduling.nodeSelector["node.kubernetes.io/windows-build"] value=2019`}},
		{"of a node", "windows-build-form",
			"apiVersion: v1\nkind: Node\nmetadata: {name: w, labels: {node.kubernetes.io/windows-build: v1809}}\n",
			[]string{`3:64 metadata.labels["node.kubernetes.io/windows-build"] value=v1809`}},

		{"the nodes' build", "windows-build-of-other-nodes", podWith("  nodeSelector: {node.kubernetes.io/windows-build: 10.0.20348}\n"), nil},
		{"another build", "windows-build-of-other-nodes", podWith("  nodeSelector: {node.kubernetes.io/windows-build: 10.0.17763}\n"),
			[]string{`6:52 spec.nodeSelector["node.kubernetes.io/windows-build"] nodes=10.0.20348 value=10.0.17763`}},
		{"another build, by the class", "windows-build-of-other-nodes", podWith("  runtimeClassName: w\n") +
			"---\napiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: w}\nhandler: h\nscheduling: {nodeSelector: {node.kubernetes.io/windows-build: 10.0.17763}}\n",
			[]string{"6:21 spec.runtimeClassName nodes=10.0.20348 value=10.0.17763"}},
		{"one build of several", "windows-build-of-other-nodes", podWith(
			"  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: node.kubernetes.io/windows-build, operator: In, values: [10.0.17763, 10.0.20348]}]}]}}}\n"), nil},

		{"a class by its handler", "windows-class-without-selector",
			"apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: x}\nhandler: runhcs-wcow-process\n",
			[]string{"4:10 handler why=its handler is runhcs-wcow-process"}},
		{"a class by its name", "windows-class-without-selector",
			"apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: windows-2019}\nhandler: docker\nscheduling: {tolerations: []}\n",
			[]string{"5:1 scheduling why=it is called windows-2019"}},
		{"a class that selects", "windows-class-without-selector", class2019, nil},
		{"a class for Linux", "windows-class-without-selector",
			"apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: gvisor-twins}\nhandler: runsc\n", nil},

		{"the class says the same", "runtimeclass-conflict", podWith(
			"  runtimeClassName: windows-2019\n  nodeSelector: {kubernetes.io/os: windows, a: b}\n") + class2019, nil},
		{"the class says something else", "runtimeclass-conflict",
			podWith("  runtimeClassName: windows-2019\n  nodeSelector: {kubernetes.io/os: linux}\n") + class2019,
			[]string{`7:36 spec.nodeSelector["kubernetes.io/os"] class=windows-2019 label=kubernetes.io/os value=linux wants=windows`}},

		{"os and selector agree", "os-field-against-selector", podWith("  os: {name: windows}\n  nodeSelector: {kubernetes.io/os: windows}\n"),
			nil},
		{"os and selector differ", "os-field-against-selector", podWith("  os: {name: linux}\n  nodeSelector: {kubernetes.io/os: windows}\n"),
			[]string{"6:14 spec.os.name selects=windows value=linux"}},
		{"os and the build's label differ", "os-field-against-selector",
			podWith("  os: {name: linux}\n  nodeSelector: {node.kubernetes.io/windows-build: 10.0.17763}\n"),
			[]string{"6:14 spec.os.name selects=windows value=linux"}},
		{"os and the class differ", "os-field-against-selector", podWith("  os: {name: linux}\n  runtimeClassName: windows-2019\n") + class2019,
			[]string{"6:14 spec.os.name selects=windows value=linux"}},
		{"no selector", "os-field-against-selector", podWith("  os: {name: linux}\n"), nil},
	} {
		t.Run(tc.test+"/"+tc.name, func(t *testing.T) {
			if got := found(t, tc.test, nil, tc.text); !slices.Equal(got, tc.want) {
				t.Errorf("found %q, want %q", got, tc.want)
			}
		})
	}
}
