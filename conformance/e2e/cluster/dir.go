package cluster

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	dirPrefix = "winlab-cluster-"
	lockFile  = "lock"
)

// folder holds the files of a cluster that are removed at its end.
type folder struct {
	path  string
	lock  *os.File
	guard *exec.Cmd
	end   io.Closer // the guard's input
}

// guardScript removes a folder when its input ends: the cluster closes it, or was killed.
// Programs of the cluster that end at the same time can still make files.
const guardScript = `trap '' HUP INT TERM
read -r _
n=0
while [ -e "$1" ] && [ "$n" -lt 300 ]; do rm -rf -- "$1" 2>/dev/null; n=$((n + 1)); [ -e "$1" ] && sleep 0.1; done
[ ! -e "$1" ]`

// newFolder makes a folder, and a process that removes it when this one has ended.
func newFolder() (*folder, error) {
	f := &folder{}
	var err error
	if f.path, f.lock, err = newDir(); err != nil {
		return nil, err
	}
	f.guard = exec.Command("/bin/sh", "-c", guardScript, "winlab-cluster-guard", f.path)
	f.guard.Dir, f.guard.Env = "/", []string{"PATH=" + programPath}
	f.guard.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // what ends our group must not end it
	if f.end, err = f.guard.StdinPipe(); err == nil {
		err = f.guard.Start()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the guard of the cluster's folder does not start: %w", err), os.RemoveAll(f.path), f.lock.Close())
	}
	return f, nil
}

// remove takes the folder away.
func (f *folder) remove() error {
	err := f.end.Close()
	if e := f.guard.Wait(); e != nil {
		err = errors.Join(err, fmt.Errorf("the folder %s is left: %w", f.path, e))
	}
	return errors.Join(err, f.lock.Close())
}

// newDir makes a folder for the files of a cluster that are removed at its end. The kernel gives
// its lock up with this process, however it ends; folders without a held lock were left by
// a cluster whose guard was killed too, and are removed.
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

// lockOf takes the lock of a folder that is not in use.
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
