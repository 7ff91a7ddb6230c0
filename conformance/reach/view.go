package reach

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	doc "github.com/winlab-dev/winlab/reports/reach"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
)

// end is a machine, or a Service, that a flow can begin or end at.
type end struct {
	kind string
	// ref is how a flow names it, without a port: "pod/default/web-0".
	ref, namespace, name string
	// node is where it is, "" outside the cluster; system that node's build, or "linux".
	node, system string
	// key is equal for ends that differ only in their names and addresses.
	key    string
	listen []labfile.ListenPort
	// why says why no flow is sent to it where it listens nowhere.
	why string

	service *kube.Service
}

// view is a cluster with what tells its machines apart.
type view struct {
	c    *lab.Cluster
	s    *space          // nil for a cluster alone
	ends map[string]*end // by ref
	// refs are those of machines, then of Services, in order.
	refs []string
	// backends are the descriptions of a Service's backends by node, and of pods by name.
	backends map[string]*backends
	memo     map[seenAt][2]string
	buf      []int32
}

// backends are those of one Service: what they are, by the node they are on. The set of
// descriptions decides, and their number only where there are so many that not all ways
// may be tried.
type backends struct {
	on   map[string][]string
	pods map[string]string // by pod: its description
	all  []string
}

// fewBackends is how many backends a Service has at most whose number does not matter: all
// ways are tried, also with several questions on the way.
const fewBackends = 64

// look finds which ends of a cluster are equal.
func look(c *lab.Cluster) *view {
	s := newSpace(c)
	s.describe()
	return newView(c, s)
}

// viewWithoutClasses is a cluster without classes: each end equals itself only.
func viewWithoutClasses(c *lab.Cluster) *view { return newView(c, nil) }

func newView(c *lab.Cluster, s *space) *view {
	v := &view{c: c, s: s, ends: map[string]*end{}, backends: map[string]*backends{}}
	systems := map[string]string{}
	for _, m := range c.Machines(cluster.NodeKind) {
		systems[m.Name] = cmp.Or(m.Node.Plan.Build, "linux")
	}
	for _, p := range c.Plan.Pods {
		e := &end{kind: doc.Pod, ref: "pod/" + p.Key(), namespace: p.Namespace, name: p.Name, node: p.Node, system: systems[p.Node],
			listen: p.Listen, why: p.PortsUnknown}
		if e.key = e.ref; s != nil {
			e.key = "pod " + strconv.Itoa(s.pods[p.Key()].class)
		}
		v.add(e)
	}
	numbers := map[string]int{}
	number := func(text string) string {
		if _, ok := numbers[text]; !ok {
			numbers[text] = len(numbers)
		}
		return strconv.Itoa(numbers[text])
	}
	for _, m := range c.Machines(cluster.NodeKind) {
		e := &end{kind: doc.Node, ref: "node/" + m.Name, name: m.Name, node: m.Name, listen: m.Node.Plan.Listen, system: systems[m.Name]}
		if e.key = e.ref; s != nil {
			e.key = "node " + number(s.nodes[m.Name].text)
		}
		v.add(e)
	}
	for _, h := range c.Plan.Hosts {
		v.add(&end{kind: doc.Host, ref: "host/" + h.Name, name: h.Name, key: "host " + h.Name, listen: h.Listen})
	}
	slices.SortFunc(v.refs, strings.Compare)
	v.services(number)
	return v
}

func (v *view) add(e *end) {
	if v.ends[e.ref] == nil {
		v.ends[e.ref] = e
		v.refs = append(v.refs, e.ref)
	}
}

// services adds the Services that have an address.
func (v *view) services(number func(string) string) {
	shared := map[string]int{}
	for _, s := range v.c.Kube.Services {
		for _, f := range frontendsOf(s) {
			shared[f]++
		}
	}
	at := len(v.refs)
	for _, s := range v.c.Kube.Services {
		e := &end{kind: doc.Service, ref: "svc/" + s.Key(), namespace: s.Namespace, name: s.Name, service: s}
		if e.key = e.ref; v.s != nil {
			text := v.s.service(s)
			if slices.ContainsFunc(frontendsOf(s), func(f string) bool { return shared[f] > 1 }) {
				text += "\nshares a frontend: " + s.Key() // who gets it depends on the order
			}
			e.key = "svc " + number(text)
		}
		if len(s.ClusterIPs) == 0 {
			e.why = "it has no address of its own"
		}
		for _, p := range s.Ports {
			e.listen = append(e.listen, labfile.ListenPort{Proto: p.Proto, Port: p.Port})
		}
		b := &backends{on: map[string][]string{}, pods: map[string]string{}}
		for _, x := range s.Endpoints {
			text := x.Pod + " " + x.Addr.String()
			if v.s != nil {
				text = v.s.backend(x)
			}
			b.all = append(b.all, text)
			b.on[x.Node] = append(b.on[x.Node], text)
			if x.Pod != "" {
				b.pods["pod/"+x.Pod] = text
			}
		}
		v.backends[e.ref] = b
		v.add(e)
	}
	slices.SortFunc(v.refs[at:], strings.Compare)
}

func frontendsOf(s *kube.Service) []string {
	var all []string
	for _, p := range s.Ports {
		for _, a := range slices.Concat(s.ClusterIPs, s.ExternalIPs, s.IngressIPs) {
			all = append(all, fmt.Sprint(a, p.Proto, p.Port))
		}
		if p.NodePort != 0 {
			all = append(all, fmt.Sprint(p.Proto, p.NodePort))
		}
	}
	return all
}

// relationBetween says how two machines lie to each other.
func relationBetween(a, b *end) string {
	switch {
	case a.ref == b.ref:
		return doc.Itself
	case a.node == "" || b.node == "":
		return "" // one of them is outside
	case a.node == b.node:
		return doc.SameNode
	}
	return doc.OtherNode
}

// seen says where the backends of a Service are as seen from a sender, and, where the flow
// goes to a node, from that one: which backends of which class. It returns the same for
// people, without the classes.
func (v *view) seen(a, entry, svc *end) (sig, text string) {
	b := v.backends[svc.ref]
	key := v.seenKey(a, entry, b)
	if s, ok := v.memo[seenAt{svc.ref, key}]; ok {
		return s[0], s[1]
	}
	var parts, says []string
	own := b.pods[a.ref]
	add := func(what, where string) {
		parts = append(parts, where+" "+what)
		if !slices.Contains(says, where) {
			says = append(says, where)
		}
	}
	if own != "" {
		add(own, doc.Itself)
	}
	for n, list := range b.on {
		from := placeOf(a, n)
		if entry != nil && entry.node != a.node {
			if from == doc.OtherNode && n == entry.node {
				from = "the node asked"
			}
		}
		left := own != "" && n == a.node
		for _, what := range list {
			if left && what == own {
				left = false
				continue
			}
			add(what, from)
		}
	}
	if slices.Sort(parts); len(b.all) <= fewBackends {
		parts = slices.Compact(parts)
	}
	slices.Sort(says)
	text = "no backends"
	if len(says) > 0 {
		text = "backends: " + strings.Join(says, ", ")
	}
	sig = strings.Join(parts, "\n")
	if v.memo == nil {
		v.memo = map[seenAt][2]string{}
	}
	v.memo[seenAt{svc.ref, key}] = [2]string{sig, text}
	return sig, text
}

// placeOf says where a backend on a node is as seen from a sender.
func placeOf(a *end, n string) string {
	switch {
	case n == "":
		return "outside"
	case a.node == n:
		return doc.SameNode
	}
	return doc.OtherNode
}

type seenAt struct{ svc, key string }

// seenKey tells senders and nodes apart as far as a Service's backends are concerned.
func (v *view) seenKey(a, entry *end, b *backends) string {
	key := ""
	if b.pods[a.ref] != "" {
		key = "self " + b.pods[a.ref]
	}
	if b.on[a.node] != nil {
		key += " on " + a.node
	}
	if entry != nil && entry.node != a.node && b.on[entry.node] != nil {
		key += " to " + entry.node
	}
	return key
}
