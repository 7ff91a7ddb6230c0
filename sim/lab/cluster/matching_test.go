package cluster

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/lab/plan"
)

// policed makes pods and policies at random.
func policed(t *testing.T, r *rand.Rand) *builder {
	selector := func() labels.Selector {
		text := []string{"", "app=a", "app=b", "app in (a)", "app in (a,b)", "app!=a", "tier", "!tier", "app=a,tier=x", "tier=y"}[r.IntN(10)]
		s, err := labels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	b := &builder{Cluster: &Cluster{}, namespaces: map[string]map[string]string{"n1": {"app": "a"}, "n2": {"tier": "x"}}}
	for i := range 1 + r.IntN(12) {
		p := &pod{Pod: &plan.Pod{HostNetwork: r.IntN(8) == 0, Ports: map[string]uint16{}}}
		p.Namespace, p.Name, p.Labels = []string{"n1", "n2", "n3"}[r.IntN(3)], fmt.Sprint("p", i), map[string]string{}
		if r.IntN(4) > 0 {
			p.Labels["app"] = []string{"a", "b", "c"}[r.IntN(3)]
		}
		if r.IntN(2) > 0 {
			p.Labels["tier"] = []string{"x", "y"}[r.IntN(2)]
		}
		if r.IntN(2) > 0 {
			p.Ports["web"] = uint16(80 + r.IntN(2))
		}
		if r.IntN(8) > 0 {
			p.given = netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})
		}
		if r.IntN(4) == 0 {
			p.given6 = netip.AddrFrom16([16]byte{0xfd, 15: byte(i)})
		}
		b.pods = append(b.pods, p)
	}
	rules := func() (all []labfile.PolicyRule) {
		for range r.IntN(3) {
			var rule labfile.PolicyRule
			for range r.IntN(3) {
				peer := labfile.PolicyPeer{}
				switch r.IntN(4) {
				case 0:
					peer.Block = netip.MustParsePrefix("10.0.0.0/29")
					if r.IntN(2) == 0 {
						peer.Except = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/31")}
					}
				case 1:
					peer.Namespaces = selector()
				case 2:
					peer.Namespaces, peer.Pods = selector(), selector()
				case 3:
					peer.Pods = selector()
				}
				rule.Peers = append(rule.Peers, peer)
			}
			for range r.IntN(3) {
				port := labfile.PolicyPort{Proto: []packet.Proto{0, packet.TCP, packet.UDP}[r.IntN(3)]}
				switch r.IntN(3) {
				case 0:
					port.Name = "web"
				case 1:
					port.Lo, port.Hi = 80, uint16(80+r.IntN(2))
				}
				rule.Ports = append(rule.Ports, port)
			}
			all = append(all, rule)
		}
		return all
	}
	for i := range r.IntN(8) {
		b.admit = append(b.admit, &labfile.Policy{Namespace: []string{"n1", "n2", "n3"}[r.IntN(3)], Name: fmt.Sprint("np", 9-i), Pods: selector(),
			In: rules(), Out: rules()})
	}
	return b
}

// TestMatching compares what policies admit for each pod with asking every policy about
// every pod and every peer.
func TestMatching(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	yes, no := 0, 0
	for range 600 {
		b := policed(t, r)
		m := b.matching()
		for _, p := range b.pods {
			var want []*labfile.Policy
			for _, np := range b.admit {
				if np.Selects(p.Namespace, p.Labels) {
					want = append(want, np)
				}
			}
			got := m.policiesFor(p)
			if !slices.Equal(got, want) {
				t.Fatalf("%v has the policies %s, want %s", p.Labels, policyNames(got), policyNames(want))
			}
			for _, out := range []bool{false, true} {
				rules := func(np *labfile.Policy) []labfile.PolicyRule { return np.In }
				if out {
					rules = func(np *labfile.Policy) []labfile.PolicyRule { return np.Out }
				}
				fast, slow := m.admissions(p, got, out), b.refAdmissions(p, want, rules, out)
				for range 30 {
					h := &packet.Headers{Proto: []packet.Proto{packet.TCP, packet.UDP, packet.ICMP}[r.IntN(3)], DstPort: uint16(79 + r.IntN(4))}
					peer := netip.AddrFrom4([4]byte{10, 0, 0, byte(r.IntN(14))})
					if r.IntN(5) == 0 {
						peer = netip.AddrFrom16([16]byte{0xfd, 15: byte(r.IntN(14))})
					}
					a := slices.ContainsFunc(fast, func(a admission) bool { return a.holds(peer, h) })
					w := slices.ContainsFunc(slow, func(a refAdmission) bool { return a.holds(peer, h) })
					if a != w {
						t.Fatalf("%s %v %s port %d out %v: admitted %v, want %v", p.Key(), peer, h.Proto, h.DstPort, out, a, w)
					}
					if a {
						yes++
					} else {
						no++
					}
				}
			}
		}
	}
	if yes < 1000 || no < 1000 {
		t.Errorf("%d connections were admitted, %d not", yes, no)
	}
}

// TestMatchingGrows: the work for policies that select pods by a label grows with pods
// and policies, not with their product.
func TestMatchingGrows(t *testing.T) {
	asked := func(pods, policies int) float64 {
		b := &builder{Cluster: &Cluster{}}
		groups := pods / 10
		group := func(i int) labels.Selector {
			return labels.SelectorFromSet(labels.Set{"group": fmt.Sprint(i % groups)})
		}
		for i := range pods {
			p := &pod{Pod: &plan.Pod{}, given: netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})}
			p.Namespace, p.Labels = "default", map[string]string{"group": fmt.Sprint(i % groups), "app": "web"}
			b.pods = append(b.pods, p)
		}
		for i := range policies {
			b.admit = append(b.admit, &labfile.Policy{Namespace: "default", Name: fmt.Sprint(i), Pods: group(i), RestrictsIn: true,
				In: []labfile.PolicyRule{{Peers: []labfile.PolicyPeer{{Pods: group(i + 1)}}}}})
		}
		m := b.matching()
		for _, p := range b.pods {
			m.admissions(p, m.policiesFor(p), false)
		}
		return float64(m.asked)
	}
	small, large := asked(400, 40), asked(4000, 400)
	if exponent := math.Log(large/small) / math.Log(10); exponent > 1.1 {
		t.Errorf("%.0f selectors compared for 400 pods and 40 policies, %.0f for ten times as many of both: the power %.2f", small, large,
			exponent)
	}
}

// refAdmission is one way in which a policy admits connections.
type refAdmission struct {
	peers  []netip.Prefix // nil: all
	except []netip.Prefix
	proto  packet.Proto // 0: all
	lo, hi uint16       // 0: all
}

func (a refAdmission) holds(peer netip.Addr, h *packet.Headers) bool {
	in := func(ps []netip.Prefix) bool {
		return slices.ContainsFunc(ps, func(p netip.Prefix) bool { return p.Contains(peer) })
	}
	switch {
	case a.peers != nil && (!in(a.peers) || in(a.except)):
		return false
	case a.proto != 0 && h.Proto != a.proto:
		return false
	}
	return a.lo == 0 || h.DstPort >= a.lo && h.DstPort <= a.hi
}

// refAdmissions lists what policies of a pod admit.
func (b *builder) refAdmissions(p *pod, policies []*labfile.Policy, rules func(*labfile.Policy) []labfile.PolicyRule,
	out bool) []refAdmission {
	var all []refAdmission
	for _, np := range policies {
		for _, r := range rules(np) {
			peers := r.Peers
			if len(peers) == 0 {
				peers = []labfile.PolicyPeer{{}}
			}
			ports := r.Ports
			if len(ports) == 0 {
				ports = []labfile.PolicyPort{{}}
			}
			for _, peer := range peers {
				for _, port := range ports {
					all = append(all, b.refAdmitted(p, np, peer, len(r.Peers) == 0, port, out)...)
				}
			}
		}
	}
	return all
}

// refAdmitted is what one peer and one port of a rule admit. A named port is that of
// the pod which the connection goes to.
func (b *builder) refAdmitted(p *pod, np *labfile.Policy, peer labfile.PolicyPeer, anyone bool, port labfile.PolicyPort,
	out bool) []refAdmission {
	a := refAdmission{proto: port.Proto, lo: port.Lo, hi: port.Hi, except: peer.Except}
	if port.Name != "" && !out {
		a.lo, a.hi = p.Ports[port.Name], p.Ports[port.Name]
		if a.lo == 0 {
			return nil
		}
	}
	switch {
	case anyone && (port.Name == "" || !out):
		return []refAdmission{a}
	case peer.Block.IsValid():
		a.peers = []netip.Prefix{peer.Block}
		if port.Name != "" && out {
			return nil // a name belongs to pods
		}
		return []refAdmission{a}
	}
	var all []refAdmission
	for _, q := range b.pods {
		if !anyone && !peer.Picks(np.Namespace, q.Namespace, q.Labels, b.namespaces) || !q.given.IsValid() {
			continue
		}
		one := a
		one.peers = []netip.Prefix{netip.PrefixFrom(q.given, q.given.BitLen())}
		if q.given6.IsValid() {
			one.peers = append(one.peers, netip.PrefixFrom(q.given6, q.given6.BitLen()))
		}
		if port.Name != "" && out {
			if one.lo = q.Ports[port.Name]; one.lo == 0 {
				continue
			}
			one.hi = one.lo
		}
		all = append(all, one)
	}
	return all
}
