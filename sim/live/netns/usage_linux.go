package netns

import (
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ticks is how many of /proc's clock ticks there are in a second: USER_HZ, which is 100
// for programs on all machines that Go runs on (time(7)).
const ticks = 100

// usage adds up what the processes of a container use.
func (h *helper) usage(s *space, name string) (*Usage, error) {
	h.mu.Lock()
	c := s.containers[name]
	var ns, spent uint64
	var pid int
	if c != nil && c.starting {
		c = nil
	}
	if c != nil {
		ns, spent, pid = c.ns, c.spent, c.pid
	}
	h.mu.Unlock()
	switch {
	case c == nil:
		return nil, errors.New("container " + name + " does not run")
	case ns == 0:
		return nil, errors.New("this machine's /proc cannot be mounted in a PID namespace, so what a container uses is not known")
	}
	u := &Usage{CPU: spent}
	var fs unix.Statfs_t
	if err := unix.Statfs("/proc/"+strconv.Itoa(pid)+"/root", &fs); err == nil && c.spec.OwnRoot {
		u.Disk, u.Inodes = (fs.Blocks-fs.Bfree)*uint64(fs.Bsize), fs.Files-fs.Ffree
	}
	all, err := processes(ns)
	if err != nil {
		return nil, err
	}
	for _, pid := range all {
		cpu, ok := cpuOf(pid)
		if !ok {
			continue
		}
		u.CPU += cpu
		u.Memory += memoryOf(pid)
		u.Processes++
	}
	return u, nil
}

// processes are those in a mount namespace, by the inode of that.
func processes(ns uint64) (all []int, err error) {
	entries, err := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && mountNamespace(pid) == ns {
			all = append(all, pid)
		}
	}
	return all, err
}

// mountNamespace is the inode of a process' mount namespace, 0 where /proc does not show
// the helper's processes.
func mountNamespace(pid int) uint64 {
	text, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/ns/mnt")
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseUint(strings.Trim(strings.TrimPrefix(text, "mnt:"), "[]"), 10, 64)
	return n
}

// cpuOf is the time of a process and of the children that it has waited for, in
// nanoseconds (proc_pid_stat(5), fields 14 to 17).
func cpuOf(pid int) (uint64, bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	f := statFields(data)
	if len(f) < 15 || f[0] == "Z" {
		return 0, false
	}
	return uint64(tickTime(f[11:15]...)), true
}

// memoryOf is the proportional set size of a process in bytes, its resident set where the
// kernel does not say.
func memoryOf(pid int) uint64 {
	dir := "/proc/" + strconv.Itoa(pid)
	if data, err := os.ReadFile(dir + "/smaps_rollup"); err == nil {
		for _, line := range strings.Split(string(data), "\n") {
			if f := strings.Fields(line); len(f) >= 2 && f[0] == "Pss:" {
				n, _ := strconv.ParseUint(f[1], 10, 64)
				return n << 10
			}
		}
	}
	if data, err := os.ReadFile(dir + "/statm"); err == nil {
		if f := strings.Fields(string(data)); len(f) > 1 {
			n, _ := strconv.ParseUint(f[1], 10, 64)
			return n * uint64(os.Getpagesize())
		}
	}
	return 0
}
