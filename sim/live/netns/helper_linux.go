package netns

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/winlab-dev/winlab/internal/fdmsg"
)

// init turns this copy of the program into the helper when its parent says so. It
// runs before main and never returns then.
func init() {
	fd, err := strconv.Atoi(os.Getenv(helperEnv))
	if err != nil {
		return
	}
	_ = os.Unsetenv(helperEnv)
	unix.CloseOnExec(fd)
	conn, err := connOf(fd)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	h := &helper{conn: conn, spaces: map[string]*space{}, running: map[int]*child{}, users: manyUsers()}
	if err := h.run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// helper is the first process of the PID namespace.
type helper struct {
	conn  *fdmsg.Conn
	store string // a folder of a file system of its own, in this mount namespace only

	mu      sync.Mutex
	spaces  map[string]*space
	running map[int]*child // the programs that were started
	files   int            // folders made in store

	users bool // there are more than one
}

// space is one namespace.
type space struct {
	net, mnt, uts, ipc int // descriptors of the namespaces
	device             string
	spec               *Spec
	containers         map[string]*container
}

// run works requests off until the parent has ended. With the first process the
// kernel ends all others of the PID namespace.
func (h *helper) run() error {
	if err := h.prepare(); err != nil {
		return err
	}
	go h.reap()
	for {
		var q request
		files, err := h.conn.Receive(&q)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		// A connection may take long; all else is done in the order of asking.
		if q.Op == "contain" {
			q.made = h.reserve(q)
		}
		if q.Op == "dial" || q.Op == "contain" || q.Op == "exec" || q.Op == "usage" || q.Op == "memory" {
			go h.do(q, files)
		} else {
			h.do(q, files)
		}
	}
}

// prepare makes the mount namespace that of the helper, with a /proc of the PID
// namespace.
func (h *helper) prepare() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	// Where the /proc outside is covered in parts (containers), the kernel refuses
	// a new one in a user namespace; ps in a namespace shows nothing of use then.
	_ = unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		return fmt.Errorf("TAP devices need /dev/net/tun (modprobe tun; in a container: --device /dev/net/tun): %w", err)
	}
	if err := h.mountStore(); err != nil {
		return err
	}
	loopbackUp()
	return nil
}

// mountStore mounts a file system in memory over a folder that nothing else needs:
// programs do not see it there.
func (h *helper) mountStore() error {
	var err error
	for _, dir := range []string{"/media", "/srv", "/mnt", "/opt", "/tmp"} {
		if err = unix.Mount("winlab", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=64m,mode=755"); err == nil {
			h.store = dir
			return nil
		}
	}
	return fmt.Errorf("mount a file system in memory: %w", err)
}

// do works one request off.
func (h *helper) do(q request, files []int) {
	defer fdmsg.CloseAll(files)
	a, out, err := h.answer(q, files)
	if a.ID = q.ID; err != nil {
		a.Error = err.Error()
		a.NotFound = errors.Is(err, errNotFound) || errors.Is(err, os.ErrNotExist)
	}
	h.send(a, out...)
	fdmsg.CloseAll(out)
}

func (h *helper) send(a answer, files ...int) {
	_ = h.conn.Send(a, files...) // without a parent the next read ends the helper
}

func (h *helper) answer(q request, files []int) (a answer, out []int, err error) {
	switch q.Op {
	case "hello":
		return a, nil, h.try()
	case "add":
		out, err = h.add(q.Spec)
		return a, out, err
	case "memory":
		a.Usage = &Usage{Memory: memoryOf(q.PID)}
		return a, nil, nil
	case "signal":
		to := -q.PID
		if q.Only {
			to = q.PID
		}
		err := unix.Kill(to, syscall.Signal(q.Signal))
		if errors.Is(err, unix.ESRCH) {
			err = nil
		}
		return a, nil, err
	}
	s := h.space(q.Name)
	if s == nil {
		return a, nil, fmt.Errorf("there is no network namespace %s", q.Name)
	}
	switch q.Op {
	case "set":
		err = s.runInNetwork(func() error { return setAddresses(s.device, *q.Set) })
	case "remove":
		h.remove(q.Name, s)
	case "listen", "dial":
		var fd int
		if err = s.runInNetwork(func() (err error) { fd, err = socket(q); return err }); err == nil {
			out = []int{fd}
		}
	case "bound":
		err = s.runInNetwork(func() (err error) { a.Bound, err = bound(); return err })
	case "start":
		a.PID, err = h.start(q, s, files)
	case "contain":
		a.PID, err = h.contain(q, s, files)
	case "exec":
		a.PID, err = h.exec(q, s, files)
	case "discard":
		err = h.discard(q, s)
	case "usage":
		a.Usage, err = h.usage(s, q.Inside)
	default:
		err = fmt.Errorf("unknown request %q", q.Op)
	}
	return a, out, err
}

func (h *helper) space(name string) *space {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.spaces[name]
}

// try makes one namespace and throws it away, so that what is forbidden here is
// said at once.
func (h *helper) try() error {
	out, err := h.add(&Spec{Name: "try", Device: "eth0", MTU: 1500, Offload: true})
	fdmsg.CloseAll(out)
	if s := h.space("try"); s != nil {
		h.remove("try", s)
	}
	return err
}

// onThread runs f on a thread of its own, which ends with it: whatever namespaces
// f has entered, no other goroutine gets there.
func onThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked
		done <- f()
	}()
	return <-done
}

// runInNetwork runs f in the network namespace.
func (s *space) runInNetwork(f func() error) error {
	return onThread(func() error {
		if err := unix.Setns(s.net, unix.CLONE_NEWNET); err != nil {
			return err
		}
		return f()
	})
}

// add makes a namespace and returns its device.
func (h *helper) add(spec *Spec) ([]int, error) {
	if h.space(spec.Name) != nil {
		return nil, fmt.Errorf("network namespace %s already exists", spec.Name)
	}
	s := &space{net: -1, mnt: -1, uts: -1, ipc: -1, device: spec.Device, spec: spec}
	tap := -1
	err := onThread(func() (err error) {
		if err := unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC); err != nil {
			return fmt.Errorf("unshare: %w", err)
		}
		if tap, err = openTAP(spec); err != nil {
			return err
		}
		if err := configure(spec); err != nil {
			return err
		}
		if err := h.replaceFiles(spec.Files); err != nil {
			return err
		}
		if name, _, _ := strings.Cut(spec.Hostname, "."); name != "" {
			if err := unix.Sethostname([]byte(name)); err != nil {
				return err
			}
		}
		for _, n := range []struct {
			kind string
			fd   *int
		}{{"net", &s.net}, {"mnt", &s.mnt}, {"uts", &s.uts}, {"ipc", &s.ipc}} {
			if *n.fd, err = unix.Open("/proc/thread-self/ns/"+n.kind, unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
				return fmt.Errorf("open the namespace: %w", err)
			}
		}
		return nil
	})
	if err != nil {
		s.close()
		if tap >= 0 {
			_ = unix.Close(tap)
		}
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.spaces[spec.Name] = s
	return []int{tap}, nil
}

func (s *space) close() {
	for _, fd := range []int{s.net, s.mnt, s.uts, s.ipc} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}

// replaceFiles puts files over those that programs see, in the thread's mount
// namespace, and lets what the store covers be seen again.
func (h *helper) replaceFiles(files map[string]string) error {
	h.mu.Lock()
	h.files++
	dir := filepath.Join(h.store, strconv.Itoa(h.files))
	h.mu.Unlock()
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for path, text := range files {
		from := filepath.Join(dir, filepath.Base(path))
		if err := os.WriteFile(from, []byte(text), 0o644); err != nil {
			return err
		}
		// The path may be a symbolic link; what it leads to must exist.
		to, err := filepath.EvalSymlinks(path)
		if err != nil {
			continue
		}
		if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("replace %s: %w", path, err)
		}
	}
	return unix.Unmount(h.store, unix.MNT_DETACH)
}

// remove ends the programs of a namespace and forgets it.
func (h *helper) remove(name string, s *space) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for pid, c := range h.running {
		if c.space == name {
			_ = unix.Kill(-pid, unix.SIGKILL)
		}
	}
	for _, c := range s.containers {
		c.end()
	}
	delete(h.spaces, name)
	s.close()
}

// start starts a program in a namespace.
func (h *helper) start(q request, s *space, files []int) (int, error) {
	c := q.Command
	path, err := look(c.Args[0], c.Env)
	if err != nil {
		return 0, err
	}
	stdio, err := stdioOf(files)
	if err != nil {
		return 0, err
	}
	defer closeFiles(stdio)
	h.mu.Lock()
	defer h.mu.Unlock() // until the program is known to reap
	pid := 0
	err = onThread(func() error {
		if err := s.enter(); err != nil {
			return err
		}
		p, err := os.StartProcess(path, c.Args, &os.ProcAttr{Dir: existing(c.Dir), Env: c.Env, Files: stdio, Sys: h.attributes(c)})
		if err != nil {
			return err
		}
		pid = p.Pid
		return p.Release()
	})
	if err != nil {
		return 0, err
	}
	h.running[pid] = &child{space: q.Name}
	return pid, nil
}

var errNotFound = errors.New("no such program")

// existing is a folder, or / when it does not exist here.
func existing(dir string) string {
	if s, err := os.Stat(dir); err == nil && s.IsDir() {
		return dir
	}
	return "/"
}

// look finds a program by the PATH of its environment.
func look(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	paths := "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
	for _, e := range env {
		if p, ok := strings.CutPrefix(e, "PATH="); ok {
			paths = p
		}
	}
	for _, dir := range append(filepath.SplitList(paths), "/usr/sbin", "/sbin") {
		p := filepath.Join(dir, name)
		if s, err := os.Stat(p); err == nil && !s.IsDir() && s.Mode()&0o111 != 0 {
			return p, nil
		}
	}
	return "", fmt.Errorf("%s: %w in the PATH", name, errNotFound)
}

// reap waits for all processes of the PID namespace, those that lost their parent
// too, and tells the parent of those that it had started.
func (h *helper) reap() {
	for {
		var st unix.WaitStatus
		var used unix.Rusage
		pid, err := unix.Wait4(-1, &st, 0, &used)
		if errors.Is(err, unix.ECHILD) {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		if err != nil {
			continue
		}
		h.mu.Lock()
		c := h.running[pid]
		delete(h.running, pid)
		if c != nil && c.container != nil {
			if c.container.pid == pid {
				h.ends(c.container)
			}
			c.container.spent += uint64(used.Utime.Nano() + used.Stime.Nano())
		}
		h.mu.Unlock()
		if c == nil || c.quiet {
			continue
		}
		e := Exit{Code: st.ExitStatus()}
		if st.Signaled() {
			e = Exit{Code: 128 + int(st.Signal()), Signal: int(st.Signal())}
		}
		h.send(answer{PID: pid, Exit: &e})
	}
}

// sorted are the routes so that those without a next hop come first.
func sorted(routes []Route) []Route {
	all := slices.Clone(routes)
	slices.SortStableFunc(all, func(a, b Route) int {
		switch {
		case a.Via.IsValid() == b.Via.IsValid():
			return 0
		case a.Via.IsValid():
			return 1
		}
		return -1
	})
	return all
}
