package compare

import (
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/conformance/node/importer"
	doc "github.com/winlab-dev/winlab/reports/compare"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/windows/dump"
)

// ports compares the listings of a node's ports with the rules that the model makes.
func (x *comparison) ports(n importer.Node, theirs []dump.Port) {
	m := x.machine(n.Name)
	if m == nil {
		x.notRead(n.Folder, 0, n.Name, "the node is not in the lab of the bundle")
		return
	}
	if n.Why != "" {
		x.notRead(n.Folder, 0, n.Name, "its HNS could not be read as a whole, so the model has other state")
		return
	}
	state, err := m.Node.State()
	if err != nil || state.WithoutHNS != "" {
		x.notRead(n.Folder, 0, n.Name, "the node has no HNS in the model")
		return
	}
	for i := range theirs {
		p := &theirs[i]
		if !p.HasRules {
			continue
		}
		ours := portLike(p, state.Ports)
		if ours == nil {
			x.doc.NotRead = append(x.doc.NotRead, doc.NotRead{Place: x.place(p.Place.File, p.Place.Line), Node: doc.Name(n.Name),
				What: doc.Foreign(p.Name), Why: "the model has no such port: no endpoint of HNS has its name or its MAC address"})
			continue
		}
		x.doc.Ports = append(x.doc.Ports, x.port(m, p, ours))
	}
}

func (x *comparison) port(m *cluster.Machine, theirs, ours *dump.Port) doc.Port {
	out := doc.Port{
		Node: doc.Name(m.Node.Name), Build: x.c.Info().Builds[m.Node.Name], Port: doc.Name(theirs.Name), Owner: x.owner(m, ours),
		At: x.place(theirs.Place.File, theirs.Place.Line), Theirs: len(theirs.Rules), Ours: len(ours.Rules),
	}
	x.doc.Read = append(x.doc.Read, doc.Read{Place: out.At, Node: out.Node, What: "rules of a port", Count: out.Theirs})
	x.count(m.Node.Name, theirs, ours, out.Port)
	diffs, same := dump.DiffRules(*theirs, *ours)
	out.Same = same
	for _, d := range diffs {
		r := doc.RuleDiff{Kind: string(d.Kind), Theirs: rule(d.Theirs), Ours: rule(d.Ours)}
		switch d.Kind {
		case dump.SameByContent:
			out.Named = append(out.Named, r)
		case dump.OursUnnamed:
			out.Unnamed = append(out.Unnamed, r)
		default:
			out.Diffs = append(out.Diffs, r)
		}
	}
	return out
}

// count keeps the counters of a listing that has some.
func (x *comparison) count(node string, theirs, ours *dump.Port, name doc.Name) {
	if !slices.ContainsFunc(theirs.Rules, func(r dump.Rule) bool { return r.Counts != nil }) {
		return
	}
	for j, r := range dump.SameRules(*theirs, *ours) {
		at := ruleAt{node, ours.Name, ours.Rules[j].Name}
		if _, twice := x.counted[at]; twice || r == nil || r.Counts == nil {
			x.counted[at] = counted{}
			continue
		}
		x.counted[at] = counted{r, name}
	}
}

// owner is whose port it is.
func (x *comparison) owner(node *cluster.Machine, p *dump.Port) doc.Ref {
	for _, m := range x.c.Machines(cluster.PodKind) {
		if m.Endpoint != "" && strings.EqualFold(m.Endpoint, p.Name) {
			return doc.Ref(m.Ref.String())
		}
	}
	if strings.HasPrefix(p.Name, hostPort) {
		return doc.Ref(node.Ref.String())
	}
	return ""
}

// The names of ports in the model begin with these, where they are not those of endpoints.
const (
	hostPort     = "Host-"
	externalPort = "External-"
)

// portLike finds the port of the model that a listing is about: by its name, which is often the
// endpoint's id, by its friendly name, then by its MAC address.
func portLike(p *dump.Port, all []dump.Port) *dump.Port {
	find := func(is func(*dump.Port) bool) *dump.Port {
		var found []*dump.Port
		for i := range all {
			if is(&all[i]) {
				found = append(found, &all[i])
			}
		}
		if len(found) != 1 { // a port of another switch would be another port
			return nil
		}
		return found[0]
	}
	for _, name := range []string{p.Name, p.Friendly} {
		if x := find(func(o *dump.Port) bool { return name != "" && strings.EqualFold(o.Name, name) }); x != nil {
			return x
		}
	}
	// "ExternalPort" and "Container NIC 8453379c" are how nodes name these two
	// (princepereira/Commands Commands-VFP.md).
	if strings.EqualFold(p.Friendly, "ExternalPort") {
		return find(func(o *dump.Port) bool { return strings.HasPrefix(o.Name, externalPort) })
	}
	if x := find(func(o *dump.Port) bool {
		return p.MAC != "" && strings.EqualFold(o.MAC, p.MAC) && !strings.HasPrefix(o.Name, externalPort)
	}); x != nil {
		return x
	}
	if strings.HasPrefix(p.Friendly, "Container NIC") {
		return find(func(o *dump.Port) bool { return strings.HasPrefix(o.Name, hostPort) })
	}
	return nil
}

func rule(r *dump.Rule) *doc.Rule {
	if r == nil {
		return nil
	}
	out := &doc.Rule{Priority: r.Priority, Layer: doc.Foreign(r.Layer), Group: doc.Foreign(r.Group), Name: doc.Foreign(r.Name),
		Type: doc.Foreign(r.Type), Line: r.Place.Line}
	for _, c := range r.Conditions {
		out.Conditions = append(out.Conditions, doc.Foreign(strings.TrimSpace(c)))
	}
	for _, b := range r.Backends {
		out.Backends = append(out.Backends, doc.Addr(b.String()))
	}
	slices.Sort(out.Backends)
	return out
}
