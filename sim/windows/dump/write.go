package dump

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/internal/utf"
)

// Form is one way in which people save what a node prints.
type Form struct {
	Name string
	// Doc is what it is, for help.
	Doc string
	// Lossy is set where the tool itself does not show all that decides about
	// packets; what is missing is said when the form is read.
	Lossy bool
	// Carries names what a form shows that is not about all of the node; nil for the
	// forms of the whole node.
	Carries []Kind
	// write returns the files of the form by name; a form of one file has the
	// name "".
	write func(*State) map[string][]byte
}

// Kind is a kind of things that a form can show.
type Kind string

// The kinds.
const (
	KindHNS       Kind = "objects of HNS"
	KindLB        Kind = "load balancers"
	KindRoutes    Kind = "routes"
	KindAddresses Kind = "addresses"
	KindGateways  Kind = "default gateways"
	KindIndexes   Kind = "numbers of interfaces"
	KindNumbers   Kind = "numbers of interfaces with addresses"
	KindNAT       Kind = "NAT"
	KindPorts     Kind = "ranges of ports"
	KindVFPPorts  Kind = "ports of the switch"
	KindVFPRules  Kind = "VFP rules"
)

// NeedsHNS reports whether a node without HNS prints nothing of a form.
func (f Form) NeedsHNS() bool {
	return f.Carries == nil || slices.ContainsFunc(f.Carries, func(k Kind) bool {
		return k == KindHNS || k == KindLB || k == KindVFPPorts || k == KindVFPRules || k == KindPorts
	})
}

// Forms are the forms that can be written, each of which [Read] reads.
func Forms() []Form {
	return []Form{
		{"v1",
			"Get-HnsNetwork, Get-HnsEndpoint, Get-HnsNamespace and Get-HnsPolicyList | ConvertTo-Json -Depth 20, one after another, and the node's routes and interfaces", false, nil, oneFile((*State).writeV1)},
		{"v1-utf16", "the same in UTF-16, as > in Windows PowerShell writes it", false, nil,
			oneFile(func(s *State) []byte { return utf.Encode16(crlf(string(s.writeV1()))) })},
		{"v2", "the same cmdlets with -Version 2 (HCN v2)", false, nil, oneFile((*State).writeV2)},
		{"reply", "answers of HNS: {\"Success\":true,\"Output\":[...]}", false, nil, oneFile((*State).writeReplies)},
		{"transcript", "a console with the commands and what they print", false, nil, oneFile((*State).writeTranscript)},
		{"text", "a console with HNS as JSON, and ipconfig, Get-NetIPInterface, Get-NetRoute, Get-NetNat and netsh as they print", false, nil,
			oneFile((*State).writeText)},
		{"hnsdiag-d", "hnsdiag list all -d, then the node's routes and interfaces", false, nil, oneFile((*State).writeHnsdiagDetails)},
		{"collectlogs", "a folder as written by collectlogs.ps1 of microsoft/SDN", false, nil, (*State).writeFolder},
		{"logs",
			"a folder with Get-HnsNetwork, Get-HnsEndpoint and Get-HnsNamespace, the load balancers in kube-proxy's log, and route print and netsh",
			false, nil, (*State).writeLogs},
		{"depth", "v1 through ConvertTo-Json without -Depth, which cuts off everything below two levels", true, nil,
			oneFile((*State).writeDepth)},
		{"list", "PowerShell's list form of v1, which shows nested lists as System.Object[]", true, nil, oneFile((*State).writeList)},
		{"hnsdiag", "hnsdiag list all: names and ids only", true, nil, oneFile((*State).writeHnsdiag)},
		{"hns", "Get-HnsNetwork, Get-HnsEndpoint, Get-HnsNamespace and Get-HnsPolicyList as JSON, without anything from the host", true,
			[]Kind{KindHNS, KindLB}, oneFile((*State).writeHNS)},
		{"kube-proxy-log", "kube-proxy's log with the load balancers that it created", true, []Kind{KindLB}, oneFile((*State).writeKubeProxyLog)},
		{"ipconfig", "ipconfig /all", true, []Kind{KindAddresses, KindGateways}, printed((*State).ipconfig)},
		{"netipaddress", "Get-NetIPAddress", true, []Kind{KindAddresses, KindNumbers}, printed((*State).netAddresses)},
		{"netipinterface", "Get-NetIPInterface: the table, which has no column Forwarding", true, []Kind{KindIndexes},
			printed((*State).netInterfaces)},
		{"netroute", "Get-NetRoute", true, []Kind{KindRoutes}, printed((*State).netRoutes)},
		{"route-print", "route print", true, []Kind{KindRoutes}, printed((*State).routePrint)},
		{"netnat", "Get-NetNat", true, []Kind{KindNAT}, printed((*State).netNATs)},
		{"port-ranges", "netsh int ipv4 show excludedportrange and show dynamicport", true, []Kind{KindPorts}, printed((*State).ports)},
		{"vfp", "rules of all ports as vfpctrl /list-rule shows them; for comparison only, not a replacement for HNS objects", true,
			[]Kind{KindVFPRules}, oneFile((*State).writeVFP)},
		{"vfp-counters", "the same rules with their counters, as vfpctrl /get-rule-counter shows them", true, []Kind{KindVFPRules},
			oneFile((*State).writeVFPCounters)},
		{"vfp-json", "ports and rules as vfpctrl shows them with /format 1; also for comparison only", true, []Kind{KindVFPPorts, KindVFPRules},
			oneFile((*State).writeVFPJSON)},
	}
}

// FormNames are the names of the forms.
func FormNames() []string {
	var all []string
	for _, f := range Forms() {
		all = append(all, f.Name)
	}
	return all
}

// Write returns a state in a form: one file with the name "", or a folder's files
// by name.
func Write(form string, s *State) (map[string][]byte, error) {
	all := Forms()
	i := slices.IndexFunc(all, func(f Form) bool { return f.Name == form })
	if i < 0 {
		return nil, fmt.Errorf("there is no form %q; there are %s", form, strings.Join(FormNames(), ", "))
	}
	if f := all[i]; s.HNS == nil && f.NeedsHNS() {
		var others []string
		for _, o := range all {
			if !o.NeedsHNS() {
				others = append(others, o.Name)
			}
		}
		return nil, fmt.Errorf("%s; forms that show only the host: %s", cmp.Or(s.WithoutHNS, "the node has no HNS"), strings.Join(others, ", "))
	}
	return all[i].write(s), nil
}

func oneFile(f func(*State) []byte) func(*State) map[string][]byte {
	return func(s *State) map[string][]byte { return map[string][]byte{"": f(s)} }
}

func crlf(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }

// documents writes lists as JSON, one after the other.
func documents(docs []document) []byte {
	var b strings.Builder
	for _, d := range docs {
		b.Write(marshal(notNil(d.objects), "    "))
	}
	return []byte(b.String())
}

func (s *State) writeV1() []byte { return documents(append(s.v1(), s.facts()...)) }
func (s *State) writeV2() []byte { return documents(append(s.v2(), s.facts()...)) }

func (s *State) writeReplies() []byte {
	var b strings.Builder
	for _, d := range s.v1() {
		b.Write(marshal(struct {
			Success bool
			Output  []any
		}{true, notNil(d.objects)}, ""))
	}
	b.Write(documents(s.facts()))
	return []byte(b.String())
}

func (s *State) writeTranscript() []byte {
	var b strings.Builder
	for _, d := range append(s.v1(), s.facts()...) {
		fmt.Fprintf(&b, "PS C:\\k> %s | ConvertTo-Json -Depth 20\n", d.command)
		if len(d.objects) > 0 {
			b.Write(marshal(d.objects, "  "))
		}
	}
	b.WriteString("PS C:\\k> netsh int ipv4 show dynamicport tcp\n")
	s.ranges(&b)
	b.WriteString("PS C:\\k>\n")
	return []byte(crlf(b.String()))
}

// writeHnsdiagDetails writes hnsdiag list all -d: the headings of the short form
// with the objects as JSON.
func (s *State) writeHnsdiagDetails() []byte {
	var b strings.Builder
	for _, d := range s.v1() {
		fmt.Fprintf(&b, "%s:\n", d.kind)
		b.Write(marshal(notNil(d.objects), "  "))
		b.WriteByte('\n')
	}
	b.Write(documents(s.facts()))
	return []byte(b.String())
}

func (s *State) writeHnsdiag() []byte {
	var b strings.Builder
	b.WriteString("Networks:\nName             ID\n")
	for _, n := range s.HNS.ListNetworks(nil) {
		fmt.Fprintf(&b, "%-16s %s\n", n.Name, strings.ToUpper(n.ID))
	}
	b.WriteString("\nEndpoints:\nName             ID                                   Virtual Network Name\n")
	for _, e := range s.HNS.ListEndpoints(nil) {
		name := ""
		if n := s.HNS.Network(e.HostComputeNetwork); n != nil {
			name = n.Name
		}
		fmt.Fprintf(&b, "%-16s %s %s\n", e.Name, e.ID, name)
	}
	b.WriteString("\nNamespaces:\nID                                   | Endpoint IDs\n")
	for _, n := range s.HNS.ListNamespaces(nil) {
		fmt.Fprintf(&b, "%s | %s\n", n.ID, strings.Join(n.Endpoints(), " "))
	}
	b.WriteString("\nLoadBalancers:\nID                                   | Virtual IPs      | Direct IP IDs\n")
	for _, l := range s.HNS.ListLoadBalancers(nil) {
		fmt.Fprintf(&b, "%s |  %-15s | %s\n", l.ID, strings.Join(l.FrontendVIPs, " "), strings.Join(l.HostComputeEndpoints, " "))
	}
	return []byte(b.String())
}

// writeFolder writes the files of collectlogs.ps1 that decide about packets.
// It asks for HCN v2 and, with -Detailed, for the networks of HNS v1, and lists
// states of HNS v1 beside the endpoints.
func (s *State) writeFolder() map[string][]byte {
	v1, v2 := s.v1(), s.v2()
	utf16 := func(parts ...[]byte) []byte {
		var b strings.Builder
		for _, p := range parts {
			b.Write(p)
		}
		return utf.Encode16(crlf(b.String()))
	}
	var routes, interfaces strings.Builder
	s.routePrint(&routes)
	s.netsh(&interfaces)
	var ports strings.Builder
	s.switchPorts(&ports)
	var ranges, excluded, ip strings.Builder
	s.ranges(&ranges)
	s.excluded(&excluded)
	s.ipconfig(&ip)
	s.netAddresses(&ip)
	s.netInterfaces(&ip)
	s.netRoutes(&routes)
	files := map[string][]byte{
		"network.txt":           utf16([]byte(s.networkTable()), documents(v2[:1])),
		"networkdetailed.txt":   utf16(documents(v1[:1])),
		"endpoint.txt":          utf16([]byte(s.endpointTable()), documents(v2[1:2])),
		"namespaces.txt":        utf16(documents(v2[2:3])),
		"policy.txt":            utf16(documents(v2[3:4])),
		"hnsdiag.txt":           utf16(s.writeHnsdiagObjects()),
		"ports.txt":             utf16([]byte(ports.String())),
		"vfpOutput.txt":         s.writeVFP(),
		"routes.txt":            utf16([]byte(routes.String())),
		"dynamicportrange.txt":  utf16([]byte(ranges.String())),
		"excludedportrange.txt": utf16([]byte(excluded.String())),
		"ip.txt":                utf16([]byte(ip.String())),
		"winver.txt":            utf16([]byte("Microsoft Windows NT 10.0.17763.0\n")),
		path.Join("adapters", "vEthernet_int.txt"): []byte(crlf(interfaces.String())),
	}
	if nats := s.facts(); len(nats) > 2 {
		files["nat.txt"] = utf16(documents(nats[2:]))
	}
	return files
}

func (s *State) writeHnsdiagObjects() []byte {
	all := map[string]any{}
	for _, d := range s.v1() {
		all[d.kind] = notNil(d.objects)
	}
	return marshal(all, "  ")
}

func (s *State) networkTable() string {
	var b strings.Builder
	for _, n := range s.HNS.ListNetworks(nil) {
		prefix := ""
		for _, x := range n.Subnets() {
			prefix = x.IpAddressPrefix
		}
		fmt.Fprintf(&b, "\nName          : %s\nType          : %s\nId            : %s\nAddressPrefix : %s\n\n", n.Name, n.Type, n.ID, prefix)
	}
	return b.String()
}

func (s *State) endpointTable() string {
	var b strings.Builder
	b.WriteString("\nIpAddress       MacAddress        IsRemoteEndpoint State\n---------       ----------        ---------------- -----\n")
	for _, e := range s.HNS.ListEndpoints(nil) {
		fmt.Fprintf(&b, "%-15s %-17s %-16v %5d\n", e.Address(false), e.MacAddress, remote(e.Remote()), e.State)
	}
	b.WriteByte('\n')
	return b.String()
}

func remote(yes bool) string {
	if yes {
		return "True"
	}
	return ""
}

// routePrint writes the table of IPv4 as route print does, and of IPv6 where
// there is one.
func (s *State) routePrint(b *strings.Builder) {
	rule := strings.Repeat("=", 75) + "\n"
	b.WriteString(rule + "\nIPv4 Route Table\n" + rule +
		"Active Routes:\nNetwork Destination        Netmask          Gateway       Interface  Metric\n")
	for _, r := range s.Routes {
		if !r.To.Addr().Is4() {
			continue
		}
		hop := "On-link"
		if r.Via.IsValid() {
			hop = r.Via.String()
		}
		fmt.Fprintf(b, "%17s %16s %16s %16s %6d\n", r.To.Addr(), mask(r.To.Bits()), hop, r.address, 25+r.Metric)
	}
	b.WriteString(rule + "Persistent Routes:\n  None\n\nIPv6 Route Table\n" + rule +
		"Active Routes:\n If Metric Network Destination      Gateway\n")
	for _, r := range s.Routes {
		if !r.To.Addr().Is6() {
			continue
		}
		hop := "On-link"
		if r.Via.IsValid() {
			hop = r.Via.String()
		}
		if text := r.To.String(); len(text) > 24 {
			fmt.Fprintf(b, " 14    281 %s\n%36s%s\n", text, "", hop)
		} else {
			fmt.Fprintf(b, " 14    281 %-24s %s\n", text, hop)
		}
	}
	b.WriteString(rule)
}

// mask is a mask of IPv4 with that many bits.
func mask(bits int) string {
	m := ^uint32(0) << (32 - bits)
	if bits == 0 {
		m = 0
	}
	return fmt.Sprintf("%d.%d.%d.%d", m>>24, m>>16&255, m>>8&255, m&255)
}

func (s *State) netsh(b *strings.Builder) {
	for _, i := range s.Interfaces {
		if i.IPv6 {
			continue
		}
		state := "disabled"
		if i.Forwarding {
			state = "enabled"
		}
		fmt.Fprintf(b,
			"\nInterface %s Parameters\n----------------------------------------------\nState                              : connected\nForwarding                         : %s\nAdvertising                        : disabled\n", i.Name, state)
	}
}

// writeVFP writes what microsoft/SDN dumpVfpPolicies.ps1 does.
func (s *State) writeVFP() []byte { return s.vfpListing(false) }

// writeVFPCounters writes what vfpctrl /get-rule-counter shows, of which the names of the
// fields are known.
func (s *State) writeVFPCounters() []byte { return s.vfpListing(true) }

func (s *State) vfpListing(counters bool) []byte {
	var b strings.Builder
	for _, p := range s.Ports {
		fmt.Fprintf(&b, "Policy for port : \n%s\n", p.Name)
		layer, group := "", ""
		for _, r := range p.Rules {
			if r.Layer != layer {
				layer, group = r.Layer, ""
				fmt.Fprintf(&b, "\n  LAYER : %s\n    Friendly name : %s\n", layer, layer)
			}
			if r.Group != group {
				group = r.Group
				fmt.Fprintf(&b, "\n  GROUP : %s\n      Friendly name : %s\n", group, group)
			}
			fmt.Fprintf(&b, "\n    RULE : \n        Friendly name : %s\n        Priority : %d\n        Type : %s\n        Conditions:\n", r.Name,
				r.Priority, r.Type)
			for _, c := range r.Conditions {
				fmt.Fprintf(&b, "            %s\n", c)
			}
			if len(r.Conditions) == 0 {
				b.WriteString("            <none>\n")
			}
			if c := r.Counts; counters && c != nil {
				fmt.Fprintf(&b, "        Matched packets : %d\n        Dropped packets : %d\n", c.Matched, c.Dropped)
				continue
			}
			b.WriteString("        Flow TTL: 0\n        Rule Data:\n")
			if len(r.Backends) > 0 {
				b.WriteString("        DIP Range:\n")
			}
			for _, x := range r.Backends {
				fmt.Fprintf(&b, "            { %s : %d }\n", x.Addr(), x.Port())
			}
		}
		b.WriteByte('\n')
	}
	return []byte(crlf(b.String()))
}

// tree reads what the JSON of a value says.
func tree(v any) any {
	var out any
	dec := json.NewDecoder(strings.NewReader(string(marshal(v, ""))))
	dec.UseNumber()
	_ = dec.Decode(&out) // it was written just now
	return out
}
