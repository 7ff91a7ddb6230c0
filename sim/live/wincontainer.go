package live

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/winlab-dev/winlab/sim/live/netns"
	"github.com/winlab-dev/winlab/sim/real/components"
	"github.com/winlab-dev/winlab/sim/real/programs"
)

// prepareWindows makes the prefix of a Windows container.
func (h *ContainerHandle) prepareWindows(ctx context.Context) error {
	b, err := h.n.buildOf(h.s)
	if err != nil {
		return err
	}
	if h.c.HostProcess {
		if !strings.HasPrefix(h.s.name, "node/") {
			return errors.New("a host process uses its node's network (hostNetwork)")
		}
		if len(h.c.Files) > 0 {
			return errors.New("a host process uses the files of its node and cannot have its own")
		}
		drive, err := h.n.NodePath(ctx, h.s.name, `C:\`)
		if err != nil {
			return err
		}
		h.node = filepath.Dir(drive)
		if h.c.Volume != "" {
			if h.volume, err = os.MkdirTemp("", "winlab-live-"); err != nil {
				return err
			}
		}
	}
	w := &windows{}
	if err := h.n.prefix(ctx, h.s, w, b); err != nil {
		if h.volume != "" {
			err = errors.Join(err, os.RemoveAll(h.volume))
		}
		return err
	}
	for path, text := range h.c.Files {
		to, err := onDrive(w.copy.Dir, path)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(to), 0o755)
		}
		if err == nil {
			_ = os.Remove(to) // it may be a link to Wine's own
			err = os.WriteFile(to, []byte(text), 0o644)
		}
		if err != nil {
			w.close()
			return fmt.Errorf("file %s: %w", path, err)
		}
	}
	h.windows = w
	return nil
}

// windowsContainer is a Windows container as one of Linux: all of Wine's processes for its
// prefix are in its PID namespace, and its mounts are below the prefix.
// A host process has the node's drive C instead of its own.
func (h *ContainerHandle) windowsContainer(ctx context.Context) (netns.Container, error) {
	p := h.windows.copy
	// The server comes first and alone, see startServer. It ends with the container.
	c := netns.Container{Name: h.c.Name, Privileged: true, Data: h.c.Commit, CPU: h.c.CPU, First: append(slices.Clone(p.Server), "-p")}
	if asksForDrives(h.c.Args[0], h.c.Args[1:]) {
		// Wine ends its services when there is no other program: Boot leaves one.
		c.First = []string{"/bin/sh", "-c", quoted(c.First) + "&& " + quoted(p.Boot) + "&& " + quoted(p.Services)}
	}
	all := h.mounts()
	if h.c.HostProcess {
		c.Mounts = append(c.Mounts, netns.Mount{Source: filepath.Join(h.node, "drive_c"), Target: filepath.Join(p.Dir, "drive_c")})
	}
	if h.volume != "" {
		all = append([]Mount{{Source: h.volume, Target: h.c.Volume}}, all...)
	}
	for _, m := range all {
		source := m.Source
		if isDrivePath(source) {
			var err error
			if source, err = h.n.NodePath(ctx, h.n.nodeOf(h.s), source); err != nil {
				return c, fmt.Errorf("mount %s: %w", m.Target, err)
			}
		}
		target, err := h.onDrive(m.Target)
		if err != nil {
			return c, fmt.Errorf("mount %s: %w", m.Target, err)
		}
		c.Mounts = append(c.Mounts, netns.Mount{Source: source, Target: target, ReadOnly: m.ReadOnly})
	}
	return c, nil
}

// quoted is a command for a shell.
func quoted(words []string) string {
	var b strings.Builder
	for _, w := range words {
		b.WriteString("'" + strings.ReplaceAll(w, "'", `'\''`) + "' ")
	}
	return b.String()
}

// services starts Wine's services in a container that runs, if a program asks for what they
// have. When they do not start, the program says what it lacks.
func (h *ContainerHandle) services(ctx context.Context, args []string) {
	w := h.windows
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.services || w.copy == nil || !asksForDrives(args[0], args[1:]) {
		return
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer func() { _ = null.Close() }()
	p, err := h.n.host.ExecContainer(ctx, h.s.name, h.c.Name, netns.Command{Args: w.copy.Services, Env: w.copy.Env, Dir: w.copy.Dir},
		[3]*os.File{null, null, null})
	if err == nil {
		_, err = p.Wait(ctx)
	}
	w.services = err == nil
}

// onDrive is where a path of Windows is in the container's prefix, as its programs see it.
func (h *ContainerHandle) onDrive(path string) (string, error) {
	own := h.windows.copy.Dir
	if !h.c.HostProcess {
		return onDrive(own, path)
	}
	at, err := onDrive(h.node, path)
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(h.node, at)
	return filepath.Join(own, rel), err
}

// size is what the files of a prefix take, and their number. Mounts are seen in the
// container only.
func (w *windows) size() (disk, inodes uint64) {
	w.mu.Lock()
	dir := ""
	if w.copy != nil {
		dir = w.copy.Dir
	}
	w.mu.Unlock()
	return size(dir)
}

// size is what the files of a folder take, and their number.
func size(dir string) (disk, inodes uint64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // it has just gone
		}
		if i, err := d.Info(); err == nil {
			inodes++
			if i.Mode().IsRegular() {
				disk += uint64(i.Size())
			}
		}
		return nil
	})
	return disk, inodes
}

// windowsCommand makes the command that runs a program of a Windows container.
func (h *ContainerHandle) windowsCommand(ctx context.Context, c netns.Command) (netns.Command, error) {
	w := h.windows
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.copy == nil {
		return c, fmt.Errorf("container %s: %w", h.c.Name, ErrNotRunning)
	}
	mounts := h.c.Mounts
	if h.c.Volume != "" {
		mounts = append(slices.Clone(mounts), Mount{Target: h.c.Volume})
		if c.Dir == "" {
			c.Dir = h.c.Volume
		}
	}
	files, further := w.copy.Dir, []string(nil)
	if h.c.HostProcess {
		files = h.node
		if h.c.Volume != "" {
			further = []string{h.c.Volume + `\`}
		}
	}
	path, err := windowsProgram(files, c.Args[0], searchPath(c.Env), mounts, further...)
	if err != nil {
		return c, err
	}
	c.User = nil // Wine's processes are all of one user
	dir := filepath.Join(w.copy.Dir, "drive_c")
	if c.Dir != "" {
		if dir, err = h.onDrive(c.Dir); err != nil {
			return c, fmt.Errorf("working folder: %w", err)
		}
	}
	return h.n.underWine(ctx, h.s, w, path, netns.Command{Args: c.Args, Env: c.Env, Dir: dir, Terminal: c.Terminal}), nil
}

// eventWithin is how long the program that sends an event may take, on a busy machine.
const eventWithin = 20 * time.Second

// shutdownEvent asks the container's own program to end. Where the event cannot be sent,
// since there was no Go to build the program that does, it gets Ctrl-C.
func (h *ContainerHandle) shutdownEvent() error {
	ctx, cancel := context.WithTimeout(context.Background(), eventWithin)
	defer cancel()
	image := h.c.Args[0]
	image = image[strings.LastIndexAny(image, `\/`)+1:]
	if filepath.Ext(image) == "" {
		image += ".exe"
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = null.Close() }()
	p, err := h.Exec(ctx, netns.Command{Args: []string{programs.Ctrl, image}, Env: []string{}}, [3]*os.File{null, null, null})
	if err == nil {
		var e netns.Exit
		if e, err = p.Wait(ctx); err == nil && e.Code == 0 && e.Signal == 0 {
			return nil
		}
	}
	if !h.running() {
		return nil
	}
	return errors.Join(ctx.Err(), h.process.Signal(syscall.SIGINT))
}

// windowsProgram finds a program as CreateProcess does in a container: a path of Windows,
// or a name, which is looked for in system32, in the drive's root, in the windows folder and
// then in the folders of PATH. .exe is added when there is no extension. A path that begins
// with a slash is one of drive C and never one of this machine. A file must be there, or a
// mount, which is seen in the container only. further are folders, with a
// backslash at their end, that come before PATH, and before drive C for a path without a drive.
func windowsProgram(prefix, name, searchPath string, mounts []Mount, further ...string) (string, error) {
	path := strings.ReplaceAll(name, "/", `\`)
	if filepath.Ext(path[strings.LastIndex(path, `\`)+1:]) == "" {
		path += ".exe"
	}
	isThere := func(path string, mounted func(Mount) bool) (bool, error) {
		at, err := onDrive(prefix, path)
		if err != nil {
			return false, err
		}
		_, err = os.Stat(at)
		return err == nil || slices.ContainsFunc(mounts, mounted), nil
	}
	missing := fmt.Errorf("%s: %w: the system cannot find the file specified", name, exec.ErrNotFound)
	if strings.Contains(path, `\`) {
		if !isDrivePath(path) {
			rest := strings.TrimPrefix(strings.TrimPrefix(path, `.`), `\`)
			for _, f := range further {
				if at, err := onDrive(prefix, f+rest); err == nil {
					if _, err := os.Stat(at); err == nil {
						return f + rest, nil
					}
				}
			}
			path = `C:\` + rest
		}
		// A mounted folder may have the file.
		ok, err := isThere(path, func(m Mount) bool { return isBelow(path, m.Target) })
		if !ok && err == nil {
			err = missing
		}
		return path, err
	}
	if strings.EqualFold(path, "powershell.exe") {
		path = strings.ReplaceAll(components.PowerShell, "/", `\`)
	}
	folders := []string{`C:\windows\system32`, `C:`, `C:\windows`}
	for _, f := range further {
		folders = append(folders, strings.TrimRight(f, `\`))
	}
	for _, f := range strings.Split(searchPath, ";") {
		if f = strings.TrimRight(strings.ReplaceAll(f, "/", `\`), `\`); isDrivePath(f) {
			folders = append(folders, f)
		}
	}
	for _, f := range folders {
		full := f + `\` + path
		// An error is a drive that is not there.
		if ok, err := isThere(full, func(m Mount) bool { return isBelow(full, m.Target) && isBelow(m.Target, full) }); ok && err == nil {
			return full, nil
		}
	}
	return "", missing
}

// searchPath is PATH of an environment; Windows does not mind its case.
func searchPath(env []string) string {
	for _, e := range slices.Backward(env) {
		if name, value, _ := strings.Cut(e, "="); strings.EqualFold(name, "PATH") {
			return value
		}
	}
	return ""
}

// isDrivePath reports whether a path begins with a drive: C:\data.
func isDrivePath(p string) bool {
	return len(p) >= 2 && p[1] == ':' && (p[0]|0x20) >= 'a' && (p[0]|0x20) <= 'z'
}

// isBelow reports whether a path of Windows is another one, or in the folder that it names.
func isBelow(path, dir string) bool {
	plain := func(p string) string {
		p = strings.ToLower(strings.TrimRight(strings.ReplaceAll(p, "/", `\`), `\`))
		if !isDrivePath(p) {
			p = `c:\` + strings.TrimLeft(p, `\`)
		}
		return p
	}
	path, dir = plain(path), plain(dir)
	return path == dir || strings.HasPrefix(path, dir+`\`)
}

// onDrive is where a path of Windows is in a prefix. Upper and lower case are the same
// there, as Wine has it; a path without a drive is one of C. What does not exist has the
// case of the path.
func onDrive(prefix, path string) (string, error) {
	p := strings.ReplaceAll(path, `\`, "/")
	drive := "c"
	if isDrivePath(p) {
		drive, p = strings.ToLower(p[:1]), p[2:]
	}
	at := filepath.Join(prefix, "drive_c")
	if drive != "c" {
		at = filepath.Join(prefix, "drive_"+drive)
		link := filepath.Join(prefix, "dosdevices", drive+":")
		if to, err := os.Readlink(link); err == nil && to != "../drive_"+drive {
			return "", fmt.Errorf("%s: drive %s: is not the container's", path, strings.ToUpper(drive))
		} else if err != nil {
			if err := errors.Join(os.MkdirAll(at, 0o755), os.Symlink("../drive_"+drive, link)); err != nil {
				return "", err
			}
		}
	}
	for _, part := range strings.Split(strings.Trim(filepath.Clean("/"+p), "/"), "/") {
		if part == "" {
			continue
		}
		if _, err := os.Lstat(filepath.Join(at, part)); err != nil {
			entries, _ := os.ReadDir(at)
			for _, e := range entries {
				if strings.EqualFold(e.Name(), part) {
					part = e.Name()
					break
				}
			}
		}
		at = filepath.Join(at, part)
	}
	return at, nil
}

// NodePath is where a path of Windows (C:\var\lib\kubelet) is on this machine, for programs
// of a Windows machine that are started with [Net.Start]: below the prefix that it has,
// which is made if it does not exist yet.
func (n *Net) NodePath(ctx context.Context, machine, path string) (string, error) {
	s, err := n.find(machine)
	if err != nil {
		return "", err
	}
	b, err := n.buildOf(s)
	if err != nil {
		return "", err
	}
	w := &s.windows
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := n.need(ctx, s, w, b); err != nil {
		return "", err
	}
	return onDrive(w.copy.Dir, path)
}
