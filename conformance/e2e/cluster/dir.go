package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	dirPrefix = "winlab-cluster-"
	lockFile  = "lock"
)

// newDir makes a folder for the files of a cluster that shall not stay. The kernel gives
// its lock up with this process, however it ends; folders whose lock nobody has are what
// a cluster has left that was killed, and are removed.
func newDir() (dir string, lock *os.File, err error) {
	old, _ := filepath.Glob(filepath.Join(os.TempDir(), dirPrefix+"*"))
	for _, dir := range old {
		if f, err := lockOf(dir); err == nil {
			_ = os.RemoveAll(dir)
			_ = f.Close()
		}
	}
	// It gets its name when it has its lock.
	made, err := os.MkdirTemp("", "winlab-new-")
	if err != nil {
		return "", nil, err
	}
	if lock, err = os.Create(filepath.Join(made, lockFile)); err == nil {
		dir = filepath.Join(filepath.Dir(made), dirPrefix+strings.TrimPrefix(filepath.Base(made), "winlab-new-"))
		if err = errors.Join(unix.Flock(int(lock.Fd()), unix.LOCK_EX), os.Rename(made, dir)); err == nil {
			return dir, lock, nil
		}
		_ = lock.Close()
	}
	return "", nil, errors.Join(fmt.Errorf("the cluster's folder: %w", err), os.RemoveAll(made))
}

// lockOf takes the lock of a folder that nobody has.
func lockOf(dir string) (*os.File, error) {
	f, err := os.Open(filepath.Join(dir, lockFile))
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}
