//go:build linux

package hcn_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/winlab-dev/winlab/sim/real/pinned"
	"github.com/winlab-dev/winlab/sim/real/wine"
	"github.com/winlab-dev/winlab/sim/real/wine/winetest"
	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hcn"
	"github.com/winlab-dev/winlab/sim/windows/hcn/shims"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// probed is a prefix with the DLLs, and testdata/probe.
type probed struct {
	prefix  *wine.Prefix
	program string
	build   *builds.Build
	env     []string // of all programs
	far     bool     // the service has no Unix socket
}

// eachSocket tries all three kinds of socket of sockets.h; under Wine 10 all are winsock's.
func (p *probed) eachSocket(t *testing.T, test func(t *testing.T)) {
	for _, c := range []struct {
		name string
		env  []string
		far  bool
	}{{"Unix", nil, false}, {"TCP", nil, true}, {"winsock", []string{"WINLAB_WINSOCK=1"}, false}} {
		p.env, p.far = c.env, c.far
		t.Run(c.name, test)
	}
}

func probe(t testing.TB) *probed {
	t.Helper()
	w := winetest.Need(t)
	dlls := t.TempDir()
	if _, err := shims.Build(t.Context(), dlls); err != nil {
		t.Fatal(err)
	}
	bin, err := pinned.Build(t.Context(), "testdata/probe")
	if err != nil {
		t.Fatal(err)
	}
	b := builds.MustLookup("10.0.20348")
	prefix, err := w.Prefix(t.Context(), wine.Config{Dir: t.TempDir(), Build: b, DLLs: []string{dlls}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := prefix.Close(); err != nil {
			t.Error(err)
		}
	})
	return &probed{prefix: prefix, program: bin.Path("probe.exe"), build: b}
}

// run runs the probe and returns its lines.
func (p *probed) run(t testing.TB, address string, args ...string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var env []string
	if address != "" {
		env = append(env, "WINLAB_HCN="+address)
	}
	return p.runWith(t, ctx, env, args...)
}

func (p *probed) runWith(t testing.TB, ctx context.Context, env []string, args ...string) []string {
	t.Helper()
	res, err := p.prefix.Run(ctx, wine.Command{Path: p.program, Args: args, Env: append(env, p.env...)})
	if err != nil {
		t.Fatal(err)
	}
	if res.Code != 0 {
		t.Errorf("probe %v: exit code %d\n%s", args, res.Code, res.Stderr)
	}
	return strings.Split(strings.TrimSpace(strings.ReplaceAll(res.Stdout, "\r", "")), "\n")
}

// startServer starts a service on an address; stop waits for its end.
func (p *probed) startServer(t testing.TB, address string, calls io.Writer) (at string, stop func()) {
	t.Helper()
	s, err := hcn.Start(p.build, hns.Options{Node: "n1"}, hcn.Options{CallLog: calls, Log: log.New(t.Output(), "", 0)})
	if err != nil {
		t.Fatal(err)
	}
	var v *hcn.Server
	if p.far {
		l, err := net.Listen("tcp4", address)
		if err != nil {
			t.Fatal(err)
		}
		v = hcn.On(s, l)
	} else if v, err = hcn.Listen(s, address); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- v.Serve(t.Context()) }()
	return v.Addr(), func() {
		if err := errors.Join(v.Close(), <-done); err != nil {
			t.Error(err)
		}
	}
}

// TestDLLs calls the DLLs directly: text of all kinds, handles that are closed
// or of another kind, NULL where an address is wanted.
func TestDLLs(t *testing.T) {
	p := probe(t)
	p.eachSocket(t, p.talks)
}

func (p *probed) talks(t *testing.T) {
	at, stop := p.startServer(t, "127.0.0.1:0", nil)
	defer stop()
	got := p.run(t, at, "talk")
	noHandle := `{"Success":false,"Error":"The handle is invalid.","ErrorCode":2147942406}`
	want := []string{
		"create 0 NULL", "query 0 {", "query without a query 0 true", "query as endpoint 80070006 NULL " + noHandle,
		`open nothing 803b0001 true {"Success":false,"Error":"The network was not found.","ErrorCode":2151350273`,
		"open NULL 80004003", "enumerate into NULL 80004003", "close 0", "close again 80070006",
	}
	if len(got) != len(want) {
		t.Fatalf("got %q", got)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("got  %s\nwant %s", got[i], want[i])
		}
	}
	if !strings.Contains(got[1], `"Name":"Nätz-網-😀"`) {
		t.Errorf("text was changed on its way: %s", got[1])
	}
}

// counted is a listener that counts its clients.
type counted struct {
	net.Listener
	clients atomic.Int32
}

func (l *counted) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.clients.Add(1)
	}
	return c, err
}

// TestDLLsTakeTheSocket: which of the sockets of sockets.h a program's connection is.
func TestDLLsTakeTheSocket(t *testing.T) {
	p := probe(t)
	version := p.run(t, "", "wine")[0]
	for _, c := range []struct {
		name      string
		env       []string
		near      bool // the service has a Unix socket
		unix, tcp int32
	}{
		{"a Unix socket is there", nil, true, 1, 0},
		{"there is none", nil, false, 0, 1},
		{"winsock is asked for", []string{"WINLAB_WINSOCK=1"}, true, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if len(version) < 2 || version[1] != '.' { // Wine 10 and later: winsock always
				c.unix, c.tcp = 0, 1
			}
			s, err := hcn.Start(p.build, hns.Options{Node: "n1"}, hcn.Options{})
			if err != nil {
				t.Fatal(err)
			}
			l, err := net.Listen("tcp4", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			tcp, unix := &counted{Listener: l}, &counted{}
			servers := []*hcn.Server{hcn.On(s, tcp)}
			if c.near {
				if unix.Listener, err = net.Listen("unix", "@winlab-hcn-"+l.Addr().String()); err != nil {
					t.Fatal(err)
				}
				servers = append(servers, hcn.On(s, unix))
			}
			ended := make(chan error, len(servers))
			for _, v := range servers {
				go func() { ended <- v.Serve(t.Context()) }()
			}
			p.env = c.env
			if got := p.run(t, l.Addr().String(), "bench", "10", "2"); !strings.HasPrefix(got[0], "10 calls ") {
				t.Errorf("got %q", got)
			}
			for _, v := range servers {
				if err := v.Close(); err != nil {
					t.Error(err)
				}
			}
			for range servers {
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
			if a, b := unix.clients.Load(), tcp.clients.Load(); a != c.unix || b != c.tcp {
				t.Errorf("Wine %s: %d connections by the Unix socket and %d by TCP; want %d and %d", version, a, b, c.unix, c.tcp)
			}
		})
	}
}

// TestDLLsWithoutService: what programs meet while HNS does not run.
func TestDLLsWithoutService(t *testing.T) {
	p := probe(t)
	p.eachSocket(t, p.checkUnreachable)
}

func (p *probed) checkUnreachable(t *testing.T) {
	at, stop := p.startServer(t, "127.0.0.1:0", nil)
	stop()
	for _, address := range []string{"", at, "192.168.1.1:80", "127.0.0.1:", "127.0.0.1:99999", "localhost:80"} {
		got := p.run(t, address, "alone")
		if d := cmp.Diff([]string{"enumerate 800706d9 NULL NULL", "v1 800706d9 NULL"}, got); d != "" {
			t.Errorf("%q (-want +got):\n%s", address, d)
		}
	}
}

// on calls f once, when a log line holds the text.
type on struct {
	text string
	f    func()
}

func (o *on) Write(line []byte) (int, error) {
	if o.f != nil && bytes.Contains(line, []byte(o.text)) {
		o.f()
		o.f = nil
	}
	return len(line), nil
}

// TestDLLsWhenTheServiceRestarts: a program that runs on finds the new service,
// where its handles are unknown.
func TestDLLsWhenTheServiceRestarts(t *testing.T) {
	p := probe(t)
	p.eachSocket(t, p.restarts)
}

func (p *probed) restarts(t *testing.T) {
	asked := make(chan struct{})
	at, stop := p.startServer(t, "127.0.0.1:0", &on{"/probe/restart", func() { close(asked) }})
	again := make(chan func())
	go func() {
		<-asked
		stop()
		_, stop := p.startServer(t, at, nil)
		again <- stop
	}()
	got := p.run(t, at, "restart")
	(<-again)()
	for _, line := range got[1 : len(got)-2] {
		if line != "query 0" && line != "query 800706d9" && line != "query 800706be" {
			t.Errorf("while the service was away: %s", line)
		}
	}
	if got[0] != "create 0" || got[len(got)-2] != "query 80070006" || got[len(got)-1] != "enumerate 0 []" {
		t.Errorf("got %q", got)
	}
}

// TestDLLsManyThreads: the threads of a program share one connection.
func TestDLLsManyThreads(t *testing.T) {
	p := probe(t)
	p.eachSocket(t, p.manyThreads)
}

func (p *probed) manyThreads(t *testing.T) {
	at, stop := p.startServer(t, "127.0.0.1:0", nil)
	defer stop()
	calls := "4000"
	if v := os.Getenv("WINLAB_BENCH_CALLS"); v != "" {
		calls = v
	}
	for _, threads := range []string{"1", "16"} {
		got := p.run(t, at, "bench", calls, threads)
		if !strings.HasPrefix(got[0], calls+" calls ") {
			t.Errorf("got %q", got)
		}
		t.Logf("%s threads: %s", threads, got[0])
	}
}

// BenchmarkCallsWine is one enumeration by a Windows program that makes them one after the
// other. What it takes to start the program is not in its figure, but waiting is.
func BenchmarkCallsWine(b *testing.B) {
	p := probe(b)
	at, stop := p.startServer(b, "127.0.0.1:0", nil)
	defer stop()
	var perSecond float64
	for b.Loop() {
		const calls = 4000
		got := p.run(b, at, "bench", fmt.Sprint(calls), "1")
		if _, err := fmt.Sscanf(got[0], fmt.Sprint(calls, " calls %f/s"), &perSecond); err != nil {
			b.Fatalf("%q: %v", got, err)
		}
	}
	b.ReportMetric(perSecond, "calls/s")
	b.ReportMetric(1e9/perSecond, "ns/op")
}

// TestAdapters: programs see the adapters of WINLAB_ADAPTERS and loopback, without
// the variable those of the machine; what else iphlpapi.dll does is Wine's.
func TestAdapters(t *testing.T) {
	p := probe(t)
	var many, manyWant []string
	for i := range 100 { // more than fits into the 15 kB that Go offers first
		many = append(many, fmt.Sprintf("Nätz %d|00-15-5D-00-00-%02X|10.0.%d.1/24", i, i, i))
		manyWant = append(manyWant, fmt.Sprintf("%d Nätz %d 00:15:5d:00:00:%02x 1500 up|broadcast|multicast|running [10.0.%d.1/24] <nil>", i+2, i,
			i, i))
	}
	const loopback = "1 Loopback Pseudo-Interface 1  -1 up|loopback|multicast|running [127.0.0.1/8 ::1/128] <nil>"
	const routes = "routes 122 true" // ERROR_INSUFFICIENT_BUFFER, and how much it takes
	for _, c := range []struct {
		value string
		want  []string
	}{
		{"vEthernet (Ethernet)|00-15-5D-01-02-03|192.168.1.11/24,fd00::11/64;Storage|02:00:00:00:00:0a|", []string{
			"2 vEthernet (Ethernet) 00:15:5d:01:02:03 1500 up|broadcast|multicast|running [192.168.1.11/24 fd00::11/64] <nil>",
			"3 Storage 02:00:00:00:00:0a 1500 up|broadcast|multicast|running [] <nil>", loopback, routes}},
		{strings.Join(many, ";"), append(manyWant, loopback, routes)},
		{"Ethernet|00-15-5D-01-02|192.168.1.11/24", []string{"error 13", routes}},
		{"Ethernet|00-15-5D-01-02-03|192.168.1.11/33", []string{"error 13", routes}},
		{"Ethernet|00-15-5D-01-02-03|192.168.1.11", []string{"error 13", routes}},
		{"|00-15-5D-01-02-03|192.168.1.11/24", []string{"error 13", routes}},
	} {
		if d := cmp.Diff(c.want, p.runWith(t, t.Context(), []string{"WINLAB_ADAPTERS=" + c.value}, "adapters")); d != "" {
			t.Errorf("%.80s (-want +got):\n%s", c.value, d)
		}
	}

	own, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(p.runWith(t, t.Context(), nil, "adapters"), "\n")
	for _, a := range own {
		if !strings.Contains(got, a.String()) {
			t.Errorf("the machine's address %s is missing:\n%s", a, got)
		}
	}
}
