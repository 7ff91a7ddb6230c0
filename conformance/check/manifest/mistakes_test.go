package manifest

import (
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/internal/strict"
)

// TestMistakes: what is not an object, or not a valid one, is reported at its place, and
// gives no subject.
func TestMistakes(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"no kind", "apiVersion: v1\nmetadata: {name: x}\n", "1:1: the object has no kind"},
		{"an empty kind", "apiVersion: v1\nkind:\nmetadata: {name: x}\n", "1:1: the object has no kind"},
		{"no version", "kind: Pod\nspec: {}\n", "1:1: the object has no apiVersion"},
		{"numbers", "apiVersion: v1\nkind: 2\n", "2:7: kind is not a text"},
		{"a bare list", "- apiVersion: v1\n  kind: Pod\n", "1:1: a bare list of objects; write one object to a document"},
		{"another group", "apiVersion: v1\nkind: Deployment\nspec: {}\n", "1:13: v1 has no kind Deployment; write apiVersion: apps/v1"},
		{"lower case", "apiVersion: v1\nkind: pod\nspec: {}\n", "2:7: v1 has no kind pod; write Pod"},
		{"a number for a list", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: 3}\n",
			"4:20: Pod p: spec.containers is a number, and the API wants a list"},
		{"a text for a number",
			"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - {name: a, ports: [{containerPort: 80}]}\n  - {name: b, ports: [{containerPort: \"80\"}]}\n",
			"7:39: Pod p: spec.containers.ports.containerPort is a text, and the API wants a number"},
		{"a number for a text", "apiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: {a: b, c: 1}}\nspec: {}\n",
			"3:39: Pod p: metadata.labels is a number, and the API wants a text"},
		{"a number among maps", "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{port: 80}, 90]}\n",
			"4:28: Service s: spec.ports is a number, and the API wants a map"},
		{"a quantity", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{resources: {limits: {cpu: 1, memory: lots}}}]}\n",
			`4:59: Pod p: "lots" is not a quantity`},
		{"a patch",
			"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {template: {spec: {containers: [{name: a, resources: {$patch: delete}}]}}}\n", "4:61: Deployment d: this is a patch (spec.template.spec.containers[0].resources.$patch) and no whole object"},
	} {
		t.Run(c.name, func(t *testing.T) {
			docs, mistakes := strict.Read("f", strings.NewReader(c.text))
			if len(mistakes) > 0 {
				t.Fatal(mistakes)
			}
			subjects, rest, _, mistakes := Read(docs, Options{})
			if len(subjects)+len(rest) > 0 {
				t.Errorf("%d subjects, %d other documents", len(subjects), len(rest))
			}
			if len(mistakes) != 1 || !strings.HasPrefix(mistakes[0].String(), "f:"+c.want) {
				t.Errorf("got %v, want %s", mistakes, c.want)
			}
		})
	}
}

// TestNoMistakes: what only resembles an object, and the kinds of others.
func TestNoMistakes(t *testing.T) {
	for _, c := range []struct {
		name, text     string
		subjects, rest int
	}{
		{"Helm's Chart.yaml", "apiVersion: v2\nname: x\nversion: 1.0.0\n", 0, 1},
		{"a list of something", "- name: a\n- 3\n", 0, 1},
		{"a kind of something", "kind: machine\nname: x\n", 0, 1},
		{"somebody's Service", "apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: x}\n", 1, 0},
		{"an old alpha version", "apiVersion: batch/v2alpha1\nkind: CronJob\nmetadata: {name: x}\n", 1, 0},
		{"a kind that no rule looks at", "apiVersion: v1\nkind: Binding\nmetadata: {name: x}\n", 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			docs, _ := strict.Read("f", strings.NewReader(c.text))
			subjects, rest, _, mistakes := Read(docs, Options{})
			if len(mistakes) > 0 || len(subjects) != c.subjects || len(rest) != c.rest {
				t.Errorf("%d subjects, %d other documents, mistakes: %v", len(subjects), len(rest), mistakes)
			}
		})
	}
}
