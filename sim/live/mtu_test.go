package live

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/live/netns"
)

// upLab is a lab that is written in the test.
func upLab(t *testing.T, text string) *Net {
	t.Helper()
	f, err := lab.Parse("../../fixtures/labs/x.yaml", []byte("apiVersion: winlab.dev/v1alpha1\nkind: Lab\nmetadata: {name: x}\nspec:\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	c, err := lab.Build(t.Context(), f, lab.Options{Components: "model"})
	if err != nil {
		t.Fatal(err)
	}
	n, err := Up(t.Context(), c, Options{Log: func(s string) { t.Log(s) }})
	if errors.Is(err, netns.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return n
}

// ping runs the program in a machine, and returns what it prints.
func ping(t *testing.T, n *Net, from string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath("ping")
	if err != nil {
		t.Skip(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p, err := n.Start(ctx, from, netns.Command{Args: append([]string{path, "-n"}, args...), Env: os.Environ()}, [3]*os.File{null, w, w})
	_ = w.Close()
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(r)
	_, _ = p.Wait(ctx)
	return string(text)
}

// Programs meet the MTU of their own interface and of links on the way.
func TestSizesOfPings(t *testing.T) {
	n := up(t, "overlay-flannel-vxlan.yaml", Options{})
	peer, internet := addressOf(n, "pod/default/peer"), addressOf(n, "host/internet")
	for _, c := range []struct {
		name, from string
		size       int
		df         bool
		to         netip.Addr
		want       string
	}{
		{"the largest in the tunnel", "pod/linux-client", 1422, true, peer, "1430 bytes from"},
		{"one more than the interface", "pod/linux-client", 1423, true, peer, "mtu=1450"},
		{"a Windows pod on an overlay", "pod/client", 1423, true, peer, "mtu=1450"},
		{"more than the tunnel behind the interface", "node/linux1", 1440, true, peer, "mtu = 1450"},
		{"fragments where the stacks are known", "host/lan", 4000, false, internet, "4008 bytes from"},
	} {
		args := []string{"-c", "1", "-W", "20", "-s", strconv.Itoa(c.size)}
		if c.df {
			args = append(args, "-M", "do")
		} else {
			args = append(args, "-M", "dont")
		}
		if got := ping(t, n, c.from, append(args, c.to.String())...); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s\n%+v", c.name, got, n.Stats())
		}
	}
	if got := ping(t, n, "pod/linux-client", "-c", "1", "-W", "1", "-M", "dont", "-s", "4000", peer.String()); !strings.Contains(got,
		"100% packet loss") {
		t.Errorf("fragments to a Windows pod: %s", got)
	}
	found := false
	for what, count := range n.Stats().Unknown {
		found = found || count > 0 && strings.Contains(what, "IP fragments is not known")
	}
	if !found {
		t.Errorf("fragments at a Windows switch are not counted: %v", n.Stats().Unknown)
	}
}

// echo writes to a responder and reads all of it back; it returns how much came.
func echo(t *testing.T, n *Net, from string, to netip.AddrPort, size int, patience time.Duration) int {
	t.Helper()
	c, err := n.Dial(t.Context(), from, "tcp", to, 20*time.Second)
	if err != nil {
		t.Fatalf("%v %+v", err, n.Stats())
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	data := bytes.Repeat([]byte("0123456789abcde\n"), size/16)
	go func() { _, _ = c.Write(data) }()
	got := make([]byte, len(data))
	k, _ := io.ReadFull(c, got)
	if !bytes.Equal(got[:k], data[:k]) {
		t.Error("other bytes came back")
	}
	return k
}

// TCP finds the MTU of a link between routers, in both directions, where the routers'
// answers reach it.
func TestPathMTUDiscovery(t *testing.T) {
	n := upLab(t, "  base: l2bridge-flannel-host-gw.yaml\n  fabric: {segments: [{name: uplink, mtu: 1300}]}\n")
	if k := echo(t, n, "host/lan", netip.AddrPortFrom(addressOf(n, "host/internet"), 443), 160000, time.Minute); k != 160000 {
		t.Errorf("%d bytes came back: %+v", k, n.Stats())
	}
	if s := n.Stats(); s.Lost["dropped packet-too-big"] != 0 {
		t.Errorf("what was answered counts as lost: %+v", s)
	}
}

// Azure cuts what is larger than 1400 bytes, and a Windows node loses fragments of
// tunnel packets (kubernetes-sigs/cluster-api-provider-azure#1335): connections open, and
// large answers do not come.
func TestLargePacketsInTheTunnel(t *testing.T) {
	const text = "  base: overlay-flannel-vxlan.yaml\n  fabric: {segments: [{name: nodes, azure: true, mtu: 1400}]}\n"
	n := upLab(t, text)
	client := netip.AddrPortFrom(addressOf(n, "pod/default/client"), 80)
	if k := echo(t, n, "pod/linux-client", client, 512, time.Minute); k != 512 {
		t.Errorf("%d of 512 bytes came back: %+v", k, n.Stats())
	}
	if k := echo(t, n, "pod/linux-client", client, 16000, time.Second); k != 0 || n.Stats().Lost["dropped fragments-lost"] == 0 {
		t.Errorf("%d bytes came back: %+v", k, n.Stats())
	}
	n = upLab(t, text+"  nodes: [{name: linux1, mtu: 1400}]\n")
	if k := echo(t, n, "pod/linux-client", client, 16000, time.Minute); k != 16000 {
		t.Errorf("with a smaller MTU %d bytes came back: %+v", k, n.Stats())
	}
}

// Large packets cross the tunnel of Open vSwitch, which takes more than VXLAN.
func TestLargePacketsOverGeneve(t *testing.T) {
	n := up(t, "transparent-ovn-kubernetes.yaml", Options{})
	if k := echo(t, n, "pod/linux-client", netip.AddrPortFrom(addressOf(n, "pod/default/peer"), 80), 160000, time.Minute); k != 160000 {
		t.Errorf("%d bytes came back: %+v", k, n.Stats())
	}
}
