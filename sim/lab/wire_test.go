package lab

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/internal/capture"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
)

// These tests read the bytes of every frame on the wires between machines: what
// each driver does to a packet can be seen there and nowhere else.

// tapped is one frame on a wire.
type tapped struct {
	segment, from string
	data          []byte
	outer         packet.Headers
	inner         packet.Headers // the same as outer without a tunnel
	tunnel        string         // "VXLAN", "Geneve" or ""
	tun           packet.Outer
	payload       []byte // of the inner frame, from its IP header on
	innerLen      int
}

var tunnelPorts = map[uint16]packet.Tunnel{4789: packet.VXLAN, 6081: packet.Geneve}

// tap runs a flow and returns its frames, all with right checksums.
func tap(t *testing.T, c *Cluster, r Request) []tapped {
	t.Helper()
	var all []tapped
	r.Tap = func(segment, from string, data []byte) {
		all = append(all, readFrame(t, segment, from, data))
	}
	if _, err := c.Trace(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	return all
}

func readFrame(t *testing.T, segment, from string, data []byte) tapped {
	t.Helper()
	p, err := packet.New(bytes.Clone(data))
	if err != nil {
		t.Fatalf("%s: %v", from, err)
	}
	if err := p.VerifyChecksums(); err != nil {
		t.Errorf("%s: %v in %s", from, err, p)
	}
	x := tapped{segment: segment, from: from, data: bytes.Clone(data), outer: *p.Headers()}
	if kind, ok := tunnelPorts[x.outer.DstPort]; ok && x.outer.Proto == packet.UDP {
		if x.tun, err = p.Decap(kind); err == nil {
			x.tunnel = kind.String()
		}
	}
	x.inner, x.innerLen = *p.Headers(), p.Len()
	x.payload = bytes.Clone(p.Bytes()[x.inner.L3:])
	return x
}

// first is the first frame that left a machine.
func first(t *testing.T, all []tapped, machine string) tapped {
	t.Helper()
	for _, x := range all {
		if strings.HasPrefix(x.from, machine+" ") {
			return x
		}
	}
	t.Fatalf("no frame left %s", machine)
	return tapped{}
}

func mac(t *testing.T, c *Cluster, end string) packet.MAC {
	t.Helper()
	m, err := c.MAC(end)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func addr(t *testing.T, c *Cluster, end string) netip.Addr {
	t.Helper()
	a, err := c.Address(end)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// podMACs are the MAC addresses of all pods.
func podMACs(t *testing.T, c *Cluster) []packet.MAC {
	t.Helper()
	var ms []packet.MAC
	for _, k := range c.Pods() {
		ms = append(ms, mac(t, c, "pod/"+k))
	}
	return ms
}

// flows are the three protocols from one pod to another.
func flows(from, to string) []Request {
	return []Request{{From: from, To: to + ":80"}, {From: from, To: to + ":53", Protocol: "udp"}, {From: from, To: to, Protocol: "ping"}}
}

// check looks at the first frame of a request and of its reply on the wire.
type check func(t *testing.T, c *Cluster, r Request, out, back tapped)

func kept(t *testing.T, c *Cluster, r Request, out, back tapped) {
	if out.inner.Src != addr(t, c, "pod/client") || back.inner.Src != addr(t, c, "pod/peer") {
		t.Errorf("the addresses changed: %s, %s", out.inner.Src, back.inner.Src)
	}
}

func hostMAC(t *testing.T, c *Cluster, r Request, out, back tapped) {
	if out.outer.EthSrc != mac(t, c, "node/win1") || back.outer.EthSrc != mac(t, c, "node/win2") {
		t.Errorf("the source MAC addresses are %s and %s, not the hosts'", out.outer.EthSrc, back.outer.EthSrc)
	}
}

func noTunnel(t *testing.T, c *Cluster, r Request, out, back tapped) {
	if out.tunnel != "" || back.tunnel != "" {
		t.Errorf("a tunnel: %s, %s", out.tunnel, back.tunnel)
	}
}

func tunnel(kind string, port uint16, overhead int, vni func(uint32) bool) check {
	return func(t *testing.T, c *Cluster, r Request, out, back tapped) {
		for _, d := range []struct {
			x        tapped
			from, to string
		}{{out, "node/win1", "node/win2"}, {back, "node/win2", "node/win1"}} {
			if d.x.tunnel != kind || d.x.outer.DstPort != port || !vni(d.x.tun.VNI) {
				t.Errorf("%q to UDP port %d with VNI %d", d.x.tunnel, d.x.outer.DstPort, d.x.tun.VNI)
			}
			if d.x.outer.Src != addr(t, c, d.from) || d.x.outer.Dst != addr(t, c, d.to) {
				t.Errorf("outer %s -> %s, want %s -> %s", d.x.outer.Src, d.x.outer.Dst, d.from, d.to)
			}
			if n := len(d.x.data) - d.x.innerLen; n != overhead && overhead != 0 {
				t.Errorf("%d bytes more than the inner frame, want %d", n, overhead)
			}
		}
	}
}

// untouched compares the inner packet with what the program sent.
func untouched(t *testing.T, c *Cluster, r Request, out, back tapped) {
	tr, err := c.Trace(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	f := tr.Flow
	if got := fmt.Sprintf("%s:%d > %s:%d", out.inner.Src, out.inner.SrcPort, out.inner.Dst, out.inner.DstPort); r.Protocol != "ping" &&
		got != fmt.Sprintf("%s:%d > %s:%d", f.Src, f.SrcPort, f.Dst, f.DstPort) {
		t.Errorf("inner packet %s", got)
	}
	spec := packet.Spec{Src: netip.MustParseAddr(f.Src), Dst: netip.MustParseAddr(f.Dst), Proto: out.inner.Proto, SrcPort: f.SrcPort,
		DstPort: f.DstPort, TTL: 128, Seq: 1}
	for i := range 32 {
		spec.Payload = append(spec.Payload, 'a'+byte(i%23))
	}
	switch out.inner.Proto {
	case packet.TCP:
		spec.TCPFlags, spec.Payload = packet.SYN, nil
	case packet.ICMP:
		spec.ICMPType, spec.ICMPID, spec.ICMPSeq, spec.SrcPort, spec.DstPort = 8, 1, 1, 0, 0
	}
	p := packet.Build(spec)
	if sent := p.Bytes()[p.Headers().L3:]; !bytes.Equal(sent, out.payload) {
		t.Errorf("the inner packet is not what the pod sent:\n%x\n%x", sent, out.payload)
	}
}

func TestPacketModifications(t *testing.T) {
	is4096 := func(v uint32) bool { return v == 4096 }
	for _, d := range []struct {
		design string
		checks []check
		// hidden: no MAC address of a container is ever on a wire.
		hidden bool
	}{
		{hostGW, []check{kept, hostMAC, noTunnel}, true},
		{"l2bridge-win-bridge-udr", []check{kept, hostMAC, noTunnel}, true},
		{azure, []check{kept, hostMAC, noTunnel}, true},
		{l2tunnel, []check{kept, hostMAC, noTunnel}, true},
		{vxlan, []check{kept, hostMAC, tunnel("VXLAN", 4789, 50, is4096), untouched}, true},
		{"overlay-win-overlay", []check{kept, hostMAC, tunnel("VXLAN", 4789, 50, is4096), untouched}, true},
		{"transparent-ovn-kubernetes", []check{kept, hostMAC, tunnel("Geneve", 6081, 0, func(v uint32) bool { return v != 0 })}, true},
		{"ovs-l3", []check{kept, hostMAC, tunnel("Geneve", 6081, 0, func(v uint32) bool { return v != 0 })}, true},
		{"rras-l3", []check{kept, hostMAC, noTunnel}, true},
	} {
		t.Run(d.design, func(t *testing.T) {
			c := built(t, design(t, d.design))
			for _, r := range flows("pod/client", "pod/peer") {
				if c.Kube.Version.String() == "1.5" && r.Protocol == "udp" {
					continue // containers of that release have no UDP
				}
				frames := tap(t, c, r)
				out, back := first(t, frames, "win1"), first(t, frames, "win2")
				for _, f := range d.checks {
					f(t, c, r, out, back)
				}
				for _, x := range frames {
					if d.hidden && (slices.Contains(podMACs(t, c), x.outer.EthSrc) || slices.Contains(podMACs(t, c), x.outer.EthDst)) {
						t.Errorf("a container's MAC address is on the wire: %s > %s", x.outer.EthSrc, x.outer.EthDst)
					}
				}
			}
		})
	}
}

// To the outside, all designs that translate show the node's address for TCP
// and UDP, and only NAT does for ping.
func TestOutboundTranslationOnTheWire(t *testing.T) {
	for _, d := range []struct {
		design string
		ping   string // whose address an echo request has as its source
	}{
		{hostGW, "pod/client"}, {"l2bridge-win-bridge-udr", "pod/client"}, {azure, "pod/client"}, {l2tunnel, "pod/client"},
		{vxlan, "pod/client"}, {"overlay-win-overlay", "pod/client"}, {"nat-winnat", "node/win1"},
	} {
		t.Run(d.design, func(t *testing.T) {
			c := built(t, design(t, d.design))
			for _, r := range []Request{{From: "pod/client", To: "host/internet:443"}, {From: "pod/client", To: "host/internet:53", Protocol: "udp"},
				{From: "pod/client", To: "host/internet", Protocol: "ping"}} {
				frames := tap(t, c, r)
				out := first(t, frames, "win1")
				want := "node/win1"
				if r.Protocol == "ping" {
					want = d.ping
				}
				if out.outer.Src != addr(t, c, want) {
					t.Errorf("%s: %s on the wire, want the address of %s", r.Protocol, out.outer.Src, want)
				}
				if out.outer.EthSrc != mac(t, c, "node/win1") {
					t.Errorf("%s: source MAC %s, want the host's", r.Protocol, out.outer.EthSrc)
				}
				if out.tunnel != "" {
					t.Errorf("%s: in a tunnel", r.Protocol)
				}
				for _, x := range frames {
					if slices.Contains(podMACs(t, c), x.outer.EthSrc) || slices.Contains(podMACs(t, c), x.outer.EthDst) {
						t.Errorf("a container's MAC address is on the wire: %s > %s", x.outer.EthSrc, x.outer.EthDst)
					}
				}
			}
		})
	}
}

// Pods of one node stay inside it, but on l2tunnel, where the virtualisation
// host sees every packet with the pods' own addresses.
func TestPodsOfOneNodeOnTheWire(t *testing.T) {
	for _, name := range []string{hostGW, azure, vxlan, "nat-winnat", "rras-l3", "transparent-ovn-kubernetes"} {
		c := built(t, design(t, name))
		for _, r := range flows("pod/client", "pod/neighbour") {
			if frames := tap(t, c, r); len(frames) != 0 {
				t.Errorf("%s %s: %d frames left the node", name, r.Protocol, len(frames))
			}
		}
	}
	c := built(t, design(t, l2tunnel))
	for _, r := range flows("pod/client", "pod/neighbour") {
		frames := tap(t, c, r)
		if len(frames) != 2 {
			t.Fatalf("l2tunnel %s: %d frames, want request and reply", r.Protocol, len(frames))
		}
		if frames[0].outer.Src != addr(t, c, "pod/client") || frames[1].outer.Src != addr(t, c, "pod/neighbour") {
			t.Errorf("l2tunnel %s: %s and %s, want the pods' addresses", r.Protocol, frames[0].outer.Src, frames[1].outer.Src)
		}
		for _, x := range frames {
			if x.outer.EthSrc != mac(t, c, "node/win1") {
				t.Errorf("l2tunnel %s: source MAC %s, want the host's", r.Protocol, x.outer.EthSrc)
			}
		}
	}
}

// A second opinion: Wireshark's dissectors read the frames of all tunnels and
// of plain designs, with every checksum checked.
func TestTsharkAgrees(t *testing.T) {
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("tshark is not installed; it would read the frames a second time")
	}
	for _, name := range []string{hostGW, l2tunnel, vxlan, "nat-winnat", "transparent-ovn-kubernetes"} {
		t.Run(name, func(t *testing.T) {
			c := built(t, design(t, name))
			var frames []tapped
			for _, to := range []string{"pod/peer", "pod/neighbour", "host/internet", "pod/linux-client"} {
				for _, r := range flows("pod/client", to) {
					if to == "host/internet" && r.Protocol == "" {
						r.To = "host/internet:443"
					}
					frames = append(frames, tap(t, c, r)...)
				}
			}
			frames = append(frames, tap(t, c, Request{From: "pod/client", To: "svc/win-webserver:80"})...)
			file := writeFrames(t, frames)
			args := []string{"-r", file, "-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-T",
				"fields", "-E", "separator=;", "-E", "occurrence=a"}
			for _, f := range []string{"ip.src", "ip.dst", "vxlan.vni", "geneve.vni", "ip.checksum.status", "tcp.checksum.status",
				"udp.checksum.status", "icmp.checksum.status", "eth.src"} {
				args = append(args, "-e", f)
			}
			out, err := exec.Command(tshark, args...).Output()
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			if len(lines) != len(frames) {
				t.Fatalf("tshark saw %d frames of %d", len(lines), len(frames))
			}
			for i, line := range lines {
				agrees(t, i+1, frames[i], strings.Split(line, ";"))
			}
		})
	}
}

// writeFrames writes a capture with the frames.
func writeFrames(t *testing.T, frames []tapped) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "frames.pcapng")
	w, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	cw, err := capture.NewWriter(w, "wire")
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range frames {
		if err := cw.Write(0, time.Unix(0, int64(i)), x.data, x.from); err != nil {
			t.Fatal(err)
		}
	}
	if err := cw.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file
}

// agrees compares the fields that tshark read of a frame with winlab's.
func agrees(t *testing.T, n int, x tapped, f []string) {
	t.Helper()
	src, dst, vx, gv := x.outer.Src.String(), x.outer.Dst.String(), "", ""
	eth := []string{x.outer.EthSrc.String()}
	if x.tunnel != "" {
		src, dst = src+","+x.inner.Src.String(), dst+","+x.inner.Dst.String()
		eth = append(eth, x.inner.EthSrc.String())
	}
	switch x.tunnel {
	case "VXLAN":
		vx = fmt.Sprint(x.tun.VNI)
	case "Geneve":
		gv = fmt.Sprintf("0x%06x", x.tun.VNI)
	}
	if f[0] != src || f[1] != dst || f[2] != vx || f[3] != gv || f[8] != strings.ReplaceAll(strings.Join(eth, ","), "-", ":") {
		t.Errorf("frame %d: tshark reads %q, winlab %s %s %s %s %v", n, f, src, dst, vx, gv, eth)
	}
	for _, status := range f[4:8] {
		// 0 is "bad", 1 "good", 2 "unverified", 3 "not present".
		if slices.Contains(strings.Split(status, ","), "0") || strings.Contains(status, "Bad") {
			t.Errorf("frame %d from %s: tshark says that a checksum is bad: %q", n, x.from, f)
		}
	}
	if !strings.Contains(f[4], "1") && !strings.Contains(f[4], "Good") {
		t.Errorf("frame %d: tshark did not check the IP checksum: %q", n, f)
	}
}
