package labfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	sigsyaml "sigs.k8s.io/yaml"
)

// What is read from a List in JSON is what the same objects give in YAML, each with the
// line on which it begins.
func TestListInJSON(t *testing.T) {
	texts := map[string]string{
		"a Service and a pod": `{"kind": "List", "items": [
  {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "annotations": {"a": "b"}}, "spec": {"selector": {"a": "b"}, "ports": [{"port": 80, "targetPort": "http"}]}},
  {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"a": "b"}},
   "spec": {"nodeName": "n", "tolerations": [{"key": "os"}], "containers": [{"name": "c", "image": "i", "ports": [{"name": "http", "containerPort": 8080}]}]}}
], "apiVersion": "v1"}`,
		"a number where a text belongs":    `{"kind": "List", "items": [{"kind": "Service", "apiVersion": "v1", "metadata": {"name": 12}, "spec": {"ports": [{"port": 80}]}}]}`,
		"a Deployment, escaped characters": `{"kind": "List", "items": [{"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "d\u0041"}, "spec": {"replicas": 2, "template": {"metadata": {"labels": {"a": "\"b\""}}, "spec": {"containers": [{"name": "c"}]}}}}]}`,
		"other kinds":                      `{"kind": "List", "items": [{"kind": "Namespace", "metadata": {"name": "n", "labels": {"l": "v"}}}, {"kind": "HorizontalPodAutoscaler", "apiVersion": "autoscaling/v2", "metadata": {"name": "h"}}]}`,
		"no items":                         `{"kind": "List", "items": []}`,
		"a List in a List":                 `{"kind": "List", "items": [{"kind": "List", "items": [{"kind": "Namespace", "metadata": {"name": "n"}}]}]}`,
	}
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			asYAML, err := sigsyaml.JSONToYAML([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			got, want := readText(t, text), readText(t, string(asYAML))
			if g, w := withoutLines(t, got), withoutLines(t, want); g != w {
				t.Errorf("in JSON\n%s\nin YAML\n%s", g, w)
			}
		})
	}
	m := readText(t, texts["a Service and a pod"])
	if s, p := m.Services[0].Origin.Line, m.Workloads[0].Origin.Line; s != 2 || p != 3 {
		t.Errorf("the Service is on line %d and the pod on line %d; they are on 2 and 3", s, p)
	}
}

// A mistake in an object of a List in JSON has the line of the object, all mistakes are
// reported, and those that only YAML's reader would find are found.
func TestMistakesInJSON(t *testing.T) {
	for text, want := range map[string][]string{
		"{\"kind\": \"List\", \"items\": [\n{\"kind\": \"Pod\", \"metadata\": {\"name\": \"a\"}, \"spec\": {\"contaners\": []}},\n\n{\"kind\": \"Deployment\", \"metadata\": {\"name\": \"b\"}, \"spec\": {\"replicas\": -1}}]}": {":2:1:", "contaners", ":4:1:", "-1 replicas"},
		"{\"kind\": \"Pod\", \"metadata\": {\"name\": \"a\"}, \"spec\": {\"nodeName\": \"x\", \"nodeName\": \"y\"}}":                                                                                                             {":1:1:", "nodeName"},
		"{\"kind\": \"List\", \"items\": [{]}": {":1:1:"},
		"{\"kind\": \"List\", \"items\": 3}":   {":1:1:"},
	} {
		path := filepath.Join(t.TempDir(), "objects.json")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		err := new(Manifests).read(path, path).AsError()
		if err == nil {
			t.Errorf("no mistake in %s", text)
			continue
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s\nhas the mistakes\n%v\nwithout %q", text, err, w)
			}
		}
	}
}

func readText(t *testing.T, text string) *Manifests {
	t.Helper()
	path := filepath.Join(t.TempDir(), "objects")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	m := &Manifests{}
	if err := m.read(path, path).AsError(); err != nil {
		t.Fatal(err)
	}
	return m
}

// withoutLines is what was read without its places.
func withoutLines(t *testing.T, m *Manifests) string {
	t.Helper()
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for line := range strings.Lines(string(text)) {
		if !strings.Contains(line, `"line":`) && !strings.Contains(line, `"file":`) && !strings.Contains(line, `"Line":`) &&
			!strings.Contains(line, `"File":`) {
			all = append(all, line)
		}
	}
	return strings.Join(all, "")
}

// FuzzDecode: a document that is read as JSON gives what YAML's reader makes of it.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"a": 1, "b": [true, null, "x"]}`, `{"a": 1e3}`, `{"a": "\u00e9\n"}`, `{"a": 12345678901234567890}`,
		`{"a": {"a": 1, "a": 2}}`, `{"<<": {"a": 1}}`, `{"a": "yes", "y": "1"}`, ` {"a": -0.5}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		// YAML's reader refuses control characters and lone halves of surrogate pairs, and
		// keeps other things that JSON leaves open in its own way; Kubernetes writes none.
		if !looksLikeJSON([]byte(text)) || !json.Valid([]byte(text)) || strings.ContainsAny(text, "\t\r\u0085\u2028\u2029\ufeff\x7f") ||
			strings.Contains(text, `\`) {
			return
		}
		var fast, slow struct {
			Metadata struct {
				Name   string            `json:"name"`
				Labels map[string]string `json:"labels"`
			} `json:"metadata"`
			A any `json:"a"`
		}
		if err := sigsyaml.Unmarshal([]byte(text), &slow); err != nil {
			return
		}
		if err := newObject([]byte(text)).decode(&fast); err != nil || !reflect.DeepEqual(fast, slow) {
			t.Errorf("%s\nas JSON %+v (%v)\nas YAML %+v", text, fast, err, slow)
		}
	})
}

// sameAsYAML compares what object makes of a text with what the reader of YAML does that it
// stands for, in values and in the words of errors.
func sameAsYAML(t *testing.T, text []byte) {
	t.Helper()
	o := newObject(text)
	for _, of := range []func() any{
		func() any {
			return new(struct {
				metav1.TypeMeta   `json:",inline"`
				metav1.ObjectMeta `json:"metadata"`
			})
		},
		func() any { return new(map[string]any) },
		func() any { return new(corev1.Pod) },
		func() any { return new(corev1.Service) },
		//lint:ignore SA1019 it is read
		func() any { return new(corev1.Endpoints) },
		func() any { return new(appsv1.Deployment) },
		func() any { return new(appsv1.StatefulSet) },
		func() any { return new(discoveryv1.EndpointSlice) },
		func() any { return new(networkingv1.NetworkPolicy) },
	} {
		for _, way := range []struct {
			name       string
			fast, slow func(v any) error
		}{
			{"decode", o.decode, func(v any) error { return sigsyaml.Unmarshal(text, v) }},
			{"decodeStrict", o.decodeStrict, func(v any) error { return sigsyaml.UnmarshalStrict(text, v) }},
		} {
			fast, slow := of(), of()
			got, want := way.fast(fast), way.slow(slow)
			if fmt.Sprint(got) != fmt.Sprint(want) || want == nil && !reflect.DeepEqual(fast, slow) {
				t.Fatalf("%s of %T from\n%s\ngives  %+v\nerror  %v\nYAML's %+v\nerror  %v", way.name, fast, text, fast, got, slow, want)
			}
		}
	}
}

// whole is a pod with fields of every kind that Kubernetes' types have: quantities, times,
// ports that are numbers or names, pointers, maps, bytes.
const whole = `apiVersion: v1
kind: Pod
metadata:
  name: a
  creationTimestamp: "2026-01-02T03:04:05Z"
  labels: {app: web, "1": "2"}
  deletionGracePeriodSeconds: 30
spec:
  hostNetwork: true
  priority: 9007199254740993
  containers:
  - name: c
    image: i
    ports: [{containerPort: 80, name: http}]
    resources: {limits: {cpu: 1.5, memory: 2Gi}, requests: {cpu: "1"}}
    livenessProbe: {httpGet: {port: http}, periodSeconds: 3}
    readinessProbe: {tcpSocket: {port: 80}}
    securityContext: {runAsUser: 0}
    env: [{name: A, value: "b"}]
  tolerations: [{key: os, operator: Exists}]
`

// Texts of manifests, and what becomes of them when single words change, are read as YAML's
// reader reads them: numbers for texts, fields twice or in capitals, unknown fields, null.
func TestObjectsAsYAML(t *testing.T) {
	files, err := filepath.Glob("../../../fixtures/manifests/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	texts := [][]byte{[]byte(whole)}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, bytes.Split(data, []byte("\n---\n"))...)
	}
	r := rand.New(rand.NewPCG(1, 2))
	words := []string{"1", "1.5", "-3", "99999999999", "true", "yes", "null", "~", `""`, `"7"`, "[]", "{}", "a", "1e3", "0x10", "2026-01-02",
		"[1, a]", "{a: 1}", "100m", "!!binary aGVsbG8="}
	for _, text := range texts {
		sameAsYAML(t, text)
		if asJSON, err := sigsyaml.YAMLToJSON(text); err == nil {
			sameAsYAML(t, asJSON)
		}
		lines := strings.Split(string(text), "\n")
		for range 50 {
			changed := append([]string(nil), lines...)
			i := r.IntN(len(changed))
			key, value, ok := strings.Cut(changed[i], ": ")
			switch n := r.IntN(6); {
			case n == 0: // a line twice
				changed[i] += "\n" + changed[i]
			case n == 1:
				changed[i] = strings.ToUpper(key) + ":" + strings.TrimPrefix(changed[i], key+":")
			case n == 2 && ok: // no field of Kubernetes
				changed[i] = key + "x: " + value
			case n == 3:
				changed[i] = ""
			case ok:
				changed[i] = key + ": " + words[r.IntN(len(words))]
			}
			sameAsYAML(t, []byte(strings.Join(changed, "\n")))
		}
	}
}

// FuzzObject is TestObjectsAsYAML of any text.
func FuzzObject(f *testing.F) {
	for _, s := range []string{whole, "kind: Service\nspec: {ports: [{port: 80, targetPort: web}]}", "a: 1\na: 2", "", "- 1",
		`{"kind": "Pod", "spec": {"nodeName": 1}}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.HasPrefix(strings.TrimSpace(text), "{") {
			return // FuzzDecode says how JSON and YAML differ there
		}
		sameAsYAML(t, []byte(text))
	})
}
