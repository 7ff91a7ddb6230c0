package doctor

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/conformance/check/subject"
	"github.com/winlab-dev/winlab/conformance/node/observed"
)

// override finds the node name that kube-proxy was given. set is false when no
// command line of kube-proxy is there, or its configuration file is not.
func (x *nodeFacts) override(s *subject.Subject) (value string, place observed.Place, given, told bool) {
	if v, p, ok := argument(s, "--hostname-override"); ok {
		return v, p, true, v != ""
	}
	conf, p, ok := argument(s, "--config")
	if !ok || conf == "" {
		return "", placeOf(s, "kube-proxy without --hostname-override"), true, false
	}
	if all := x.subjects("kube-proxy-config"); len(all) > 0 {
		c := all[0] // a node has one
		if n := fold(c.Root, "hostnameOverride"); n != nil && text(n) != "" {
			return text(n), observed.Place{File: c.File, Line: n.Line, Text: "hostnameOverride: " + text(n)}, true, true
		}
		return "", placeOf(c, "KubeProxyConfiguration without hostnameOverride"), true, false
	}
	p.Text = "--config=" + conf
	return "", p, false, false
}

// vanished are signs that endpoints of this node's pods are gone or are taken
// for those of another node.
func (x *nodeFacts) vanished() []observed.Place {
	var out []observed.Place
	for _, s := range x.n.SignsOf("endpoint-gone") {
		out = append(out, s.Place)
	}
	for _, e := range x.n.Endpoints {
		if e.Remote && x.inSubnet(e.Address) && x.ofPods(e) && e.Address != sourceVIPOf(x) {
			p := e.Place
			p.Text = fmt.Sprintf("remote endpoint %s in the node's own subnet %s", e.Address, x.subnet.prefix)
			out = append(out, p)
		}
	}
	return out
}

func sourceVIPOf(x *nodeFacts) netip.Addr {
	for _, s := range x.subjects("kube-proxy") {
		if v, _, ok := argument(s, "--source-vip"); ok {
			a, _ := netip.ParseAddr(v)
			return a
		}
	}
	return netip.Addr{}
}

func overrideMissing(x *nodeFacts) look {
	var out look
	all := x.subjects("kube-proxy")
	if len(all) == 0 {
		return lacks(
			"No command line of kube-proxy; take it with: Get-CimInstance Win32_Process -Filter \"Name='kube-proxy.exe'\" | Format-List ProcessId, Name, CommandLine | Out-File -Width 8192 kube-proxy.txt")
	}
	for _, s := range all {
		_, place, given, told := x.override(s)
		switch {
		case !given:
			out.lacks = fmt.Sprintf("kube-proxy has %s; take that file too", place.Text)
		case !told:
			h := hit{
				says: "kube-proxy has no --hostname-override: it takes the host's name for the node's, and where they differ the node's own pods count as those of another node", evidence: []observed.Place{place}, subject: "kube-proxy"}
			if x.me != nil {
				h.write = fmt.Sprintf("start kube-proxy with --hostname-override=%s", x.me.Name)
			}
			if gone := x.vanished(); len(gone) > 0 {
				h.level = "error"
				h.evidence = append(h.evidence, gone...)
			}
			if x.me != nil && x.n.HostName.Value != "" && !strings.EqualFold(x.me.Name, x.n.HostName.Value) {
				h.level = "error"
				h.evidence = append(h.evidence, x.n.HostName.Place)
			}
			out.hits = append(out.hits, h)
		}
	}
	return out
}

func overrideOther(x *nodeFacts) look {
	var out look
	for _, s := range x.subjects("kube-proxy") {
		value, place, _, told := x.override(s)
		switch {
		case !told || variable(value):
		case x.me == nil:
			out.lacks = "The node is not in a list of the cluster's nodes; take one with: kubectl get nodes -o yaml"
		case strings.EqualFold(value, x.me.Name):
			out.healthy = "kube-proxy has the node's name, --hostname-override=" + value
		default:
			out.hits = append(out.hits,
				hit{says: fmt.Sprintf("kube-proxy has --hostname-override=%s, and the node is called %s: its own pods count as those of another node",
					value, x.me.Name),
					evidence: append([]observed.Place{place, x.me.Place}, x.vanished()...), subject: "kube-proxy",
					write: fmt.Sprintf("start kube-proxy with --hostname-override=%s", x.me.Name)})
		}
	}
	return out
}

func sourceVIPStale(x *nodeFacts) look {
	var out look
	type vip struct {
		addr  netip.Addr
		place observed.Place
		what  string
	}
	var vips []vip
	for _, v := range x.n.SourceVIPs {
		if v.Address.IsValid() {
			vips = append(vips, vip{v.Address.Addr(), v.Place, "the source VIP " + v.Address.Addr().String()})
		}
		if v.Subnet.IsValid() {
			vips = append(vips, vip{v.Subnet.Addr(), v.Place, "the subnet " + v.Subnet.String() + " of the request for a source VIP"})
		}
	}
	for _, s := range x.subjects("kube-proxy") {
		if v, p, ok := argument(s, "--source-vip"); ok && !variable(v) {
			if a, err := netip.ParseAddr(v); err == nil {
				vips = append(vips, vip{a, p, "kube-proxy's --source-vip " + v})
			}
		}
	}
	switch {
	case len(vips) == 0 && x.network() == "overlay":
		return lacks("No source VIP; take C:\\k\\SourceVip.json, C:\\k\\SourceVipRequest.json and kube-proxy's command line")
	case len(vips) == 0:
		return look{}
	case !x.subnet.prefix.IsValid():
		return lacks(
			"There is a source VIP, or a request for one, but not the node's subnet to compare it with; take C:\\run\\flannel\\subnet.env and Get-HnsNetwork | ConvertTo-Json -Depth 20")
	}
	for _, v := range vips {
		if !x.subnet.contains(v.addr) {
			evidence := []observed.Place{v.place, x.subnet.place}
			for _, s := range x.n.SignsOf("source-vip") {
				evidence = append(evidence, s.Place)
			}
			out.hits = append(out.hits,
				hit{says: fmt.Sprintf("%s is outside of the node's subnet %s: it is left over from before the node joined again", v.what,
					x.subnet.prefix), evidence: evidence})
		}
	}
	if len(out.hits) == 0 {
		out.healthy = fmt.Sprintf("the source VIP is in the node's subnet %s", x.subnet.prefix)
	}
	return out
}

func flanneldWaits(x *nodeFacts) look {
	waits := append(x.n.SignsOf("flanneld-waits"), x.n.SignsOf("flanneld-network")...)
	if len(x.pods) > 0 {
		if x.flannel() {
			return healthy(fmt.Sprintf("flanneld's network %s is there", x.pods[0].Name))
		}
		return look{}
	}
	if len(waits) == 0 {
		return look{}
	}
	var out look
	place, listed := x.n.Listed(observed.ListNetworks)
	for _, s := range waits {
		evidence := []observed.Place{s.Place}
		says := fmt.Sprintf("the start of the node waits for flanneld's network, %d times in a row", s.Count)
		if listed {
			place.Text = "no HNS network for pods in this list"
			evidence = append(evidence, place)
		} else if len(x.n.SignsOf("flanneld-runs")) > 0 {
			continue // it came later
		}
		out.hits = append(out.hits, hit{says: says, evidence: evidence, subject: "flanneld"})
	}
	return out
}

func subnetEnvMissing(x *nodeFacts) look {
	var out look
	there := x.subjects("subnet-env")
	for _, s := range x.n.SignsOf("subnet-env") {
		if len(there) > 0 {
			continue // it was written later
		}
		evidence := []observed.Place{s.Place}
		if p, ok := x.n.Listed(observed.ListProcesses); ok && x.fullProcessList() && !x.runs("flanneld") {
			p.Text = "flanneld is not among the processes"
			evidence = append(evidence, p)
		}
		out.hits = append(out.hits, hit{says: "the flannel plugin finds no subnet.env: flanneld, which writes it, did not start properly",
			evidence: evidence, subject: "flanneld"})
	}
	if len(out.hits) == 0 && len(there) == 0 && x.flannel() {
		out.lacks = "No subnet.env; take C:\\run\\flannel\\subnet.env"
	}
	return out
}

func subnetEnvDuplicate(x *nodeFacts) look {
	var out look
	for _, s := range x.subjects("subnet-env") {
		n := fold(s.Root, "FLANNEL_SUBNET")
		p, err := netip.ParsePrefix(text(n))
		if err != nil {
			continue
		}
		own := p.Masked()
		at := observed.Place{File: s.File, Line: n.Line, Text: "FLANNEL_SUBNET=" + text(n)}
		evidence := []observed.Place{at}
		other := ""
		for _, m := range x.n.Machines {
			if x.me != nil && m.Name != x.me.Name && slices.Contains(m.PodCIDRs, own) {
				evidence, other = append(evidence, m.Place), "node "+m.Name
				break
			}
		}
		for _, net := range x.pods {
			if other == "" && slices.Contains(net.Remote, own) {
				place := net.Place
				place.Text = fmt.Sprintf("network %s has a route for %s to another node", net.Name, own)
				evidence, other = append(evidence, place), "another node"
			}
		}
		if other == "" {
			out.healthy = fmt.Sprintf("FLANNEL_SUBNET is %s, and no other node is seen to have it", text(n))
			continue
		}
		out.hits = append(out.hits, hit{says: fmt.Sprintf("FLANNEL_SUBNET is %s, which %s has", text(n), other), evidence: evidence,
			subject: "subnet.env"})
	}
	if len(out.hits) > 0 {
		out.healthy = ""
	}
	return out
}

func noNetwork(x *nodeFacts) look {
	place, ok := x.n.Listed(observed.ListNetworks)
	switch {
	case !ok:
		return lacks("No list of HNS networks; take one with: Get-HnsNetwork | ConvertTo-Json -Depth 20")
	case len(x.pods) > 0:
		return healthy(fmt.Sprintf("HNS has the network %s for pods", x.pods[0].Name))
	}
	if of := unlisted(x.n); of != "" {
		return lacks("The list of HNS networks is not whole: " + of + "; take it again with: Get-HnsNetwork | ConvertTo-Json -Depth 20")
	}
	var names []string
	for _, n := range x.n.Networks {
		if !slices.Contains(names, n.Name) {
			names = append(names, n.Name)
		}
	}
	if len(names) > 0 {
		place.Text = "HNS networks: " + strings.Join(names, ", ")
	}
	h := hit{says: "HNS has no network for pods", evidence: []observed.Place{place}}
	if x.n.Printed && len(noVEthernet(x).hits) == 0 { // the adapters say so, too
		h.says, h.level = "the list of HNS networks has no network for pods; if it is complete, HNS has none", "warning"
	}
	if !x.flannel() {
		// What the documents say is for flannel's start.ps1.
		h.write = "the network plugin, or what installs it, makes the network: read what it printed when it started; start.ps1 of flannel takes the adapter's name as -InterfaceName"
	}
	return look{hits: []hit{h}}
}

// unlisted names an object whose network is not in the list of networks, "" for none.
func unlisted(n *observed.Node) string {
	there := map[string]bool{}
	for _, x := range n.Networks {
		there[strings.ToLower(x.ID)], there[strings.ToLower(x.Name)] = true, true
	}
	for _, e := range n.Endpoints {
		if e.Network != "" && !there[strings.ToLower(e.Network)] {
			return fmt.Sprintf("endpoint %s is of network %s (%s:%d)", e.Name, e.Network, e.Place.File, e.Place.Line)
		}
	}
	for _, l := range n.OfNetworks {
		if !there[strings.ToLower(l.Value)] {
			return fmt.Sprintf("a policy list is of network %s (%s:%d)", l.Value, l.Place.File, l.Place.Line)
		}
	}
	return ""
}

func isVEthernet(name string) bool {
	return strings.HasPrefix(strings.ToLower(name), "vethernet (") && !strings.EqualFold(name, "vEthernet (nat)") &&
		!strings.Contains(strings.ToLower(name), "hns internal")
}

func noVEthernet(x *nodeFacts) look {
	place, ok := x.n.Listed(observed.ListAdapters)
	if !ok {
		return lacks("No list of adapters; take one with: ipconfig /all")
	}
	n := 0
	for _, a := range x.n.Adapters {
		if a.VM != "" || a.Name == "" {
			continue
		}
		if isVEthernet(a.Name) {
			return healthy("the adapter " + a.Name + " is there")
		}
		n++
	}
	place.Text = fmt.Sprintf("%d adapters, none called vEthernet (...)", n)
	if x.t.Network == "nat" {
		return look{}
	}
	return found("the virtual switch's adapter vEthernet (...) is not there", place)
}

func interfaceName(x *nodeFacts) look {
	start, ok := x.n.Command("start.ps1")
	if !ok {
		return look{}
	}
	want := "Ethernet" // the default (microsoft/SDN Kubernetes/flannel/start.ps1)
	f := strings.Fields(start.Text)
	for i := 0; i+1 < len(f); i++ {
		if strings.EqualFold(f[i], "-InterfaceName") {
			_, rest, _ := strings.Cut(start.Text, f[i])
			want = quotedWord(strings.TrimSpace(rest))
		}
	}
	if variable(want) || want == "" {
		return look{}
	}
	var names []string
	var place observed.Place
	for _, a := range x.n.Adapters {
		if a.VM != "" || len(a.Gateways) == 0 {
			continue
		}
		name := a.Name
		if isVEthernet(name) {
			name = strings.TrimSuffix(name[len("vEthernet ("):], ")")
		}
		if strings.HasPrefix(strings.ToLower(name), strings.ToLower(want)) {
			return look{}
		}
		names = append(names, name)
		place = a.Place
	}
	if len(names) == 0 {
		return look{}
	}
	return look{
		hits: []hit{{says: fmt.Sprintf("start.ps1 looks for an adapter whose name begins with %q, and the one that leads out is called %q", want,
			names[0]),
			evidence: []observed.Place{start.Place, place}, subject: "start.ps1",
			write: fmt.Sprintf("run start.ps1 with -InterfaceName %q", names[0])}}}
}

func quotedWord(s string) string {
	if s != "" && (s[0] == '"' || s[0] == '\'') {
		if end := strings.IndexByte(s[1:], s[0]); end >= 0 {
			return s[1 : 1+end]
		}
	}
	w, _, _ := strings.Cut(s, " ")
	return w
}
