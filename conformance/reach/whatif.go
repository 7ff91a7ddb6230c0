package reach

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/reports/diff"
	doc "github.com/winlab-dev/winlab/reports/reach"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/lab/plan"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Compare asks two clusters the same and says what changes, grouped by the step at which the
// flows part. edited says that b is not a lab that a command could trace.
func Compare(ctx context.Context, a, b *lab.Cluster, edited bool, o Options) (*doc.Change, error) {
	va, vb := look(a), look(b)
	q, err := ask(o, va, vb)
	if err != nil {
		return nil, err
	}
	c := &doc.Change{Schema: doc.ChangeSchema, A: a.Info(), B: b.Info(), Inputs: inputs(a.Plan, b.Plan), OnlyA: missingEnds(va, vb),
		OnlyB: missingEnds(vb, va), NotAsked: q.skipped}
	groups := map[string]int{}
	for _, g := range q.list {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c.Traced++
		c.Flows += g.pairs
		x, errA := a.Trace(ctx, g.request())
		y, errB := b.Trace(ctx, g.request())
		if err := errors.Join(errA, errB); err != nil {
			return nil, fmt.Errorf("%s to %s: %w", g.a.ref, g.request().To, err)
		}
		s, t := outcome(a, x), outcome(b, y)
		kind := doc.KindOf(s, t)
		if kind == "" {
			continue
		}
		c.Changed += g.pairs
		p := diff.PartingOf(x, y)
		key := strings.Join([]string{string(kind), string(s.Verdict), string(s.Reason), string(t.Verdict), string(t.Reason), s.SeenAs, t.SeenAs,
			p.Cause}, "\x00")
		i, ok := groups[key]
		if !ok {
			i = len(c.Groups)
			groups[key] = i
			c.Groups = append(c.Groups, doc.Group{Kind: kind, A: s, B: t, StepA: doc.StepOf(p.A), StepB: doc.StepOf(p.B)})
		}
		f := doc.Flow{From: Title(g.from.refs()), To: Title(g.to.refs()), Where: g.text, Protocol: g.protocol, Port: g.port, Pairs: g.pairs,
			CommandA: x.Command, CommandB: y.Command}
		if g.entry != nil {
			f.To += " through " + Title(g.entry.refs())
		}
		if edited {
			f.CommandB = ""
		}
		c.Groups[i].Flows = append(c.Groups[i].Flows, f)
		c.Groups[i].Pairs += g.pairs
	}
	c.NotModelled = notices(a, b)
	c.Sort()
	return c, nil
}

// outcome is what a trace says of its flow.
func outcome(c *lab.Cluster, t *trace.Trace) doc.Outcome {
	o := doc.Outcome{Verdict: t.Verdict, Reason: t.Reason, Summary: t.Summary, Open: t.Open}
	if t.Verdict != trace.Delivered {
		return o
	}
	var all []string
	for _, p := range t.Paths {
		if p.Seen == nil {
			continue
		}
		if s := seenAs(c, t, p.Seen.Src); !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	slices.Sort(all)
	o.SeenAs = strings.Join(all, " or ")
	return o
}

// seenAs says whose an address is that a receiver saw.
func seenAs(c *lab.Cluster, t *trace.Trace, src string) string {
	a, err := netip.ParseAddr(src)
	if p, perr := netip.ParseAddrPort(src); perr == nil {
		a, err = p.Addr(), nil
	}
	if err != nil || src == t.Flow.Src || a.String() == t.Flow.Src {
		return "the sender"
	}
	switch m := c.Owner(a); {
	case m == nil:
		return "another address"
	case m.Kind == cluster.NodeKind && m.Name == t.Flow.Node:
		return "the sender's node"
	case m.Kind == cluster.NodeKind:
		return "another node"
	}
	return "another address"
}

// missingEnds lists the ends that only the first cluster has.
func missingEnds(a, b *view) []string {
	var all []string
	for _, ref := range a.refs {
		if b.ends[ref] == nil {
			all = append(all, ref)
		}
	}
	return all
}

// inputs are what differs between two plans of what somebody chooses.
func inputs(a, b *plan.Plan) []doc.Input {
	var all []doc.Input
	add := func(what, x, y string) {
		if x != y {
			all = append(all, doc.Input{What: what, A: x, B: y})
		}
	}
	add("lab", a.File.Path, b.File.Path)
	add("variant", a.Variant, b.Variant)
	add("Kubernetes", a.Version.String(), b.Version.String())
	add("network", a.Network.Name+" "+a.Network.Plugin, b.Network.Name+" "+b.Network.Plugin)
	add("Windows", windows(a), windows(b))
	add("kube-proxy", flags(a), flags(b))
	for _, x := range []struct {
		kind string
		a, b []string
	}{{"pod", keys(a.Pods), keys(b.Pods)}, {"svc", keys(a.Services), keys(b.Services)}, {"netpol", keys(a.Policies), keys(b.Policies)}} {
		gone, come := missing(x.a, x.b), missing(x.b, x.a)
		for _, n := range gone {
			all = append(all, doc.Input{What: x.kind + "/" + n, A: "there", B: "gone"})
		}
		for _, n := range come {
			all = append(all, doc.Input{What: x.kind + "/" + n, B: "there"})
		}
	}
	return all
}

func windows(p *plan.Plan) string {
	seen := map[string]bool{}
	for _, n := range p.Nodes {
		if n.Windows() {
			seen[n.Build] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(seen)), ", ")
}

func flags(p *plan.Plan) string {
	for _, n := range p.Nodes {
		if n.Windows() {
			return strings.ReplaceAll(strings.Join(n.ProxyFlags, " "), n.Kube.Name, "NODE")
		}
	}
	return ""
}

func keys[T interface{ Key() string }](list []T) []string {
	var all []string
	for _, x := range list {
		all = append(all, x.Key())
	}
	slices.Sort(all)
	return all
}

// missing are the words of a that b does not have; both are sorted.
func missing(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { _, ok := slices.BinarySearch(b, s); return ok })
}

// notices are what one cluster says without effect and the other does not say.
func notices(a, b *lab.Cluster) []string {
	text := func(c *lab.Cluster) map[string]bool {
		all := map[string]bool{}
		for _, n := range c.NotModelled {
			all[n.What+": "+n.Why] = true
		}
		return all
	}
	x, y := text(a), text(b)
	var all []string
	for _, n := range slices.Sorted(maps.Keys(x)) {
		if !y[n] {
			all = append(all, "only in A: "+n)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(y)) {
		if !x[n] {
			all = append(all, "only in B: "+n)
		}
	}
	return all
}

// Delete takes objects out of a plan that is not built yet: "netpol/[NAMESPACE/]NAME",
// "svc/...", "pod/...". Everything that is not there is a mistake.
func Delete(p *plan.Plan, objects []string) error {
	var errs []error
	for _, text := range objects {
		kind, key, _ := strings.Cut(text, "/")
		if !strings.Contains(key, "/") {
			key = "default/" + key
		}
		var have []string
		before := len(p.Pods) + len(p.Services) + len(p.Policies)
		switch kind {
		case "netpol", "networkpolicy":
			have = keys(p.Policies)
			p.Policies = slices.DeleteFunc(slices.Clone(p.Policies), func(n *labfile.Policy) bool { return n.Key() == key })
		case "svc", "service":
			have = keys(p.Services)
			p.Services = slices.DeleteFunc(slices.Clone(p.Services), func(s *labfile.Service) bool { return s.Key() == key })
			p.Slices = slices.DeleteFunc(slices.Clone(p.Slices), func(s *labfile.Slice) bool { return s.Namespace+"/"+s.Service == key })
		case "pod":
			have = keys(p.Pods)
			p.Pods = slices.DeleteFunc(slices.Clone(p.Pods), func(o *plan.Pod) bool { return o.Key() == key })
		default:
			errs = append(errs, fmt.Errorf("%q: write netpol/NAME, svc/NAME or pod/NAME, with the namespace before the name where it is not default",
				text))
			continue
		}
		if before == len(p.Pods)+len(p.Services)+len(p.Policies) {
			errs = append(errs, fmt.Errorf("there is no %s/%s in %s; there are %s", kind, key, p.File.Path, strings.Join(have, ", ")))
		}
	}
	return errors.Join(errs...)
}
