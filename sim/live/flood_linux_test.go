package live

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/live/netns"
)

var flood = flag.Int("flood", 400, "connections of each round of TestFlood; 31250 make a million in all")

const rounds = 24

// floodEnv makes this test program a client: ADDRESS COUNT.
const floodEnv = "WINLAB_TEST_FLOOD"

func TestMain(m *testing.M) {
	if job := os.Getenv(floodEnv); job != "" {
		to, count, _ := strings.Cut(job, " ")
		n, _ := strconv.Atoi(count)
		if err := connectOften(to, n); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// connectOften opens connections, asks on each who serves it, and waits until the server
// has closed it, so that its port is free for the client.
func connectOften(to string, n int) error {
	var left atomic.Int64
	left.Store(int64(n))
	errs := make(chan error, 32)
	for range cap(errs) {
		go func() {
			for left.Add(-1) >= 0 {
				if err := askOnce(to); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	var all error
	for range cap(errs) {
		all = errors.Join(all, <-errs)
	}
	return all
}

func askOnce(to string) error {
	c, err := net.DialTimeout("tcp", to, 30*time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.WriteString(c, "GET / HTTP/1.0\r\n\r\n"); err != nil {
		return err
	}
	said, err := io.ReadAll(c)
	if err == nil && !strings.Contains(string(said), "pod/default/win-webserver-") {
		err = fmt.Errorf("an answer of %d bytes", len(said))
	}
	return err
}

// TestFlood opens very many connections through a Service, from a Windows pod and from a
// Linux one, in rounds after each of which the day is over: all are answered, and nothing
// is kept of those that are gone.
func TestFlood(t *testing.T) {
	for _, from := range []string{"pod/client", "pod/linux-client"} {
		t.Run(from, func(t *testing.T) {
			n := up(t, "l2bridge-flannel-host-gw.yaml", Options{})
			var to netip.AddrPort
			if err := n.Do(func(c *lab.Cluster) error {
				s := c.Service("default", "win-webserver")
				to = netip.AddrPortFrom(s.ClusterIPs[0], s.Ports[0].Port)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			var kept []uint64
			for range rounds {
				attack(t, n, from, to, *flood)
				n.Skip(25 * time.Hour)
				attack(t, n, from, to, 1)
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				kept = append(kept, m.HeapAlloc)
			}
			t.Logf("%d connections in all; the heap after each round in KiB: %v", rounds**flood, inKiB(kept))
			// Tables look for what has expired when they are twice as full as they were:
			// half of the rounds fill them.
			const each = 150 // bytes of a connection that nobody forgot
			before, after := slices.Max(kept[:rounds/2]), slices.Min(kept[rounds/2:])
			if limit := before + uint64(rounds/2**flood*each); kept[rounds-1] > limit && after > before {
				t.Errorf("%d more connections left %d KiB", rounds/2**flood, (kept[rounds-1]-before)>>10)
			}
		})
	}
}

func inKiB(all []uint64) (k []uint64) {
	for _, v := range all {
		k = append(k, v>>10)
	}
	return k
}

// attack lets a machine open connections, and fails for one without an answer.
func attack(t *testing.T, n *Net, from string, to netip.AddrPort, count int) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var said strings.Builder
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = io.Copy(&said, r) })
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	p, err := n.Start(t.Context(), from, netns.Command{Args: []string{"/proc/self/exe"},
		Env: []string{fmt.Sprintf("%s=%s %d", floodEnv, to, count)}}, [3]*os.File{null, null, w})
	_ = w.Close()
	if err != nil {
		t.Fatal(err)
	}
	e, err := p.Wait(t.Context())
	reading.Wait()
	if err != nil || e.Code != 0 {
		t.Fatalf("%v, code %d: %.500s", err, e.Code, said.String())
	}
}
