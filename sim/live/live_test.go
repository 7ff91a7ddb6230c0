package live

import (
	"errors"
	"io"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/live/netns"
)

func up(t *testing.T, path string, o Options) *Net {
	t.Helper()
	return upVariant(t, filepath.Join("../../fixtures/labs", path), "", o)
}

func upVariant(t *testing.T, path, variant string, o Options) *Net {
	t.Helper()
	f, err := lab.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := lab.Build(t.Context(), f, lab.Options{Components: "model", Variant: variant})
	if err != nil {
		t.Fatal(err)
	}
	o.Log = func(s string) { t.Log(s) }
	n, err := Up(t.Context(), c, o)
	if errors.Is(err, netns.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return n
}

// address is the address of a machine.
func address(t *testing.T, n *Net, name string) (a netip.Addr) {
	t.Helper()
	s, err := n.find(name)
	if err != nil {
		t.Fatal(err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.machine(s.entry).Address
}

func TestGet(t *testing.T) {
	start := time.Now()
	n := up(t, "l2bridge-azure-cni.yaml", Options{})
	t.Log("up after", time.Since(start))
	var to netip.AddrPort
	_ = n.Do(func(c *lab.Cluster) error {
		for _, s := range c.Kube.Services {
			if s.Name == "win-webserver" {
				to = netip.AddrPortFrom(s.ClusterIPs[0], s.Ports[0].Port)
			}
		}
		return nil
	})
	for range 4 {
		begin := time.Now()
		c, err := n.Dial(t.Context(), "pod/client", "tcp", to, 2*time.Second)
		if err != nil {
			t.Fatalf("%v %+v", err, n.Stats())
		}
		_, _ = io.WriteString(c, "GET / HTTP/1.0\r\nHost: web\r\n\r\n")
		b, _ := io.ReadAll(c)
		c.Close()
		if body := string(b); !strings.Contains(body, "pod/default/win-webserver-") || !strings.Contains(body, ":80\nclient ") {
			t.Errorf("after %s: %s", time.Since(begin), body)
		}
	}
	t.Logf("%+v", n.Stats())
}

// TestUpKnowsWhatNobodyKnows: a network that runs follows packets as the models do, also at nodes of
// which the lab says that they are not so. It does not come up, whoever asks.
func TestUpKnowsWhatNobodyKnows(t *testing.T) {
	f,
		err := lab.Parse("../../fixtures/labs/x.yaml",
		[]byte(
			"apiVersion: winlab.dev/v1alpha1\nkind: Lab\nmetadata: {name: x}\nspec: {base: l2bridge-flannel-host-gw.yaml, nodes: [{name: win2, assumed: nobody asked}], params: {assumed-nodes: otherwise}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := lab.Build(t.Context(), f, lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n, err := Up(t.Context(), c, Options{})
	if err == nil {
		n.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "assumed-nodes: otherwise for nodes that were not observed (win2)") {
		t.Errorf("%v", err)
	}
}
