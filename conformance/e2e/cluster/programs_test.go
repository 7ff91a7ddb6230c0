package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPrograms(t *testing.T) {
	t.Setenv(readyPrograms, "")
	for version, want := range map[string]string{"1.20.15": "kubernetes 1.20.15 is not pinned in ", "v1.37.0": "1.37.0"} {
		if _, err := CachedPrograms(t.Context(), ".", version); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", version, err)
		}
	}
	dir := t.TempDir()
	if _, err := CachedPrograms(t.Context(), dir, ""); err == nil || !strings.Contains(err.Error(), "set "+readyPrograms) {
		t.Errorf("outside of the project: %v", err)
	}
	if v, err := pick("../../../fixtures/cluster-binaries", "kubernetes", ""); err != nil || v != "1.37.0" {
		t.Errorf("the newest is %s, error %v", v, err)
	}
	t.Setenv(readyPrograms, dir)
	p, err := CachedPrograms(t.Context(), ".", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Path("etcd"); err == nil || !strings.Contains(err.Error(), "no etcd in "+readyPrograms) {
		t.Error(err)
	}
	file := filepath.Join(dir, "etcd")
	if err := os.WriteFile(file, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := p.Path("etcd"); err != nil || got != file {
		t.Errorf("%s, %v", got, err)
	}
}
