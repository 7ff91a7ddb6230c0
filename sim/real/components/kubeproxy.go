package components

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/winlab-dev/winlab/internal/lazyregexp"
	"github.com/winlab-dev/winlab/sim/real/components/apiserver"
	"github.com/winlab-dev/winlab/sim/real/pinned"
	"github.com/winlab-dev/winlab/sim/real/wine"
	"github.com/winlab-dev/winlab/sim/windows/hcn"
)

// KubeProxy says how to start kube-proxy.exe.
type KubeProxy struct {
	// Binaries holds kube-proxy.exe.
	Binaries *pinned.Binaries
	API      *apiserver.Server
	// Node is the name of its Node object, whose InternalIP is the node's address.
	// On an overlay network kube-proxy looks for the adapter with this address; Wine
	// shows it those of this machine.
	Node string
	// Network is the HNS network that it works on (KUBE_NETWORK).
	Network string
	// Flags come after those that follow from the above: --enable-dsr=true.
	Flags []string
	// Place is where it runs, nil for the node's [Host].
	Place Place
}

// Place is where programs of a node run: with a network of their own, and with the
// node's HNS behind winlab's DLLs.
type Place interface {
	// Start starts a program; its error output goes to a file.
	Start(ctx context.Context, c wine.Command) (p Process, stderr string, err error)
	// Listen listens where programs of the place find the API server.
	Listen(ctx context.Context) (net.Listener, error)
	// Reaches says why a program of the place does not reach an address, nil when it does.
	Reaches(ctx context.Context, a netip.AddrPort) error
}

// Process is a program that was started.
type Process interface {
	PID() int
	// Done is closed when it has ended, End says how, and Silent whether it failed before
	// its own code ran.
	Done() <-chan struct{}
	End() string
	Silent() bool
	// State says in a line what it does, for people.
	State() string
	// Stop ends it as by Ctrl-C, Kill without notice; both wait for the end.
	Stop()
	Kill()
}

// RunningKubeProxy is a kube-proxy that was started.
type RunningKubeProxy struct {
	Process
	// Stderr is the file that holds what it logs, Since when it was started.
	Stderr string
	Since  time.Time

	api     *apiserver.Server
	place   Place          // nil for the node's host
	at      netip.AddrPort // of the API server, in a place
	calls   *hcn.Client
	watched chan error
	metrics string // where it answers /debug/pprof, "" in a network of its own

	mu sync.Mutex
	// lookup is when it last looked its network up, with which each sync begins;
	// last is its last call.
	lookup, last time.Time
}

// quiet is how long kube-proxy makes no call before a sync counts as ended. Within
// a sync one call follows another.
const quiet = 400 * time.Millisecond

// quietInPlace is the same where a network is between kube-proxy and its API server:
// frames take their turn with whatever else the machine does, and what was sent arrives
// later than it was written.
const quietInPlace = 3 * quiet

func (k *RunningKubeProxy) quiet() time.Duration {
	if k.place != nil {
		return quietInPlace
	}
	return quiet
}

// StartKubeProxy starts kube-proxy in kernelspace mode. It is stopped with ctx.
func (n *Node) StartKubeProxy(ctx context.Context, c KubeProxy) (*RunningKubeProxy, error) {
	path := c.Binaries.Path("kube-proxy.exe")
	if path == "" {
		return nil, fmt.Errorf("there is no kube-proxy.exe; there are %s", strings.Join(c.Binaries.Names, ", "))
	}
	file, err := os.CreateTemp(n.dir, "kubeconfig-*.yaml")
	if err != nil {
		return nil, err
	}
	kubeconfig := c.API.Kubeconfig()
	var at netip.AddrPort
	if c.Place != nil {
		l, err := c.Place.Listen(ctx)
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		c.API.ServeOn(l)
		kubeconfig = apiserver.KubeconfigFor("http://" + l.Addr().String())
		if at, err = netip.ParseAddrPort(l.Addr().String()); err != nil {
			return nil, errors.Join(err, file.Close())
		}
	}
	_, err = file.Write(kubeconfig)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	// It does not take port 0.
	healthz, metrics := "127.0.0.1:10256", "127.0.0.1:10249"
	if c.Place == nil {
		if healthz, metrics, err = twoPorts(); err != nil {
			return nil, err
		}
	}
	args := append([]string{"--proxy-mode=kernelspace", "--kubeconfig=" + wine.Path(file.Name()), "--hostname-override=" + c.Node,
		"--healthz-bind-address=" + healthz, "--metrics-bind-address=" + metrics, "--profiling=true", "--v=3"}, c.Flags...)
	k := &RunningKubeProxy{Since: time.Now(), api: c.API, place: c.Place, at: at, watched: make(chan error, 1)}
	if c.Place == nil {
		k.metrics = metrics
	}
	if k.calls, err = hcn.Dial(ctx, n.address, "waits for kube-proxy"); err != nil {
		return nil, err
	}
	begun := make(chan struct{})
	go func() { k.watched <- k.calls.Watch(func() { close(begun) }, k.note) }()
	select {
	case <-begun:
	case err := <-k.watched:
		return nil, errors.Join(fmt.Errorf("the calls of kube-proxy cannot be watched: %w", err), k.calls.Close())
	case <-time.After(answers):
		return nil, errors.Join(fmt.Errorf("the calls of kube-proxy cannot be watched: HNS does not answer for %v", answers), k.calls.Close())
	}
	if err := k.start(ctx, n, c.Place, wine.Command{Path: path, Args: args, Speaks: true,
		Env: []string{"KUBE_NETWORK=" + c.Network}}); err != nil {
		return nil, errors.Join(err, k.calls.Close(), <-k.watched)
	}
	return k, nil
}

func (k *RunningKubeProxy) start(ctx context.Context, n *Node, at Place, c wine.Command) (err error) {
	if at != nil {
		c.Env = append(c.Env, n.adapters()...)
		k.Process, k.Stderr, err = at.Start(ctx, c)
		return err
	}
	p, err := n.start(ctx, c)
	if err == nil {
		k.Process, k.Stderr = p, p.Stderr
	}
	return err
}

// note reads a line of the call log.
func (k *RunningKubeProxy) note(line []byte) bool {
	var e struct{ Client, Call string }
	if json.Unmarshal(line, &e) != nil || !strings.HasPrefix(e.Client, "kube-proxy") {
		return true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last = time.Now()
	if e.Call == "HcnEnumerateNetworks" || e.Call == "HcnOpenNetwork" {
		k.lookup = k.last
	}
	return true
}

// ReachesAPI says why kube-proxy does not reach its API server, nil when it does.
func (k *RunningKubeProxy) ReachesAPI(ctx context.Context) error {
	if k.place == nil {
		return nil
	}
	if err := k.place.Reaches(ctx, k.at); err != nil {
		return fmt.Errorf("%s: %w", k.at, err)
	}
	return nil
}

// ErrEnded says that kube-proxy has ended by itself.
var ErrEnded = errors.New("kube-proxy has ended")

// WaitSynced returns when kube-proxy has brought HNS in line with what the API server
// had at the time since; for the first sync that is the zero time. It must have been
// sent all Services and endpoints, have begun a sync after that, make no call any more, and
// have no goroutine that syncs: on a busy machine a call can be long in coming. An error has the
// end of its log; it is [ErrEnded] when kube-proxy ended.
func (k *RunningKubeProxy) WaitSynced(ctx context.Context, since time.Time) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if from, ok := k.informed(); ok {
			if from.Before(since) {
				from = since
			}
			k.mu.Lock()
			begun, silent := k.lookup.After(from), time.Since(k.last)
			k.mu.Unlock()
			if begun && silent > k.quiet() && !k.syncs(ctx, silent) {
				return nil
			}
		}
		select {
		case <-tick.C:
		case <-k.Done():
			if k.Silent() { // that is not an outcome
				return fmt.Errorf("kube-proxy could not be run: %s", k.End())
			}
			return fmt.Errorf("%w (%s):\n%s", ErrEnded, k.End(), k.logEnd())
		case err := <-k.watched:
			k.watched <- err // for Stop
			if err == nil {  // HNS closed it: its process has ended
				err = io.EOF
			}
			return fmt.Errorf("what kube-proxy does is no longer known: the log of HNS calls has ended: %w\n%s", err, k.logEnd())
		case <-ctx.Done():
			return fmt.Errorf("kube-proxy has not synced: %w\n%s", ctx.Err(), k.condition())
		}
	}
}

// answers is how long HNS or kube-proxy may take for an answer before it counts as hung.
const answers = time.Minute

// condition says what a kube-proxy does that does not sync: the calls that it has made,
// the end of its log, and the goroutines in which it works for HNS.
func (k *RunningKubeProxy) condition() string {
	k.mu.Lock()
	last := "it has not called HNS"
	if !k.last.IsZero() {
		last = fmt.Sprintf("its last call was %v ago, its last sync began %v ago", time.Since(k.last).Round(time.Second),
			time.Since(k.lookup).Round(time.Second))
	}
	k.mu.Unlock()
	return last + "; process: " + k.State() + "; it says\n" + k.logEnd() + "\nand works at\n" + k.goroutines()
}

// syncs reports whether a kube-proxy that has made no call for a while is in a sync all the
// same. Where it cannot be asked, it is for as long as in a network of its own.
func (k *RunningKubeProxy) syncs(ctx context.Context, silent time.Duration) bool {
	if k.metrics == "" {
		return false
	}
	text, err := k.stacks(ctx)
	if err != nil {
		return silent <= quietInPlace
	}
	return strings.Contains(text, ").syncProxyRules(")
}

// goroutines are the stacks of kube-proxy's goroutines that sync or are in the library
// of HNS.
func (k *RunningKubeProxy) goroutines() string {
	if k.metrics == "" {
		return "(not asked: it is in a network of its own)"
	}
	text, err := k.stacks(context.Background())
	if err != nil {
		return err.Error()
	}
	var all []string
	for g := range strings.SplitSeq(text, "\n\n") {
		if strings.Contains(g, "pkg/proxy/winkernel.") || strings.Contains(g, "hcsshim") || strings.Contains(g, "hnslib") {
			all = append(all, g)
		}
	}
	if len(all) == 0 {
		return "no goroutine that has to do with HNS"
	}
	return strings.Join(all, "\n\n")
}

// stacks are those of all its goroutines, as it says itself.
func (k *RunningKubeProxy) stacks(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+k.metrics+"/debug/pprof/goroutine?debug=2", nil)
	if err != nil {
		return "", err
	}
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(r.Body)
	if err := errors.Join(err, r.Body.Close()); err != nil {
		return "", err
	}
	if r.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", req.URL, r.Status)
	}
	return string(text), nil
}

// informed returns when it had been sent both the Services and their endpoints;
// old versions watch Endpoints, newer ones EndpointSlices.
func (k *RunningKubeProxy) informed() (time.Time, bool) {
	services, endpoints, slices := k.api.Sent("services"), k.api.Sent("endpoints"), k.api.Sent("endpointslices.discovery.k8s.io")
	last := services
	for _, t := range []time.Time{endpoints, slices} {
		if t.After(last) {
			last = t
		}
	}
	return last, !services.IsZero() && !(endpoints.IsZero() && slices.IsZero())
}

// logEnd is the end of what it wrote.
func (k *RunningKubeProxy) logEnd() string {
	text, err := os.ReadFile(k.Stderr)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-25):], "\n")
}

// Stop ends it, as [Process.Stop] does.
func (k *RunningKubeProxy) Stop() {
	k.Process.Stop()
	// The watch ends with its connection; its error then does not matter.
	_ = k.calls.Close()
	<-k.watched
}

// twoPorts returns two free addresses on loopback. Somebody may take them before
// kube-proxy does; then it ends and says so.
func twoPorts() (one, other string, err error) {
	a, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "", "", err
	}
	b, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "", "", errors.Join(err, a.Close())
	}
	return a.Addr().String(), b.Addr().String(), errors.Join(a.Close(), b.Close())
}

// LastWords is the last line that a kube-proxy which has ended has logged with severity
// error, else the last line of its output; "" for none.
func (k *RunningKubeProxy) LastWords() (string, error) {
	all, err := k.Errors()
	if err != nil || len(all) > 0 {
		return strings.Join(all[max(0, len(all)-1):], ""), err
	}
	lines := strings.Split(strings.TrimSpace(k.logEnd()), "\n")
	return lines[len(lines)-1], nil
}

// errorLine is a line of klog with severity error or fatal.
var errorLine = lazyregexp.New(`^[EF]\d{4} \S+ +\d+ ([^\]]+)\] (.*)$`)

// Errors are the errors that it has logged, each once, in the order of the log.
func (k *RunningKubeProxy) Errors() ([]string, error) {
	text, err := os.ReadFile(k.Stderr)
	if err != nil {
		return nil, err
	}
	var all []string
	for line := range strings.Lines(string(text)) {
		if m := errorLine.FindStringSubmatch(strings.TrimSpace(line)); m != nil && !slices.Contains(all, m[2]) {
			all = append(all, m[2])
		}
	}
	return all, nil
}
