package cni

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// npmRig is a pod of azure-vnet's overlay with NPM.
type npmRig struct {
	t        *testing.T
	s        *hns.Service
	apply    func(PodPolicies) ([]Skipped, error)
	changes  int
	endpoint string
}

func newNPMRig(t *testing.T, build string) *npmRig {
	c := clusterFor("overlay-azure")
	for _, n := range c.Nodes {
		if n.Windows != nil {
			n.Windows = builds.MustLookup(build)
		}
	}
	s, _, made := setUp(t, mustNew(t, plugins(t)["overlay-azure"]), c)
	a := NewPolicyAgent(AgentNPM, PluginAzure)
	r := &npmRig{t: t, s: s, endpoint: made.EndpointID}
	s.OnChange(func(hns.Change) { r.changes++ })
	r.apply = func(p PodPolicies) ([]Skipped, error) { return a.Apply(s, c.Node("win1"), made.EndpointID, p) }
	return r
}

// acls are the ACLs that NPM made (the configuration has some, too) with sets as their addresses in braces.
func (r *npmRig) acls() string {
	var sets []string
	for v := range hns.EachSettings[hns.SetPolicySettings](r.s.NetworkByName("azure").Policies) {
		sets = append(sets, v.Id, "{"+v.Values+"}")
	}
	name := strings.NewReplacer(sets...)
	var all []string
	for a := range hns.EachSettings[hns.ACLSettings](r.s.Endpoint(r.endpoint).Policies) {
		if !strings.HasPrefix(a.Id, "azure-acl-") {
			continue
		}
		text := string(a.Direction) + " " + string(a.Action)
		for _, f := range [][2]string{{" ", a.Protocols}, {" local ", name.Replace(a.LocalAddresses)},
			{" remote ", name.Replace(a.RemoteAddresses)}, {" lports ", a.LocalPorts}, {" rports ", a.RemotePorts}} {
			if f[1] != "" {
				text += f[0] + f[1]
			}
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

func podPolicies(in, out []PolicyRule) PodPolicies {
	p := PodPolicies{Namespace: "default", Name: "web"}
	if in != nil {
		p.RestrictedIn, p.In = true, []PodPolicy{{Namespace: "default", Name: "p", Rules: in}}
	}
	if out != nil {
		p.RestrictedOut, p.Out = true, []PodPolicy{{Namespace: "default", Name: "p", Rules: out}}
	}
	return p
}

func TestNPMRules(t *testing.T) {
	const host = "In Allow remote 192.168.1.11"
	peers := PolicyPeer{Pods: []netip.Addr{addr("10.244.1.7"), addr("10.244.2.8")}}
	rule := func(ports []PolicyPort, peers ...PolicyPeer) []PolicyRule {
		return []PolicyRule{{Peers: peers, Ports: ports}}
	}
	tcp := []PolicyPort{{Proto: packet.TCP, Lo: 80, Hi: 82}}
	for _, c := range []struct {
		name, want, skip string
		p                PodPolicies
	}{
		{"no policy", "", "", podPolicies(nil, nil)},
		{"deny all", "In Block; " + host + "; Out Block", "", podPolicies([]PolicyRule{}, []PolicyRule{})},
		{"a selector and a range", "In Allow 6 local {10.244.1.7,10.244.2.8} lports 80,81,82; In Block; " + host, "",
			podPolicies(rule(tcp, peers), nil)},
		{"egress", "Out Allow 6 remote {10.244.1.7,10.244.2.8} rports 80,81,82; Out Block; " + host, "", podPolicies(nil, rule(tcp, peers))},
		{"everything is one rule", "In Allow; " + host, "", podPolicies(append(rule(tcp, peers), PolicyRule{}), nil)},
		{"everywhere is two halves", "Out Allow remote {0.0.0.0/1,128.0.0.0/1}; Out Block; " + host, "",
			podPolicies(nil, rule(nil, PolicyPeer{Block: prefix("0.0.0.0/0")}))},
		{"a port alone", "In Allow 17; In Block; " + host, "", podPolicies(rule([]PolicyPort{{Proto: packet.UDP}}), nil)},
		{"a named port takes the policy away in both directions", "", "named port",
			podPolicies(rule([]PolicyPort{{Proto: packet.TCP, Name: "http"}}), []PolicyRule{})},
		{"except", "", "except", podPolicies(rule(nil, PolicyPeer{Block: prefix("10.0.0.0/8"), Except: []netip.Prefix{prefix("10.1.0.0/16")}}),
			nil)},
	} {
		r := newNPMRig(t, "10.0.20348.2762")
		skipped, err := r.apply(c.p)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.acls(); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
		if (len(skipped) > 0) != (c.skip != "") || c.skip != "" && !strings.Contains(skipped[0].Why, c.skip) {
			t.Errorf("%s: skipped %+v", c.name, skipped)
		}
	}
}

// What changes is written again, what does not is left; a policy that goes leaves nothing.
func TestNPMFollows(t *testing.T) {
	r := newNPMRig(t, "10.0.20348.2762")
	with := func(pods ...string) PodPolicies {
		var peer PolicyPeer
		for _, p := range pods {
			peer.Pods = append(peer.Pods, addr(p))
		}
		return podPolicies([]PolicyRule{{Peers: []PolicyPeer{peer}}}, nil)
	}
	for i, c := range []struct {
		p       PodPolicies
		has     string
		changes bool
	}{
		{with("10.244.1.7"), "{10.244.1.7}", true},
		{with("10.244.1.7"), "{10.244.1.7}", false},
		{with("10.244.1.7", "10.244.1.8"), "{10.244.1.7,10.244.1.8}", true},
		{with(), "{}", true},
		{podPolicies(nil, nil), "", true},
	} {
		before := r.changes
		if _, err := r.apply(c.p); err != nil {
			t.Fatal(err)
		}
		if got := r.acls(); !strings.Contains(got, c.has) || c.has == "" && got != "" || (r.changes > before) != c.changes {
			t.Errorf("step %d: %q, %d changes", i, got, r.changes-before)
		}
	}
}

// Where NPM cannot work it says why.
func TestNPMRefused(t *testing.T) {
	negative := podPolicies(nil, []PolicyRule{{Peers: []PolicyPeer{{NegativeNamespaces: true}}}})
	peer := podPolicies([]PolicyRule{{Peers: []PolicyPeer{{Pods: []netip.Addr{addr("10.244.1.7")}}}}}, nil)
	for _, c := range []struct {
		build, want string
		p           PodPolicies
	}{
		{"10.0.17763.1432", "the sets of pod default/web", peer},
		{"10.0.20348.2762", "cni.npm-negative-namespaces", negative},
	} {
		if _, err := newNPMRig(t, c.build).apply(c.p); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.build, err, c.want)
		}
	}
	cl := cluster(false, "10.0.20348.2762")
	s, _, r := setUp(t, mustNew(t, plugins(t)["calico-bgp"]), cl)
	if _, err := NewPolicyAgent(AgentNPM, PluginCalico).Apply(s, cl.Node("win1"), r.EndpointID, peer); err == nil ||
		!strings.Contains(err.Error(), `no network "azure"`) {
		t.Error(err)
	}
	if !slices.Contains(Agents(), string(AgentNPM)) {
		t.Error("a lab cannot name the agent")
	}
}
