package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/conformance/check/nodeconf"
	"github.com/winlab-dev/winlab/conformance/node/observed"
	"github.com/winlab-dev/winlab/sim/windows/dump"
)

// proxyNetworks are the names of HNS networks that kube-proxy is told or says that it uses, in
// the order in which they count for it (pkg/proxy/winkernel/proxier.go getNetworkName: the
// configuration or the flag, then KUBE_NETWORK); its log last.
func (x *nodeFacts) proxyNetworks() (all []observed.Text) {
	add := func(value string, at observed.Place) {
		if value != "" && !variable(value) {
			all = append(all, observed.Text{Value: value, Place: at})
		}
	}
	for _, s := range x.subjects("kube-proxy") {
		if v, p, ok := argument(s, "--network-name"); ok {
			add(v, p)
		}
	}
	for _, s := range x.subjects("kube-proxy-config") {
		if n := fold(fold(s.Root, "winkernel"), "networkName"); n != nil {
			add(text(n), observed.Place{File: s.File, Line: n.Line, Text: "networkName: " + text(n)})
		}
	}
	for _, v := range x.n.Variables {
		if strings.EqualFold(v.Name(), "KUBE_NETWORK") {
			add(v.Value(), v.Place)
		}
	}
	for _, m := range x.n.NotOnNetwork {
		add(m.Network, m.Place)
	}
	return all
}

// ofContainer reports whether an endpoint's name is one that plugins give to those of pods: the
// id of the container, and the name of the network behind it (hcsshim hcn and
// containernetworking/plugins pkg/hns/endpoint_windows.go ConstructEndpointName).
func ofContainer(name string) bool {
	id, _, ok := strings.Cut(name, "_")
	return ok && len(id) >= 12 && strings.Trim(id, "0123456789abcdef") == ""
}

func otherNetwork(x *nodeFacts) look {
	all := x.proxyNetworks()
	if len(all) == 0 {
		return look{}
	}
	want := all[0]
	names := map[string]string{}
	for _, n := range x.n.Networks {
		names[strings.ToLower(n.ID)] = n.Name
	}
	var of []string
	places := []observed.Place{want.Place}
	here, there := 0, 0
	for _, e := range x.n.Endpoints {
		name := e.Network
		if n, ok := names[strings.ToLower(name)]; ok {
			name = n
		}
		switch {
		case name == "" || e.Remote || !ofContainer(e.Name):
		case slices.ContainsFunc(all, func(w observed.Text) bool { return strings.EqualFold(w.Value, name) }):
			here++
		default:
			if there++; there <= 3 {
				p := e.Place
				p.Text = fmt.Sprintf("endpoint %s on network %s", dump.Clip(e.Name), name)
				places = append(places, p)
			}
			if !slices.Contains(of, name) {
				of = append(of, name)
			}
		}
	}
	switch {
	case here > 0:
		return healthy("pods are on " + want.Value + ", the network of kube-proxy")
	case there == 0 && len(x.n.NotOnNetwork) > 0:
		return lacks("kube-proxy does not find endpoints of pods on " + want.Value +
			", and no list says on which network they are; take it with: Get-HnsEndpoint | ConvertTo-Json -Depth 20")
	case there == 0:
		return look{}
	}
	h := hit{says: fmt.Sprintf("kube-proxy looks for pods on the network %s, and all %d endpoints of containers are on %s", want.Value, there,
		strings.Join(of, ", ")), evidence: places}
	if len(x.n.NotOnNetwork) == 0 {
		// Containers outside of Kubernetes have such endpoints, too.
		h.level = "warning"
	}
	for _, m := range x.n.NotOnNetwork[:min(len(x.n.NotOnNetwork), 3)] {
		if m.Place != want.Place {
			h.evidence = append(h.evidence, m.Place)
		}
	}
	return look{hits: []hit{h}}
}

// cniConfiguration is what sim/kube/cni says of the file: a lab with it is refused for the same.
func cniConfiguration(x *nodeFacts) look {
	var out look
	for _, s := range x.subjects("cni") {
		c, ok := s.Value.(*nodeconf.CNI)
		if !ok {
			continue
		}
		for _, p := range c.Refused {
			out.hits = append(out.hits, hit{says: p.Message, evidence: []observed.Place{{File: s.File, Line: p.Line, Text: p.Message}},
				subject: s.Name})
		}
	}
	return out
}

// ofPlugins are services of network plugins: Antrea's and those of Open vSwitch
// (antrea-io/antrea docs/windows.md), Calico's (projectcalico/calico node/windows-packaging
// CalicoWindows/libs/calico/calico.psm1; CalicoConfd is for BGP only, and stopped otherwise).
var ofPlugins = []string{"antrea-agent", "ovsdb-server", "ovs-vswitchd", "CalicoNode", "CalicoFelix"}

func pluginServices(x *nodeFacts) look { return x.stopped(ofPlugins) }

// ovsPlugins are those whose packets Open vSwitch forwards on Windows.
var ovsPlugins = []string{"antrea", "ovn-k8s-cni-overlay"}

func ovsExtension(x *nodeFacts) look {
	var out look
	for _, n := range x.pods {
		switch {
		case n.OVSOff && (slices.Contains(ovsPlugins, x.plugin) || x.runs("antrea-agent", "ovnkube")):
			p := n.Place
			p.Text = "the extension of Open vSwitch is not enabled on the switch of the network " + n.Name
			out.hits = append(out.hits, hit{says: p.Text, evidence: []observed.Place{p}, subject: "network " + n.Name})
		case n.OVSOff:
			out.lacks = "Open vSwitch is installed and not enabled on the switch of the network " + n.Name +
				", and nothing says whether the plugin needs it; take the CNI configuration, or: tasklist"
		}
	}
	return out
}

func requestRange(x *nodeFacts) look {
	var out look
	for _, r := range x.n.NotRanges {
		verb := "has"
		if r.Asked {
			verb = "was asked for with"
		}
		out.hits = append(out.hits, hit{says: fmt.Sprintf("an endpoint %s %q in %s, which is not a range of addresses", verb, r.Value, r.Field),
			evidence: []observed.Place{r.Place}, subject: "endpoint " + dump.Clip(r.Endpoint)})
	}
	return out
}
