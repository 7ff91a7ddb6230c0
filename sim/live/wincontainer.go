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

	"github.com/winlab-dev/winlab/sim/live/netns"
	"github.com/winlab-dev/winlab/sim/real/components"
)

// prepareWindows makes the prefix of a Windows container.
func (h *ContainerHandle) prepareWindows(ctx context.Context) error {
	b, err := h.n.buildOf(h.s)
	if err != nil {
		return err
	}
	if h.c.HostProcess {
		if !strings.HasPrefix(h.s.name, "node/") {
			return errors.New("a host process is in the network of its node (hostNetwork)")
		}
		if len(h.c.Files) > 0 {
			return errors.New("a host process has the files of its node and its mounts, and no files of its own")
		}
		h.own = false
		return nil
	}
	w := &windows{}
	if err := h.n.prefix(ctx, h.s, w, b); err != nil {
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
func (h *ContainerHandle) windowsContainer(ctx context.Context) (netns.Container, error) {
	p := h.windows.copy
	// The server comes first and alone, see startServer. It ends with the container.
	c := netns.Container{Name: h.c.Name, Privileged: true, First: append(slices.Clone(p.Server), "-p")}
	for _, m := range h.mounts() {
		source := m.Source
		if isDrivePath(source) {
			var err error
			if source, err = h.n.NodePath(ctx, h.n.nodeOf(h.s), source); err != nil {
				return c, fmt.Errorf("mount %s: %w", m.Target, err)
			}
		}
		target, err := onDrive(p.Dir, m.Target)
		if err != nil {
			return c, fmt.Errorf("mount %s: %w", m.Target, err)
		}
		c.Mounts = append(c.Mounts, netns.Mount{Source: source, Target: target, ReadOnly: m.ReadOnly})
	}
	return c, nil
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
	if w == nil {
		w = &h.s.windows
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if h.windows == nil {
		b, err := h.n.buildOf(h.s)
		if err == nil {
			err = h.n.need(ctx, h.s, w, b)
		}
		if err != nil {
			return c, err
		}
	}
	if w.copy == nil {
		return c, fmt.Errorf("container %s: %w", h.c.Name, ErrNotRunning)
	}
	var own []string
	if h.windows == nil {
		var err error
		if c, err = h.hostProcess(w.copy.Dir, c); err != nil {
			return c, err
		}
		own = []string{h.hostRoot() + `\\`}
	}
	path, err := windowsProgram(w.copy.Dir, c.Args[0], searchPath(c.Env), h.c.Mounts, own...)
	if err != nil {
		return c, err
	}
	c.User = nil // Wine's processes are all of one user
	dir := filepath.Join(w.copy.Dir, "drive_c")
	if c.Dir != "" {
		if dir, err = onDrive(w.copy.Dir, c.Dir); err != nil {
			return c, fmt.Errorf("working folder: %w", err)
		}
	}
	return h.n.underWine(ctx, h.s, w, path, netns.Command{Args: c.Args, Env: c.Env, Dir: dir, Terminal: c.Terminal}), nil
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

// NodePath is where a path of Windows (C:\var\lib\kubelet) is on this machine, for
// programs of a Windows machine that are started with [Net.Start]: below the prefix that it
// has, which is made if it has none yet.
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
