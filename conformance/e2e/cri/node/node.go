package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/winlab-dev/winlab/conformance/e2e/cri"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/live"
	"github.com/winlab-dev/winlab/sim/live/netns"
	"github.com/winlab-dev/winlab/sim/real/wine"
)

// machine is a [cri.Node] that is a machine of a lab.
type machine struct {
	net     *live.Net
	node    string // its name in the cluster
	windows bool
	log     func(string)

	mu        sync.Mutex
	sandboxes map[string]attached
}

// attached is a sandbox: the machine where its containers run, the node's for those
// without a network of their own.
type attached struct {
	pod, at string
}

// AddSandbox attaches a pod by the lab's network plugin.
func (m *machine) AddSandbox(ctx context.Context, s cri.Sandbox) ([]netip.Addr, error) {
	b := live.Sandbox{Namespace: s.Namespace, Name: s.Name, UID: s.UID, Node: m.node, Labels: s.Labels, HostNetwork: s.HostNetwork,
		Hostname: s.Hostname}
	for _, p := range s.Ports {
		h, err := hostPort(p)
		if err != nil {
			return nil, err
		}
		b.HostPorts = append(b.HostPorts, h)
	}
	if s.DNS.Servers != nil || s.DNS.Searches != nil || s.DNS.Options != nil {
		b.DNS = &live.DNS{Searches: s.DNS.Searches, Options: s.DNS.Options}
		for _, a := range s.DNS.Servers {
			addr, err := netip.ParseAddr(a)
			if err != nil {
				return nil, fmt.Errorf("the name server %q is not an address: %w", a, err)
			}
			b.DNS.Servers = append(b.DNS.Servers, addr)
		}
	}
	at, err := m.net.AddPod(ctx, b)
	if err != nil {
		return nil, err
	}
	a := attached{pod: at.Machine, at: at.Machine}
	if s.HostNetwork {
		a.at = "node/" + m.node
	}
	m.mu.Lock()
	m.sandboxes[s.ID] = a
	m.mu.Unlock()
	var addrs []netip.Addr
	for _, addr := range []netip.Addr{at.IPv4, at.IPv6} {
		if addr.IsValid() {
			addrs = append(addrs, addr)
		}
	}
	return addrs, nil
}

func hostPort(p cri.Port) (kube.HostPort, error) {
	h := kube.HostPort{HostPort: p.HostPort, Container: p.Container}
	switch p.Protocol {
	case "tcp":
		h.Proto = packet.TCP
	case "udp":
		h.Proto = packet.UDP
	default:
		return h, fmt.Errorf("host port %d: the simulated network has TCP and UDP, and no %s", p.HostPort, p.Protocol)
	}
	if p.HostIP != "" {
		addr, err := netip.ParseAddr(p.HostIP)
		if err != nil {
			return h, fmt.Errorf("host port %d: %w", p.HostPort, err)
		}
		h.HostIP = addr
	}
	return h, nil
}

// RemoveSandbox takes a pod away. The lab knows pods by their names, so only a sandbox
// that this runtime has added may do so: another of the same name can be there by now.
func (m *machine) RemoveSandbox(ctx context.Context, id string) error {
	m.mu.Lock()
	a, ok := m.sandboxes[id]
	m.mu.Unlock()
	if !ok {
		return nil
	}
	if err := m.net.RemovePod(ctx, a.pod); err != nil {
		return err
	}
	m.mu.Lock()
	delete(m.sandboxes, id)
	m.mu.Unlock()
	return nil
}

func (m *machine) sandbox(id string) (attached, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, ok := m.sandboxes[id]
	if !ok {
		return a, fmt.Errorf("the sandbox %s has no network", id)
	}
	return a, nil
}

// Dial connects to a port of a sandbox by its own loopback address.
func (m *machine) Dial(ctx context.Context, sandbox string, port uint16) (net.Conn, error) {
	a, err := m.sandbox(sandbox)
	if err != nil {
		return nil, err
	}
	c, err := m.net.Dial(ctx, a.at, "tcp", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port), dialTimeout)
	if err != nil {
		// A program may listen on IPv6 only.
		if c6, err6 := m.net.Dial(ctx, a.at, "tcp", netip.AddrPortFrom(netip.IPv6Loopback(), port), dialTimeout); err6 == nil {
			return c6, nil
		}
	}
	return c, err
}

const dialTimeout = 10 * time.Second

// CreateContainer makes a container on the sandbox's machine.
func (m *machine) CreateContainer(ctx context.Context, sandbox string, c cri.Container) (cri.Task, error) {
	a, err := m.sandbox(sandbox)
	if err != nil {
		return nil, err
	}
	domain, err := domainOf(c.CredentialSpec)
	if err != nil {
		return nil, err
	}
	l := live.Container{
		Name: c.ID, Args: c.Process.Args, Env: m.env(c.Process, domain), Dir: c.Process.Dir, Terminal: c.Process.Terminal,
		HostProcess:  c.HostProcess,
		ReadOnlyRoot: c.ReadOnly, Privileged: c.Privileged, AddCaps: c.AddCaps, DropCaps: c.DropCaps, NoNewPrivileges: c.NoNewPrivileges,
		Processes: c.TargetPID, CPU: c.Limits.CPU,
	}
	if m.windows {
		l.Commit = uint64(max(c.Limits.Memory, 0))
	}
	if c.HostProcess {
		l.Volume = hostVolume
		l.Env = append(l.Env, volumeVariable+"="+hostVolume+`\`)
		l.Args, l.Dir = inVolume(l.Args), inVolume([]string{l.Dir})[0]
	}
	for _, mount := range c.Mounts {
		for _, target := range targets(mount, c.HostProcess) {
			l.Mounts = append(l.Mounts, live.Mount{Source: mount.Source, Target: target, ReadOnly: mount.ReadOnly})
		}
	}
	if !m.windows {
		if l.User, err = userOf(c.Process); err != nil {
			return nil, err
		}
	}
	h, err := m.net.CreateContainer(ctx, a.at, l)
	if err != nil {
		return nil, err
	}
	return &task{m: m, h: h, domain: domain, hostProcess: c.HostProcess}, nil
}

// Where a HostProcess container has the files of its image, and the variable that says so
// (github.com/Microsoft/hcsshim internal/jobcontainers, with the bind filter).
const (
	hostVolume     = `C:\hpc`
	volumeVariable = "CONTAINER_SANDBOX_MOUNT_POINT"
)

// targets are where a container sees a mount. A host process has the image's files below its
// volume only, and what the pod mounts at its place and below the volume, too (setupMounts
// there).
func targets(m cri.Mount, hostProcess bool) []string {
	if !hostProcess {
		return []string{m.Target}
	}
	path := strings.ReplaceAll(m.Target, "/", `\`)
	if len(path) > 1 && path[1] == ':' {
		path = path[2:]
	}
	below := hostVolume + `\` + strings.TrimLeft(path, `\`)
	if m.Image {
		return []string{below}
	}
	return []string{m.Target, below}
}

// inVolume replaces the volume's variable by its path, as hcsshim does before a
// program starts.
func inVolume(words []string) []string {
	r := strings.NewReplacer("%"+volumeVariable+"%", hostVolume, "$env:"+volumeVariable, hostVolume)
	var all []string
	for _, w := range words {
		all = append(all, r.Replace(w))
	}
	return all
}

// env is the environment of a container's program. Windows programs are told their user
// by it: Wine runs all of them as one.
func (m *machine) env(p cri.Process, domain string) []string {
	env := slices.Clone(p.Env)
	if m.windows {
		env = append(env, windowsEnv(p.User)...)
		if domain != "" {
			env = append(env, "WINLAB_DOMAIN="+domain) // for nltest
		}
	}
	return env
}

// task is a container.
type task struct {
	m      *machine
	h      *live.ContainerHandle
	domain string // of its credential spec

	hostProcess bool
}

func (t *task) Start(ctx context.Context, stdio [3]*os.File) error { return t.h.Start(ctx, stdio) }

func (t *task) Exec(ctx context.Context, p cri.Process, stdio [3]*os.File) (cri.Execution, error) {
	c := netns.Command{Args: p.Args, Env: t.m.env(p, t.domain), Dir: p.Dir, Terminal: p.Terminal}
	if t.hostProcess {
		c.Env = append(c.Env, volumeVariable+"="+hostVolume+`\`)
		c.Args, c.Dir = inVolume(c.Args), inVolume([]string{c.Dir})[0]
	}
	if !t.m.windows {
		var err error
		if c.User, err = userOf(p); err != nil {
			return nil, err
		}
	}
	x, err := t.h.Exec(ctx, c, stdio)
	if err != nil {
		return nil, err
	}
	return execution{x}, nil
}

func (t *task) Signal(_ context.Context, s syscall.Signal) error {
	if err := t.h.Signal(s); err != nil && !errors.Is(err, live.ErrNotRunning) {
		return err
	}
	return nil
}

func (t *task) Wait(ctx context.Context) (cri.Exit, error) { return exit(t.h.Wait(ctx)) }

func exit(e netns.Exit, err error) (cri.Exit, error) {
	x := cri.Exit{Code: e.Code, Signal: syscall.Signal(e.Signal)}
	if e.Signal != 0 {
		x.Code = 0
	}
	return x, err
}

func (t *task) Usage(ctx context.Context) (cri.Usage, error) {
	u, err := t.h.Usage(ctx)
	// What is reserved is not measured, and what is resident is part of it.
	return cri.Usage{At: time.Now(), CPU: time.Duration(u.CPU), Memory: u.Memory, Virtual: u.Memory, Processes: uint64(u.Processes),
		Disk: u.Disk, Inodes: u.Inodes}, err
}

func (t *task) Remove(ctx context.Context) error { return t.h.Remove(ctx) }

// execution is a program beside the first of a container.
type execution struct{ p *netns.Process }

func (e execution) Wait(ctx context.Context) (cri.Exit, error) { return exit(e.p.Wait(ctx)) }

func (e execution) Kill(context.Context) error { return e.p.Signal(syscall.SIGKILL) }

// domainOf is the domain of a credential spec, "" for none. The form is that of Microsoft's
// documentation, "Create gMSAs for Windows containers".
func domainOf(spec string) (string, error) {
	if spec == "" {
		return "", nil
	}
	var c struct{ DomainJoinConfig struct{ DnsName string } }
	if err := json.Unmarshal([]byte(spec), &c); err != nil {
		return "", fmt.Errorf("the credential spec is not JSON: %w", err)
	}
	return c.DomainJoinConfig.DnsName, nil
}

// windowsEnv are the variables by which programs of a Windows container know their user. Of
// an account with a domain, NT AUTHORITY\NETWORK SERVICE, it is the name in it.
func windowsEnv(name string) []string {
	if name == "" {
		name = "ContainerUser"
	}
	if domain, after, ok := strings.Cut(name, `\`); ok {
		return append(wine.UserEnv(after), "USERDOMAIN="+domain)
	}
	return wine.UserEnv(name)
}
