package netns

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// container is one that was started.
type container struct {
	spec  *Container
	pid   int
	pidfd int
	ns    uint64 // the inode of its mount namespace, 0 where /proc does not tell
	// shares says that its PID namespace is another's: its processes do not end with the
	// first one by themselves.
	shares bool
	spent  uint64 // CPU time of programs in it that were started later and have ended
	ended  bool

	// mnt is its mount namespace, kept open while ns counts: the inode of one that has gone
	// is the next one's. closed and sweeping say what still comes.
	mnt              int
	closed, sweeping bool

	// starting says that its program does not run yet, doomed that it was removed then.
	starting, doomed bool
}

// child is a program that the helper has started.
type child struct {
	space     string
	container *container // nil for none
	quiet     bool       // its end is not reported
}

// enter brings the present thread into a namespace.
func (s *space) enter() error {
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return err
	}
	for _, n := range []struct{ fd, kind int }{{s.net, unix.CLONE_NEWNET}, {s.mnt, unix.CLONE_NEWNS}, {s.uts, unix.CLONE_NEWUTS},
		{s.ipc, unix.CLONE_NEWIPC}} {
		if err := unix.Setns(n.fd, n.kind); err != nil {
			return err
		}
	}
	return nil
}

// stdioOf takes the three files over that came with a request.
func stdioOf(files []int) ([]*os.File, error) {
	if len(files) != 3 {
		return nil, fmt.Errorf("%d files instead of three", len(files))
	}
	var stdio []*os.File
	for i, fd := range files {
		stdio = append(stdio, os.NewFile(uintptr(fd), strconv.Itoa(i)))
		files[i] = -1 // closed with stdio
	}
	return stdio, nil
}

func closeFiles(all []*os.File) {
	for _, f := range all {
		_ = f.Close()
	}
}

// reserve takes the name of a container that is to be started, in the order of asking; nil
// when it is taken.
func (h *helper) reserve(q request) *container {
	s := h.space(q.Name)
	if s == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.containers[q.Container.Name] != nil {
		return nil
	}
	if s.containers == nil {
		s.containers = map[string]*container{}
	}
	made := &container{spec: q.Container, pidfd: -1, mnt: -1, starting: true}
	s.containers[q.Container.Name] = made
	return made
}

// contain starts a container in a namespace and waits until its program runs.
func (h *helper) contain(q request, s *space, files []int) (pid int, err error) {
	c, made := q.Container, q.made
	if made == nil {
		return 0, fmt.Errorf("container %s already exists in %s", c.Name, q.Name)
	}
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		made.starting = false
		if err == nil && made.doomed {
			err = errRemoved
			if p := h.running[pid]; p != nil {
				p.quiet = true
			}
			made.kill()
		}
		if err != nil {
			if s.containers[c.Name] == made {
				delete(s.containers, c.Name)
			}
			made.close()
		}
	}()
	stdio, err := stdioOf(files)
	if err != nil {
		return 0, err
	}
	defer closeFiles(stdio)
	all := map[string]string{"/etc/hostname": s.spec.Hostname + "\n"}
	maps.Copy(all, s.spec.Files)
	maps.Copy(all, c.Files)
	c.Files = all
	t := task{Container: c, Command: q.Command, Store: h.store, Switch: h.users}
	sources, err := h.sources(s, c, &t)
	defer closeFiles(sources)
	if err != nil {
		return 0, err
	}
	attr := h.attributes(q.Command)
	attr.Cloneflags |= unix.CLONE_NEWPID | unix.CLONE_NEWNS
	enter := s.enter
	if c.Processes != "" {
		if enter, err = h.sharing(s, made, c.Processes); err != nil {
			return 0, err
		}
		attr.Cloneflags &^= unix.CLONE_NEWPID
	}
	attr.PidFD, attr.Credential = &made.pidfd, nil // it becomes the user when it has made the mounts
	if len(attr.UidMappings) > 0 {
		attr.AmbientCaps = privileges
	}
	if pid, err = h.begin(q, made, &t, append(stdio, sources...), attr, enter); err == nil && c.CPU > 0 && made.ns != 0 {
		go h.throttle(made)
	}
	return pid, err
}

// sharing prepares a container for the PID namespace of another, which must run.
func (h *helper) sharing(s *space, made *container, with string) (enter func() error, err error) {
	other, err := h.container(s, with)
	if err == nil && mountNamespace(os.Getpid()) == 0 {
		err = errors.New("this machine's /proc cannot be mounted in a PID namespace: containers cannot share one")
	}
	if err != nil {
		return nil, fmt.Errorf("processes of another container: %w", err)
	}
	made.shares = true
	return func() error {
		if err := s.enter(); err != nil {
			return err
		}
		return unix.Setns(other.pidfd, unix.CLONE_NEWPID)
	}, nil
}

// privileges are what a process needs to make itself a container. Any user but 0 would
// lose them with the exec of this program.
var privileges = []uintptr{unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_SETPCAP, unix.CAP_SYS_ADMIN}

// sources opens what a container mounts.
func (h *helper) sources(s *space, c *Container, t *task) (all []*os.File, err error) {
	for _, m := range c.Mounts {
		if !filepath.IsAbs(m.Source) || !filepath.IsAbs(m.Target) {
			return all, fmt.Errorf("mount %s at %s: both must be absolute paths", m.Source, m.Target)
		}
		open := func() error {
			i, err := os.Stat(m.Source)
			if err != nil {
				return fmt.Errorf("mount %s: %w", m.Target, err)
			}
			fd, err := cloneTree(m.Source, m.ReadOnly)
			if err != nil {
				return err
			}
			t.Folders = append(t.Folders, i.IsDir())
			all = append(all, os.NewFile(uintptr(fd), m.Source))
			return nil
		}
		from := s
		if m.From != "" {
			if from = h.space(m.From); from == nil {
				return all, fmt.Errorf("mount %s: there is no network namespace %s", m.Target, m.From)
			}
		}
		err := onThread(func() error {
			if err := from.enter(); err != nil {
				return err
			}
			return open()
		})
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// begin starts a copy of this program in the namespaces that enter enters, which
// executes the task's command, and waits for its word. The files are the three for the
// command and the sources of mounts.
func (h *helper) begin(q request, c *container, t *task, files []*os.File, sys *syscall.SysProcAttr, enter func() error) (int, error) {
	taskIn, taskOut, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	resultIn, resultOut, err := os.Pipe()
	if err != nil {
		closeFiles([]*os.File{taskIn, taskOut})
		return 0, err
	}
	defer closeFiles([]*os.File{taskIn, taskOut, resultIn, resultOut})
	attr := &os.ProcAttr{Dir: "/", Env: []string{containerEnv + "=3"}, Files: slices.Insert(slices.Clone(files), 3, taskIn, resultOut),
		Sys: sys}
	pid := 0
	h.mu.Lock() // until the program is known to reap
	err = onThread(func() error {
		if c.doomed {
			return errRemoved
		}
		if err := enter(); err != nil {
			return err
		}
		p, err := os.StartProcess("/proc/self/exe", []string{"winlab-container"}, attr)
		if err != nil {
			return err
		}
		pid = p.Pid
		return p.Release()
	})
	if err == nil {
		h.running[pid] = &child{space: q.Name, container: c}
		if !t.Exec {
			c.pid = pid
			c.keep()
		}
	}
	h.mu.Unlock()
	if err != nil {
		return 0, err
	}
	_ = taskIn.Close()
	_ = resultOut.Close()
	if err := json.NewEncoder(taskOut).Encode(t); err != nil {
		return pid, h.unstarted(pid, fmt.Errorf("the container's process has ended: %w", err))
	}
	_ = taskOut.Close()
	var f failed
	switch err := json.NewDecoder(resultIn).Decode(&f); {
	case errors.Is(err, io.EOF): // closed by the exec
		return pid, nil
	case err != nil:
		return pid, h.unstarted(pid, err)
	case f.NotFound:
		return pid, h.unstarted(pid, fmt.Errorf("%s%w", f.Error, errMissing))
	}
	return pid, h.unstarted(pid, errors.New(f.Error))
}

// errMissing marks an error as that of a file that does not exist, without words.
var errMissing = missing{}

type missing struct{}

func (missing) Error() string        { return "" }
func (missing) Is(target error) bool { return target == fs.ErrNotExist }

// unstarted ends a process that has not become the command. Its end is not reported but
// by err.
func (h *helper) unstarted(pid int, err error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.running[pid]; p != nil {
		p.quiet = true
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	return err
}

// attributes are those of a command's process. Where only one user exists, a user
// namespace shows it as the wanted one.
func (h *helper) attributes(c *Command) *syscall.SysProcAttr {
	sys := &syscall.SysProcAttr{Setsid: true, Setctty: c.Terminal}
	switch u := c.User; {
	case u == nil || u.UID == 0 && u.GID == 0:
	case h.users:
		sys.Credential = &syscall.Credential{Uid: u.UID, Gid: u.GID, Groups: u.Groups}
	default:
		sys.Cloneflags |= unix.CLONE_NEWUSER
		sys.UidMappings = []syscall.SysProcIDMap{{ContainerID: int(u.UID), HostID: 0, Size: 1}}
		sys.GidMappings = []syscall.SysProcIDMap{{ContainerID: int(u.GID), HostID: 0, Size: 1}}
	}
	return sys
}

// manyUsers reports whether more than one user exists in the present user namespace.
func manyUsers() bool {
	all := extents("uid")
	return len(all) > 1 || len(all) == 1 && all[0].Size > 1
}

// extents are the users or groups ("uid", "gid") of the present user namespace, each as
// itself in one below (user_namespaces(7)).
func extents(kind string) (all []syscall.SysProcIDMap) {
	data, _ := os.ReadFile("/proc/self/" + kind + "_map")
	for _, line := range strings.Split(string(data), "\n") {
		f := strings.Fields(line)
		if len(f) != 3 {
			continue
		}
		first, err := strconv.ParseUint(f[0], 10, 32)
		size, err2 := strconv.ParseUint(f[2], 10, 32)
		if err == nil && err2 == nil {
			all = append(all, syscall.SysProcIDMap{ContainerID: int(first), HostID: int(first), Size: int(size)})
		}
	}
	return all
}

// apart gives the first user an extent of its own. One extent of all users is what the
// initial user namespace has, and programs that see it take themselves for root of the
// machine (github.com/moby/sys/userns, RunningInUserNS): the kubelet would set the
// machine's kernel parameters.
func apart(all []syscall.SysProcIDMap) []syscall.SysProcIDMap {
	if len(all) != 1 || all[0].Size < 2 {
		return all
	}
	first, rest := all[0], all[0]
	first.Size = 1
	rest.ContainerID, rest.HostID, rest.Size = rest.ContainerID+1, rest.HostID+1, rest.Size-1
	return []syscall.SysProcIDMap{first, rest}
}

// enter brings the present thread into the file system and, for what it starts,
// the PID namespace of a container.
func (c *container) enter() error {
	if err := unix.Setns(c.pidfd, unix.CLONE_NEWNS|unix.CLONE_NEWPID); err != nil {
		if errors.Is(err, unix.ESRCH) {
			return errors.New("the container does not run")
		}
		return fmt.Errorf("enter the container: %w", err)
	}
	return nil
}

// exec starts another program in a container.
func (h *helper) exec(q request, s *space, files []int) (int, error) {
	stdio, err := stdioOf(files)
	if err != nil {
		return 0, err
	}
	defer closeFiles(stdio)
	c, err := h.container(s, q.Inside)
	if err != nil {
		return 0, err
	}
	enter := func() error {
		if err := s.enter(); err != nil {
			return err
		}
		return c.enter()
	}
	attr := h.attributes(q.Command)
	if len(attr.UidMappings) > 0 {
		// Outside programs cannot find the process in the container's /proc, to map its user.
		attr.UidMappings, attr.GidMappings, attr.AmbientCaps = nil, nil, privileges
		return h.begin(q, c, &task{Container: c.spec, Command: q.Command, Exec: true}, stdio, attr, enter)
	}
	h.mu.Lock()
	defer h.mu.Unlock() // until the program is known to reap
	pid := 0
	err = onThread(func() error {
		if err := enter(); err != nil {
			return err
		}
		path, err := look(q.Command.Args[0], q.Command.Env)
		if err != nil {
			return err
		}
		dir := q.Command.Dir
		if dir == "" {
			dir = "/"
		}
		if err := c.spec.confine(); err != nil {
			return err
		}
		p, err := os.StartProcess(path, q.Command.Args, &os.ProcAttr{Dir: dir, Env: q.Command.Env, Files: stdio, Sys: attr})
		if err != nil {
			return err
		}
		pid = p.Pid
		return p.Release()
	})
	if err != nil {
		return 0, err
	}
	h.running[pid] = &child{space: q.Name, container: c}
	return pid, nil
}

// container finds one that runs.
func (h *helper) container(s *space, name string) (*container, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := s.containers[name]; c != nil && !c.ended && !c.starting {
		return c, nil
	}
	return nil, fmt.Errorf("container %s does not run", name)
}
