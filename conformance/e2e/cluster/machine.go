package cluster

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/live/netns"
	"github.com/winlab-dev/winlab/sim/real/wine"
)

// needs are the resources of this machine that a cluster takes.
type needs struct {
	linux, windows int // nodes
	// inotify is how many instances of inotify its programs have open; memory and disk
	// are in bytes.
	inotify      int
	memory, disk uint64
}

// What a cluster takes that has just come up, measured with Kubernetes 1.37.0 (docs/cluster.md).
// Each container of a Windows node takes one more instance of inotify, that of its Wine.
const (
	inotifyOfControlPlane = 17 // with the metrics server
	inotifyOfLinux        = 6
	inotifyOfWindows      = 1
	memoryOfControlPlane  = 600 << 20
	memoryOfLinux         = 60 << 20
	memoryOfWindows       = 230 << 20
	diskOfControlPlane    = 200 << 20
	diskOfNode            = 100 << 20
)

func needsOf(f *lab.File) needs {
	n := needs{inotify: inotifyOfControlPlane, memory: memoryOfControlPlane, disk: diskOfControlPlane}
	for _, node := range f.Lab.Spec.Nodes {
		n.disk += diskOfNode
		if node.OS == "windows" {
			n.windows++
			n.inotify += inotifyOfWindows
			n.memory += memoryOfWindows
		} else {
			n.linux++
			n.inotify += inotifyOfLinux
			n.memory += memoryOfLinux
		}
	}
	return n
}

// machineHas are the resources that this machine has left.
type machineHas struct {
	// inotify is how many instances of n can be had, and why not all.
	inotify func(n int) (int, error)
	memory  func() (uint64, error)
	disk    func(dir string) (uint64, error)
	// namespaces and wine say why there are none.
	namespaces, wine func() error
}

// CheckMachine says, all at once and before anything is built or started, what this machine
// lacks for a cluster on a lab, and what to do about it. dir is where the cluster's files are
// to be, "" for a temporary folder. The error wraps [netns.ErrUnsupported] where there are no
// namespaces.
func CheckMachine(f *lab.File, dir string) error {
	return checkMachine(needsOf(f), dir, machineHas{inotify: freeInotify, memory: freeMemory, disk: freeDisk,
		namespaces: func() error {
			h, err := netns.Start(netns.Options{})
			if err == nil {
				h.Close()
			}
			return err
		},
		wine: func() error { _, err := wine.Find(); return err }})
}

func checkMachine(n needs, dir string, has machineHas) error {
	var errs []error
	lacks := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if err := has.namespaces(); err != nil {
		errs = append(errs, err)
	}
	if n.windows > 0 {
		if err := has.wine(); err != nil {
			errs = append(errs, err)
		}
	}
	switch have, err := has.inotify(n.inotify); {
	case errors.Is(err, errUserLimit):
		lacks(
			"the cluster takes %d instances of inotify, and this user can have %d more (other clusters and editors have some, too): sudo sysctl fs.inotify.max_user_instances=%d", n.inotify, have, 512)
	case errors.Is(err, unix.ENFILE), errors.Is(err, errOpenFiles):
		lacks("the cluster takes %d instances of inotify, and only %d more files can be opened here: ulimit -n 4096", n.inotify, have)
	case err != nil:
		errs = append(errs, err)
	}
	// What cannot be found out does not prevent a start.
	if free, err := has.memory(); err == nil && free < n.memory {
		lacks("the cluster takes %d MiB of memory before its first pod, and %d MiB are free: end other programs, or take a lab with fewer nodes",
			n.memory>>20, free>>20)
	}
	if dir == "" {
		dir = os.TempDir()
	}
	if free, err := has.disk(dir); err == nil && free < n.disk {
		lacks("the cluster takes %d MiB in %s, and %d MiB are free: name a folder elsewhere with --dir, or set TMPDIR", n.disk>>20, dir, free>>20)
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("this machine cannot hold the cluster:\n%w", errors.Join(errs...))
}

var (
	errUserLimit = errors.New("the user's limit of inotify instances")
	errOpenFiles = errors.New("the limit of open files")
)

// freeInotify opens instances of inotify, up to n, and closes them: the kernel does not say
// how many a user has.
func freeInotify(n int) (int, error) {
	var fds []int
	defer func() {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
	}()
	for range n {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		if err == unix.EMFILE {
			// The same error is for the files of this process (inotify_init(2)).
			null, other := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if other != nil {
				return len(fds), errOpenFiles
			}
			return len(fds), errors.Join(errUserLimit, unix.Close(null))
		}
		if err != nil {
			return len(fds), fmt.Errorf("inotify: %w", err)
		}
		fds = append(fds, fd)
	}
	return len(fds), nil
}

// freeMemory is what programs can have before something has to go: of this machine, or of
// the control group that this process is in.
func freeMemory() (uint64, error) {
	free, err := field("/proc/meminfo", "MemAvailable:")
	if err != nil {
		return 0, err
	}
	free <<= 10
	group, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return free, nil
	}
	_, path, ok := strings.Cut(strings.TrimSpace(string(group)), "0::") // that of version 2
	if !ok {
		return free, nil
	}
	dir := filepath.Join("/sys/fs/cgroup", path)
	most, err1 := number(filepath.Join(dir, "memory.max")) // "max" means no limit
	now, err2 := number(filepath.Join(dir, "memory.current"))
	cached, err3 := field(filepath.Join(dir, "memory.stat"), "inactive_file")
	if err := errors.Join(err1, err2, err3); err != nil {
		return free, nil
	}
	now -= min(now, cached)
	return min(free, most-min(most, now)), nil
}

// number reads a file that is one.
func number(file string) (uint64, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
}

// field reads the number behind a name, of a file with one of them in each line.
func field(file, name string) (uint64, error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) > 1 && words[0] == name {
			return strconv.ParseUint(words[1], 10, 64)
		}
	}
	return 0, fmt.Errorf("%s has no %s", file, name)
}

// freeDisk is what a user can write to the file system of a folder, which need not be there
// yet.
func freeDisk(dir string) (uint64, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return 0, err
	}
	for {
		var fs unix.Statfs_t
		err := unix.Statfs(dir, &fs)
		if err == nil {
			return fs.Bavail * uint64(fs.Bsize), nil
		}
		up := filepath.Dir(dir)
		if !errors.Is(err, unix.ENOENT) || up == dir {
			return 0, err
		}
		dir = up
	}
}
