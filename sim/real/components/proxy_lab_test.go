//go:build linux

package components

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/real/components/apiserver"
	"github.com/winlab-dev/winlab/sim/real/wine/winetest"
	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hcn"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// hnsProcess is the HNS of one node as a process of its own, so that it can be
// killed. Its objects are in a folder, from which the next process takes them.
type hnsProcess struct {
	addr  string
	build string
	state string

	cmd   *exec.Cmd
	stdin io.Closer
}

const hnsProcessEnv = "WINLAB_TEST_HNS"

// TestHNSProcess is not a test: it is the process of an hnsProcess when it is called
// by one, and nothing otherwise.
func TestHNSProcess(t *testing.T) {
	raw := os.Getenv(hnsProcessEnv)
	if raw == "" {
		return
	}
	var a struct{ Addr, Build, State string }
	if err := json.Unmarshal([]byte(raw), &a); err != nil {
		t.Fatal(err)
	}
	c := proxyCase{build: a.Build, version: "1.36.3", network: hns.L2Bridge}
	o, n := proxyNode(t, c)
	service, err := hcn.Start(n.Windows, o, hcn.Options{State: a.State, Log: log.New(os.Stderr, "hns: ", 0)})
	if err != nil {
		t.Fatal(err)
	}
	server, err := hcn.Listen(service, a.Addr)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("HNS listens on", server.Addr())
	ctx, cancel := context.WithCancel(t.Context())
	go func() { // its maker has gone, or wants it to end in order
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	if err := errors.Join(server.Serve(ctx), service.Close()); err != nil {
		t.Fatal(err)
	}
}

// start starts the process, again on the address that it had.
func (h *hnsProcess) start(t *testing.T) {
	t.Helper()
	if h.addr == "" {
		h.addr = "127.0.0.1:0"
	}
	arg, err := json.Marshal(map[string]string{"Addr": h.addr, "Build": h.build, "State": h.state})
	if err != nil {
		t.Fatal(err)
	}
	h.cmd = exec.Command(os.Args[0], "-test.run=^TestHNSProcess$")
	h.cmd.Env = append(os.Environ(), hnsProcessEnv+"="+string(arg))
	h.cmd.Stderr = t.Output()
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if h.stdin, err = h.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said []string
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		said = append(said, lines.Text())
		if addr, ok := strings.CutPrefix(lines.Text(), "HNS listens on "); ok {
			h.addr = addr
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return
		}
	}
	t.Fatalf("the HNS process does not start: %v\n%s", h.cmd.Wait(), strings.Join(said, "\n"))
}

// kill ends the process at once, in whatever it is doing.
func (h *hnsProcess) kill(t *testing.T) {
	t.Helper()
	if h.cmd == nil {
		return
	}
	if err := h.cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = h.cmd.Wait() // "signal: killed"
	_ = h.stdin.Close()
	h.cmd = nil
}

// proxyLab is a node with a real kube-proxy, an API server and an HNS that is a
// process of its own. kube-proxy and HNS can be stopped and started again.
type proxyLab struct {
	c     proxyCase
	hns   *hnsProcess
	api   *apiserver.Server
	node  *Node
	proxy *RunningKubeProxy
	// stuck: kube-proxy has not synced in the time that it had. What comes after on the
	// same kube-proxy would wait as long, and fail.
	stuck bool
	flags []string

	kube    *kube.Node
	options hns.Options
	network string // its id
}

// labHosts are the Wine prefixes of a test, one for each build.
type labHosts struct {
	mu  sync.Mutex
	all map[string]*Host
}

// hostFor returns the host of a build, which lives as long as the test t of the first
// caller: that is the one that made labHosts.
func (h *labHosts) hostFor(t *testing.T, build string) *Host {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all == nil {
		h.all = map[string]*Host{}
	}
	if h.all[build] == nil {
		host, err := newHost(t.Context(), t.TempDir(), builds.MustLookup(build))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := host.Close(); err != nil {
				t.Error(err)
			}
		})
		h.all[build] = host
	}
	return h.all[build]
}

// newProxyLab makes the HNS with its network and the pods 10.244.1.5 to .8, and
// the API server; it does not start kube-proxy.
func newProxyLab(t *testing.T, host *Host, c proxyCase) *proxyLab {
	t.Helper()
	winetest.Need(t)
	l := &proxyLab{c: c, hns: &hnsProcess{build: c.build, state: filepath.Join(t.TempDir(), "hns")}}
	l.options, l.kube = proxyNode(t, c)
	l.hns.start(t)
	t.Cleanup(func() { l.hns.kill(t) })
	// A Node serves the HNS that it is given; this one's programs use another.
	none, err := hcn.Start(l.kube.Windows, l.options, hcn.Options{})
	if err == nil {
		l.node, err = host.Node(t.Context(), NodeConfig{HNS: none})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(l.node.Close(), none.Close()); err != nil {
			t.Error(err)
		}
	})
	l.node.address, l.node.env = l.hns.addr, []string{"WINLAB_HCN=" + l.hns.addr}
	if l.api, err = apiserver.Start(t.Context(), log.New(t.Output(), "api: ", 0)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.api.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := l.api.Apply(apiserver.NodeObject(l.kube)); err != nil {
		t.Fatal(err)
	}
	l.createNetwork(t)
	for i := 5; i < 9; i++ {
		l.createPod(t, fmt.Sprintf("10.244.1.%d", i))
	}
	return l
}

// call makes calls of HNS as a plugin does, not as kube-proxy.
func (l *proxyLab) call(t *testing.T, f func(*hcn.Client) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), answers)
	defer cancel()
	c, err := hcn.Dial(ctx, l.hns.addr, "lab")
	if err == nil {
		err = errors.Join(f(c), c.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (l *proxyLab) createNetwork(t *testing.T) {
	t.Helper()
	// All nodes share one subnet, as with the l2bridge plugins of the clouds: a pod
	// of this node can get the address of a pod of another (kubernetes/kubernetes
	// PR 138000).
	text := `{"Name":"cbr0","Type":"L2Bridge","Ipams":[{"Type":"Static","Subnets":[{"IpAddressPrefix":"10.244.0.0/16",
		"Routes":[{"NextHop":"10.244.0.1","DestinationPrefix":"0.0.0.0/0"}]}]}],"SchemaVersion":{"Major":2,"Minor":0}}`
	l.call(t, func(c *hcn.Client) error {
		if _, err := c.Create(hcn.Network, 0, text); err != nil {
			return err
		}
		ids, err := c.Enumerate(hcn.Network, hcn.FilterBy("Name", "cbr0"))
		if err == nil && len(ids) != 1 {
			err = fmt.Errorf("%d networks cbr0", len(ids))
		}
		if err == nil {
			l.network = ids[0]
		}
		return err
	})
}

// createPod does what a plugin does for a pod of this node.
func (l *proxyLab) createPod(t *testing.T, addr string) {
	t.Helper()
	l.call(t, func(c *hcn.Client) error {
		n, err := c.Open(hcn.Network, l.network)
		if err != nil {
			return err
		}
		_, err = c.Create(hcn.Endpoint, n, `{"Name":"pod-`+addr+`","IpConfigurations":[{"IpAddress":"`+addr+
			`"}],"SchemaVersion":{"Major":2,"Minor":0}}`)
		return err
	})
}

// startProxy starts kube-proxy.
func (l *proxyLab) startProxy(t *testing.T) {
	t.Helper()
	var err error
	binaries := winetest.Binaries(t, "kube-proxy-"+l.c.version)
	l.proxy, err = l.node.StartKubeProxy(t.Context(), KubeProxy{Binaries: binaries, API: l.api, Node: l.kube.Name, Network: "cbr0",
		Flags: append(l.c.flags(t), l.flags...)})
	if err != nil {
		t.Fatal(err)
	}
	l.stuck = false
	p := l.proxy
	t.Cleanup(p.Kill)
}

// killProxy ends kube-proxy without notice.
func (l *proxyLab) killProxy() {
	l.proxy.Kill()
	l.proxy.Stop() // its connections
}

// synced waits until kube-proxy has done what it knew at a time.
func (l *proxyLab) synced(t *testing.T, since time.Time) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if l.stuck {
		t.Fatal("kube-proxy has stopped to sync in a test before this one")
	}
	if err := l.proxy.WaitSynced(ctx, since); err != nil {
		l.stuck = true
		t.Fatal(err)
	}
}

// services makes the API server have these Services, and waits for kube-proxy.
func (l *proxyLab) services(t *testing.T, all ...*kube.Service) {
	t.Helper()
	since := time.Now()
	if err := l.api.SetServices(all); err != nil {
		t.Fatal(err)
	}
	l.synced(t, since)
}

// stopHNS kills the HNS. kube-proxy's watcher goes with it.
func (l *proxyLab) stopHNS(t *testing.T) {
	t.Helper()
	l.hns.kill(t)
}

// startHNS starts it again with the objects that it had, and watches kube-proxy's
// calls again.
func (l *proxyLab) startHNS(t *testing.T) {
	t.Helper()
	l.hns.start(t)
	k := l.proxy
	<-k.watched
	// The connection is used by the tests after t, too: it must not end with it.
	calls, err := hcn.Dial(context.Background(), l.hns.addr, "waits for kube-proxy")
	if err != nil {
		t.Fatal(err)
	}
	_ = k.calls.Close() // the other end has gone
	k.calls = calls
	begun := make(chan struct{})
	go func() { k.watched <- calls.Watch(func() { close(begun) }, k.note) }()
	select {
	case <-begun:
	case err := <-k.watched:
		t.Fatal(err)
	case <-time.After(answers):
		t.Fatal("HNS does not answer")
	}
}

// wrote is what kube-proxy has written after the first n bytes.
func (l *proxyLab) wrote(t *testing.T, n int64) []byte {
	t.Helper()
	f, err := os.Open(l.proxy.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(io.NewSectionReader(f, n, 1<<40))
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return text
}

// said waits until kube-proxy has written a text after the first n bytes.
func (l *proxyLab) said(t *testing.T, text string, n int64) {
	t.Helper()
	deadline := time.After(time.Minute)
	for !bytes.Contains(l.wrote(t, n), []byte(text)) {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-l.proxy.Done():
			t.Fatalf("kube-proxy has ended:\n%s", l.proxy.logEnd())
		case <-deadline:
			t.Fatalf("kube-proxy does not say %q:\n%s", text, l.proxy.logEnd())
		}
	}
}

// state is a copy of what the HNS holds.
func (l *proxyLab) state(t *testing.T) *hns.Service {
	t.Helper()
	s := hns.NewService(l.kube.Windows, l.options)
	l.call(t, func(c *hcn.Client) error {
		p, err := c.Snapshot()
		if err != nil {
			return err
		}
		return s.Restore(p)
	})
	return s
}
