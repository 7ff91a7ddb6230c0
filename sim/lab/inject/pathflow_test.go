package inject_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/lab/inject"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// crossed is a frame at a boundary.
type crossed struct {
	at    string
	frame []byte
}

// side is one of two equal clusters that get the same frames: fast keeps paths, slow sends
// every frame from machine to machine with every step recorded, which uses no cache.
type side struct {
	c     *lab.Cluster
	j     *inject.Injector
	seen  []crossed
	hops  bool // somebody looks at the frames
	block map[string]hns.Policy
}

func (s *side) open(record bool) {
	s.block = map[string]hns.Policy{}
	hop := func(at *inject.Boundary, frame []byte) {
		s.seen = append(s.seen, crossed{at.String(), bytes.Clone(frame)})
	}
	if !s.hops {
		hop = nil
	}
	s.j = inject.New(s.c.Cluster, hop, record)
}

func (s *side) inject(t testing.TB, frame []byte, now time.Duration) inject.Outcome {
	t.Helper()
	s.seen = s.seen[:0]
	o, err := s.j.Inject(nil, bytes.Clone(frame), now)
	if err != nil {
		t.Fatal(err)
	}
	return *o
}

// counted is what the rules of VFP have counted on a cluster.
func counted(t testing.TB, c *lab.Cluster) string {
	t.Helper()
	var b strings.Builder
	for _, n := range c.Nodes {
		if n.HNS == nil {
			continue
		}
		s, err := n.State()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range s.Ports {
			for _, r := range p.Rules {
				fmt.Fprintln(&b, n.Name, p.Friendly, r.Layer, r.Group, r.Name, *r.Counts)
			}
		}
	}
	return b.String()
}

// pair is the two clusters and what is sent through them.
type pair struct {
	fast, slow *side
	addrs      []netip.Addr
	pods       []netip.Addr
	last       []byte // the frame of the last one that arrived, as it arrived
	now        time.Duration
	followed   int // frames that a path took
}

func newPair(t testing.TB, design string, hops bool) *pair {
	t.Helper()
	if !strings.Contains(design, "/") {
		design = "labs/" + design
	}
	f, err := lab.Load(filepath.Join("../../../fixtures", design+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	p := &pair{}
	for _, s := range []**side{&p.fast, &p.slow} {
		c, err := lab.Build(t.Context(), f, lab.Options{Components: "model"})
		if err != nil {
			t.Fatal(err)
		}
		*s = &side{c: c, hops: hops}
	}
	c := p.fast.c
	for _, kind := range []cluster.Kind{cluster.PodKind, cluster.NodeKind, cluster.HostKind} {
		for _, m := range c.Machines(kind) {
			for _, v6 := range []bool{false, true} {
				if a := m.Stack().Address(v6); a.IsValid() {
					if p.addrs = append(p.addrs, a); kind == cluster.PodKind {
						p.pods = append(p.pods, a)
					}
				}
			}
		}
	}
	for _, s := range c.Kube.Services {
		p.addrs = append(p.addrs, s.ClusterIPs...)
	}
	p.open()
	return p
}

func (p *pair) open() {
	p.fast.open(false)
	p.slow.open(true)
	p.now, p.last = 0, nil
}

// send sends a frame through both and holds one against the other.
func (p *pair) send(t testing.TB, what string, frame []byte) {
	t.Helper()
	fast, slow := p.fast.inject(t, frame, p.now), p.slow.inject(t, frame, p.now)
	if fast != slow {
		t.Fatalf("%s: fast %+v, slow %+v", what, fast, slow)
	}
	if a, b := p.fast.j.Crossed(), p.slow.j.Crossed(); a != b {
		t.Fatalf("%s: %d boundaries fast, %d slow", what, a, b)
	}
	if inject.Followed(p.fast.j) {
		p.followed++
	}
	if !p.fast.hops {
		return
	}
	for i, f := range p.fast.seen {
		if s := p.slow.seen[i]; f.at != s.at || !bytes.Equal(f.frame, s.frame) {
			t.Fatalf("%s: crossing %d\nfast %s %x\nslow %s %x", what, i, f.at, f.frame, s.at, s.frame)
		}
	}
	if n := len(p.slow.seen); slow.Verdict == "delivered" && n > 0 {
		p.last = p.slow.seen[n-1].frame
	}
}

// doBoth does the same to both clusters.
func (p *pair) doBoth(t testing.TB, do func(s *side) error) {
	t.Helper()
	a, b := do(p.fast), do(p.slow)
	if fmt.Sprint(a) != fmt.Sprint(b) {
		t.Fatalf("fast %v, slow %v", a, b)
	}
}

// toggle puts an ACL that blocks a port on an endpoint, or takes it away.
func (s *side) toggle(n, port int) error {
	var with []*cluster.Node
	for _, x := range s.c.Nodes {
		if x.HNS != nil && len(x.HNS.ListEndpoints(nil)) > 0 {
			with = append(with, x)
		}
	}
	if len(with) == 0 {
		return nil
	}
	x := with[n%len(with)]
	all := x.HNS.ListEndpoints(nil)
	e := all[n/len(with)%len(all)]
	if p, ok := s.block[e.ID]; ok {
		delete(s.block, e.ID)
		return x.HNS.RemoveEndpointPolicies(e.ID, p)
	}
	p := hns.NewPolicy(hns.ACLSettings{Action: "Block", Direction: []string{"In", "Out"}[n%2], Protocols: "6", LocalPorts: "",
		RemotePorts: fmt.Sprint(port), Priority: 50})
	s.block[e.ID] = p
	return x.HNS.AddEndpointPolicies(e.ID, p)
}

// remove deletes a load balancer, or an endpoint with its policies.
func (s *side) remove(n int) error {
	x := s.c.Nodes[n%len(s.c.Nodes)]
	if x.HNS == nil {
		return nil
	}
	if lbs := x.HNS.ListLoadBalancers(nil); n%3 != 0 && len(lbs) > 0 {
		lb := *lbs[n%len(lbs)]
		if n%2 == 0 && len(lb.HostComputeEndpoints) > 1 {
			lb.HostComputeEndpoints = lb.HostComputeEndpoints[1:]
			_, err := x.HNS.UpdateLoadBalancer(lb.ID, lb)
			return err
		}
		return x.HNS.DeleteLoadBalancer(lb.ID)
	}
	if es := x.HNS.ListEndpoints(nil); len(es) > 0 {
		return x.HNS.DeleteEndpoint(es[n%len(es)].ID)
	}
	return nil
}

// reset forgets what one machine knows of connections.
func (s *side) reset(n int) {
	var all []*cluster.Machine
	for _, k := range []cluster.Kind{cluster.RouterKind, cluster.NodeKind, cluster.PodKind, cluster.HostKind} {
		all = append(all, s.c.Machines(k)...)
	}
	all[n%len(all)].Reset()
}

// play does what a program of bytes says: two for each frame or change.
func (p *pair) play(t testing.TB, program []byte, destroy bool) {
	t.Helper()
	for i := 0; i+1 < len(program) && i < 2000; i += 2 {
		op, arg := program[i], int(program[i+1])
		what := fmt.Sprintf("step %d (%d %d)", i/2, op, arg)
		switch {
		case op < 8:
			p.now += []time.Duration{time.Second, 9 * time.Second, 29 * time.Second, 30 * time.Second, 61 * time.Second, 2 * time.Minute,
				4 * time.Minute, time.Hour}[op]
		case op < 12:
			p.doBoth(t, func(s *side) error { return s.toggle(arg, []int{80, 443}[arg%2]) })
		case op == 12:
			p.doBoth(t, func(s *side) error { s.reset(arg); return nil })
		case op == 13 && destroy:
			p.doBoth(t, func(s *side) error { return s.remove(arg) })
		case op == 14 && arg < 8:
			p.doBoth(t, func(s *side) error { s.c.Reset(); return nil })
		case op < 64 && p.last != nil:
			p.send(t, what, reply(p.last, arg))
		default:
			p.send(t, what, p.frame(op, arg))
		}
		p.now += time.Duration(op) * time.Microsecond
	}
	if a, b := counted(t, p.fast.c), counted(t, p.slow.c); a != b {
		x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
		for i := range x {
			if x[i] != y[i] {
				t.Errorf("counts: fast %s\nslow %s", x[i], y[i])
			}
		}
	}
}

// frame is one of few conversations, so that most are known: every choice of a program
// byte that matters to a machine on the way.
func (p *pair) frame(op byte, arg int) []byte {
	from := p.pods[arg%4%len(p.pods)]
	var to []netip.Addr
	for _, a := range p.addrs {
		if a.Is6() == from.Is6() {
			to = append(to, a)
		}
	}
	s := packet.Spec{EthSrc: packet.MAC{2, 1}, EthDst: packet.MAC{2, 2}, Src: from, Dst: to[arg/4%len(to)], TTL: 64,
		SrcPort: 20000 + uint16(op>>7), DstPort: []uint16{80, 443}[op>>6&1], Payload: make([]byte, int(op&3)*11), IPID: uint16(op),
		Seq: uint32(arg), Ack: 7}
	switch {
	case arg >= 224:
		s.DstPort = 49664 + uint16(arg&1) // one that a translation may get
	case arg >= 208:
		s.DstPort, s.Payload = []uint16{4789, 8472}[arg&1], []byte{8, 0, 0, 0, 0, 0x10, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
			16, 17, 18, 19}
	}
	switch op & 0x3c >> 2 {
	case 0:
		s.Proto, s.TCPFlags = packet.TCP, packet.SYN
	case 1:
		s.Proto, s.TCPFlags = packet.TCP, packet.ACK|packet.FIN
	case 2:
		s.Proto, s.TCPFlags = packet.TCP, packet.RST
	case 3, 4:
		s.Proto = packet.UDP
	case 5:
		s.Proto, s.ICMPType, s.ICMPID = packet.ICMP, 8, 5
		if from.Is6() {
			s.Proto, s.ICMPType = packet.ICMPv6, 128
		}
	case 6:
		s.Proto, s.TCPFlags, s.Payload = packet.TCP, packet.ACK, make([]byte, 1380+arg%90)
	case 7:
		s.Proto, s.TCPFlags, s.TTL = packet.TCP, packet.ACK, uint8(1+arg%3)
	default:
		s.Proto, s.TCPFlags = packet.TCP, packet.ACK
	}
	return packet.Build(s).Bytes()
}

// reply answers a frame that arrived, as its receiver would.
func reply(frame []byte, arg int) []byte {
	q, err := packet.New(frame)
	if err != nil {
		return frame
	}
	h := q.Headers()
	s := packet.Spec{EthSrc: h.EthDst, EthDst: h.EthSrc, Src: h.Dst, Dst: h.Src, Proto: h.Proto, SrcPort: h.DstPort, DstPort: h.SrcPort,
		TTL:      64,
		TCPFlags: packet.ACK, ICMPType: h.ICMPType, ICMPID: h.ICMPID, Payload: make([]byte, arg%7), Seq: uint32(arg)}
	switch {
	case h.Proto == packet.TCP && arg%16 == 0:
		s.TCPFlags |= packet.SYN
	case h.Proto == packet.TCP && arg%16 == 1:
		s.TCPFlags |= packet.FIN
	case h.Proto == packet.TCP && arg%16 == 2:
		s.TCPFlags = packet.RST
	case h.Proto == packet.ICMP && h.ICMPType == 8:
		s.ICMPType = 0
	case h.Proto == packet.ICMPv6 && h.ICMPType == 128:
		s.ICMPType = 129
	}
	if s.Validate() != nil {
		return frame
	}
	return packet.Build(s).Bytes()
}

// pathDesigns have among them every device that a path can cross.
var pathDesigns = []string{"l2bridge-flannel-host-gw", "overlay-flannel-vxlan", "overlay-win-overlay", "l2bridge-azure-cni-dual-stack",
	"l2tunnel-azure-cni",
	"l2bridge-win-bridge-udr", "rras-l3", "ovs-l3", "transparent-ovn-kubernetes", "nat-winnat",
	"labs/for-claims/security-rule-azure-cni", "held-out/045-fabric-policy-within-a-node", "held-out/024-checksum-offload-on-vmware"}

// TestPathsAreWalks sends the same frames through a cluster that keeps paths and one that
// does not, with changes in between: rules that come and go, machines that forget, time
// that passes, connections that end, endpoints and load balancers that are deleted.
func TestPathsAreWalks(t *testing.T) {
	for _, design := range pathDesigns {
		t.Run(design, func(t *testing.T) {
			t.Parallel()
			seeds := 2
			if testing.Short() {
				seeds = 1
			}
			for seed := range seeds {
				rnd := rand.New(rand.NewPCG(uint64(seed), 1))
				p := newPair(t, design, seed != 1)
				// Few conversations at a time, and few changes: a path must have been taken
				// before the change that it does not survive.
				for range 25 {
					var program []byte
					few := []byte{byte(rnd.Uint32()), byte(rnd.Uint32()), byte(rnd.Uint32()), byte(rnd.Uint32())}
					for range 120 {
						op := byte(15 + rnd.IntN(241))
						switch rnd.IntN(28) {
						case 0:
							op = byte(rnd.IntN(15))
						case 1, 2:
							op = byte(2 + rnd.IntN(5)) // nearly as long as something lives
						}
						program = append(program, op, few[rnd.IntN(len(few))])
					}
					p.play(t, program, true)
				}
				if p.followed < 300 {
					t.Errorf("seed %d: only %d frames went along a path that was kept", seed, p.followed)
				}
			}
		})
	}
}

func FuzzPathFlows(f *testing.F) {
	pairs := map[string]*pair{}
	rnd := rand.New(rand.NewPCG(3, 4))
	for i := range pathDesigns {
		var program []byte
		for range 60 {
			program = append(program, byte(rnd.Uint32()), byte(rnd.IntN(6)))
		}
		f.Add(byte(i), program)
		f.Add(byte(i), slices.Concat(program, []byte{3, 0, 8, 1}, program))
	}
	f.Fuzz(func(t *testing.T, design byte, program []byte) {
		d := pathDesigns[int(design)%len(pathDesigns)]
		if pairs[d] == nil {
			pairs[d] = newPair(t, d, true)
		}
		p := pairs[d]
		for _, s := range []*side{p.fast, p.slow} {
			for _, n := range s.c.Nodes {
				for id, b := range s.block {
					if n.HNS != nil && n.HNS.Endpoint(id) != nil {
						_ = n.HNS.RemoveEndpointPolicies(id, b)
					}
				}
			}
		}
		p.open()
		p.play(t, program, false)
	})
}
