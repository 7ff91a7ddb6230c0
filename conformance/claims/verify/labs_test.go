package verify

import (
	"github.com/winlab-dev/winlab/conformance/claims"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestFind: parts of labs are never run by themselves, held-out labs only when
// their folder is named.
func TestFind(t *testing.T) {
	root := t.TempDir()
	head := []byte("apiVersion: winlab.dev/v1alpha1\nkind: Lab\n")
	for _, name := range []string{"labs/a.yaml", "labs/common/part.yaml", "held-out/001-b.yaml"} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, head, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		paths []string
		want  []string
	}{
		{[]string{"."}, []string{"labs/a.yaml"}},
		{[]string{"held-out"}, []string{"held-out/001-b.yaml"}},
		{[]string{"held-out/001-b.yaml"}, []string{"held-out/001-b.yaml"}},
		{[]string{".", "held-out"}, []string{"held-out/001-b.yaml", "labs/a.yaml"}},
	} {
		var paths, want []string
		for _, p := range c.paths {
			paths = append(paths, filepath.Join(root, p))
		}
		for _, w := range c.want {
			want = append(want, filepath.Join(root, w))
		}
		if got, err := find(paths); err != nil || !slices.Equal(got, want) {
			t.Errorf("%v: %v %v, want %v", c.paths, got, err, want)
		}
	}
}

// TestLabsForClaims: each lab for claims is in its folder, is tried in several versions, and
// has a check that names it; and only such checks are tried there.
func TestLabsForClaims(t *testing.T) {
	tried := map[string]map[string]bool{}
	for _, one := range suiteOf(t).designs {
		s := one.ch.job.column
		if !claims.IsLab(s.Design) {
			continue
		}
		if tried[s.Design] == nil {
			tried[s.Design] = map[string]bool{}
		}
		tried[s.Design][s.Kubernetes] = true
		if !s.ForClaims || !strings.Contains(s.File, "/for-claims/") {
			t.Errorf("%s: %s is in %s", s.ID, s.Design, s.File)
		}
		for _, cl := range suiteOf(t).ledger.Claims() {
			for _, k := range cl.ChecksAt(s) {
				if k.Lab != s.Design {
					t.Errorf("%s: %s is tried there, and does not name it", s.ID, cl.ID)
				}
			}
		}
	}
	for _, l := range claims.Labs {
		if len(tried[l.Name]) < 3 {
			t.Errorf("%s is tried in %d versions", l.Name, len(tried[l.Name]))
		}
		if !slices.ContainsFunc(suiteOf(t).ledger.Claims(), func(c *claims.Claim) bool {
			return slices.ContainsFunc(c.Checks, func(k claims.Check) bool { return k.Lab == l.Name })
		}) {
			t.Errorf("no check names %s", l.Name)
		}
	}
}
