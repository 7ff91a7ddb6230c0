package claims

import (
	"cmp"
	"fmt"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/winlab-dev/winlab/sim/trace"
)

// Statuses are the words that Support.Status may be.
var Statuses = []string{"stable", "beta", "alpha", "unsupported", "undocumented", "disputed"}

// LintOptions says what exists outside the ledger.
type LintOptions struct {
	// Designs are the network designs that Where may select.
	Designs []Design
	// Actors are what flows may name, as in [Actors].
	Actors []string
}

// Lint checks what the types cannot: that every claim is checked or says why
// not, that references lead somewhere, that ranges do not overlap. The error,
// if any, is [Mistakes] and holds everything that is wrong.
func (l *Ledger) Lint(o LintOptions) error {
	n := &linter{LintOptions: o, ids: map[string]place{}, areas: map[string]string{}, ledger: l}
	for i := range l.Files {
		n.file(i)
	}
	return n.found.asError()
}

type linter struct {
	LintOptions
	ledger *Ledger
	ids    map[string]place
	areas  map[string]string
	name   string
	found  Mistakes
}

func (n *linter) add(p pos, format string, args ...any) {
	n.found = append(n.found, Mistake{n.name, p.line, p.column, fmt.Sprintf(format, args...)})
}

var idForm = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

func (n *linter) file(i int) {
	f := &n.ledger.Files[i]
	n.name = f.name
	if !idForm.MatchString(f.Area) {
		n.add(f.pos, "area %q: write a word in lower case with dashes, for example node-access", f.Area)
	} else if other, ok := n.areas[f.Area]; ok {
		n.add(f.pos, "area %q is also in %s; one file per area", f.Area, other)
	} else {
		n.areas[f.Area] = f.name
	}
	if f.Title == "" {
		n.add(f.pos, "the area has no title")
	}
	if len(f.Claims) == 0 {
		n.add(f.pos, "the area has no claims")
	}
	for j := range f.Claims {
		c := &f.Claims[j]
		switch first, ok := n.ids[c.ID]; {
		case !idForm.MatchString(c.ID):
			n.add(c.pos, "id %q: write lower case letters, digits and dashes", c.ID)
		case ok:
			n.add(c.pos, "claim %s exists already in %s:%d; ids are unique", c.ID,
				n.ledger.Files[first.file].name, n.ledger.Files[first.file].Claims[first.claim].pos.line)
		default:
			n.ids[c.ID] = place{i, j}
		}
		n.claim(c)
	}
}

func (n *linter) claim(c *Claim) {
	say := func(p pos, format string, args ...any) {
		n.add(p, "claim %s: %s", c.ID, fmt.Sprintf(format, args...))
	}
	if c.Title == "" || c.Text == "" {
		say(c.pos, "title and text are required")
	}
	n.sources(c, say)
	switch {
	case len(c.Checks) == 0 && c.Unchecked == "":
		say(c.pos, "nothing checks it; write checks, or unchecked: and the reason")
	case len(c.Checks) > 0 && c.Unchecked != "":
		say(c.pos, "it has checks and a reason for having none; remove one")
	}
	if len(c.Support) == 0 {
		say(c.pos, "no support; write at least one status with the versions it holds for")
	}
	for i := range c.Support {
		p := &c.Support[i]
		if !slices.Contains(Statuses, p.Status) {
			say(p.pos, "status %q%s", p.Status, didYouMean(p.Status, Statuses))
		}
		n.where(p.Where, p.pos, say)
		for j := range i {
			if n.overlap(p.Where, c.Support[j].Where) {
				say(p.pos, "this status overlaps the one on line %d; narrow one of them", c.Support[j].pos.line)
			}
		}
	}
	for i := range c.Checks {
		k := &c.Checks[i]
		n.where(k.Where, k.pos, say)
		n.check(k, func(format string, args ...any) { say(k.pos, format, args...) })
	}
}

func (n *linter) sources(c *Claim, say func(pos, string, ...any)) {
	positions := 0
	for i, s := range c.Sources {
		if s.Doc == "" || s.Version == "" {
			say(c.pos, "source %d needs doc and version", i+1)
		}
		if s.Says != "" {
			positions++
		}
	}
	if len(c.Sources) == 0 {
		say(c.pos, "no sources; a claim is what a document says")
	}
	if c.Disputed && positions < 2 {
		say(c.pos, "it is disputed, so at least two sources need says: with their positions")
	}
	disputedStatus := slices.ContainsFunc(c.Support, func(p Support) bool { return p.Status == "disputed" })
	if disputedStatus && !c.Disputed {
		say(c.pos, "a status is disputed but the claim is not; write disputed: true and what each source says")
	}
}

// where checks that the ranges can be read and that some design is selected.
func (n *linter) where(w Where, p pos, say func(pos, string, ...any)) {
	ok := true
	for _, rng := range []string{w.Kubernetes, w.Build, w.PluginVersion} {
		if _, err := ParseRange(rng); err != nil {
			say(p, "%v", err)
			ok = false
		}
	}
	for _, x := range w.Proxies {
		if known := n.proxies(); !slices.Contains(known, x) {
			say(p, "no design has the proxy %q; write one of %s", x, strings.Join(known, ", "))
			ok = false
		}
	}
	for _, list := range []struct {
		field string
		globs []string
		of    func(Design) string
	}{
		{"designs", w.Designs, func(d Design) string { return d.Name }},
		{"networks", w.Networks, func(d Design) string { return d.Network }},
		{"plugins", w.Plugins, func(d Design) string { return d.Plugin }},
	} {
		for _, g := range list.globs {
			if _, err := path.Match(g, ""); err != nil {
				say(p, "%s: %q is no glob", list.field, g)
				ok = false
			} else if !slices.ContainsFunc(n.Designs, func(d Design) bool { return matchAny([]string{g}, list.of(d)) }) {
				say(p, "%s: nothing is called %q%s", list.field, g, didYouMean(g, n.names(list.of)))
				ok = false
			}
		}
	}
	if ok && !slices.ContainsFunc(n.Designs, func(d Design) bool { return selects(w, d) }) {
		say(p, "no design fits all of where at once: %s", w.Words())
	}
}

func (n *linter) names(of func(Design) string) []string {
	var names []string
	for _, d := range n.Designs {
		names = append(names, of(d))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (n *linter) proxies() []string {
	var all []string
	for _, d := range n.Designs {
		all = append(all, d.Proxies...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// selects reports whether w may select some setting of the design.
func selects(w Where, d Design) bool {
	return w.matchesDesign(d) && overlap(w.Kubernetes, d.Kubernetes) &&
		(len(w.Proxies) == 0 || slices.ContainsFunc(w.Proxies, func(x string) bool { return slices.Contains(d.Proxies, x) }))
}

// overlap of two Where: some design has a setting that both select.
func (n *linter) overlap(a, b Where) bool {
	return overlap(a.Kubernetes, b.Kubernetes) && overlap(a.Build, b.Build) && overlap(a.PluginVersion, b.PluginVersion) &&
		slices.ContainsFunc(n.Designs, func(d Design) bool {
			return selects(a, d) && selects(b, d) &&
				slices.ContainsFunc(d.Proxies, func(x string) bool {
					return (len(a.Proxies) == 0 || slices.Contains(a.Proxies, x)) && (len(b.Proxies) == 0 || slices.Contains(b.Proxies, x))
				})
		})
}

// overlap of two ranges as text; one that cannot be read overlaps nothing and
// is reported where it stands.
func overlap(a, b string) bool {
	x, err1 := ParseRange(a)
	y, err2 := ParseRange(b)
	return err1 == nil && err2 == nil && x.Overlaps(y)
}

func (n *linter) check(k *Check, say func(string, ...any)) {
	kinds := 0
	for _, is := range []bool{k.Flow != nil, k.Resolve != nil, k.Wire != nil, k.HNS != nil} {
		if is {
			kinds++
		}
	}
	if kinds != 1 {
		say("a check has exactly one of flow, resolve, wire and hns; this one has %d", kinds)
		return
	}
	if k.Expect != "" && !slices.Contains(Expects(), k.Expect) {
		say("expect %q%s", k.Expect, didYouMean(k.Expect, Expects()))
	}
	if k.Reason != "" {
		if _, ok := trace.Explain(trace.Reason(k.Reason)); !ok {
			say("reason %q is no reason code; winlab explain lists them", k.Reason)
		}
		if k.Expect == "" {
			say("a reason without expect; the model chooses the reason when nothing is expected")
		}
	}
	switch {
	case k.Basis != "" && k.Basis != "stated" && k.Basis != "implied":
		say("basis %q; write stated or implied", k.Basis)
	case k.Asks() && k.Basis == "":
		say("it asks for something, so it needs a basis: stated or implied")
	case !k.Asks() && k.Basis != "":
		say("a basis, but nothing is expected; remove it or write expect")
	case !k.Asks() && k.Disputed:
		say("disputed, but nothing is expected")
	}
	switch {
	case k.Flow != nil:
		n.flow(*k.Flow, say)
	case k.Resolve != nil:
		n.sender(k.Resolve.From, say)
		if k.Resolve.Name == "" {
			say("resolve needs a name")
		}
		if tools := []string{"", "Resolve-DnsName", "nslookup", "ping", "linux"}; !slices.Contains(tools, k.Resolve.Tool) {
			say("no tool %q; write one of %s", k.Resolve.Tool, strings.Join(tools[1:], ", "))
		}
		if !slices.Contains([]string{"", NotDelivered, string(trace.Delivered), string(trace.Unresolved)}, k.Expect) {
			say("a resolution is delivered, unresolved or not-delivered, not %q", k.Expect)
		}
	case k.Wire != nil:
		n.wire(k.Wire, say)
	case k.HNS != nil:
		n.hns(k, say)
	}
}

func (n *linter) sender(from string, say func(string, ...any)) {
	kind, _, _ := strings.Cut(from, "/")
	if !slices.Contains([]string{"pod", "node", "host"}, kind) {
		say("from %q: write pod/NAME, node/NAME or host/NAME", from)
		return
	}
	n.actor("from", from, say)
}

func (n *linter) actor(field, ref string, say func(string, ...any)) {
	if !slices.Contains(n.Actors, ref) {
		say("%s: no lab has %q%s", field, ref, didYouMean(ref, n.Actors))
	}
}

func (n *linter) flow(f Flow, say func(string, ...any)) {
	n.sender(f.From, say)
	if !slices.Contains([]string{"", "tcp", "udp", "ping"}, f.Protocol) {
		say("protocol %q; write tcp, udp or ping", f.Protocol)
	}
	if !slices.Contains([]string{"", "ipv4", "ipv6"}, f.Family) {
		say("family %q; write ipv4 or ipv6", f.Family)
	}
	ref, port, hasPort := cutPort(f.To)
	if hasPort {
		if p, err := strconv.ParseUint(port, 10, 16); err != nil || p == 0 {
			say("to %q: the port must be 1 to 65535", f.To)
		}
	}
	if f.Protocol == "ping" && hasPort {
		say("to %q: ping has no port", f.To)
	} else if f.Protocol != "ping" && !hasPort {
		say("to %q: write a port after a colon", f.To)
	}
	kind, name, _ := strings.Cut(ref, "/")
	switch {
	case kind == "name" && name != "", ref == "localhost":
	case kind == "pod" || kind == "svc" || kind == "node" || kind == "host":
		n.actor("to", ref, say)
	default:
		say("to %q: write pod/NAME:PORT, svc/NAME:PORT, node/NAME:PORT, host/NAME:PORT, name/DNSNAME:PORT or localhost:PORT", f.To)
	}
	if f.SeenAs != "" {
		n.value("seenAs", f.SeenAs, say)
	}
}

func cutPort(to string) (ref, port string, ok bool) {
	i := strings.LastIndexByte(to, ':')
	if i < 0 {
		return to, "", false
	}
	return to[:i], to[i+1:], true
}

// value is an address, pod/NAME or node/NAME.
func (n *linter) value(field, v string, say func(string, ...any)) {
	if kind, _, ok := strings.Cut(v, "/"); ok && kind != "" {
		n.actor(field, v, say)
	} else if _, err := netip.ParseAddr(v); err != nil {
		say("%s %q: write an address, pod/NAME or node/NAME", field, v)
	}
}

// frameFields are what a Wire check may ask for.
var frameFields = []string{"srcMAC", "dstMAC", "src", "dst", "outerSrc", "outerDst", "udpPort", "vni", "tunnel", "overhead"}

func (n *linter) wire(w *Wire, say func(string, ...any)) {
	n.flow(w.Flow, say)
	switch w.At {
	case "fabric":
		if len(w.Frame) == 0 {
			say("a wire check at the fabric needs a frame: what its fields must be")
		}
	case "none":
		if len(w.Frame) > 0 {
			say("no frame leaves the node (at: none), so there is no frame to look at")
		}
	default:
		say("at %q; write fabric or none", w.At)
	}
	fields := make([]string, 0, len(w.Frame))
	for field := range w.Frame {
		fields = append(fields, field)
	}
	slices.Sort(fields)
	for _, field := range fields {
		v := w.Frame[field]
		switch field {
		case "src", "dst", "outerSrc", "outerDst":
			if v != "host" {
				n.value("frame "+field, v, say)
			}
		case "srcMAC", "dstMAC":
			if v != "host" && !strings.Contains(v, "-") {
				n.value("frame "+field, v, say)
			}
		case "tunnel":
			if !slices.Contains([]string{"none", "vxlan", "geneve"}, v) {
				say("tunnel %q; write none, vxlan or geneve", v)
			}
		case "udpPort", "vni", "overhead":
			if _, err := strconv.Atoi(v); err != nil {
				say("frame %s is %q; write a number", field, v)
			}
		default:
			say("a frame has no field %q%s", field, didYouMean(field, frameFields))
		}
	}
}

// hnsQueries are the words of HNS.Query; POD stands for a pod's name.
var hnsQueries = []string{"networks.type", "networks.count", "vswitch.type", "endpoints.count", "endpoint(POD).policies", "loadBalancers.count"}

var endpointQuery = regexp.MustCompile(`^endpoint\(([^()]+)\)\.policies$`)

func (n *linter) hns(k *Check, say func(string, ...any)) {
	n.actor("hns node", "node/"+cmp.Or(k.HNS.Node, "?"), say)
	if m := endpointQuery.FindStringSubmatch(k.HNS.Query); m != nil {
		n.actor("hns query", "pod/"+m[1], say)
	} else if !slices.Contains(hnsQueries, k.HNS.Query) || strings.Contains(k.HNS.Query, "POD") {
		say("no HNS query %q; write one of %s", k.HNS.Query, strings.Join(hnsQueries, ", "))
	}
	if k.Expect != "" {
		say("an HNS check has want, not expect")
	}
}
