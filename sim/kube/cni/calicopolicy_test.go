package cni

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// aclTexts are the ACLs of an endpoint, one line each.
func aclTexts(e *hns.Endpoint) []string {
	var all []string
	for a := range hns.EachSettings[hns.ACLSettings](e.Policies) {
		t := fmt.Sprintf("%d %s %s %s", a.Priority, a.Direction, a.Action, a.Protocols)
		for _, f := range [][2]string{{" remote ", a.RemoteAddresses}, {" lports ", a.LocalPorts}, {" rports ", a.RemotePorts}} {
			if f[1] != "" {
				t += f[0] + f[1]
			}
		}
		if a.RuleType == hns.ACLRuleHost {
			t += " host"
		}
		all = append(all, t)
	}
	return all
}

// Felix's rules for what policies mean: in order, with priorities (cni.felix-rules,
// cni.felix-conversion, cni.felix-skips).
func TestFelixRules(t *testing.T) {
	tcp := func(lo, hi uint16) PolicyPort { return PolicyPort{Proto: packet.TCP, Lo: lo, Hi: hi} }
	udp := PolicyPort{Proto: packet.UDP, Lo: 53, Hi: 53}
	pods := PolicyPeer{Pods: []netip.Addr{addr("10.244.1.9"), addr("10.244.2.9"), addr("fd00::9")}}
	in := func(rules ...PolicyRule) PodPolicies {
		return PodPolicies{Namespace: "default", Name: "web", RestrictedIn: true,
			In: []PodPolicy{{Namespace: "default", Name: "p", Rules: rules}}}
	}
	out := func(rules ...PolicyRule) PodPolicies {
		p := in(rules...)
		p.RestrictedIn, p.RestrictedOut, p.In, p.Out = false, true, nil, p.In
		return p
	}
	const (
		node     = "900 In Allow 256 remote 10.244.1.2/32,192.168.1.11/32"
		freeIn   = "1000 In Allow 256;1001 In Block 256;0 In Allow 256 host"
		freeOut  = "1000 Out Allow 256;1001 Out Block 256;0 Out Allow 256 host"
		nothing  = "1000 In Block 256;0 In Allow 256 host"
		noneIsIn = node + ";" + nothing + ";" + freeOut
	)
	for _, c := range []struct {
		name string
		p    PodPolicies
		want string
		skip string
	}{
		{"no policies: the profile allows all", PodPolicies{Namespace: "default", Name: "web"}, node + ";" + freeIn + ";" + freeOut, ""},
		{"a policy without rules", in(), noneIsIn, ""},
		{"a rule for everything", in(PolicyRule{}), node + ";1000 In Allow 256;1001 In Block 256;0 In Allow 256 host;" + freeOut, ""},
		{"pods, without their IPv6 addresses, and a port", in(PolicyRule{Peers: []PolicyPeer{pods}, Ports: []PolicyPort{tcp(80, 80)}}),
			node + ";1000 In Allow 6 remote 10.244.1.9/32,10.244.2.9/32 lports 80;1001 In Block 256;0 In Allow 256 host;" + freeOut, ""},
		{"one rule for each protocol by name and peer, ports that touch as one",
			in(PolicyRule{Peers: []PolicyPeer{pods, {Block: prefix("10.0.0.0/8")}},
				Ports: []PolicyPort{udp, tcp(81, 90), tcp(79, 80), tcp(443, 443)}}),
			node + ";1000 In Allow 6 remote 10.244.1.9/32,10.244.2.9/32 lports 79-90,443;1001 In Allow 6 remote 10.0.0.0/8 lports 79-90,443" +
				";1002 In Allow 17 remote 10.244.1.9/32,10.244.2.9/32 lports 53;1003 In Allow 17 remote 10.0.0.0/8 lports 53;1004 In Block 256;0 In Allow 256 host;" + freeOut, ""},
		{"all ports of a protocol count more than one of them", in(PolicyRule{Ports: []PolicyPort{{Proto: packet.UDP}, udp}}),
			node + ";1000 In Allow 17;1001 In Block 256;0 In Allow 256 host;" + freeOut, ""},
		{"out: ports are those of the other end", out(PolicyRule{Peers: []PolicyPeer{pods}, Ports: []PolicyPort{tcp(80, 80)}}),
			node + ";" + freeIn + ";1000 Out Allow 6 remote 10.244.1.9/32,10.244.2.9/32 rports 80;1001 Out Block 256;0 Out Allow 256 host", ""},
		{"a selector that picks nobody allows nothing", in(PolicyRule{Peers: []PolicyPeer{{}}}), noneIsIn, ""},
		{"an IPv6 block", in(PolicyRule{Peers: []PolicyPeer{{Block: prefix("fd00::/8")}}}), noneIsIn, ""},
		{"except is passed over with its whole peer",
			in(PolicyRule{Peers: []PolicyPeer{{Block: prefix("10.0.0.0/8"), Except: []netip.Prefix{prefix("10.1.0.0/16")}}, pods}}),
			node + ";1000 In Allow 256 remote 10.244.1.9/32,10.244.2.9/32;1001 In Block 256;0 In Allow 256 host;" + freeOut,
			"except (10.0.0.0/8 in rule 1)"},
		{"a named port takes the others of its protocol with it", in(
			PolicyRule{Ports: []PolicyPort{{Proto: packet.TCP, Name: "http"}, tcp(443, 443), udp}}),
			node + ";1000 In Allow 17 lports 53;1001 In Block 256;0 In Allow 256 host;" + freeOut, "named port (rule 1)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cl := cluster(false, "2022")
			o := plugins(t)["calico-bgp"]
			s, _, r := setUp(t, mustNew(t, o), cl)
			if got := aclTexts(s.Endpoint(r.EndpointID)); !slices.Equal(got, []string{"65500 In Block 256"}) {
				t.Errorf("after ADD: %q", got)
			}
			before := len(s.Endpoint(r.EndpointID).Policies)
			a := NewPolicyAgent("", PluginCalico)
			skipped, err := a.Apply(s, cl.Node("win1"), r.EndpointID, c.p)
			if err != nil {
				t.Fatal(err)
			}
			e := s.Endpoint(r.EndpointID)
			if got := strings.Join(aclTexts(e), ";"); got != c.want {
				t.Errorf("got\n  %s\nwant\n  %s", strings.ReplaceAll(got, ";", "\n  "), strings.ReplaceAll(c.want, ";", "\n  "))
			}
			if n := len(hns.PoliciesOf(e.Policies, hns.PolicyACL)); len(e.Policies)-n != before-1 {
				t.Errorf("other policies of the endpoint have gone: %d of %d are left", len(e.Policies)-n, before-1)
			}
			if (len(skipped) > 0) != (c.skip != "") || c.skip != "" && !strings.Contains(skipped[0].Why, c.skip) {
				t.Errorf("skipped %+v, want %q", skipped, c.skip)
			}
		})
	}
}

// A list that has not changed is not applied again: HNS would forget the endpoint's flows
// (projectcalico/calico#10199). An endpoint that was made again gets it.
func TestFelixUnchanged(t *testing.T) {
	cl := cluster(false, "2022")
	s, _, r := setUp(t, mustNew(t, plugins(t)["calico-vxlan"]), cl)
	changes := 0
	s.OnChange(func(hns.Change) { changes++ })
	a := NewPolicyAgent(AgentCalico, PluginWinBridge)
	apply := func(p PodPolicies) {
		t.Helper()
		if _, err := a.Apply(s, cl.Node("win1"), r.EndpointID, p); err != nil {
			t.Fatal(err)
		}
	}
	free := PodPolicies{Namespace: "default", Name: "web"}
	apply(free)
	once := changes
	if apply(free); once == 0 || changes != once {
		t.Errorf("%d changes of HNS, and %d after the same again", once, changes)
	}
	if apply(PodPolicies{Namespace: "default", Name: "web", RestrictedIn: true}); changes == once {
		t.Error("another policy changes nothing in HNS")
	}
	if NewPolicyAgent("", PluginFlannel) != nil {
		t.Error("flannel has an agent for policies")
	}
}
