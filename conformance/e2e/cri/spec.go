package cri

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/winlab-dev/winlab/conformance/e2e/cri/images"
)

// specify is the container that the node shall make, without its mounts: the image's
// configuration with what the pod says instead.
func (r *Runtime) specify(c *container, im *images.Pulled) (Container, error) {
	cfg, lin, win := c.config, c.config.GetLinux().GetSecurityContext(), c.config.GetWindows().GetSecurityContext()
	n := Container{ID: c.id, Name: cfg.Metadata.Name}
	p := &n.Process
	// A command replaces both entry point and arguments of the image.
	switch {
	case len(cfg.Command) > 0:
		p.Args = slices.Concat(cfg.Command, cfg.Args)
	case len(cfg.Args) > 0:
		p.Args = slices.Concat(im.Config.Entrypoint, cfg.Args)
	default:
		p.Args = slices.Concat(im.Config.Entrypoint, im.Config.Cmd)
	}
	if len(p.Args) == 0 || p.Args[0] == "" {
		return n, fmt.Errorf("failed to generate container %q spec: no command specified", c.id)
	}
	p.Terminal = cfg.Tty
	if p.Dir = cfg.WorkingDir; p.Dir == "" {
		p.Dir = im.Config.Dir
	}
	env := make([]string, 0, len(cfg.Envs))
	for _, e := range cfg.Envs {
		env = append(env, e.Key+"="+string(e.Value))
	}
	p.Env = mergeEnv(r.o.OS == "windows", im.Config.Env, env)
	p.User = im.Config.User
	if r.o.OS == "windows" {
		n.HostProcess, n.CredentialSpec = win.GetHostProcess(), win.GetCredentialSpec()
		if n.HostProcess != c.sandbox.config.GetWindows().GetSecurityContext().GetHostProcess() {
			return n, errors.New("failed to generate container spec: pod sandbox and all containers inside must be HostProcess, or none")
		}
		if u := win.GetRunAsUsername(); u != "" {
			p.User = u
		}
		n.Limits = windowsLimits(cfg.GetWindows().GetResources())
		return n, nil
	}
	n.ReadOnly, n.Privileged = lin.GetReadonlyRootfs(), lin.GetPrivileged()
	n.AddCaps, n.DropCaps, n.NoNewPrivileges = lin.GetCapabilities().GetAddCapabilities(), lin.GetCapabilities().GetDropCapabilities(),
		lin.GetNoNewPrivs()
	p.Groups = lin.GetSupplementalGroups()
	if ns := lin.GetNamespaceOptions(); ns.GetPid() == runtimeapi.NamespaceMode_TARGET {
		target, err := r.container(ns.GetTargetId())
		if err != nil {
			return n, fmt.Errorf("invalid target container: %w", err)
		}
		if target.sandbox != c.sandbox || target.current() != runtimeapi.ContainerState_CONTAINER_RUNNING {
			return n, fmt.Errorf("invalid target container: container %q is not running in the sandbox", target.id)
		}
		n.TargetPID = target.id
	}
	n.Limits = linuxLimits(cfg.GetLinux().GetResources())
	return n, linuxUser(p, lin)
}

// linuxUser is the user of the pod, or of the image.
func linuxUser(p *Process, s *runtimeapi.LinuxContainerSecurityContext) error {
	own := s.GetRunAsUsername()
	if s.GetRunAsUser() != nil {
		own = strconv.FormatInt(s.RunAsUser.Value, 10)
	}
	if s.GetRunAsGroup() != nil {
		if own == "" {
			return status.Error(codes.InvalidArgument, "user group is specified without user")
		}
		own += ":" + strconv.FormatInt(s.RunAsGroup.Value, 10)
	}
	if own != "" {
		p.User = own
	}
	return nil
}

func linuxLimits(l *runtimeapi.LinuxContainerResources) Limits {
	n := Limits{Memory: l.GetMemoryLimitInBytes()}
	if l.GetCpuPeriod() > 0 && l.GetCpuQuota() > 0 {
		n.CPU = l.CpuQuota * 1000 / l.CpuPeriod
	}
	return n
}

// windowsLimits reads cpu_maximum, which is in hundredths of a percent of all processors
// (kuberuntime_container_windows.go, calculateCPUMaximum).
func windowsLimits(w *runtimeapi.WindowsContainerResources) Limits {
	n := Limits{Memory: w.GetMemoryLimitInBytes()}
	switch {
	case w.GetCpuCount() > 0:
		n.CPU = w.CpuCount * 1000
	case w.GetCpuMaximum() > 0:
		n.CPU = max(w.CpuMaximum*int64(processors())/10, 1)
	}
	return n
}

// mergeEnv puts variables over others. Windows' names have no case.
func mergeEnv(fold bool, base, over []string) []string {
	out := slices.Clone(base)
	name := func(s string) string {
		n, _, _ := strings.Cut(s, "=")
		if fold {
			return strings.ToLower(n)
		}
		return n
	}
	for _, e := range over {
		if i := slices.IndexFunc(out, func(o string) bool { return name(o) == name(e) }); i >= 0 {
			out[i] = e
		} else {
			out = append(out, e)
		}
	}
	return out
}

// mounts are the files of the image, then what the pod mounts.
func (r *Runtime) mounts(ctx context.Context, c *container, im *images.Pulled) ([]Mount, error) {
	var all []Mount
	for to, from := range im.Files {
		all = append(all, Mount{Source: from, Target: to, ReadOnly: true, Image: true})
	}
	i := 0
	for to, f := range im.Config.Files {
		text, ok, err := f.Content()
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		dir := filepath.Join(r.o.Scratch, c.id)
		from := filepath.Join(dir, strconv.Itoa(i))
		i++
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(from, text, 0o644); err != nil {
			return nil, err
		}
		all = append(all, Mount{Source: from, Target: to, ReadOnly: true, Image: true})
	}
	slices.SortFunc(all, func(a, b Mount) int { return strings.Compare(a.Target, b.Target) })
	for _, m := range c.config.Mounts {
		if m.GetImage().GetImage() != "" {
			return nil, status.Errorf(codes.Unimplemented, "mount %s: images have no file systems here that could be mounted", m.ContainerPath)
		}
		from, err := r.o.Path(ctx, m.HostPath)
		if err != nil {
			return nil, status.Errorf(codes.InvalidArgument, "mount %s of %s: %v", m.HostPath, m.ContainerPath, err)
		}
		if _, err := os.Stat(from); err != nil {
			// containerd makes a folder for a source that is not there, on Windows, too
			// (internal/cri/opts/spec_windows_opts.go, since 1.5).
			if !os.IsNotExist(err) {
				return nil, fmt.Errorf("failed to generate container %q spec: failed to stat %q: %w", c.id, m.HostPath, err)
			}
			if err := os.MkdirAll(from, 0o755); err != nil {
				return nil, fmt.Errorf("failed to mkdir %q: %w", m.HostPath, err)
			}
		}
		if m.RecursiveReadOnly {
			return nil, status.Errorf(codes.InvalidArgument, "mount %s: recursive_read_only is not among the runtime's features", m.ContainerPath)
		}
		all = append(all, Mount{Source: from, Target: m.ContainerPath, ReadOnly: m.Readonly})
	}
	return all, nil
}

func removeFiles(dir string) error { return os.RemoveAll(dir) }

// join appends to a path of the kubelet's system.
func join(system, dir, file string) string {
	if system == "windows" {
		return strings.TrimRight(dir, `\/`) + `\` + strings.ReplaceAll(file, "/", `\`)
	}
	return filepath.Join(dir, file)
}

// errUser is Windows' text for a logon that fails, ERROR_LOGON_FAILURE.
var errUser = errors.New("The user name or password is incorrect.") //nolint:staticcheck // Windows' own text

// accounts are the users of every Windows container image, see Kubernetes' documentation,
// "Configure RunAsUserName for Windows pods and containers".
var accounts = []string{"ContainerUser", "ContainerAdministrator", `NT AUTHORITY\NETWORK SERVICE`, `NT AUTHORITY\LOCAL SERVICE`}

// hostAccounts are those of HostProcess containers: "Create a Windows HostProcess Pod".
var hostAccounts = []string{`NT AUTHORITY\SYSTEM`, `NT AUTHORITY\Local Service`, `NT AUTHORITY\NetworkService`,
	`NT AUTHORITY\Network Service`}

// knownUser fails for a user whom the system does not know. Names have no case.
func knownUser(name string, hostProcess bool) error {
	list := accounts
	if hostProcess {
		list = hostAccounts
	}
	is := func(a string) bool { return strings.EqualFold(a, name) }
	if name == "" || slices.ContainsFunc(list, is) {
		return nil
	}
	return errUser
}

// stopSignal is what asks the container to end.
func (c *container) stopSignal() syscall.Signal {
	if s := signalNumber(c.config.StopSignal.String()); s != 0 {
		return s
	}
	if s := signalNumber("SIGNAL_" + c.image.stop); s != 0 {
		return s
	}
	return syscall.SIGTERM
}

var realTime = regexp.MustCompile(`^SIGRT(MIN|MAX)(?:(PLUS|MINUS)(\d+))?$`)

// signalNumber is the number of a signal of CRI on Linux, 0 for none.
func signalNumber(name string) syscall.Signal {
	name = strings.TrimPrefix(name, "SIGNAL_")
	if n, ok := signals[name]; ok {
		return n
	}
	m := realTime.FindStringSubmatch(name)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[3])
	base := 34 // SIGRTMIN of glibc
	if m[1] == "MAX" {
		base, n = 64, -n
	}
	return syscall.Signal(base + n)
}
