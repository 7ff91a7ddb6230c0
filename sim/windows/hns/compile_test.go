package hns

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// TestCompile reads the cases of testdata/rules. A case is in the language of the
// policy: calls in HNS's JSON; packets at a port with what becomes of them after
// "="; and the listing of the rules.
//
// To add a case, write the head ("build", "quirk", "pin", "exclude", "address6" for the node's IPv6 address, "show PORT..."), the calls
// and the packets without "="; -update adds the results and the listings. It writes all
// cases, so look at the difference of the others too. A case shows what happens at one
// port; whether a packet arrives is for TestStateOfHNSDecides in sim/lab.
//
// A packet is "PORT out|in PROTOCOL SOURCE > DESTINATION", a port the name of an
// endpoint, host or external. "via MAC" gives another destination MAC address than
// that of the gateway (out) or the endpoint (in); "pick N" takes a load balancer's
// backend number N instead of the one that the hash says. "reply" is the answer to the
// packet before it, the other way through the same port.
func TestCompile(t *testing.T) {
	files, err := filepath.Glob("testdata/rules/*.txt")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d cases (%v)", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := newCompileCase(t, string(text)).run()
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(text) {
				t.Errorf("%s: %s; run with -update and read the difference", file, firstDifference(string(text), got))
			}
		})
	}
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return fmt.Sprintf("line %d\n got %s\nwant %s", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines instead of %d", len(g), len(w))
}

// The machines around the ports of a case.
const (
	hostMAC    = "02-00-00-00-00-0a"
	gatewayMAC = "02-00-00-00-00-01"
	nextHopMAC = "02-00-00-00-00-02"
	otherMAC   = "02-00-00-00-00-99"
)

// compileCase is one file of testdata/rules.
type compileCase struct {
	t     *testing.T
	lines []string
	svc   *Service
	c     *Compiler
	names *strings.Replacer // MAC addresses and their owners
	ports map[string]*vfp.Port
	order []string
	last  *packet.Packet
	pins  map[string]string // answers to open questions
}

type wayOut struct{}

// NextHop has a route to everything but 198.51.100.0/24.
func (wayOut) NextHop(dst netip.Addr) (vfp.Hop, bool) {
	if netip.MustParsePrefix("198.51.100.0/24").Contains(dst) {
		return vfp.Hop{Via: vfp.Via("no route"), Reason: "no-route"}, false
	}
	return vfp.Hop{Src: mac(hostMAC), Dst: mac(nextHopMAC), Via: vfp.Via("the router")}, true
}

func newCompileCase(t *testing.T, text string) *compileCase {
	return &compileCase{t: t, lines: strings.Split(text, "\n"), ports: map[string]*vfp.Port{}}
}

// section returns the lines from "-- name --" to the next section.
func (c *compileCase) section(name string) []string {
	from := slices.Index(c.lines, "-- "+name+" --")
	if from < 0 {
		return nil
	}
	to := slices.IndexFunc(c.lines[from+1:], func(l string) bool { return strings.HasPrefix(l, "-- ") })
	if to < 0 {
		to = len(c.lines) - from - 1
	}
	return c.lines[from+1 : from+1+to]
}

// calls are the calls of the case, each on one line.
func (c *compileCase) calls() (all []string) {
	for _, l := range c.section("calls") {
		if strings.HasPrefix(l, " ") && len(all) > 0 {
			all[len(all)-1] += l
		} else if l != "" {
			all = append(all, l)
		}
	}
	return all
}

func (c *compileCase) run() string {
	head := c.lines[:slices.IndexFunc(c.lines, func(l string) bool { return strings.HasPrefix(l, "-- ") })]
	view := View{HostMAC: mac(hostMAC), Router: wayOut{}}
	build := builds.MustLookup("10.0.20348.2762")
	show := []string{}
	var excluded []PortBlock
	var address6 netip.Addr
	for _, l := range head {
		word, rest, _ := strings.Cut(l, " ")
		switch word {
		case "build":
			build = builds.MustLookup(rest)
		case "quirk":
			var err error
			if build, err = build.WithQuirks([]string{rest}, nil); err != nil {
				c.t.Fatal(err)
			}
		case "pin":
			param, value, _ := strings.Cut(rest, " ")
			c.pins = map[string]string{param: value}
		case "exclude":
			for _, f := range strings.Fields(rest) {
				var b PortBlock
				if _, err := fmt.Sscanf(f, "%d-%d", &b.First, &b.Last); err != nil {
					c.t.Fatal(err)
				}
				excluded = append(excluded, b)
			}
		case "address6":
			address6 = netip.MustParseAddr(rest)
		case "show":
			show = strings.Fields(rest)
		}
	}
	c.svc = NewService(build, Options{Node: "win1", ManagementIP: management, ManagementIP6: address6, ExcludedPorts: excluded})
	c.call("namespace", `{"ID":"pods","Type":"Guest"}`)
	c.call("namespace", `{"ID":"host","Type":"HostDefault"}`)
	calls := c.section("calls")
	for _, text := range c.calls() {
		word, rest, _ := strings.Cut(text, " ")
		c.call(word, rest)
	}
	c.c = NewCompiler(c.svc, view)
	c.program()

	var b strings.Builder
	write := func(name string, lines []string) {
		fmt.Fprintf(&b, "-- %s --\n%s\n", name, strings.TrimRight(strings.Join(lines, "\n"), "\n"))
	}
	b.WriteString(strings.Join(head, "\n") + "\n")
	write("calls", calls)
	listings := map[string][]string{}
	for _, name := range show {
		listings[name] = c.listing(name)
	}
	var results []string
	for _, l := range c.section("packets") {
		results = append(results, c.packet(l))
	}
	write("packets", results)
	for _, name := range show {
		write("rules of "+name, listings[name])
	}
	return b.String()
}

// call is one call to HNS.
func (c *compileCase) call(word, rest string) {
	c.t.Helper()
	var err error
	switch word {
	case "restart":
		c.svc.Restart()
	case "delete":
		err = c.svc.DeleteEndpoint(rest)
	case "detach":
		err = c.svc.DetachEndpoint(rest)
	case "deleteLoadBalancer":
		err = c.svc.DeleteLoadBalancer(rest)
	case "modifyEndpoint", "removeFromEndpoint":
		id, settings, _ := strings.Cut(rest, " ")
		request := map[string]string{"modifyEndpoint": RequestAdd, "removeFromEndpoint": RequestRemove}[word]
		err = c.svc.ModifyEndpoint(id, ModifyRequest{ResourceType: "Policy", RequestType: request, Settings: []byte(settings)})
	case "dump": // what HNS would refuse, but a node held
		var d *Dump
		if d, err = ParseDump("dump.json", []byte(rest)); err == nil {
			err = c.svc.Load(d)
		}
	default:
		_, err = c.svc.Create(Kind(word), []byte(rest))
	}
	if err != nil {
		c.t.Fatalf("%s %s: %v", word, rest, err)
	}
}

// program compiles the rules of all ports, as a node does.
func (c *compileCase) program() {
	macs := []string{mac(hostMAC).String(), "HOST", mac(gatewayMAC).String(), "GATEWAY", mac(nextHopMAC).String(), "NEXTHOP",
		mac(otherMAC).String(), "OTHER"}
	networks := c.svc.ListNetworks(nil)
	add := func(name string, p *vfp.Port, layers []*vfp.Layer) {
		p.ID, p.Label = name, name
		p.SetLayers(layers)
		c.ports[name] = p
		c.order = append(c.order, name)
	}
	for _, e := range c.svc.ListEndpoints(nil) {
		if e.MacAddress != "" {
			macs = append(macs, mac(e.MacAddress).String(), strings.ToUpper(e.Name))
		}
		if e.Attached() {
			add(e.Name, &vfp.Port{MAC: mac(e.MacAddress)}, c.c.Endpoint(e))
		}
	}
	for _, n := range networks {
		if n.Is(Overlay) {
			macs = append(macs, c.c.DrMAC(n).String(), "ROUTER-OF-"+strings.ToUpper(n.Name))
		}
	}
	add("host", &vfp.Port{MAC: mac(hostMAC), Host: true}, c.c.Host(networks))
	add("external", &vfp.Port{External: true}, c.c.External(networks))
	c.names = strings.NewReplacer(macs...)
}

// packet sends the packet of a line and returns the line with what became of it.
func (c *compileCase) packet(line string) string {
	c.t.Helper()
	in, _, _ := strings.Cut(line, " = ")
	f := strings.Fields(in)
	if len(f) == 0 || strings.HasPrefix(line, "#") {
		return line
	}
	asked := ""
	env := &vfp.Env{Place: "win1"}
	if at := slices.Index(f, "pick"); at > 0 {
		n, err := strconv.Atoi(f[at+1])
		if err != nil {
			c.t.Fatalf("%s: %v", line, err)
		}
		env.Choose = func(string, int, int, func(int) string) int { return n - 1 }
		f = slices.Delete(f, at, at+2)
	}
	env.Ask = func(q *evidence.Question, _ string) string {
		if v, ok := c.pins[q.Param]; ok {
			return v
		}
		asked = ", if " + q.Param + " is " + q.Answers[0].Value
		return q.Answers[0].Value
	}
	var p *packet.Packet
	var port *vfp.Port
	var dir vfp.Direction
	if f[0] == "reply" {
		port = c.ports[f[1]]
		h := c.last.Headers()
		p = packet.Build(packet.Spec{EthSrc: h.EthDst, EthDst: h.EthSrc, Proto: h.Proto, Src: h.Dst, Dst: h.Src, SrcPort: h.DstPort,
			DstPort: h.SrcPort, TCPFlags: packet.SYN | packet.ACK})
		dir = vfp.In
		if f[2] == "out" {
			dir = vfp.Out
		}
	} else {
		port, dir, p = c.build(f)
	}
	res := port.Process(p, dir, env)
	c.last = p
	what := strings.ReplaceAll(c.names.Replace(p.String()), " ttl 64", "")
	switch {
	case res.Unknown != "":
		what = "unknown: " + res.Unknown
	case !res.Pass:
		what = "dropped: " + string(res.Reason)
	case res.Hairpin:
		what += ", back into the switch"
	}
	return in + " = " + what + asked
}

// build makes the packet of "PORT DIR PROTO SRC > DST [via MAC] [vxlan SRC > DST VNI PORT]".
func (c *compileCase) build(f []string) (*vfp.Port, vfp.Direction, *packet.Packet) {
	c.t.Helper()
	port := c.ports[f[0]]
	if port == nil || len(f) < 6 {
		c.t.Fatalf("packet %q: there are the ports %v", strings.Join(f, " "), c.order)
	}
	dir, spec := vfp.Out, packet.Spec{EthSrc: port.MAC, EthDst: mac(gatewayMAC), TCPFlags: packet.SYN, ICMPID: 1, ICMPSeq: 1, ICMPType: 8}
	if f[1] == "in" {
		dir, spec.EthSrc, spec.EthDst = vfp.In, mac(gatewayMAC), port.MAC
	}
	spec.Proto = map[string]packet.Proto{"TCP": packet.TCP, "UDP": packet.UDP, "ICMP": packet.ICMP, "GRE": packet.GRE}[f[2]]
	spec.Src, spec.SrcPort = endOf(f[3])
	spec.Dst, spec.DstPort = endOf(f[5])
	rest := f[6:]
	if len(rest) > 1 && rest[0] == "via" {
		spec.EthDst = c.macOf(rest[1])
		rest = rest[2:]
	}
	p := packet.Build(spec)
	if len(rest) > 0 && rest[0] == "vxlan" {
		vni, _ := strconv.Atoi(rest[4])
		udp, _ := strconv.Atoi(rest[5])
		err := p.Encap(packet.Outer{Kind: packet.VXLAN, EthSrc: mac(gatewayMAC), EthDst: mac(hostMAC), Src: netip.MustParseAddr(rest[1]),
			Dst: netip.MustParseAddr(rest[3]),
			VNI: uint32(vni), DstPort: uint16(udp), SrcPort: 50000})
		if err != nil {
			c.t.Fatal(err)
		}
	}
	return port, dir, p
}

func (c *compileCase) macOf(name string) packet.MAC {
	if p := c.ports[name]; p != nil {
		return p.MAC
	}
	if n := c.svc.NetworkByName(strings.TrimPrefix(name, "router-of-")); n != nil {
		return c.c.DrMAC(n)
	}
	return mac(otherMAC)
}

func endOf(s string) (netip.Addr, uint16) {
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap.Addr(), ap.Port()
	}
	return netip.MustParseAddr(s), 0
}

// listing is what vfpctrl would print of a port's rules, in short; of "node" it is
// what the compiler gives the node around the ports.
func (c *compileCase) listing(name string) []string {
	var b strings.Builder
	if name == "node" {
		networks := c.svc.ListNetworks(nil)
		for _, n := range networks {
			for _, x := range c.c.Bindings(n) {
				fmt.Fprintf(&b, "%s %s:%d belongs to endpoint %s\n", x.Proto, x.Addr, x.Port, x.Endpoint.Name)
			}
		}
		for _, n := range networks {
			for _, p := range c.c.Published(n) {
				fmt.Fprintf(&b, "WinNAT hands %s %s:%d to %s of endpoint %s\n", p.Proto, p.Addr, p.Port, p.To, p.Endpoint.Name)
			}
		}
		for _, r := range c.c.Routes(networks) {
			fmt.Fprintf(&b, "route %s into network %s, own %v: %s\n", r.Prefix, r.Network.Name, r.Own, r.Why)
		}
		return strings.Split(b.String(), "\n")
	}
	var layers []*vfp.Layer
	switch name {
	case "host":
		layers = c.c.Host(c.svc.ListNetworks(nil))
	case "external":
		layers = c.c.External(c.svc.ListNetworks(nil))
	default:
		layers = c.c.Endpoint(c.svc.EndpointByName(name))
	}
	(&vfp.Port{}).SetLayers(layers) // sorts them
	for _, l := range layers {
		state := ""
		if l.Stateful {
			state = " stateful"
		}
		fmt.Fprintf(&b, "layer %d %s%s\n", l.Priority, l.Name, state)
		for _, g := range l.Groups {
			fmt.Fprintf(&b, "  group %s %s family %d\n", g.Name, g.Dir, g.Family)
			for _, r := range g.Rules {
				fmt.Fprintf(&b, "    %d %s: %s\n", r.Priority, r.ID, c.names.Replace(condText(&r.Cond)))
				if r.Given != nil {
					fmt.Fprintf(&b, "      only if %s is %s\n", r.Given.Question.Param, r.Given.Answer)
				}
				fmt.Fprintf(&b, "      %s%s [%s]\n", c.names.Replace(actionText(r.Action)), flagText(r.Flags), r.Fact.ID)
			}
		}
	}
	return strings.Split(b.String(), "\n")
}

func flagText(f vfp.Flags) string {
	s := ""
	if f&vfp.Terminating != 0 {
		s += ", terminating"
	}
	if f&vfp.Stateful != 0 {
		s += ", stateful"
	}
	return s
}

func condText(c *vfp.Cond) string {
	var parts []string
	add := func(name string, n int, v any) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s %v", name, v))
		}
	}
	add("protocol", len(c.Protos), c.Protos)
	add("from", len(c.Src), c.Src)
	add("source port", len(c.SrcPorts), c.SrcPorts)
	add("to", len(c.Dst), c.Dst)
	add("port", len(c.DstPorts), c.DstPorts)
	if !c.DstMAC.IsZero() {
		add("to MAC", 1, c.DstMAC)
	}
	add("tunnel VNI", int(c.Tunnel.VNI), fmt.Sprintf("%d on UDP port %d", c.Tunnel.VNI, c.Tunnel.Port))
	said := []string{"Protos", "Src", "Dst", "SrcPorts", "DstPorts", "DstMAC", "Tunnel"}
	for v, i := reflect.ValueOf(*c), 0; i < v.NumField(); i++ {
		if name := v.Type().Field(i).Name; !v.Field(i).IsZero() && !slices.Contains(said, name) {
			panic("condText does not say " + name)
		}
	}
	if len(parts) == 0 {
		return "everything"
	}
	return strings.Join(parts, ", ")
}

func actionText(a vfp.Action) string {
	switch a := a.(type) {
	case vfp.NotModelled:
		return "not modelled (" + actionText(a.Action) + "): " + a.Why
	case vfp.Block:
		return strings.TrimSpace("block " + string(a.Reason))
	case vfp.NAT:
		return "nat " + rewriteText(a.Set)
	case *vfp.Transpose:
		return "transpose " + rewriteText(a.Set)
	case vfp.DynNAT:
		return "dynnat from pool " + poolText(a.Pool)
	case vfp.LBNAT:
		return "lbnat " + balanceText(a)
	case vfp.RouteEncap:
		t := a.Tunnel
		return fmt.Sprintf("encap %s %s > %s VNI %d port %d, inner MAC %s > %s", t.Kind, t.Src, t.Dst, t.VNI, t.Port, t.InnerSrc, t.InnerDst)
	case vfp.Decap:
		return "decap " + a.Kind.String()
	}
	return a.Type()
}

func rewriteText(rw packet.Rewrite) string {
	var parts []string
	for _, f := range []struct {
		bit  packet.RewriteMask
		text string
	}{
		{packet.RwEthSrc, "MAC from " + rw.EthSrc.String()}, {packet.RwEthDst, "MAC to " + rw.EthDst.String()},
		{packet.RwSrc, "from " + rw.Src.String()}, {packet.RwDst, "to " + rw.Dst.String()},
		{packet.RwSrcPort, fmt.Sprint("source port ", rw.SrcPort)}, {packet.RwDstPort, fmt.Sprint("port ", rw.DstPort)},
	} {
		if rw.Set&f.bit != 0 {
			parts = append(parts, f.text)
		}
		rw.Set &^= f.bit
	}
	if rw.Set != 0 {
		panic(fmt.Sprintf("rewriteText does not say bits %b", rw.Set))
	}
	return strings.Join(parts, ", ")
}

func poolText(p *vfp.Pool) string { return fmt.Sprintf("%s (%s, blocks %v)", p.Name, p.Addr, p.Blocks) }

func balanceText(a vfp.LBNAT) string {
	var parts []string
	for _, t := range a.Targets {
		text := fmt.Sprintf("%s:%d", t.Addr, t.Port)
		if t.Unknown {
			text = "unknown"
		}
		if !t.MAC.IsZero() {
			text += " at " + t.MAC.String()
		}
		if t.Note != "" {
			text += " (" + t.Note + ")"
		}
		parts = append(parts, text)
	}
	parts = []string{"to [" + strings.Join(parts, ", ") + "]"}
	for _, f := range []struct {
		on   bool
		text string
	}{{a.KeepDst, "destination kept"}, {a.BySource, "by source"}, {a.Hairpin, "back into the switch"}} {
		if f.on {
			parts = append(parts, f.text)
		}
	}
	if a.Pool != nil {
		parts = append(parts, "source from pool "+poolText(a.Pool))
	}
	return strings.Join(parts, ", ")
}
