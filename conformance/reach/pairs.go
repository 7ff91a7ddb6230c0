package reach

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	doc "github.com/winlab-dev/winlab/reports/reach"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
)

// asked is what is asked of one or more clusters at once: flows that are equal in each of
// them are one group.
type asked struct {
	views   []*view
	classes map[string]*class // by kind and keys
	order   []*class
	of      map[string]*class // by the ref of a member
	groups  map[groupKey]*group
	list    []*group
	skipped []string
	isMoved *bool
}

// class are ends that are equal in every cluster.
type class struct {
	id      string
	kind    string
	members []*end // of the first cluster
	// spots are the members by the nodes on which they are, in each cluster.
	spots map[string][]*end
	names []string // of spots, in order
}

// groupKey is what decides how a flow ends: two flows with the same key end alike.
type groupKey struct {
	from, to *class
	// entry is the class of the node that the flow goes to, for a node port.
	entry    *class
	how      string
	protocol string
	port     uint16
}

// group are flows that end alike.
type group struct {
	groupKey
	text  string // how, for people
	pairs int
	a, b  *end // one of its flows
	via   *end // the node of a node port, nil for none
}

// request is the flow that stands for a group.
func (g *group) request() lab.Request {
	r := lab.Request{From: g.a.ref, To: g.b.ref, Protocol: g.protocol}
	if g.via != nil {
		r.To = g.via.ref
	}
	if g.port != 0 {
		r.To += ":" + itoa(g.port)
	}
	return r
}

// ask groups all flows from some ends to others in clusters that have them.
func ask(o Options, views ...*view) (*asked, error) {
	q := &asked{views: views, classes: map[string]*class{}, of: map[string]*class{}, groups: map[groupKey]*group{}}
	from, to, err := o.filters(views[0])
	if err != nil {
		return nil, err
	}
	q.classify()
	var sources []*class
	for _, c := range q.order {
		if s := c.filtered(q, from); s != nil && c.kind != doc.Service {
			sources = append(sources, s)
		}
	}
	var dests []*class
	for _, c := range q.order {
		if d := c.filtered(q, to); d != nil {
			dests = append(dests, d)
		}
	}
	for _, d := range dests {
		ports := o.ports(d)
		if len(ports) == 0 || d.kind == doc.Service && d.members[0].why != "" {
			q.skip(d)
			continue
		}
		for _, p := range ports {
			for _, s := range sources {
				if d.kind == doc.Service {
					q.toService(s, d, p)
				} else {
					q.addGroups(s, d, p)
				}
			}
		}
	}
	for _, d := range dests {
		if d.kind == doc.Service {
			q.nodePorts(sources, d)
		}
	}
	return q, nil
}

// classify puts ends that are equal in every cluster into one class. Ends that one of the
// clusters lacks have none.
func (q *asked) classify() {
	for _, ref := range q.views[0].refs {
		key := ""
		for _, v := range q.views {
			e := v.ends[ref]
			if e == nil {
				key = ""
				break
			}
			key += e.key + "|"
		}
		if key == "" {
			continue
		}
		c := q.classes[key]
		if c == nil {
			c = &class{id: ref, kind: q.views[0].ends[ref].kind}
			q.classes[key] = c
			q.order = append(q.order, c)
		}
		c.members = append(c.members, q.views[0].ends[ref])
		q.of[ref] = c
	}
	for _, c := range q.order {
		c.spread(q)
	}
}

// spread sorts the members by their nodes.
func (c *class) spread(q *asked) {
	c.spots, c.names = map[string][]*end{}, nil
	for _, e := range c.members {
		s := q.spot(e)
		if c.spots[s] == nil {
			c.names = append(c.names, s)
		}
		c.spots[s] = append(c.spots[s], e)
	}
	slices.Sort(c.names)
}

// spot is where an end is in each cluster.
func (q *asked) spot(e *end) string {
	s := ""
	for _, v := range q.views {
		s += v.ends[e.ref].node + "|"
	}
	return s
}

// filtered are the members that a filter lets through, nil for none. The class itself is what
// it was: it is the same answer for fewer.
func (c *class) filtered(q *asked, keep filter) *class {
	if keep == nil {
		return c
	}
	d := &class{id: c.id, kind: c.kind}
	for _, e := range c.members {
		if keep(e) {
			d.members = append(d.members, e)
		}
	}
	switch len(d.members) {
	case 0:
		return nil
	case len(c.members):
		return c
	}
	d.id = d.members[0].ref
	d.spread(q)
	return d
}

func (q *asked) skip(c *class) {
	why := cmp.Or(c.members[0].why, "nothing listens there; --port asks for a port all the same")
	if c.kind == doc.Node {
		return // what listens on a node beside Services is said by few labs
	}
	q.skipped = append(q.skipped, Title(c.refs())+": "+why)
}

func (c *class) refs() []string {
	all := make([]string, len(c.members))
	for i, e := range c.members {
		all[i] = e.ref
	}
	return all
}

// add adds flows to their group.
func (q *asked) add(k groupKey, pairs int, make func() *group) {
	if pairs == 0 {
		return
	}
	g := q.groups[k]
	if g == nil {
		g = make()
		g.groupKey = k
		q.groups[k] = g
		q.list = append(q.list, g)
	}
	g.pairs += pairs
}

// related says how two ends lie to each other in each cluster.
func (q *asked) related(a, b *end) (how string) {
	for _, v := range q.views {
		how += relationBetween(v.ends[a.ref], v.ends[b.ref]) + "|"
	}
	return how
}

// words says for people what is the same in all clusters, or each.
func words(how string) string {
	parts := strings.Split(strings.TrimSuffix(how, "|"), "|")
	return strings.Join(slices.Compact(parts), "; then ")
}

// addGroups groups the flows of two classes of machines. Members of a class on one node are
// all alike as seen from another, so that it is enough to look at nodes; and where no end
// has moved between the clusters, all different nodes are alike.
func (q *asked) addGroups(s, d *class, p port) {
	key := func(a, b *end) groupKey { return groupKey{s, d, nil, q.related(a, b), p.protocol, p.port} }
	add := func(a, b *end, n int) {
		k := key(a, b)
		q.add(k, n, func() *group { return &group{text: words(k.how), a: a, b: b} })
	}
	rest := len(s.members) * len(d.members)
	near := func(x string) {
		as, bs := s.spots[x], d.spots[x]
		both := 0
		var self *end
		other := [2]*end{}
		for _, a := range as {
			if i := slices.Index(bs, a); i >= 0 {
				both++
				self = a
			}
			if b := slices.IndexFunc(bs, func(b *end) bool { return b != a }); b >= 0 && other[0] == nil {
				other = [2]*end{a, bs[b]}
			}
		}
		rest -= len(as) * len(bs)
		if both > 0 {
			add(self, self, both)
		}
		if other[0] != nil {
			add(other[0], other[1], len(as)*len(bs)-both)
		}
	}
	small, large := s, d
	if len(d.names) < len(s.names) {
		small, large = d, s
	}
	for _, x := range small.names {
		if large.spots[x] != nil {
			near(x)
		}
	}
	if rest == 0 {
		return
	}
	settled := !q.moved()
	for _, x := range s.names {
		for _, y := range d.names {
			if x == y {
				continue
			}
			n := len(s.spots[x]) * len(d.spots[y])
			if settled {
				add(s.spots[x][0], d.spots[y][0], rest)
				return
			}
			add(s.spots[x][0], d.spots[y][0], n)
		}
	}
}

// moved reports whether an end is on another node in one cluster than in another.
func (q *asked) moved() bool {
	if len(q.views) < 2 {
		return false
	}
	if q.isMoved == nil {
		is := false
		for ref := range q.of {
			for _, v := range q.views[1:] {
				is = is || v.ends[ref].node != q.views[0].ends[ref].node
			}
		}
		q.isMoved = &is
	}
	return *q.isMoved
}

// seen is [view.seen] in each cluster.
func (q *asked) seen(a, entry, svc *end) (sig, text string) {
	for _, v := range q.views {
		var e *end
		if entry != nil {
			e = v.ends[entry.ref]
		}
		s, t := v.seen(v.ends[a.ref], e, v.ends[svc.ref])
		sig += s + "|"
		text += t + "|"
	}
	return sig, words(text)
}

// isBackend reports whether an end is a backend of a Service in any of the clusters.
func (q *asked) isBackend(a, svc *end) bool {
	return slices.ContainsFunc(q.views, func(v *view) bool { return v.backends[svc.ref].pods[a.ref] != "" })
}

// spread members of one node into those that are backends of a Service and one for the rest.
func (q *asked) apart(members []*end, svc *end) (own []*end, other *end, others int) {
	for _, a := range members {
		if q.isBackend(a, svc) {
			own = append(own, a)
			continue
		}
		other, others = cmp.Or(other, a), others+1
	}
	return own, other, others
}

// toService groups the flows of a class to the addresses of Services of another.
func (q *asked) toService(s, d *class, p port) {
	for _, svc := range d.members {
		add := func(a *end, n int) {
			sig, text := q.seen(a, nil, svc)
			q.add(groupKey{s, d, nil, sig, p.protocol, p.port}, n, func() *group { return &group{text: text, a: a, b: svc} })
		}
		for _, x := range s.names {
			own, other, n := q.apart(s.spots[x], svc)
			for _, a := range own {
				add(a, 1)
			}
			if n > 0 {
				add(other, n)
			}
		}
	}
}

// nodePorts groups the flows to node ports of Services.
func (q *asked) nodePorts(sources []*class, d *class) {
	for _, svc := range d.members {
		for _, sp := range svc.service.Ports {
			if sp.NodePort == 0 {
				continue
			}
			for _, entries := range q.order {
				if entries.kind != doc.Node {
					continue
				}
				for _, s := range sources {
					q.toNodePort(s, d, entries, svc, port{protocolName(sp.Proto), sp.NodePort})
				}
			}
		}
	}
}

func (q *asked) toNodePort(s, d, entries *class, svc *end, p port) {
	for _, entry := range entries.members {
		add := func(a *end, n int) {
			sig, text := q.seen(a, entry, svc)
			how := q.related(a, entry)
			q.add(groupKey{s, d, entries, how + sig, p.protocol, p.port}, n, func() *group {
				return &group{text: strings.TrimPrefix(words(how)+", "+text, ", "), a: a, b: svc, via: entry}
			})
		}
		for _, x := range s.names {
			own, other, n := q.apart(s.spots[x], svc)
			for _, a := range own {
				add(a, 1)
			}
			if n > 0 {
				add(other, n)
			}
		}
	}
}

// find is the group of one flow, nil where none was asked for; entry is the node of a node
// port.
func (q *asked) find(from, to, entry string, p port) *group {
	a, b := q.views[0].ends[from], q.views[0].ends[to]
	if a == nil || b == nil || q.of[from] == nil || q.of[to] == nil {
		return nil
	}
	k := groupKey{q.of[from], q.of[to], nil, "", p.protocol, p.port}
	switch e := q.views[0].ends[entry]; {
	case e != nil:
		sig, _ := q.seen(a, e, b)
		k.entry, k.how = q.of[entry], q.related(a, e)+sig
	case b.kind == doc.Service:
		k.how, _ = q.seen(a, nil, b)
	default:
		k.how = q.related(a, b)
	}
	return q.groups[k]
}

// port is a protocol as a flow names it and a port, 0 for ping.
type port struct {
	protocol string
	port     uint16
}

func protocolName(p packet.Proto) string {
	if p == packet.UDP {
		return "udp"
	}
	return "tcp"
}

func portsOf(list []labfile.ListenPort) []port {
	var all []port
	for _, l := range list {
		if p := (port{protocolName(l.Proto), l.Port}); !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	return all
}

func itoa(n uint16) string { return strconv.Itoa(int(n)) }
