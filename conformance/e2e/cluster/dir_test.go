package cluster

import (
	"errors"
	"io/fs"
	"os"
	"testing"
)

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
