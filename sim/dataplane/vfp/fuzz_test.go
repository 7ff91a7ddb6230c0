package vfp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/path"
	"github.com/winlab-dev/winlab/sim/trace"
)

// dice makes choices out of bytes; it says 0 when they are used up.
type dice struct{ data []byte }

func (d *dice) roll(n int) int {
	if len(d.data) == 0 {
		return 0
	}
	b := d.data[0]
	d.data = d.data[1:]
	return int(b) % n
}

func (d *dice) chance(percent int) bool { return d.roll(100) >= 100-percent }

// cut takes the next n bytes off.
func (d *dice) cut(n int) []byte {
	n = min(n, len(d.data))
	part := d.data[:n]
	d.data = d.data[n:]
	return part
}

func pick[T any](d *dice, of ...T) T { return of[d.roll(len(of))] }

// Few values, so that packets and rules match often.
var (
	worldMACs  = []packet.MAC{{0, 0x15, 0x5d, 0, 0, 1}, {0, 0x15, 0x5d, 0, 0, 2}, {0, 0x15, 0x5d, 0, 0, 3}}
	worldAddr4 = []netip.Addr{addr("10.0.0.1"), addr("10.0.0.2"), addr("10.0.1.1"), addr("10.9.0.1"), addr("192.168.1.11")}
	worldAddr6 = []netip.Addr{addr("fd00::1"), addr("fd00::2"), addr("fd00:9::1")}
	worldPorts = []uint16{80, 53, 4789, 1000, 1001, 0}
	layerNames = []string{"ACL", "LB", "NAT", "ENCAP"}
)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func (d *dice) addr(v6 bool) netip.Addr {
	if v6 {
		return pick(d, worldAddr6...)
	}
	return pick(d, worldAddr4...)
}

func (d *dice) prefixes(v6 bool) []netip.Prefix {
	var ps []netip.Prefix
	for range pick(d, 0, 0, 1, 1, 1, 2) {
		a := d.addr(v6)
		bits := pick(d, a.BitLen(), a.BitLen(), a.BitLen()-1, a.BitLen()-8, 8, 0)
		ps = append(ps, netip.PrefixFrom(a, bits))
	}
	return ps
}

func (d *dice) ports() []PortRange {
	switch d.roll(5) {
	case 0:
		return []PortRange{Port1(pick(d, worldPorts...))}
	case 1:
		return []PortRange{{53, 1000}, Port1(pick(d, worldPorts...))}
	}
	return nil
}

type flatRouter struct{}

func (flatRouter) NextHop(dst netip.Addr) (Hop, bool) {
	if dst.As16()[15]%5 == 2 {
		return Hop{Reason: trace.NoRoute}, false
	}
	return Hop{Src: worldMACs[0], Dst: packet.MAC{2, 0, 0, 0, 0, dst.As16()[15]}, Via: Via("flat")}, true
}

func (d *dice) rule(id string, pools []*Pool) *Rule {
	v6 := d.chance(20)
	r := &Rule{
		ID: id, Priority: uint16(d.roll(4)), Flags: Flags(d.roll(4)), Action: d.action(v6, pools),
		Cond: Cond{Src: d.prefixes(v6), Dst: d.prefixes(v6), SrcPorts: d.ports(), DstPorts: d.ports()},
		TTL:  time.Duration(pick(d, 0, 10, 30)) * time.Second,
	}
	for range pick(d, 0, 0, 1, 1, 2) {
		r.Cond.Protos = append(r.Cond.Protos, pick(d, packet.TCP, packet.UDP, packet.ICMP, packet.ICMPv6, packet.GRE))
	}
	if d.chance(10) {
		r.Cond.DstMAC = pick(d, worldMACs...)
	}
	if d.chance(10) {
		r.Cond.ICMPTypes = []uint8{pick[uint8](d, 8, 0, 3, 128)}
	}
	if d.chance(5) || r.Action.Type() == "decap" && d.chance(80) {
		r.Cond.Tunnel = TunnelCond{Port: 4789, VNI: uint32(1 + d.roll(2))}
	}
	if d.chance(3) {
		r.Action = NotModelled{r.Action, "not known"}
	}
	return r
}

func (d *dice) action(v6 bool, pools []*Pool) Action {
	switch d.roll(9) {
	case 0:
		return Allow{}
	case 1:
		return Block{pick(d, "", "", "", trace.UnknownVNI)}
	case 2:
		return NAT{d.rewrite(v6)}
	case 3:
		return DynNAT{pick(d, pools...)}
	case 4:
		a := LBNAT{KeepDst: d.chance(20), BySource: d.chance(30), Hairpin: d.chance(30)}
		for range d.roll(4) {
			a.Targets = append(a.Targets, Target{Addr: d.addr(v6), Port: pick(d, worldPorts...), MAC: pick(d, packet.MAC{}, worldMACs[0])})
		}
		if d.chance(20) {
			a.Pool = pick(d, pools...)
		}
		return a
	case 5:
		return RouteEncap{&Tunnel{Kind: packet.VXLAN, Src: addr("192.168.1.11"), Dst: d.addr(false), VNI: uint32(1 + d.roll(2)), Port: 4789,
			InnerDst: pick(d, packet.MAC{}, worldMACs[1]), InnerSrc: pick(d, packet.MAC{}, worldMACs[2])}}
	case 6:
		return Decap{packet.VXLAN}
	case 7:
		return &Transpose{d.rewrite(v6)}
	}
	return PARoute{flatRouter{}}
}

func (d *dice) rewrite(v6 bool) packet.Rewrite {
	return packet.Rewrite{Set: packet.RewriteMask(d.roll(64)), EthSrc: pick(d, worldMACs...), EthDst: pick(d, worldMACs...),
		Src: d.addr(v6), Dst: d.addr(d.chance(20)), SrcPort: pick(d, worldPorts...), DstPort: pick(d, worldPorts...)}
}

// layers makes a port's rules. The same bytes make the same rules.
func (d *dice) layers(pools []*Pool) []*Layer {
	var ls []*Layer
	for i, name := range layerNames {
		if d.chance(20) {
			continue
		}
		l := &Layer{Name: name, Priority: uint16(10 * pick(d, i, i, i, 2)), Stateful: d.chance(75), Block: d.chance(7)}
		for g := range d.roll(4) {
			grp := &Group{Name: fmt.Sprint("g", g), Priority: uint16(d.roll(2)), Dir: Direction(d.roll(2)), Family: pick[uint8](d, 0, 4, 4, 6)}
			for i := range pick(d, 0, 1, 2, 3, 12) {
				grp.Rules = append(grp.Rules, d.rule(fmt.Sprint(name, g, i/2*2+d.roll(2)), pools))
			}
			l.Groups = append(l.Groups, grp)
		}
		ls = append(ls, l)
	}
	return ls
}

func newPools() []*Pool {
	var pools []*Pool
	for i, a := range []netip.Addr{addr("192.168.1.11"), addr("fd00:9::1")} {
		p := &Pool{Name: fmt.Sprint("pool", i), Addr: a}
		p.More = func() (uint16, bool) { return uint16(50000 + 64*len(p.Blocks)), len(p.Blocks) < 2 }
		pools = append(pools, p)
	}
	return pools
}

// packet makes a frame: a new one, an earlier one again, or a reply to what
// came out of the port earlier.
func (d *dice) packet(seen, out [][]byte) []byte {
	how := d.roll(10)
	switch {
	case how < 3 && len(seen) > 0:
		return d.disturb(bytes.Clone(seen[len(seen)-1-d.roll(min(len(seen), 16))]))
	case how < 6 && len(out) > 0:
		return d.disturb(turn(out[len(out)-1-d.roll(min(len(out), 16))]))
	}
	v6 := d.chance(15)
	s := packet.Spec{
		EthSrc: pick(d, worldMACs...), EthDst: pick(d, worldMACs...), Src: d.addr(v6), Dst: d.addr(v6),
		Proto: pick(d, packet.TCP, packet.TCP, packet.UDP, packet.ICMP, packet.GRE), SrcPort: pick(d, worldPorts...),
		DstPort:  pick(d, worldPorts...),
		TCPFlags: pick(d, packet.SYN, packet.SYN, packet.SYN|packet.ACK, packet.ACK, packet.RST), ICMPType: pick[uint8](d, 8, 0, 3),
		ICMPID:  uint16(d.roll(3)),
		Payload: []byte("payload of a packet"),
	}
	if v6 && s.Proto == packet.ICMP {
		s.Proto, s.ICMPType = packet.ICMPv6, pick[uint8](d, 128, 129, 1)
	}
	p := packet.Build(s)
	if d.chance(15) {
		if err := p.Encap(packet.Outer{EthSrc: worldMACs[0], EthDst: worldMACs[1], Src: d.addr(false), Dst: d.addr(false),
			VNI: uint32(1 + d.roll(2)), SrcPort: 49152}); err != nil {
			panic(err)
		}
	}
	if d.chance(2) {
		p = packet.BuildARP(1, worldMACs[0], packet.Broadcast, worldAddr4[0], worldAddr4[1])
	}
	return d.disturb(p.Bytes())
}

// turn makes a reply to a frame: addresses and ports swapped, echo types
// exchanged, a SYN acknowledged.
func turn(frame []byte) []byte {
	p, err := packet.New(frame)
	if err != nil {
		return bytes.Clone(frame)
	}
	h := *p.Headers()
	if h.IPVersion == 0 {
		return bytes.Clone(frame)
	}
	p.Apply(&packet.Rewrite{Set: packet.RwEthSrc | packet.RwEthDst | packet.RwSrc | packet.RwDst | packet.RwSrcPort | packet.RwDstPort,
		EthSrc: h.EthDst, EthDst: h.EthSrc, Src: h.Dst, Dst: h.Src, SrcPort: h.DstPort, DstPort: h.SrcPort})
	f := bytes.Clone(p.Bytes())
	if h.L4 != 0 && h.IPVersion == 4 {
		if h.Proto == packet.ICMP && (h.ICMPType == 0 || h.ICMPType == 8) {
			f[h.L4] ^= 8
		}
		if h.Proto == packet.TCP && h.TCPFlags == packet.SYN {
			f[h.L4+13] |= packet.ACK
		}
	}
	return f
}

// disturb changes what a key may overlook: flags, MAC addresses, fragments,
// and now and then it damages the frame. The ports must not care about sums.
func (d *dice) disturb(f []byte) []byte {
	p, err := packet.New(f)
	if err != nil || p.Headers().IPVersion == 0 {
		return f
	}
	h := *p.Headers()
	switch d.roll(20) {
	case 0:
		m := pick(d, worldMACs...)
		copy(f, m[:])
	case 1, 2:
		if h.Proto == packet.TCP && h.L4 != 0 {
			f[h.L4+13] = pick(d, packet.SYN, packet.ACK, packet.FIN|packet.ACK, packet.RST)
		}
	case 3:
		if h.IPVersion == 4 {
			binary.BigEndian.PutUint16(f[h.L3+6:], pick[uint16](d, 0x2000, 0x0002, 0x2001))
		}
	case 4:
		f[h.L3] = byte(d.roll(256))
	case 5:
		if h.Payload+8 < len(f) { // the VNI of a tunnel packet
			f[h.Payload+6] = byte(1 + d.roll(2))
		}
	}
	return f
}

// contest plays the same packets against a port that uses the unified flow, one
// that is recorded, one that is recorded now and then, and the reference.
type contest struct {
	d         *dice
	ports     []*Port
	pools     [][]*Pool // of the ports and the reference
	ref       *refPort
	now       time.Duration
	seen, out [][]byte // frames that went in and that came out
	packets   int
	paths     map[wayKey]*way
	ways      *path.Ways
	followed  int // packets that a path took
}

// run plays the bytes.
func run(t testing.TB, data []byte) (packets int) {
	t.Helper()
	c := &contest{
		d:     &dice{data},
		ports: []*Port{{MAC: worldMACs[0]}, {MAC: worldMACs[0]}, {MAC: worldMACs[0]}, {MAC: worldMACs[0]}},
		pools: [][]*Pool{newPools(), newPools(), newPools(), newPools(), newPools()},
		paths: map[wayKey]*way{},
		ways:  path.NewWays(),
		ref:   &refPort{mac: worldMACs[0]},
	}
	if c.d.chance(50) {
		forgetsEarly(t, c.d.roll(8))
	}
	c.program()
	for len(c.d.data) > 0 {
		switch what := c.d.roll(40); {
		case what < 3:
			c.now += time.Duration(pick(c.d, 1, 9, 10, 29, 100, 241)) * time.Second
		case what == 3 && c.d.chance(30):
			c.program()
		case what == 4 && c.d.chance(50):
			c.flush(t, pick(c.d, layerNames...))
		case what == 5 && c.d.chance(20):
			c.reset()
		default:
			c.packet(t)
		}
	}
	return c.packets
}

// program sets the same new rules everywhere.
func (c *contest) program() {
	bytes := c.d.cut(200 + c.d.roll(56))
	for i, pt := range c.ports {
		pt.SetLayers((&dice{bytes}).layers(c.pools[i]))
	}
	c.ref.setLayers((&dice{bytes}).layers(c.pools[4]))
}

func (c *contest) flush(t testing.TB, layer string) {
	t.Helper()
	var cut [4]string
	for i, pt := range c.ports {
		cut[i] = fmt.Sprint(pt.Flush(layer))
	}
	if cut[0] != cut[1] || cut[1] != cut[2] || cut[2] != cut[3] {
		t.Fatalf("Flush(%s) cut %v", layer, cut)
	}
	c.ref.flush(layer)
}

func (c *contest) reset() {
	for _, pt := range c.ports {
		pt.Reset()
	}
	c.ref.reset()
}

// packet sends one packet and compares what comes out.
func (c *contest) packet(t testing.TB) {
	t.Helper()
	frame, dir := c.d.packet(c.seen, c.out), Direction(c.d.roll(2))
	c.seen = append(c.seen, bytes.Clone(frame))
	c.packets++
	want, _ := packet.New(frame)
	wantRes := c.ref.process(want, dir, c.now)
	mixed := &trace.Recorder{}
	if c.d.chance(70) {
		mixed = nil
	}
	for i, rec := range []*trace.Recorder{nil, {}, mixed, nil} {
		got, _ := packet.New(frame)
		var res Result
		if i < 3 {
			res = c.ports[i].Process(got, dir, &Env{Now: c.now, Rec: rec})
		} else {
			res = c.byPath(c.ports[i], got, dir)
		}
		// What a dropped packet looks like, and the text about what is not
		// modelled, does not matter.
		same := !res.Pass || bytes.Equal(got.Bytes(), want.Bytes())
		bothUnknown := res.Unknown != "" && wantRes.Unknown != ""
		if res != wantRes && !bothUnknown || !same {
			in, _ := packet.New(frame)
			t.Fatalf("packet %d, %s, at %v, port %d of {unified, recorded, mixed, path}\nin:        %v\nport:      %v %+v\nreference: %v %+v",
				c.packets, dir, c.now, i, in, got, res, want, wantRes)
		}
	}
	if wantRes.Pass {
		c.out = append(c.out, bytes.Clone(want.Bytes()))
	}
}

// TestFastSlowReference compares the three ways to process a packet.
func TestFastSlowReference(t *testing.T) {
	n := 1500
	if testing.Short() {
		n = 200
	}
	packets := 0
	for seed := range uint64(n) {
		rng := rand.New(rand.NewPCG(seed, 1))
		data := make([]byte, 300+rng.IntN(3000))
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) { packets += run(t, data) })
		if t.Failed() {
			return
		}
	}
	t.Logf("%d packets", packets)
}

// FuzzPort is TestFastSlowReference with bytes from the fuzzer.
func FuzzPort(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		data := make([]byte, 1500)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 8192 {
			t.Skip("longer inputs say nothing new")
		}
		run(t, data)
	})
}
