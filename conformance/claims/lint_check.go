package claims

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/winlab-dev/winlab/internal/lazyregexp"
	"github.com/winlab-dev/winlab/sim/trace"

	"github.com/winlab-dev/winlab/internal/strict"
)

func (n *linter) check(k *Check, say func(string, ...any)) {
	if kinds := k.kinds(); len(kinds) != 1 {
		say("a check has exactly one of %s; this one has %d", strings.Join(CheckKinds, ", "), len(kinds))
		return
	}
	if k.Lab != "" {
		n.lab(k, say)
	}
	n.expectation(k, say)
	n.basis(k, say)
	switch {
	case k.Flow != nil:
		n.flow(*k.Flow, say)
	case k.Resolve != nil:
		n.resolution(k, say)
	case k.Wire != nil:
		n.wire(k.Wire, say)
	case k.HNS != nil:
		n.hns(k, say)
	case k.Cluster != "":
		n.spec(k, say)
	default:
		n.static(k, say)
	}
}

// lab checks that the lab of a check is there, and that the check needs one.
func (n *linter) lab(k *Check, say func(string, ...any)) {
	names := make([]string, len(Labs))
	for i, d := range Labs {
		names[i] = d.Name
	}
	switch {
	case !slices.Contains(names, k.Lab):
		say("there is no lab %q for checks%s", k.Lab, strict.DidYouMean(k.Lab, names))
	case k.Static() || k.Cluster != "":
		say("a %s needs no lab", k.Kind())
	case len(k.Designs)+len(k.Networks)+len(k.Plugins) > 0:
		say("the lab says which design it is; leave designs, networks and plugins out")
	}
}

// expectation checks the verdict and the reason that are asked for.
func (n *linter) expectation(k *Check, say func(string, ...any)) {
	if k.Expect != "" && !slices.Contains(expects(), k.Expect) {
		say("expect %q%s", k.Expect, strict.DidYouMean(k.Expect, expects()))
	}
	if k.Reason == "" {
		return
	}
	if _, ok := trace.Explain(trace.Reason(k.Reason)); !ok {
		say("%q is not a reason code; winlab explain lists them", k.Reason)
	}
	if k.Expect == "" {
		say("a reason without expect; the model chooses the reason when nothing is expected")
	}
}

// basis checks what the expectation rests on.
func (n *linter) basis(k *Check, say func(string, ...any)) {
	switch {
	case k.Basis != "" && k.Basis != "stated" && k.Basis != "implied":
		say("basis %q; write stated or implied", k.Basis)
	case k.Asks() && k.Basis == "":
		say("it asks for something, so it needs a basis: stated or implied")
	case !k.Asks() && k.Basis != "":
		say("a basis, but nothing is expected; remove it or write expect")
	case !k.Asks() && k.Disputed != nil:
		say("disputed, but nothing is expected")
	}
}

// dispute checks that there are two positions, each with a source of the claim that
// says it, and that they exclude each other.
func (n *linter) dispute(c *Claim, k *Check, say func(string, ...any)) {
	d := k.Disputed
	if d == nil {
		return
	}
	ok := true
	for _, p := range []struct {
		name   string
		number int
	}{{"by", d.By}, {"against", d.Against}} {
		switch {
		case p.number < 1 || p.number > len(c.sources):
			say("disputed: %s is %d; write the number of a source of the claim, 1 to %d", p.name, p.number, len(c.sources))
			ok = false
		case c.sources[p.number-1].Says == "":
			say("disputed: source %d has no position; write in says what it says of this check", p.number)
			ok = false
		}
	}
	if ok && (d.By == d.Against || c.sources[d.By-1].Says == c.sources[d.Against-1].Says) {
		say("disputed: by and against have one position; a dispute has two")
	}
	switch {
	case k.Cluster != "":
		// Real programs answer on a cluster, and each of the two answers is one source's.
		if d.Model != "" || d.Otherwise != "" {
			say("disputed: a spec has neither model nor otherwise: no model answers on a cluster, and it works or fails")
		}
		return
	case d.Model != FollowsBy && d.Model != FollowsAgainst:
		say("disputed: model is %q; write by or against: whom the model follows", d.Model)
	}
	n.otherwise(k, say)
}

// otherwise checks the verdict of the other source.
func (n *linter) otherwise(k *Check, say func(string, ...any)) {
	other := k.Disputed.Otherwise
	switch {
	case other == "", k.Resources != nil:
	case k.Expect == "":
		say("disputed: otherwise is for checks that expect a verdict")
	case !slices.Contains(expects(), other):
		say("disputed: otherwise %q%s", other, strict.DidYouMean(other, expects()))
	case Meets(other, trace.Verdict(k.Expect)), Meets(k.Expect, trace.Verdict(other)), other == k.Expect:
		say("disputed: otherwise %s does not exclude expect %s, so nothing is disputed", other, k.Expect)
	}
}

func (n *linter) resolution(k *Check, say func(string, ...any)) {
	n.sender(k.Resolve.From, say)
	if k.Resolve.Name == "" {
		say("resolve needs a name")
	}
	if tools := []string{"", "Resolve-DnsName", "nslookup", "ping", "linux"}; !slices.Contains(tools, k.Resolve.Tool) {
		say("no tool %q; write one of %s", k.Resolve.Tool, strings.Join(tools[1:], ", "))
	}
	if !slices.Contains([]string{"", notDelivered, string(trace.Delivered), string(trace.Unresolved)}, k.Expect) {
		say("a resolution is delivered, unresolved or not-delivered, not %q", k.Expect)
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
		say("%s: no lab has %q%s", field, ref, strict.DidYouMean(ref, n.Actors))
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
	switch n, err := strconv.ParseUint(port, 10, 16); {
	case hasPort && f.Protocol == "ping":
		say("to %q: ping has no port", f.To)
	case hasPort && (err != nil || n == 0):
		say("to %q: the port must be 1 to 65535", f.To)
	case !hasPort && f.Protocol != "ping":
		say("to %q: write a port after a colon", f.To)
	}
	n.receiver(f.To, ref, say)
	if f.SeenAs != "" {
		n.value("seenAs", f.SeenAs, say)
	}
}

// receiver checks what a flow goes to; ref is to without its port.
func (n *linter) receiver(to, ref string, say func(string, ...any)) {
	kind, name, _ := strings.Cut(ref, "/")
	switch {
	case kind == "name" && name != "", ref == "localhost":
	case kind == "pod" || kind == "svc" || kind == "node" || kind == "host":
		n.actor("to", ref, say)
	default:
		say("to %q: write pod/NAME:PORT, svc/NAME:PORT, node/NAME:PORT, host/NAME:PORT, name/DNSNAME:PORT or localhost:PORT", to)
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
	case "fabric", "pod":
		if len(w.Frame) == 0 {
			say("a wire check at the %s needs a frame: what its fields must be", w.At)
		}
	case "none":
		if len(w.Frame) > 0 {
			say("no frame leaves the node (at: none), so there is no frame to look at")
		}
	default:
		say("at %q; write fabric, pod or none", w.At)
	}
	for _, field := range slices.Sorted(maps.Keys(w.Frame)) {
		n.frameField(field, w.Frame[field], say)
	}
}

// frameField checks a field of a frame and what it must be.
func (n *linter) frameField(field, v string, say func(string, ...any)) {
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
		say("a frame has no field %q%s", field, strict.DidYouMean(field, frameFields))
	}
}

// hnsQueries are the words of HNS.Query; POD is a pod's name.
var hnsQueries = []string{"networks.type", "networks.count", "vswitch.type", "endpoints.count", "endpoint(POD).policies",
	"loadBalancers.count"}

var endpointQuery = lazyregexp.New(`^endpoint\(([^()]+)\)\.policies$`)

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
