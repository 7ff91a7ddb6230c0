package netns

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// userLand are the folders of a machine that hold programs and libraries. What is a link
// there is one in the container.
var userLand = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt"}

// settings are what programs need of /etc: who a name or number is, what the linker finds
// where, certificates. They say nothing of this machine's users or network.
var settings = []string{"alternatives", "bash.bashrc", "ca-certificates", "ca-certificates.conf", "fonts", "gai.conf", "host.conf",
	"inputrc", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime",
	"magic", "magic.mime", "mime.types", "netconfig", "nsswitch.conf", "os-release", "profile", "profile.d", "protocols", "rpc", "services",
	"ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone",
	"apache2", "lighttpd", "nginx"}

// folders of a container that are its own, with their modes.
var folders = []struct {
	path string
	mode fs.FileMode
}{{"/dev", 0o755}, {"/etc", 0o755}, {"/home", 0o755}, {"/media", 0o755}, {"/mnt", 0o755}, {"/proc", 0o555}, {"/root", 0o700},
	{"/run", 0o755}, {"/run/lock", 0o777 | fs.ModeSticky}, {"/srv", 0o755}, {"/sys", 0o555}, {"/tmp", 0o777 | fs.ModeSticky},
	{"/var", 0o755}, {"/var/cache", 0o755}, {"/var/lib", 0o755}, {"/var/log", 0o755}, {"/var/spool", 0o755},
	{"/var/tmp", 0o777 | fs.ModeSticky}, {"/var/www", 0o755}}

// makeRoot makes the file system of a container below dir, in the present mount
// namespace.
func makeRoot(dir string, files map[string]string) error {
	if err := unix.Mount("container", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return fmt.Errorf("mount a file system in memory: %w", err)
	}
	for _, f := range folders {
		if err := os.MkdirAll(dir+f.path, 0o755); err != nil {
			return err
		}
		if err := os.Chmod(dir+f.path, f.mode); err != nil {
			return err
		}
	}
	for name, to := range map[string]string{"/var/run": "/run", "/var/lock": "/run/lock"} {
		if err := os.Symlink(to, dir+name); err != nil {
			return err
		}
	}
	for _, path := range userLand {
		if err := show(path, dir); err != nil {
			return err
		}
	}
	for _, name := range settings {
		if err := show("/etc/"+name, dir); err != nil {
			return err
		}
	}
	if err := makeUsers(dir); err != nil {
		return err
	}
	for path, text := range files {
		if err := writeIn(dir, path, text); err != nil {
			return err
		}
	}
	return makeDevices(dir)
}

// show lets a container see a file, folder or link of the machine at the same path,
// read-only. Programs missing on the machine are missing in the container too.
func show(path, dir string) error {
	i, err := os.Lstat(path)
	if err != nil {
		return nil
	}
	if i.Mode().Type() == fs.ModeSymlink {
		to, err := os.Readlink(path)
		if err != nil {
			return nil
		}
		return errors.Join(os.MkdirAll(filepath.Dir(dir+path), 0o755), os.Symlink(to, dir+path))
	}
	fd, err := cloneTree(path, true)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return putTree(fd, dir+path, i.IsDir())
}

// cloneTree opens a copy of the mounts at a path, which is mounted nowhere yet. The
// recursive form is needed: of mounts of another user namespace none may be left out, since
// what they cover would be seen (mount_namespaces(7)).
func cloneTree(path string, readOnly bool) (int, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return -1, fmt.Errorf("mount %s: %w", path, err)
	}
	if readOnly {
		if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
			_ = unix.Close(fd)
			return -1, fmt.Errorf("mount %s read-only: %w", path, err)
		}
	}
	return fd, nil
}

// putTree mounts an opened copy, and makes the file or folder for it.
func putTree(fd int, at string, folder bool) error {
	err := makeTarget(at, folder)
	if errors.Is(err, unix.EROFS) {
		// In an image there would be such a place, or it could be made.
		if err = openUp(at); err == nil {
			err = makeTarget(at, folder)
		}
	}
	if err != nil {
		return err
	}
	if err := unix.MoveMount(fd, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount at %s: %w", at, err)
	}
	return nil
}

// makeTarget makes a file or folder, if it is missing.
func makeTarget(at string, folder bool) error {
	if folder {
		return os.MkdirAll(at, 0o755)
	}
	if _, err := os.Stat(at); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(at, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

// openUp lays a file system in memory over the nearest folder above a path, which is
// read-only: what was there is still seen, and more can be made.
func openUp(path string) error {
	dir := filepath.Dir(path)
	for {
		if i, err := os.Stat(dir); err == nil && i.IsDir() {
			break
		}
		dir = filepath.Dir(dir)
	}
	const over = "/dev/shm" // a folder of the machine that nothing here needs
	if err := unix.Mount("over", over, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return fmt.Errorf("mount a file system in memory: %w", err)
	}
	defer func() { _ = unix.Unmount(over, unix.MNT_DETACH) }() // the overlay keeps what it has of it
	for _, d := range []string{"/upper", "/work"} {
		if err := os.Mkdir(over+d, 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("overlay", dir, "overlay", unix.MS_NODEV, "userxattr,lowerdir="+dir+",upperdir="+over+"/upper,workdir="+over+
		"/work"); err != nil {
		return fmt.Errorf("mount an overlay at %s: %w", dir, err)
	}
	return nil
}

// resolveInRoot is a path of a container below the folder that is to be its root, with the links
// in it followed as they lead in the container.
func resolveInRoot(dir, path string) (string, error) {
	at := "/"
	rest := strings.Split(filepath.Clean("/"+path), "/")
	for links := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		next := filepath.Join(at, part)
		to, err := os.Readlink(dir + next)
		if err != nil {
			at = next
			continue
		}
		if links++; links > 40 { // as the kernel, path_resolution(7)
			return "", fmt.Errorf("%s: %w", path, unix.ELOOP)
		}
		if filepath.IsAbs(to) {
			at = "/"
		}
		rest = append(strings.Split(filepath.Clean(to), "/"), rest...)
	}
	return dir + at, nil
}

// writeIn writes a file of a container.
func writeIn(dir, path, text string) error {
	to, err := resolveInRoot(dir, path)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(to, []byte(text), 0o644); err != nil {
		return fmt.Errorf("file %s: %w", path, err)
	}
	return nil
}

// makeUsers writes the users and groups of the machine that programs run as, not those
// of people.
func makeUsers(dir string) error {
	for _, name := range []string{"passwd", "group"} {
		data, _ := os.ReadFile("/etc/" + name)
		var kept []string
		for _, line := range strings.Split(string(data), "\n") {
			f := strings.Split(line, ":")
			if len(f) < 4 {
				continue
			}
			if id, err := strconv.Atoi(f[2]); err == nil && (id < 1000 || id == 65534) {
				if name == "group" {
					f[3] = "" // who is in it
				}
				kept = append(kept, strings.Join(f, ":"))
			}
		}
		if len(kept) == 0 {
			kept = []string{map[string]string{"passwd": "root:x:0:0:root:/root:/bin/sh", "group": "root:x:0:"}[name]}
		}
		if err := os.WriteFile(dir+"/etc/"+name, []byte(strings.Join(kept, "\n")+"\n"), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// makeDevices makes /dev: the devices of the machine that containers have (OCI runtime
// specification, config-linux.md, Default Devices), and terminals of its own.
func makeDevices(dir string) error {
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		fd, err := cloneTree("/dev/"+name, false)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		err = putTree(fd, dir+"/dev/"+name, false)
		_ = unix.Close(fd)
		if err != nil {
			return err
		}
	}
	for name, to := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1",
		"stderr": "/proc/self/fd/2", "ptmx": "pts/ptmx"} {
		if err := os.Symlink(to, dir+"/dev/"+name); err != nil {
			return err
		}
	}
	for _, d := range []string{"pts", "shm", "mqueue"} {
		if err := os.Mkdir(dir+"/dev/"+d, 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("devpts", dir+"/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC,
		"newinstance,ptmxmode=0666,mode=0620"); err != nil {
		return fmt.Errorf("mount /dev/pts: %w", err)
	}
	if err := unix.Mount("shm", dir+"/dev/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=1777,size=64m"); err != nil {
		return fmt.Errorf("mount /dev/shm: %w", err)
	}
	return nil
}

// mountProc mounts /proc of the present PID namespace, and /sys. Where the machine's
// own are covered in parts, as in other containers, the kernel refuses new ones in a user
// namespace: the container has those of the machine then.
func mountProc(dir string) error {
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	if err := unix.Mount("proc", dir+"/proc", "proc", flags, ""); err != nil && dir != "" {
		if err := unix.Mount("/proc", dir+"/proc", "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("mount /proc: %w", err)
		}
	}
	if dir == "" {
		return nil
	}
	if err := unix.Mount("sysfs", dir+"/sys", "sysfs", flags|unix.MS_RDONLY, ""); err != nil {
		if fd, err := cloneTree("/sys", true); err == nil {
			err = putTree(fd, dir+"/sys", true)
			_ = unix.Close(fd)
			return err
		}
	}
	return nil
}

// enter makes a folder the root of the present mount namespace.
func enter(dir string) error {
	const old = "/.old"
	if err := os.Mkdir(dir+old, 0o700); err != nil {
		return err
	}
	if err := unix.PivotRoot(dir, dir+old); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	if err := unix.Unmount(old, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount the machine's root: %w", err)
	}
	return os.Remove(old)
}

// containerdCaps are the capabilities of a container by default (containerd
// pkg/oci/spec.go defaultUnixCaps).
var containerdCaps = []string{"CHOWN", "DAC_OVERRIDE", "FSETID", "FOWNER", "MKNOD", "NET_RAW", "SETGID", "SETUID", "SETFCAP", "SETPCAP",
	"NET_BIND_SERVICE", "SYS_CHROOT", "KILL", "AUDIT_WRITE"}

// capNames are all capabilities by their numbers (linux/capability.h).
var capNames = []string{"CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP",
	"LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW",
	"IPC_LOCK", "IPC_OWNER", "SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE",
	"SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE",
	"AUDIT_CONTROL", "SETFCAP", "MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF",
	"CHECKPOINT_RESTORE"}

// caps are the capabilities that programs of a container may have at most.
func (c *Container) caps() []string {
	if c.Privileged {
		return capNames
	}
	plain := func(names []string) []string {
		var all []string
		for _, n := range names {
			if n = strings.TrimPrefix(strings.ToUpper(n), "CAP_"); n == "ALL" {
				return capNames
			}
			all = append(all, n)
		}
		return all
	}
	kept := append(slices.Clone(containerdCaps), plain(c.AddCaps)...)
	drop, add := plain(c.DropCaps), plain(c.AddCaps)
	return slices.DeleteFunc(kept, func(n string) bool {
		return slices.Contains(drop, n) && !(len(drop) == len(capNames) && slices.Contains(add, n))
	})
}

// confine takes away from the present thread, and so from what it executes, the
// capabilities that the container does not have.
func (c *Container) confine() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	keep := c.caps()
	for i, name := range capNames {
		if slices.Contains(keep, name) {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(i), 0, 0, 0); err != nil &&
			!errors.Is(err, unix.EINVAL) { // one that this kernel does not have
			return fmt.Errorf("drop capability %s: %w", name, err)
		}
	}
	if c.NoNewPrivileges {
		return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	}
	return nil
}
