package nodeconf

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/conformance/check/subject"
)

// show writes subjects as lines: what they are, and what their root holds,
// with the places.
func show(subjects []*subject.Subject) string {
	var b strings.Builder
	for _, s := range subjects {
		fmt.Fprintf(&b, "%s %q %d:%d", s.On, s.Name, s.Root.Line, s.Root.Column)
		switch v := s.Value.(type) {
		case *commandLine:
			if v.incomplete {
				b.WriteString(" incomplete")
			}
			if v.branch != "" {
				b.WriteString(" branch " + v.branch)
			}
		case *CNI:
			fmt.Fprintf(&b, " %s %s %s", v.Type, v.delegate, v.Network)
			for _, p := range append(v.Refused, v.ignored...) {
				fmt.Fprintf(&b, "\n  ! %d:%d %s", p.Line, p.Column, p.Message)
			}
		}
		b.WriteByte('\n')
		showNode(&b, s.Root, "  ")
	}
	return b.String()
}

func showNode(b *strings.Builder, n *yaml.Node, indent string) {
	if n.Kind == yaml.SequenceNode {
		for _, e := range n.Content {
			fmt.Fprintf(b, "%s- %d:%d %s\n", indent, e.Line, e.Column, e.Value)
			showNode(b, e, indent+"  ")
		}
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		fmt.Fprintf(b, "%s%s: %d:%d %s\n", indent, k.Value, v.Line, v.Column, v.Value)
		showNode(b, v, indent+"  ")
	}
}

var update = flag.Bool("update", false, "rewrite the golden files")

const fixtures = "../../../fixtures/node-config"

// TestFixtures reads every sample and compares what came out, with all places.
func TestFixtures(t *testing.T) {
	for _, folder := range []string{"l2bridge", "overlay", "broken", "manifests"} {
		t.Run(folder, func(t *testing.T) {
			var got strings.Builder
			files, err := filepath.Glob(filepath.Join(fixtures, folder, "*"))
			if err != nil || len(files) == 0 {
				t.Fatal("no fixtures", err)
			}
			for _, f := range files {
				data, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				subjects, ok, mistakes := Read(filepath.Base(f), data)
				if !ok { // a manifest
					docs, err := documents(string(data))
					if err != nil {
						t.Fatal(err)
					}
					for _, d := range docs {
						more, found := Embedded(filepath.Base(f), data, d)
						subjects, mistakes = append(subjects, more...), append(mistakes, found...)
					}
				}
				fmt.Fprintf(&got, "== %s recognised %v\n%s", filepath.Base(f), ok, show(subjects))
				for _, m := range mistakes {
					fmt.Fprintln(&got, m)
				}
			}
			golden := filepath.Join("testdata", folder+".golden")
			if *update {
				if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("go test -update rewrites it (-want +got):\n%s", diff)
			}
		})
	}
}
