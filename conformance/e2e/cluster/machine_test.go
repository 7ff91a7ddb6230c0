package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/live/netns"
)

// TestCheckMachine: each thing that is missing is said, all at once, with what to do.
func TestCheckMachine(t *testing.T) {
	f, err := lab.Load("../labs/l2bridge.yaml")
	if err != nil {
		t.Fatal(err)
	}
	n := needsOf(f)
	if n.linux != 1 || n.windows != 2 || n.inotify != 25 || n.memory != 1120<<20 || n.disk != 500<<20 {
		t.Errorf("%+v", n)
	}
	enough := func() machineHas {
		return machineHas{inotify: func(n int) (int, error) { return n, nil }, memory: func() (uint64, error) { return n.memory, nil },
			disk: func(string) (uint64, error) { return n.disk, nil }, namespaces: func() error { return nil }, wine: func() error { return nil }}
	}
	if err := checkMachine(n, "", enough()); err != nil {
		t.Error(err)
	}
	unknown := enough()
	unknown.memory = func() (uint64, error) { return 0, os.ErrNotExist }
	if err := checkMachine(n, "", unknown); err != nil {
		t.Errorf("memory that is not known: %v", err)
	}
	none := machineHas{
		inotify: func(int) (int, error) { return 7, errUserLimit }, memory: func() (uint64, error) { return 300 << 20, nil },
		disk:       func(string) (uint64, error) { return 1 << 20, nil },
		namespaces: func() error { return netns.ErrUnsupported }, wine: func() error { return errors.New("no Wine") },
	}
	err = checkMachine(n, "/somewhere", none)
	if !errors.Is(err, netns.ErrUnsupported) {
		t.Errorf("%v does not wrap ErrUnsupported", err)
	}
	for _, want := range []string{"takes 25 instances of inotify, and this user can have 7 more",
		"sudo sysctl fs.inotify.max_user_instances=512",
		"takes 1120 MiB of memory before its first pod, and 300 MiB are free", "takes 500 MiB in /somewhere, and 1 MiB are free", "no Wine"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in:\n%v", want, err)
		}
	}
	n.windows = 0
	if err := checkMachine(n, "", none); strings.Contains(err.Error(), "no Wine") {
		t.Errorf("Wine without a Windows node: %v", err)
	}
}

// TestFreeOfThisMachine: what is left is found, and nothing stays open.
func TestFreeOfThisMachine(t *testing.T) {
	// All that this process can open are too few.
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	few := unix.Rlimit{Cur: uint64(len(open) + 3), Max: old.Max}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	n, err := freeInotify(200)
	if e := unix.Setrlimit(unix.RLIMIT_NOFILE, &old); e != nil {
		t.Fatal(e)
	}
	if n > 5 || !errors.Is(err, errOpenFiles) {
		t.Errorf("%d instances, %v", n, err)
	}
	before, _ := os.ReadDir("/proc/self/fd")
	if n, err := freeInotify(3); n != 3 && !errors.Is(err, errUserLimit) {
		t.Errorf("%d instances, %v", n, err)
	}
	if after, _ := os.ReadDir("/proc/self/fd"); len(after) > len(before) {
		t.Errorf("%d files are open, before %d", len(after), len(before))
	}
	if m, err := freeMemory(); err != nil || m == 0 {
		t.Errorf("%d bytes of memory, %v", m, err)
	}
	here, err := freeDisk(t.TempDir())
	if err != nil || here == 0 {
		t.Errorf("%d bytes on disk, %v", here, err)
	}
	if _, err := freeDisk(filepath.Join(t.TempDir(), "not", "yet")); err != nil {
		t.Errorf("a folder that is not there yet: %v", err)
	}
}
