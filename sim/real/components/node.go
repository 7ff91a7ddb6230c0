package components

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/winlab-dev/winlab/internal/cache"
	"github.com/winlab-dev/winlab/sim/real/pinned"
	winprograms "github.com/winlab-dev/winlab/sim/real/programs"
	"github.com/winlab-dev/winlab/sim/real/wine"
	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hcn"
	"github.com/winlab-dev/winlab/sim/windows/hcn/shims"
)

// Host is a Wine prefix that looks like one Windows build. Nodes of that build may
// share it: each has its own HNS, adapters and folder.
type Host struct{ *wine.Prefix }

// Available reports why programs of Windows nodes cannot be run here: Wine or the
// compiler of the DLLs is missing.
func Available() error {
	if _, err := wine.Find(); err != nil {
		return err
	}
	if _, err := exec.LookPath(shims.Compiler); err != nil {
		return shims.ErrNoCompiler
	}
	return nil
}

// newHost makes Wine ready. dir is the folder of this run; the programs' logs stay
// in dir/logs.
func newHost(ctx context.Context, dir string, build *builds.Build) (*Host, error) {
	w, err := wine.Find()
	if err != nil {
		return nil, err
	}
	dlls, err := builtShims(ctx)
	if err != nil {
		return nil, err
	}
	p, err := w.Prefix(ctx, wine.Config{Dir: dir, Build: build, DLLs: []string{dlls}, Boot: filepath.Join(dlls, shims.Boot)})
	if err != nil {
		return nil, err
	}
	return &Host{p}, nil
}

// Look is what the programs of a prefix take for their machine's and their user's name; ""
// is this machine's, and ContainerAdministrator.
type Look struct {
	HostName, User string
	// Resolver is what the registry says about name servers.
	Resolver wine.Resolver
}

// Copy makes a Wine prefix with winlab's DLLs that looks like one Windows build, in which
// nothing runs: others start its programs. The prefix is in dir; the caller must Close it.
func Copy(ctx context.Context, dir string, build *builds.Build) (*wine.Copy, error) {
	return CopyAs(ctx, dir, build, Look{})
}

// CopyAs is Copy with names.
func CopyAs(ctx context.Context, dir string, build *builds.Build, look Look) (*wine.Copy, error) {
	if err := Available(); err != nil {
		return nil, err
	}
	w, err := wine.Find()
	if err != nil {
		return nil, err
	}
	dlls, err := builtShims(ctx)
	if err != nil {
		return nil, err
	}
	c := wine.Config{Dir: dir, Build: build, DLLs: []string{dlls}, Boot: filepath.Join(dlls, shims.Boot),
		Programs: map[string]string{}, HostName: look.HostName, User: look.User, Resolver: look.Resolver}
	for _, name := range Tools {
		c.Programs[name] = filepath.Join(dlls, shims.Tool)
	}
	box, err := builtPrograms(ctx)
	if err != nil {
		return nil, err
	}
	if box != "" {
		for _, name := range winprograms.Places {
			c.Programs[name] = box
		}
	}
	return w.Copy(ctx, c)
}

// TestLimit is a program of winlab's that takes memory, as testlimit.exe of Sysinternals; it
// must be started by that name.
const TestLimit = "testlimit.exe"

// TestLimitFile is where [TestLimit] is on this machine.
func TestLimitFile(ctx context.Context) (string, error) {
	box, err := builtPrograms(ctx)
	if err == nil && box == "" {
		err = errors.New("no Go to build it with")
	}
	return box, err
}

// builtPrograms returns the file that stands for the programs of package programs, from the
// cache; "" where there is no Go to build it with, and Wine's own programs have to do.
func builtPrograms(ctx context.Context) (string, error) {
	if _, err := exec.LookPath("go"); err != nil {
		return "", nil
	}
	tmp, err := os.MkdirTemp("", "winlab-programs-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	dir := filepath.Join(tmp, "winbox")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	if err := winprograms.Write(dir); err != nil {
		return "", err
	}
	b, err := pinned.Build(ctx, dir)
	if err != nil {
		return "", err
	}
	return b.Path(winprograms.File), nil
}

// Tools are programs of Windows that Wine does not have, or not as Windows has them, by
// their place below system32: they ask the address in the environment variable
// [ToolsAddress] what to print.
var Tools = []string{"ipconfig.exe", "netsh.exe", "nslookup.exe", "vfpctrl.exe", PowerShell}

// PowerShell is where powershell.exe is.
const PowerShell = "WindowsPowerShell/v1.0/powershell.exe"

// ToolsAddress is set for the programs of [Tools]; package shims has the protocol.
const ToolsAddress = "WINLAB_TOOLS"

// NodeConfig is what each node has for itself.
type NodeConfig struct {
	// HNS answers the node's programs. It belongs to the caller, and so do its objects.
	HNS *hcn.Service
	// Adapters are the network adapters that the node's programs see; with none
	// they see those of this machine.
	Adapters []Adapter
}

// Adapter is a network adapter of a node.
type Adapter struct {
	Name      string // "Ethernet"
	MAC       string // "00-15-5D-01-02-03"
	Addresses []netip.Prefix
}

// Node is where the programs of one Windows node run.
type Node struct {
	address string // of the node's HNS, "127.0.0.1:40123"

	host   *Host
	config NodeConfig
	dir    string // on the host's drive, this node's own
	env    []string
	server *hcn.Server
	served chan error
}

// Node makes a node: its HNS listens until ctx ends or the node is closed.
func (h *Host) Node(ctx context.Context, c NodeConfig) (*Node, error) {
	n := &Node{host: h, config: c, served: make(chan error, 1)}
	var err error
	if n.dir, err = os.MkdirTemp(filepath.Join(h.Dir, "drive_c"), "node-"); err != nil {
		return nil, err
	}
	if n.server, err = hcn.Listen(c.HNS, "127.0.0.1:0"); err != nil {
		return nil, err
	}
	n.address = n.server.Addr()
	n.env = append([]string{"WINLAB_HCN=" + n.address}, n.adapters()...)
	go func() { n.served <- n.server.Serve(ctx) }()
	return n, nil
}

// adapters is the variable that tells programs of the node's adapters.
func (n *Node) adapters() []string {
	if len(n.config.Adapters) == 0 {
		return nil
	}
	return []string{"WINLAB_ADAPTERS=" + adapterList(n.config.Adapters)}
}

// adapterList writes adapters for iphlpapi.dll: "NAME|MAC|ADDRESS/BITS,...;...".
func adapterList(all []Adapter) string {
	var list []string
	for _, a := range all {
		var addresses []string
		for _, p := range a.Addresses {
			addresses = append(addresses, p.String())
		}
		list = append(list, a.Name+"|"+a.MAC+"|"+strings.Join(addresses, ","))
	}
	return strings.Join(list, ";")
}

// run runs one of the node's programs until it ends, as [wine.Prefix.Run] does.
func (n *Node) run(ctx context.Context, c wine.Command) (*wine.Result, error) {
	c.Env = append(n.env[:len(n.env):len(n.env)], c.Env...)
	return n.host.Run(ctx, c)
}

// start starts one of the node's programs, as [wine.Prefix.Start] does.
func (n *Node) start(ctx context.Context, c wine.Command) (*wine.Process, error) {
	c.Env = append(n.env[:len(n.env):len(n.env)], c.Env...)
	return n.host.Start(ctx, c)
}

// Close stops the node's HNS from listening. The caller has stopped its programs.
func (n *Node) Close() error { return errors.Join(n.server.Close(), <-n.served) }

// builtShims returns the folder with the DLLs, from the cache.
func builtShims(ctx context.Context) (string, error) {
	cache, err := cache.Dir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "shims", shims.Key())
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", fmt.Errorf("the cache cannot be written: %w; set WINLAB_CACHE to another folder", err)
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".making-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	if _, err := shims.Build(ctx, tmp); err != nil {
		return "", err
	}
	if err := shims.BuildTool(ctx, tmp); err != nil {
		return "", err
	}
	if _, err := shims.BuildBoot(ctx, tmp); err != nil {
		return "", err
	}
	// Another process may have been faster; its DLLs are the same.
	if err := os.Rename(tmp, dir); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	return dir, nil
}
