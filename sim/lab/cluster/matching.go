package cluster

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
)

// matching finds the policies of pods and the pods of their peers, in one state of both.
// A cluster has many of each, and most selectors ask for a label with one value: those
// that do not ask for a label of a pod are not asked for the pod.
type matching struct {
	b *builder
	// policies and pods are by a label that they ask for and have; everywhere those
	// policies that ask for none, by namespace.
	policies   map[podLabel][]int
	everywhere map[string][]int
	pods       map[podLabel][]*pod
	// peers and admitted are what was found.
	peers    map[peerKey][]*pod
	admitted map[admittedKey][]admission
	// asked counts selectors that were compared with the labels of a pod.
	asked int
}

// podLabel is one of the pods of a namespace, "" for those of all.
type podLabel struct{ namespace, key, value string }

// peerKey names a peer of a rule of a policy.
type peerKey struct {
	policy     *labfile.Policy
	out        bool
	rule, peer int // peer is -1 for everybody
}

type admittedKey struct {
	peerKey
	port   int
	lo, hi uint16
}

func (b *builder) matching() *matching {
	m := &matching{b: b, policies: map[podLabel][]int{}, everywhere: map[string][]int{}, pods: map[podLabel][]*pod{},
		peers: map[peerKey][]*pod{}, admitted: map[admittedKey][]admission{}}
	for i, np := range b.admit {
		if k, v, ok := labfile.RequiredLabel(np.Pods); ok {
			l := podLabel{np.Namespace, k, v}
			m.policies[l] = append(m.policies[l], i)
		} else {
			m.everywhere[np.Namespace] = append(m.everywhere[np.Namespace], i)
		}
	}
	for _, p := range b.pods {
		for k, v := range p.Labels {
			l := podLabel{key: k, value: v}
			m.pods[l] = append(m.pods[l], p)
		}
	}
	return m
}

// policiesFor are the policies that select a pod, in their order.
func (m *matching) policiesFor(p *pod) []*labfile.Policy {
	at := slices.Clone(m.everywhere[p.Namespace])
	for k, v := range p.Labels {
		at = append(at, m.policies[podLabel{p.Namespace, k, v}]...)
	}
	slices.Sort(at)
	var all []*labfile.Policy
	for _, i := range at {
		m.asked++
		if np := m.b.admit[i]; np.Selects(p.Namespace, p.Labels) {
			all = append(all, np)
		}
	}
	return all
}

// byName are policies in the order of their names.
func byName(list []*labfile.Policy) []*labfile.Policy {
	slices.SortFunc(list, func(x, y *labfile.Policy) int { return strings.Compare(x.Key(), y.Key()) })
	return list
}

// picked are the pods that a peer of a policy picks, in their order.
func (m *matching) picked(k peerKey, peer *labfile.PolicyPeer) []*pod {
	if all, ok := m.peers[k]; ok {
		return all
	}
	among := m.b.pods
	if key, value, ok := labfile.RequiredLabel(peer.Pods); ok {
		among = m.pods[podLabel{key: key, value: value}]
	}
	var all []*pod
	for _, q := range among {
		if m.asked++; peer.Picks(k.policy.Namespace, q.Namespace, q.Labels, m.b.namespaces) {
			all = append(all, q)
		}
	}
	m.peers[k] = all
	return all
}

// admission is one way in which a policy admits connections.
type admission struct {
	peers  []netip.Prefix // nil: all
	except []netip.Prefix
	pods   map[netip.Addr]bool // nil: all
	proto  packet.Proto        // 0: all
	lo, hi uint16              // 0: all
}

func (a *admission) holds(peer netip.Addr, h *packet.Headers) bool {
	in := func(ps []netip.Prefix) bool {
		return slices.ContainsFunc(ps, func(p netip.Prefix) bool { return p.Contains(peer) })
	}
	switch {
	case a.proto != 0 && h.Proto != a.proto:
		return false
	case a.peers != nil && (!in(a.peers) || in(a.except)), a.pods != nil && (!a.pods[peer] || in(a.except)):
		return false
	}
	return a.lo == 0 || h.DstPort >= a.lo && h.DstPort <= a.hi
}

// admissions lists what policies of a pod admit, in one direction.
func (m *matching) admissions(p *pod, policies []*labfile.Policy, out bool) (all []admission) {
	for _, np := range policies {
		rules := np.In
		if out {
			rules = np.Out
		}
		for i := range rules {
			r := &rules[i]
			ports := r.Ports
			if len(ports) == 0 {
				ports = []labfile.PolicyPort{{}}
			}
			for n := range ports {
				if len(r.Peers) == 0 {
					all = append(all, m.admits(p, peerKey{np, out, i, -1}, &labfile.PolicyPeer{}, n, &ports[n])...)
				}
				for j := range r.Peers {
					all = append(all, m.admits(p, peerKey{np, out, i, j}, &r.Peers[j], n, &ports[n])...)
				}
			}
		}
	}
	return all
}

// admits is what one peer and one port of a rule admit. A named port is that of the pod
// which the connection goes to.
func (m *matching) admits(p *pod, of peerKey, peer *labfile.PolicyPeer, n int, port *labfile.PolicyPort) []admission {
	k := admittedKey{of, n, port.Lo, port.Hi}
	if port.Name != "" && !of.out {
		k.lo, k.hi = p.Ports[port.Name], p.Ports[port.Name]
		if k.lo == 0 {
			return nil
		}
	}
	all, ok := m.admitted[k]
	if !ok {
		all = m.admit(k, peer, port)
		m.admitted[k] = all
	}
	return all
}

func (m *matching) admit(k admittedKey, peer *labfile.PolicyPeer, port *labfile.PolicyPort) []admission {
	a := admission{proto: port.Proto, lo: k.lo, hi: k.hi, except: peer.Except}
	anyone, named := k.peer < 0, port.Name != "" && k.out // a name belongs to pods
	switch {
	case anyone && !named:
		return []admission{a}
	case peer.Block.IsValid() && named:
		return nil
	case peer.Block.IsValid():
		a.peers = []netip.Prefix{peer.Block}
		return []admission{a}
	}
	pods := m.b.pods
	if !anyone {
		pods = m.picked(k.peerKey, peer)
	}
	var all []admission
	byPort := map[uint16]int{}
	for _, q := range pods {
		lo, hi := a.lo, a.hi
		if named {
			if lo = q.Ports[port.Name]; lo == 0 {
				continue
			}
			hi = lo
		}
		if !q.given.IsValid() {
			continue
		}
		at, ok := byPort[lo]
		if !ok {
			at = len(all)
			byPort[lo], all = at, append(all, a)
			all[at].pods, all[at].lo, all[at].hi = map[netip.Addr]bool{}, lo, hi
		}
		all[at].pods[q.given] = true
		if q.given6.IsValid() {
			all[at].pods[q.given6] = true
		}
	}
	return all
}
