package offline

import (
	"os"
	"path/filepath"
	"slices"
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
