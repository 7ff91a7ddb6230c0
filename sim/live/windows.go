package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/winlab-dev/winlab/internal/lazyregexp"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/live/netns"
	"github.com/winlab-dev/winlab/sim/real/components"
	"github.com/winlab-dev/winlab/sim/real/wine"
	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// windows is what a machine has for Windows programs: a Wine prefix of its own, since
// Wine's server makes the sockets of all programs of a prefix. It is made when the first
// one is started.
type windows struct {
	mu   sync.Mutex
	dir  string
	copy *wine.Copy
	// services: Wine's services run.
	services bool
	// tools answers the programs that Wine lacks, see serveTools.
	tools net.Listener
}

// hnsAddress tells the DLLs of Windows programs where their HNS is.
const hnsAddress = "WINLAB_HCN"

// isWindowsProgram reports whether a command is a program of Windows: its name ends
// with .exe, and it is a file of that kind or one that Windows has.
func isWindowsProgram(name string) bool {
	if !strings.EqualFold(filepath.Ext(name), ".exe") {
		return false
	}
	f, err := os.Open(name)
	if err != nil {
		return true // one of Windows' own, such as ipconfig.exe
	}
	defer func() { _ = f.Close() }()
	var head [2]byte
	_, err = f.Read(head[:])
	return err == nil && bytes.Equal(head[:], []byte("MZ"))
}

// wineCommand makes the command that runs a Windows program on a machine.
func (n *Net) wineCommand(ctx context.Context, s *space, c netns.Command) (netns.Command, error) {
	b, err := n.buildOf(s)
	if err != nil {
		return c, err
	}
	w := &s.windows
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := n.need(ctx, s, w, b); err != nil {
		return c, fmt.Errorf("%s on %s: %w", c.Args[0], s.name, err)
	}
	path := c.Args[0]
	if strings.EqualFold(path, "powershell.exe") {
		path = `C:\windows\system32\` + strings.ReplaceAll(components.PowerShell, "/", `\`)
	}
	if _, err := os.Stat(path); err != nil && !strings.Contains(path, `\`) {
		path = `C:\windows\system32\` + path
	}
	if !w.services && asksForDrives(path, c.Args[1:]) {
		// When they do not start, the program says what it lacks.
		w.services = n.runWine(ctx, s, w.copy, w.copy.Services) == nil
	}
	return n.underWine(ctx, s, w, path, c), nil
}

// underWine is the command that runs a Windows program in a prefix.
func (n *Net) underWine(ctx context.Context, s *space, w *windows, path string, c netns.Command) netns.Command {
	env := append(w.env(c.Env), components.ToolsAddress+"="+w.tools.Addr().String())
	if node, ok := strings.CutPrefix(s.name, "node/"); ok {
		// Programs of a node reach its HNS; those of a pod have none.
		if h, err := n.serveHNS(ctx, node); err == nil {
			env = append(env, hnsAddress+"="+h.inside.Addr())
		}
	}
	return netns.Command{Args: w.copy.Command(path, c.Args[1:]...), Env: env, Dir: c.Dir, Terminal: c.Terminal}
}

var drives = lazyregexp.New(`(?i)\b(dir|vol|label)\b|\.(bat|cmd)\b`)

// asksForDrives reports whether a program may ask Wine's services for drives: a console
// does, to list a folder, and one may be typed into.
func asksForDrives(path string, args []string) bool {
	name := strings.ToLower(path[strings.LastIndexAny(path, `\/`)+1:])
	if name != "cmd.exe" && name != "cmd" {
		return false
	}
	line := strings.Join(args, " ")
	return !strings.Contains(strings.ToLower(line), "/c") || drives.MatchString(line)
}

// env is the environment of a Windows program: Wine's, and what its user has set for
// it. Names that mean something to Linux only are left out.
//
// A USERNAME among them brings the other variables of that user.
func (w *windows) env(given []string) []string {
	all := append([]string{}, w.copy.Env...)
	set := func(kv string) { // of two, a program would see the first
		name, _, _ := strings.Cut(kv, "=")
		all = slices.DeleteFunc(all, func(old string) bool {
			before, _, _ := strings.Cut(old, "=")
			return strings.EqualFold(before, name)
		})
		all = append(all, kv)
	}
	for _, kv := range given {
		if name, user, _ := strings.Cut(kv, "="); strings.EqualFold(name, "USERNAME") {
			for _, own := range wine.UserEnv(user) {
				set(own)
			}
		}
	}
	for _, kv := range given {
		name, _, _ := strings.Cut(kv, "=")
		switch {
		case strings.HasPrefix(name, "WINE") && name != "WINEDEBUG", strings.HasPrefix(name, "LC_"), strings.HasPrefix(name, "XDG_"):
		case name == "PATH", name == "HOME", name == "LANG", name == "TMPDIR", name == "DISPLAY", name == "SHELL", name == "_":
		default:
			set(kv)
		}
	}
	return all
}

// buildOf is the Windows build of a machine.
func (n *Net) buildOf(s *space) (*builds.Build, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := n.machine(s.entry)
	if m == nil || m.Node == nil || m.Kind != cluster.NodeKind && m.Kind != cluster.PodKind || m.Node.Windows == nil {
		return nil, fmt.Errorf("%s runs Linux; Windows programs run only on Windows machines", s.name)
	}
	return m.Node.Windows, nil
}

// need makes the machine's Wine prefix, if it has none, and starts Wine's server in its
// namespace. The prefix' lock is held.
func (n *Net) need(ctx context.Context, s *space, w *windows, b *builds.Build) error {
	if w.copy != nil {
		return nil
	}
	if err := n.prefix(ctx, s, w, b); err != nil {
		return err
	}
	if err := n.startServer(ctx, s, w.copy); err != nil {
		w.discard()
		return err
	}
	return nil
}

// prefix makes a Wine prefix in which nothing runs, for programs in a namespace.
func (n *Net) prefix(ctx context.Context, s *space, w *windows, b *builds.Build) error {
	dir, err := os.MkdirTemp("", "winlab-live-")
	if err != nil {
		return err
	}
	p, err := components.CopyAs(ctx, dir, b, n.look(s))
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	l, err := n.host.Listen(ctx, s.name, netip.MustParseAddrPort("127.0.0.1:0"))
	if err != nil {
		return errors.Join(err, p.Close(), os.RemoveAll(dir))
	}
	go n.serveTools(s, l)
	w.dir, w.copy, w.tools = dir, p, l
	return nil
}

func (n *Net) startServer(ctx context.Context, s *space, p *wine.Copy) error {
	// It stays as long as the machine: a server takes 10 MB, and a program that has to start
	// one takes longer.
	for _, args := range [][]string{append(p.Server, "-p"), p.Boot} {
		if err := n.runWine(ctx, s, p, args); err != nil {
			return err
		}
	}
	return nil
}

// runWine runs a program of Wine that ends by itself and prints nothing.
func (n *Net) runWine(ctx context.Context, s *space, p *wine.Copy, args []string) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = null.Close() }()
	r, err := n.host.Start(ctx, s.name, netns.Command{Args: args, Env: p.Env, Dir: p.Dir}, [3]*os.File{null, null, null})
	if err != nil {
		return err
	}
	e, err := r.Wait(ctx)
	if err == nil && e.Code != 0 {
		err = fmt.Errorf("Wine does not start: %s: exit code %d", filepath.Base(args[0]), e.Code)
	}
	return err
}

// look is what programs of a machine see as their machine and user, and what the registry
// says about name servers. A container of Windows Server Core runs as ContainerAdministrator.
func (n *Net) look(s *space) components.Look {
	l := components.Look{HostName: hostName(s)}
	if strings.HasPrefix(s.name, "node/") {
		l.User = "Administrator"
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if m := n.machine(s.entry); m != nil {
		c := n.c.Resolver(m)
		l.Resolver = wine.Resolver{Servers: c.Servers, Domain: c.ConnectionSuffix, Suffixes: c.InterfaceSuffixes, Global: c.GlobalSuffixes}
	}
	return l
}

// hostName is the name of a machine that its programs see: what somebody has asked for, or
// the last part of node/NAME, pod/NAME, pod/NAMESPACE/NAME.
func hostName(s *space) string {
	if s.spec.Hostname != "" {
		return s.spec.Hostname
	}
	return s.name[strings.LastIndex(s.name, "/")+1:]
}

// close removes the prefix, after the machine's programs have ended.
func (w *windows) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.discard()
}

func (w *windows) discard() {
	if w.copy != nil {
		_ = w.tools.Close()
		_ = w.copy.Close()
		_ = os.RemoveAll(w.dir)
		w.copy, w.services = nil, false
	}
}
