package netns

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// containerEnv marks the process that becomes the first one of a container; its value
// is the descriptor from which it reads what to do. The next one is where it writes why
// it could not, and then come the mounts' sources.
const containerEnv = "WINLAB_NETNS_CONTAINER"

// task is what the first process of a container is told.
type task struct {
	Container *Container
	Command   *Command
	Store     string // a folder that may be mounted over
	// Folders says of each mount's source whether it is a folder.
	Folders []bool
	// Switch says that users exist, so that the process must become the command's.
	Switch bool
	// Exec says that the container is there already.
	Exec bool
}

// failed is why a container did not start.
type failed struct {
	Error    string
	NotFound bool
}

func init() {
	fd, err := strconv.Atoi(os.Getenv(containerEnv))
	if err != nil {
		return
	}
	runtime.LockOSThread() // capabilities are a thread's
	unix.CloseOnExec(fd)
	unix.CloseOnExec(fd + 1)
	err = become(fileOf(fd, "task"), fd+2)
	_ = json.NewEncoder(fileOf(fd+1, "result")).Encode(failed{err.Error(), errors.Is(err, errNotFound) || errors.Is(err, fs.ErrNotExist)})
	os.Exit(127)
}

// become makes the present process the first one of a container. It returns with an
// error, or never.
func become(in io.Reader, mounts int) error {
	var t task
	if err := json.NewDecoder(in).Decode(&t); err != nil {
		return err
	}
	if t.Exec {
		if err := t.Command.User.appear(); err != nil {
			return err
		}
		return t.execute()
	}
	for i := range t.Container.Mounts {
		unix.CloseOnExec(mounts + i)
	}
	c, dir := t.Container, ""
	if c.OwnRoot {
		dir = t.Store
		if err := makeRoot(dir, c.Files); err != nil {
			return err
		}
	}
	if err := mountProc(dir); err != nil {
		return err
	}
	for i, m := range c.Mounts {
		at, err := resolveInRoot(dir, m.Target)
		if err == nil {
			err = putTree(mounts+i, at, t.Folders[i])
		}
		if err != nil {
			return fmt.Errorf("mount %s: %w", m.Target, err)
		}
	}
	if dir != "" {
		if err := enter(dir); err != nil {
			return err
		}
	}
	if c.OwnRoot && c.ReadOnly {
		if err := unix.MountSetattr(unix.AT_FDCWD, "/", 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return fmt.Errorf("make the root read-only: %w", err)
		}
	}
	return t.execute()
}

// execute replaces this program with the command.
func (t *task) execute() error {
	c := t.Command
	if len(t.Container.First) > 0 && !t.Exec {
		first := exec.Command(t.Container.First[0], t.Container.First[1:]...)
		first.Env, first.Dir = c.Env, existing(c.Dir)
		if err := first.Run(); err != nil {
			return fmt.Errorf("%s: %w", t.Container.First[0], err)
		}
	}
	// runc makes the working folder if it is missing.
	if c.Dir != "" {
		if err := os.MkdirAll(c.Dir, 0o755); err != nil {
			return fmt.Errorf("working folder: %w", err)
		}
		if err := unix.Chdir(c.Dir); err != nil {
			return fmt.Errorf("working folder %s: %w", c.Dir, err)
		}
	}
	path, err := look(c.Args[0], c.Env)
	if err != nil {
		return err
	}
	if err := t.Container.confine(); err != nil {
		return err
	}
	if most := t.Container.Data; most > 0 && !t.Exec {
		if err := unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return fmt.Errorf("limit of memory: %w", err)
		}
	}
	if u := c.User; u != nil && t.Switch {
		if err := u.become(); err != nil {
			return err
		}
	}
	return &fs.PathError{Op: "exec", Path: path, Err: unix.Exec(path, c.Args, c.Env)}
}

// become makes the present thread the user's, which is enough before an exec.
func (u *User) become() error {
	groups := append([]uint32{u.GID}, u.Groups...)
	_, _, e := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(unsafe.Pointer(&groups[0])), 0)
	for _, call := range [][2]uintptr{{unix.SYS_SETRESGID, uintptr(u.GID)}, {unix.SYS_SETRESUID, uintptr(u.UID)}} {
		if e == 0 {
			_, _, e = unix.RawSyscall(call[0], call[1], call[1], call[1])
		}
	}
	if e != 0 {
		return fmt.Errorf("become user %d, group %d: %w", u.UID, u.GID, e)
	}
	return nil
}

// appear maps the only user of the present user namespace, which is new, to the wanted
// one (user_namespaces(7): a process may map itself).
func (u *User) appear() error {
	for _, f := range []struct{ name, text string }{{"setgroups", "deny"}, {"uid_map", fmt.Sprintf("%d 0 1", u.UID)},
		{"gid_map", fmt.Sprintf("%d 0 1", u.GID)}} {
		if err := os.WriteFile("/proc/self/"+f.name, []byte(f.text), 0); err != nil {
			return fmt.Errorf("become user %d, group %d: %w", u.UID, u.GID, err)
		}
	}
	return nil
}
