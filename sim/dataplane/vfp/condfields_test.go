package vfp

import (
	"bytes"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
)

// TestCondFields walks the fields of Cond by reflection. For each it draws conditions on that
// field alone, and packets that differ in one byte, and compares everything that knows the
// field: its row of condFields, the reference evaluator, the index and the unified flows of a
// port. A field that somebody adds and forgets somewhere fails here, with the place to edit.
func TestCondFields(t *testing.T) {
	frames := condFrames(t)
	typ := reflect.TypeFor[Cond]()
	for i := range typ.NumField() {
		t.Run(typ.Field(i).Name, func(t *testing.T) {
			row := rowOf(t, typ.Field(i).Name)
			conds := drawConds(t, i)
			c := &condCheck{field: typ.Field(i).Name, frames: frames, conds: conds}
			for _, cond := range conds {
				if got := cond.set(); got != 1<<row {
					t.Fatalf("set() of %+v is %b, want %b: see isSet of its row in condFields (condfields.go)", cond, got, 1<<row)
				}
			}
			c.tellsApart(t)
			c.missesWhatDoesNotMatch(t)
			c.isFound(t)
			c.isNear(t)
			c.survivesUnifiedFlows(t)
		})
	}
	if len(condFields) != typ.NumField() {
		t.Errorf("condFields (condfields.go) has %d rows, Cond (cond.go) %d fields", len(condFields), typ.NumField())
	}
	for i, f := range condFields {
		if (f.lookup != nil) != (i < lookups) {
			t.Errorf("row %s of condFields: rows with a lookup come first, and lookups says that there are %d", f.name, lookups)
		}
	}
}

// rowOf is the row of condFields about a field.
func rowOf(t *testing.T, field string) int {
	t.Helper()
	i := slices.IndexFunc(condFields[:], func(f condField) bool { return f.name == field })
	if i < 0 {
		t.Fatalf("Cond.%s has no row in condFields: add one in condfields.go", field)
	}
	if f := condFields[i]; f.isSet == nil || f.matches == nil || f.miss == nil {
		t.Fatalf("the row of Cond.%s in condFields (condfields.go) needs isSet, matches and miss", field)
	}
	return i
}

// condCheck is one field, with conditions on it and packets.
type condCheck struct {
	field  string
	conds  []Cond
	frames []*packet.Packet
}

func refMatches(c *Cond, p *packet.Packet) bool {
	return refMatchNetwork(*c, p.Headers()) && refMatchTransport(*c, p)
}

// tellsApart compares the row with the reference evaluator, and holds that some packets meet
// the conditions and others do not.
func (c *condCheck) tellsApart(t *testing.T) {
	t.Helper()
	met, failed := 0, 0
	for i := range c.conds {
		cond := &c.conds[i]
		for _, p := range c.frames {
			got, want := cond.matches(cond.set(), p, p.Headers()), refMatches(cond, p)
			if got != want {
				t.Fatalf("matches of row %s in condFields (condfields.go): got %v, the reference evaluator (refMatchNetwork and refMatchTransport "+
					"in reference_test.go) says %v\ncondition %+v\npacket %v", c.field, got, want, *cond, p)
			}
			if got {
				met++
			} else {
				failed++
			}
		}
	}
	if met == 0 || failed == 0 {
		t.Fatalf("%d packets meet a condition on %s, %d do not: matches of its row in condFields (condfields.go) reads nothing of a packet, "+
			"or condFrames and drawConds (condfields_test.go) need a packet and a value for it", met, c.field, failed)
	}
}

// missesWhatDoesNotMatch holds that a packet that fails a condition is told why, and no other.
func (c *condCheck) missesWhatDoesNotMatch(t *testing.T) {
	t.Helper()
	for i := range c.conds {
		r := sealed(&Rule{ID: "r", Action: Allow{}, Cond: c.conds[i]})
		for _, p := range c.frames {
			ms, matches := r.misses(p, p.Headers()), r.matches(p, p.Headers())
			if (len(ms) == 0) != matches || len(ms) == 1 && (ms[0].Field == "" || ms[0].Want == "" || ms[0].Got == "") {
				t.Fatalf("miss of row %s in condFields (condfields.go) says %+v, and matches %v\ncondition %+v\npacket %v",
					c.field, ms, matches, r.Cond, p)
			}
		}
	}
}

// isFound holds that the index finds the first rule that matches.
func (c *condCheck) isFound(t *testing.T) {
	t.Helper()
	g := c.group(Cond{})
	for _, p := range c.frames {
		want := slices.IndexFunc(g.Rules, func(r *Rule) bool { return refMatches(&r.Cond, p) })
		got := -1
		if r := g.index.find(p, p.Headers()); r != nil {
			got = r.at
		}
		if got != want {
			t.Fatalf("the index finds rule %d, want %d: see lookup of row %s in condFields (condfields.go)\npacket %v", got, want, c.field, p)
		}
	}
}

// isNear holds that the explanation of a packet finds the rules that fail in one condition,
// with the index and without.
func (c *condCheck) isNear(t *testing.T) {
	t.Helper()
	others := []Cond{{Protos: []packet.Proto{packet.TCP}}, {DstPorts: []PortRange{Port1(80)}}, {Dst: []netip.Prefix{Host(addr("10.0.0.2"))}}}
	for _, other := range others {
		for _, near := range []bool{false, true} {
			g := c.group(other)
			g.index.near = near
			l := &Layer{Groups: []*Group{g}}
			for i := 0; i < len(c.frames); i += 7 { // a sample: the texts take most of the time
				p := c.frames[i]
				got, want := fmt.Sprint(nearest(l, p, Out)), fmt.Sprint(refNearest(l, p, Out))
				if got != want {
					t.Fatalf("nearest, index %v:\ngot  %s\nwant %s\nsee lookup and lacks of row %s in condFields (condfields.go)\npacket %v",
						near, got, want, c.field, p)
				}
			}
		}
	}
}

// survivesUnifiedFlows sends all packets twice through a port that blocks those that meet a
// condition, and through one that lets only them pass. What one packet was allowed must not
// be allowed to another because both have the same key.
func (c *condCheck) survivesUnifiedFlows(t *testing.T) {
	t.Helper()
	for i := range c.conds {
		cond := &c.conds[i]
		for _, blocks := range []bool{true, false} {
			l := &Layer{Name: "ACL", Block: !blocks, Groups: []*Group{{Name: "G", Dir: Out}}}
			if l.Groups[0].Rules = []*Rule{{ID: "r", Action: Allow{}, Cond: *cond}}; blocks {
				l.Groups[0].Rules[0].Action = Block{}
			}
			pt := port(l)
			for n := range 2 * len(c.frames) {
				p := c.frames[n%len(c.frames)]
				if got, want := pt.Process(p.Clone(), Out, &Env{}).Pass, refMatches(cond, p) != blocks; got != want {
					t.Fatalf("a packet passes %v, by the rules alone %v: an earlier packet has the same key of a unified flow. "+
						"What matches of row %s in condFields (condfields.go) reads must be in key.unify, key.is and key.hash (key.go), "+
						"or the row needs inside\ncondition %+v\npacket %v\nframe  %x", got, want, c.field, *cond, p, p.Bytes())
				}
			}
		}
	}
}

// group has rules with each of the conditions and another one, four of each so that they are
// worth an index.
func (c *condCheck) group(other Cond) *Group {
	g := &Group{Name: "G", Dir: Out}
	for i := range 4 * len(c.conds) {
		cond := c.conds[i%len(c.conds)]
		to, from := reflect.ValueOf(&cond).Elem(), reflect.ValueOf(other)
		for f := range to.NumField() {
			if to.Field(f).IsZero() {
				to.Field(f).Set(from.Field(f))
			}
		}
		g.Rules = append(g.Rules, &Rule{ID: fmt.Sprint(i), Action: []Action{Allow{}, Block{}}[i/len(c.conds)%2], Cond: cond})
	}
	(&Layer{Groups: []*Group{g}}).seal()
	return g
}

// sealed makes a rule ready to be asked outside of a port.
func sealed(r *Rule) *Rule {
	(&Layer{Groups: []*Group{{Rules: []*Rule{r}}}}).seal()
	return r
}

// condFrames are packets of many kinds, and each of them with one byte changed: whatever a
// condition reads, two of them differ in that alone.
func condFrames(t *testing.T) (frames []*packet.Packet) {
	t.Helper()
	const headers = 74 // bytes, of the longest stack below
	for _, p := range condBases(t) {
		frames = append(frames, p)
		for i := range min(p.Len(), headers) {
			for _, b := range []byte{p.Bytes()[i] ^ 1, p.Bytes()[i] ^ 0x80} {
				frame := bytes.Clone(p.Bytes())
				frame[i] = b
				if q, err := packet.New(frame); err == nil && q.Headers().IPVersion != 0 {
					frames = append(frames, q)
				}
			}
		}
	}
	return frames
}

func condBases(t *testing.T) (bases []*packet.Packet) {
	t.Helper()
	for _, text := range []string{
		"tcp 10.0.0.1:1000 > 10.0.0.2:80 syn", "tcp 10.0.0.2:80 > 10.0.0.1:1000 dstmac server", "tcp [fd00::1]:1000 > [fd00::2]:80 syn",
		"udp 10.0.0.1:1000 > 10.0.0.2:80", "udp [fd00::1]:1000 > [fd00::2]:53", "gre 10.0.0.1 > 10.0.0.2",
		"ping 10.0.0.1 > 10.0.0.2 id 7", "pong 10.0.0.2 > 10.0.0.1 id 7", "ping fd00::1 > fd00::2 id 7",
		"tcp 10.0.0.1:1000 > 10.0.0.2:80 first-fragment", "udp 10.0.0.1:1000 > 10.0.0.2:80 later-fragment",
		"vxlan 10.0.0.1 > 10.0.0.2 vni 4096 [tcp 10.0.0.1:1000 > 10.0.0.2:80 syn]", "vxlan 10.0.0.1 > 10.0.0.2 vni 7 [ping 10.0.0.1 > 10.0.0.2]",
	} {
		bases = append(bases, parse(t, text))
	}
	tagged := slices.Insert(bytes.Clone(bases[0].Bytes()), 12, 0x81, 0, 0, 5)
	p, err := packet.New(tagged)
	if err != nil || p.Headers().VLAN != 5 {
		t.Fatalf("a frame with an 802.1Q tag: %v, VLAN %d", err, p.Headers().VLAN)
	}
	return append(bases, p)
}

// drawConds returns conditions on one field of Cond, with values that packets of condBases
// have in any header field of that type.
func drawConds(t *testing.T, field int) (conds []Cond) {
	t.Helper()
	typ := reflect.TypeFor[Cond]().Field(field)
	add := func(v reflect.Value) {
		var c Cond
		reflect.ValueOf(&c).Elem().Field(field).Set(v)
		conds = append(conds, c)
	}
	if typ.Type.Kind() == reflect.Slice {
		values := drawValues(t, typ.Type.Elem())
		for i, v := range values {
			one := reflect.Append(reflect.Zero(typ.Type), v)
			add(one)
			add(reflect.Append(one, values[(i+3)%len(values)]))
		}
	} else {
		for _, v := range drawValues(t, typ.Type) {
			if !v.IsZero() {
				add(v)
			}
		}
	}
	if len(conds) == 0 {
		t.Fatalf("no value of %s to draw for Cond.%s: see drawValues in condfields_test.go", typ.Type, typ.Name)
	}
	return conds
}

func drawValues(t *testing.T, typ reflect.Type) (values []reflect.Value) {
	t.Helper()
	switch typ {
	case reflect.TypeFor[netip.Prefix]():
		for _, a := range headerValues(t, reflect.TypeFor[netip.Addr]()) {
			if a := a.Interface().(netip.Addr); a.IsValid() {
				for _, bits := range []int{a.BitLen(), a.BitLen() - 8, 3} {
					values = append(values, reflect.ValueOf(netip.PrefixFrom(a, bits)))
				}
			}
		}
	case reflect.TypeFor[PortRange]():
		for _, v := range headerValues(t, reflect.TypeFor[uint16]()) {
			port := uint16(v.Uint())
			values = append(values, reflect.ValueOf(Port1(port)), reflect.ValueOf(PortRange{port &^ 0xff, port}))
		}
	case reflect.TypeFor[TunnelCond]():
		for _, vni := range []uint32{7, 8, 4096, 4097} {
			values = append(values, reflect.ValueOf(TunnelCond{Port: packet.VXLANPort, Kind: packet.VXLAN, VNI: vni}))
		}
	case reflect.TypeFor[bool]():
		return []reflect.Value{reflect.ValueOf(true)}
	default:
		values = headerValues(t, typ)
	}
	if len(values) == 0 {
		t.Fatalf("no values of type %s to draw: add some to drawValues in condfields_test.go", typ)
	}
	return values
}

// headerValues are the values of a type among the headers of condBases.
func headerValues(t *testing.T, typ reflect.Type) (values []reflect.Value) {
	t.Helper()
	seen := map[any]bool{}
	for _, p := range condBases(t) {
		h := reflect.ValueOf(*p.Headers())
		for i := range h.NumField() {
			if v := h.Field(i); v.Type() == typ && !seen[v.Interface()] {
				seen[v.Interface()] = true
				values = append(values, v)
			}
		}
	}
	return values
}

// The fuzzer draws every field of a condition.
func TestFuzzerDrawsAllFields(t *testing.T) {
	d := &dice{expand([]byte("fields"), 1<<16)}
	var drawn fields
	for len(d.data) > 200 {
		c := d.rule("r", newPools()).Cond
		drawn |= c.set()
	}
	for i, f := range condFields {
		if drawn&(1<<i) == 0 {
			t.Errorf("dice.rule (fuzz_test.go) never draws Cond.%s", f.name)
		}
	}
}
