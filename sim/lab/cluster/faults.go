package cluster

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/lab/plan"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/hns"
	"github.com/winlab-dev/winlab/sim/windows/node"
)

// Faults of a lab break what HNS has programmed: the compiler makes the rules of a
// port, and a fault takes some away, keeps some that HNS no longer asks for, or adds one.
// The compiler itself knows nothing of it.

// faultUse is what an injected fault has met.
type faultUse struct {
	names []string // of the rules of the pod's port; for a rule that is added, of layers
	hits  int
	// kept are the rules that stay, by group, as they were when HNS last asked for them.
	kept map[ruleGroup][]*vfp.Rule
}

// ruleGroup is the place of a rule on a port.
type ruleGroup struct {
	layer, group string
	dir          vfp.Direction
	// of the layer, where it has to be made again
	priority        uint16
	stateful, block bool
	family          uint8
}

func (u *faultUse) see(name string, hit bool) {
	if !slices.Contains(u.names, name) {
		u.names = append(u.names, name)
	}
	if hit {
		u.hits++
	}
}

// broken returns what the faults of the node do to the layers of a port; nil when there
// are none.
func (n *Node) broken() func(port string, layers []*vfp.Layer) []*vfp.Layer {
	if len(n.Plan.Faults) == 0 {
		return nil
	}
	n.faults = make([]faultUse, len(n.Plan.Faults))
	return func(port string, layers []*vfp.Layer) []*vfp.Layer {
		for i, f := range n.Plan.Faults {
			if f.Pod != "" && podObject+f.Pod != port || f.Port == labfile.FaultHost && port != node.HostPort || f.Port == labfile.FaultExternal &&
				port != node.ExternalPort {
				continue
			}
			u := &n.faults[i]
			switch {
			case f.Drop != nil:
				u.drop(f, layers)
			case f.Keep != nil:
				layers = u.keep(f, n.Name, layers)
			case f.Add != nil:
				layers = u.add(f.Add, layers)
			}
		}
		return layers
	}
}

// drop takes rules away.
func (u *faultUse) drop(f plan.Fault, layers []*vfp.Layer) {
	for _, l := range layers {
		for _, g := range l.Groups {
			g.Rules = slices.DeleteFunc(g.Rules, func(r *vfp.Rule) bool {
				hit := f.Drop.MatchString(r.ID)
				u.see(r.ID, hit)
				return hit
			})
		}
	}
}

// keep puts rules back that were on the port and that HNS no longer asks for. One that
// HNS asks for again is the new one.
func (u *faultUse) keep(f plan.Fault, node string, layers []*vfp.Layer) []*vfp.Layer {
	now := map[ruleGroup][]*vfp.Rule{}
	for _, l := range layers {
		for _, g := range l.Groups {
			at := ruleGroup{l.Name, g.Name, g.Dir, l.Priority, l.Stateful, l.Block, g.Family}
			for _, r := range g.Rules {
				hit := f.Keep.MatchString(r.ID)
				if u.see(r.ID, hit); hit {
					now[at] = append(now[at], r)
				}
			}
		}
	}
	order := func(a, b ruleGroup) int {
		return cmp.Or(strings.Compare(a.layer, b.layer), strings.Compare(a.group, b.group), cmp.Compare(a.dir, b.dir),
			cmp.Compare(a.family, b.family))
	}
	for _, at := range slices.SortedFunc(maps.Keys(u.kept), order) {
		for _, r := range u.kept[at] {
			if slices.ContainsFunc(now[at], func(o *vfp.Rule) bool { return o.ID == r.ID }) {
				continue
			}
			stale := *r
			if o := r.Origin; o != nil && !strings.HasPrefix(o.What, "stale") {
				stale.Origin = &trace.Origin{What: "stale rule of " + o.What + ", kept on " + node + " by a fault of the lab", File: o.File,
					Line: o.Line}
			}
			now[at] = append(now[at], &stale)
			i := slices.IndexFunc(layers, func(l *vfp.Layer) bool { return l.Name == at.layer })
			if i < 0 {
				i = len(layers)
				layers = append(layers, &vfp.Layer{Name: at.layer, Priority: at.priority, Stateful: at.stateful, Block: at.block})
			}
			g := layers[i].Group(at.group, at.dir, at.family)
			g.Rules = append(g.Rules, &stale)
		}
	}
	u.kept = now
	return layers
}

// add puts a rule of the lab into a layer, which is made where the port has no other
// rule in it.
func (u *faultUse) add(a *plan.ExtraRule, layers []*vfp.Layer) []*vfp.Layer {
	r, family := extraRule(a)
	dir := vfp.Out
	if a.In {
		dir = vfp.In
	}
	at := slices.IndexFunc(layers, func(l *vfp.Layer) bool { return strings.EqualFold(l.Name, a.Layer) })
	if at < 0 {
		l := hns.NewLayer(a.Layer)
		if l == nil {
			u.names = hns.LayerNames()
			return layers
		}
		at = len(layers)
		layers = append(layers, l)
	}
	u.hits++
	l := layers[at]
	i := slices.IndexFunc(l.Groups, func(g *vfp.Group) bool {
		return g.Dir == dir && (g.Family == 0 || family == 0 || g.Family == family)
	})
	var g *vfp.Group
	if i >= 0 {
		g = l.Groups[i]
	} else {
		g = l.Group("(fault)", dir, family)
	}
	g.Rules = append(g.Rules, r)
	return layers
}

// extraRule is a rule of a lab as VFP has it, with the address family that it is for, 0
// for both.
func extraRule(a *plan.ExtraRule) (r *vfp.Rule, family uint8) {
	r = &vfp.Rule{ID: a.Name, Priority: a.Priority, Flags: vfp.Terminating | vfp.Stateful, Origin: a.Origin, Action: vfp.Allow{}}
	c := &r.Cond
	of := func(x netip.Addr) {
		if family = 4; x.Is6() {
			family = 6
		}
	}
	if a.Proto != 0 {
		c.Protos = []packet.Proto{a.Proto}
	}
	if a.From.IsValid() {
		c.Src = []netip.Prefix{a.From}
		of(a.From.Addr())
	}
	if a.To.IsValid() {
		c.Dst = []netip.Prefix{a.To}
		of(a.To.Addr())
	}
	if a.FromPorts[1] != 0 {
		c.SrcPorts = []vfp.PortRange{{Lo: a.FromPorts[0], Hi: a.FromPorts[1]}}
	}
	if a.ToPorts[1] != 0 {
		c.DstPorts = []vfp.PortRange{{Lo: a.ToPorts[0], Hi: a.ToPorts[1]}}
	}
	switch a.Action {
	case labfile.FaultBlock:
		r.Flags, r.Action = vfp.Terminating, vfp.Block{}
	case labfile.FaultNAT:
		var set packet.Rewrite
		if s := a.SetSource; s.Addr().IsValid() {
			set.Src, set.Set = s.Addr(), set.Set|packet.RwSrc
			of(s.Addr())
			if s.Port() != 0 {
				set.SrcPort, set.Set = s.Port(), set.Set|packet.RwSrcPort
			}
		}
		if d := a.SetDestination; d.Addr().IsValid() {
			set.Dst, set.Set = d.Addr(), set.Set|packet.RwDst
			of(d.Addr())
			if d.Port() != 0 {
				set.DstPort, set.Set = d.Port(), set.Set|packet.RwDstPort
			}
		}
		r.Action = vfp.NAT{Set: set}
	}
	return r, family
}

// settle lets the switches of nodes whose faults keep rules have the rules of the state
// as it is, before something changes: a rule that was never there cannot stay.
func (c *Cluster) settle() {
	for _, n := range c.Nodes {
		if n.windows != nil && slices.ContainsFunc(n.Plan.Faults, func(f plan.Fault) bool { return f.Keep != nil }) {
			n.windows.Refresh()
		}
	}
}
