package cluster

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestFolder: the folder of a cluster is removed when the cluster closes it, by a process that
// outlives one that is killed (cmd/winlab-cluster tries that).
func TestFolder(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	f, err := newFolder()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(f.path, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := f.remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(f.path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

func TestNewDir(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	one, lock, err := newDir()
	if err != nil {
		t.Fatal(err)
	}
	two, lock2, err := newDir()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock2.Close() }()
	if _, err := os.Stat(one); err != nil {
		t.Errorf("the folder of a cluster that is up is gone: %v", err)
	}
	_ = lock.Close() // as the kernel does for a process that is killed
	three, lock3, err := newDir()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock3.Close() }()
	if _, err := os.Stat(one); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what a killed cluster has left is still there: %v", err)
	}
	for _, dir := range []string{two, three} {
		if _, err := os.Stat(dir); err != nil {
			t.Error(err)
		}
	}
}
