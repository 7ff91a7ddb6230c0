package hns

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/windows/builds"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func readDump(t *testing.T, name string) *Dump {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../../fixtures/dumps", name))
	if err != nil {
		t.Fatal(err)
	}
	d, err := ParseDump(name, data)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestCalicoDump is Azure/azure-container-networking PR 1752.
func TestCalicoDump(t *testing.T) {
	d := readDump(t, "calico-vxlan-endpoint.json")
	s := newService(t, "2022")
	if err := s.Load(d); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(d.Ignored, []string{}) {
		t.Errorf("ignored %v", d.Ignored)
	}
	e := s.EndpointByName("pod_calico")
	if e == nil || !e.Attached() || e.Addresses()[0].String() != "192.168.44.10" || e.Gateway(false).String() != "192.168.44.1" {
		t.Fatalf("endpoint %+v", e)
	}
	var got []string
	for _, p := range e.Policies {
		got = append(got, string(p.Type())+" "+string(p.JSON()))
	}
	want := []string{
		`OutBoundNAT {"Exceptions":["10.96.0.0/12","192.168.0.0/16"]}`,
		`SDNRoute {"DestinationPrefix":"10.96.0.0/12","NeedEncap":true}`,
		`ProviderAddress {"ProviderAddress":"10.1.0.5"}`,
		`ACL {"Action":"Block","Direction":"In","Priority":65500,"Protocols":"256","RuleType":"Switch","Scope":0}`,
		`EncapOverhead {"Overhead":50}`,
	}
	for i := range want {
		if i >= len(got) || strings.Join(strings.Fields(got[i]), "") != strings.Join(strings.Fields(want[i]), "") {
			t.Errorf("policies %q\nwant     %q", got, want)
			break
		}
	}
	o := e.Policies[3].Origin
	if o == nil || o.String() != "ACL of endpoint pod_Calico  calico-vxlan-endpoint.json:63" {
		t.Errorf("origin of the ACL: %s", o)
	}
	if v, _ := s.NetworkByName("calico").VSID(); v != 4096 {
		t.Errorf("VSID %d", v)
	}
	// What Load takes, HNS's own checks take too.
	fresh := newService(t, "2022")
	for _, n := range d.Networks {
		mustNetwork(t, fresh, n)
	}
	for _, e := range d.Endpoints {
		mustEndpoint(t, fresh, e)
	}
}

// TestFlannelDump is flannel-io/flannel issue 1944.
func TestFlannelDump(t *testing.T) {
	d := readDump(t, "flannel-vxlan-network.json")
	s := newService(t, "2022")
	if err := s.Load(d); err != nil {
		t.Fatal(err)
	}
	n := s.NetworkByName("flannel.4096")
	if n == nil || !n.Is(Overlay) || n.ID != "cc63922a-97a9-4b98-8855-651046aac04e" || n.ManagementIP.String() != "192.168.79.40" ||
		n.drMacAddress() != "00-15-5D-FB-CB-0D" || n.DNSServerCompartment != 3 || n.Flags != NetworkNonPersistent {
		t.Fatalf("network %+v", n)
	}
	rs := PoliciesOf(n.Policies, PolicyRemoteSubnetRoute)
	if len(rs) != 1 || len(PoliciesOf(n.Policies, PolicyHostRoute)) != 1 {
		t.Fatalf("policies %+v", n.Policies)
	}
	v, ok := SettingsOf[RemoteSubnetRouteSettings](rs[0])
	if !ok || v != (RemoteSubnetRouteSettings{"10.244.0.0/24", 4096, "192.168.79.39", "ba:c1:6f:91:17:c7"}) {
		t.Errorf("remote subnet %+v, %v", v, ok)
	}
	if x := n.Extension("F74F241B-440F-4433-BB28-00F89EAD20D8"); x == nil || !x.IsEnabled || n.OtherExtension() != nil ||
		n.Extension(OpenVSwitchExtension) != nil {
		t.Errorf("extensions %+v", n.Extensions)
	}
	for _, f := range []string{"network.Health", "network.LayeredOn"} {
		if !slices.Contains(d.Ignored, f) {
			t.Errorf("%s is not named among the ignored %v", f, d.Ignored)
		}
	}
}

// TestExportRoundTrip: ParseDump and Load restore what Export writes, and a
// second export is the same.
func TestExportRoundTrip(t *testing.T) {
	s, n, e := bridge(t, "26100.4061")
	ns, err := s.CreateNamespace(Namespace{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.AttachEndpoint(e.ID, ns.ID); err != nil {
		t.Fatal(err)
	}
	if err := s.AddEndpointPolicies(e.ID,
		NewPolicy(OutBoundNATSettings{Exceptions: []string{"10.244.0.0/16"}}),
		NewPolicy(ACLSettings{Action: ACLAllow, Direction: ACLIn, Protocols: "6", LocalPorts: "80-90", Priority: 200,
			RuleType: ACLRuleSwitch})); err != nil {
		t.Fatal(err)
	}
	mustEndpoint(t, s, Endpoint{HostComputeNetwork: n.ID, Flags: EndpointRemote, IpConfigurations: []IpConfig{{IpAddress: "10.244.2.9"}}})
	l := tcp("10.96.0.1", 80, LBFlagDSR, e.ID)
	l.PortMappings[0].Flags, l.PortMappings[0].DistributionType = PortFlagLocalRoutedVIP|PortFlagVipExternalIP, DistributionSourceIP
	if _, err := s.CreateLoadBalancer(l); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateRoute(Route{HostComputeEndpoints: []string{e.ID},
		Setting: []SDNRouteSettings{{DestinationPrefix: "10.96.0.0/12", NeedEncap: true}}}); err != nil {
		t.Fatal(err)
	}
	first, err := s.Export()
	if err != nil {
		t.Fatal(err)
	}
	golden := "testdata/export.json"
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, first, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(golden); err != nil || !bytes.Equal(first, want) {
		t.Errorf("export differs from %s (%v); run the test with -update and look at the difference", golden, err)
	}
	d, err := ParseDump("export.json", first)
	if err != nil || len(d.Ignored) != 0 {
		t.Fatalf("%v, ignored %v", err, d.Ignored)
	}
	again := newService(t, "26100.4061")
	if err := again.Load(d); err != nil {
		t.Fatal(err)
	}
	second, err := again.Export()
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("second export differs: %v\n%s\n%s", err, first, second)
	}
	if !again.Endpoint(e.ID).Attached() {
		t.Error("the endpoint lost its port")
	}
	_, err = again.CreateLoadBalancer(tcp("10.96.0.1", 80, 0, e.ID))
	wantCode(t, err, ErrAlreadyExists)
}

// TestV1RoundTrip: v2 to v1 and back keeps what both can say.
func TestV1RoundTrip(t *testing.T) {
	d := readDump(t, "calico-vxlan-endpoint.json")
	d.Add(readDump(t, "flannel-vxlan-network.json"))
	s := newService(t, "2022")
	if err := s.Load(d); err != nil {
		t.Fatal(err)
	}
	for _, n := range s.ListNetworks(nil) {
		v := NetworkV1(n)
		if v.ID != strings.ToUpper(n.ID) || len(v.Subnets) != 1 || v.Subnets[0].GatewayAddress == "" {
			t.Errorf("v1 network %+v", v)
		}
		back, err := FromNetworkV1(v)
		if err != nil || asJSON(t, NetworkV1(&back)) != asJSON(t, v) {
			t.Errorf("network %s: %v\n%s\n%s", n.Name, err, asJSON(t, v), asJSON(t, NetworkV1(&back)))
		}
	}
	e := s.EndpointByName("pod_Calico")
	v := EndpointV1(e, s.Network(e.HostComputeNetwork))
	if v.VirtualNetworkName != "Calico" || v.EncapOverhead != 50 || v.State != 3 || v.GatewayAddress != "192.168.44.1" {
		t.Errorf("v1 endpoint %+v", v)
	}
	text := asJSON(t, v)
	for _, want := range []string{`"Type":"PA"`, `"PA":"10.1.0.5"`, `"Type":"ROUTE"`, `"ExceptionList":["10.96.0.0/12","192.168.0.0/16"]`,
		`"Type":"ACL"`} {
		if !strings.Contains(text, want) {
			t.Errorf("v1 endpoint lacks %s: %s", want, text)
		}
	}
	back, err := FromEndpointV1(v)
	if err != nil || asJSON(t, EndpointV1(&back, s.Network(e.HostComputeNetwork))) != text {
		t.Errorf("endpoint: %v\n%s", err, text)
	}
	l := tcp("10.96.0.1", 80, LBFlagDSR, e.ID)
	l.ID, l.SourceVIP = noGUID, "10.1.0.5"
	l.PortMappings[0].Flags = PortFlagILB | PortFlagLocalRoutedVIP | PortFlagUseMux | PortFlagPreserveDIP
	got, route, err := FromPolicyListV1(PolicyListV1(&l))
	if err != nil || route != nil || asJSON(t, got) != asJSON(t, l) {
		t.Errorf("load balancer: %v\n%s\n%s", err, asJSON(t, got), asJSON(t, l))
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestFromPolicyV1(t *testing.T) {
	for in, want := range map[string]string{
		`{"Type":"NAT","Protocol":"TCP","InternalPort":80,"ExternalPort":8080}`: `PortMapping {"ExternalPort":8080,"InternalPort":80,"Protocol":6}`,
		`{"Type":"NAT","Protocol":"17","InternalPort":53,"ExternalPort":53}`:    `PortMapping {"ExternalPort":53,"InternalPort":53,"Protocol":17}`,
		`{"Type":"VSID","VSID":4096}`:                                           `VSID {"IsolationId":4096}`,
		`{"Type":"VLAN","VLAN":1}`:                                              `VLAN {"IsolationId":1}`,
		`{"Type":"L2Driver"}`:                                                   `L2Driver `,
		`{"Type":"OutBoundNAT","VIP":"10.0.0.4","ExceptionList":["10.0.0.0/8"],"Destinations":["10.0.0.9"]}`:  `OutBoundNAT {"Destinations":["10.0.0.9"],"Exceptions":["10.0.0.0/8"],"VirtualIP":"10.0.0.4"}`,
		`{"Type":"ACL","Action":"Block","Direction":"Out","Protocol":6,"RemotePort":80,"LocalPort":0}`:        `ACL {"Action":"Block","Direction":"Out","Protocols":"6","RemotePorts":"80"}`,
		`{"Type":"ACL","Action":"Block","Direction":"Out","Protocol":0,"Protocols":"17","RemotePorts":"1-9"}`: `ACL {"Action":"Block","Direction":"Out","Protocols":"17","RemotePorts":"1-9"}`,
		`{"Type":"PortMapping","Settings":{"Protocol":6,"InternalPort":80,"ExternalPort":8080,"Flags":1}}`:    `PortMapping {"Protocol":6,"InternalPort":80,"ExternalPort":8080,"Flags":1}`,
		`{"Type":"PROXY","IP":"10.0.0.1","Port":"15001","ExceptionList":["10.0.0.0/8"],"OutboundNat":true}`:   `L4Proxy {"Exceptions":["10.0.0.0/8"],"IP":"10.0.0.1","OutboundNAT":true,"Port":"15001"}`,
		`{"Type":"Isolation","VLAN":3,"InDefaultIsolation":true}`:                                             `Isolation {"InDefaultIsolation":true,"VLAN":3}`,
	} {
		p, err := FromPolicyV1([]byte(in))
		if got := string(p.Type()) + " " + string(p.JSON()); err != nil || got != want {
			t.Errorf("%s\n got %s, %v\nwant %s", in, got, err, want)
		}
	}
	for _, in := range []string{`{}`, `[]`, `{"Type":1}`, `{"Type":"NAT","Protocol":"sctp?"}`} {
		if p, err := FromPolicyV1([]byte(in)); err == nil {
			t.Errorf("%s became %+v", in, p)
		}
	}
}

func TestParseDumpForms(t *testing.T) {
	network := `{"ID":"A1","Name":"cbr0","Type":"L2Bridge","Subnets":[{"AddressPrefix":"10.244.1.0/24","GatewayAddress":"10.244.1.1"}]}`
	endpoint := `{"ID":"B1","IPAddress":"10.244.1.4","VirtualNetwork":"A1","Namespace":{"ID":"C1"}}`
	policyList := `{"ID":"D1","References":["/endpoints/B1","/endpoints/GONE"],"Policies":[{"Type":"ELB","VIPs":["10.96.0.1"],"Protocol":6,"InternalPort":80,"ExternalPort":80}]}`
	all := network + "\n" + endpoint + "\n[" + policyList + "]"
	for name, text := range map[string]string{
		"one after the other": all,
		"HNS reply": `{"Success":true,"Error":"","Output":[` + network + `]} {"Success":true,"Output":` + endpoint +
			`}{"Success":true,"Output":[` + policyList + `]}`,
		"keyed": `{"Networks":[` + network + `],"Endpoints":[` + endpoint + `],"PolicyLists":[` + policyList + `]}`,
	} {
		d, err := ParseDump(name, []byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		s := newService(t, "2019")
		if err := s.Load(d); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		e, l := s.Endpoint("b1"), s.LoadBalancer("d1")
		if e == nil || l == nil || !e.Attached() || e.IpConfigurations[0].PrefixLength != 24 ||
			!slices.Equal(s.Namespace("c1").Endpoints(), []string{"b1"}) {
			t.Errorf("%s: endpoint %+v, load balancer %+v", name, e, l)
			continue
		}
		if !slices.Equal(l.HostComputeEndpoints, []string{"b1", "gone"}) || l.Ports.IsZero() {
			t.Errorf("%s: a dangling backend must stay, and the ports be taken: %+v", name, l)
		}
	}
	for _, empty := range []string{"[]", "null", `{"Success":true,"Output":[]}`} {
		if _, err := ParseDump("empty.json", []byte(empty)); err != nil {
			t.Errorf("%s: %v", empty, err)
		}
	}
}

func TestParseDumpErrors(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", "d.json:1:1: holds no HNS object"},
		{"Name : cbr0", "d.json:1:1: not JSON"},
		{"[\n  {\"ID\": }\n]", "d.json:2:10: not JSON"},
		{"{\"ID\":\"A1\",\n", "d.json:2:1: not JSON: the file ends in the middle of a value"},
		{"7", "d.json:1:1: 7 is not an HNS object"},
		{"{\"Foo\":1,\"Bar\":2}", "d.json:1:1: this object is not an HNS network"},
		{"[\n {\"Type\":\"NAT\",\n  \"Name\":7}]", "d.json:3:10: network: field Name is a JSON number; it must be a string"},
		{"{\"IPAddress\":\"10.0.0.4\",\n\"Policies\":[{\"Type\":\"L2Driver\"},\n  {\"PA\":\"10.1.0.5\"}]}",
			"d.json:3:3: endpoint: Policies[1]: policy has no Type"},
		{"{\"IPAddress\":\"10.0.0.4\",\n\"State\":9}", "d.json:2:9: endpoint: State is 9"},
		{"{\"HostComputeNetwork\":\"b\",\n\"Policies\":[{\"Type\":\"ACL\"},\n  {\"Type\":5}]}",
			"d.json:3:11: endpoint: field Policies.Type is a JSON number; it must be a string"},
		{"{\"Ipams\":[{\"Subnets\":[\n{\"Policies\":[5]}]}]}",
			"d.json:2:14: network: field Ipams.Subnets.Policies is a JSON number; it must be an object"},
		{"{\"Success\":false,\"Error\":\"Element not found.\"}", "d.json:1:1: this is a failed HNS call: \"Element not found.\""},
		{"{\"References\":[],\"Policies\":[]}", "holds neither ELB nor ROUTE"},
	} {
		_, err := ParseDump("d.json", []byte(tt.text))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v\nwant %s", tt.text, err, tt.want)
		}
	}
	// All mistakes are reported, each on a line.
	_, err := ParseDump("d.json", []byte("[{\"Foo\":1},\n{\"Bar\":1},\n7]"))
	if got := strings.Count(err.Error(), "d.json:"); got != 3 {
		t.Errorf("%d mistakes told, want 3: %v", got, err)
	}
}

func TestLoadErrors(t *testing.T) {
	d, err := ParseDump("d.json", []byte(`{"ID":"B1","IPAddress":"10.244.1.4"}
{"ID":"B2","IPAddress":"10.244.1.5","VirtualNetwork":"A9"}`))
	if err != nil {
		t.Fatal(err)
	}
	err = newService(t, "2019").Load(d)
	for _, want := range []string{"d.json:1: the endpoint names no network", "d.json:2: network a9 of the endpoint is not in the dump",
		"Get-HnsNetwork"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %s", err, want)
		}
	}
	d = readDump(t, "flannel-vxlan-network.json")
	s := newService(t, "2019")
	if err := s.Load(d); err != nil {
		t.Fatal(err)
	}
	if err := s.Load(d); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("the same dump twice: %v", err)
	}
}

func FuzzDump(f *testing.F) {
	for _, name := range []string{"calico-vxlan-endpoint.json", "flannel-vxlan-network.json"} {
		data, err := os.ReadFile(filepath.Join("../../../fixtures/dumps", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"Networks":[{"Type":"Overlay","Ipams":[{"Subnets":[{"IpAddressPrefix":"fd00::/64"}]}]}],"Routes":[{"Setting":[]}]}`))
	f.Add([]byte(`{"ID":"D1","References":["/endpoints/B1"],"Policies":[{"Type":"ELB","Protocol":6},{"Type":"ROUTE"}]}`))
	f.Add([]byte("\xff\xfe{\x00"))
	build := builds.MustLookup("2022")
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := ParseDump("fuzz", data)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "fuzz:") {
				t.Errorf("error without a place: %v", err)
			}
			return
		}
		s := NewService(build, Options{Node: "n"})
		if s.Load(d) != nil {
			return
		}
		out, err := s.Export()
		if err != nil {
			t.Fatalf("cannot export what was loaded: %v", err)
		}
		again, err := ParseDump("export", out)
		if err != nil {
			t.Fatalf("cannot read the export: %v\n%s", err, out)
		}
		if len(again.Networks) != len(d.Networks) || len(again.Endpoints) != len(d.Endpoints) {
			t.Errorf("export holds %d networks and %d endpoints, want %d and %d", len(again.Networks), len(again.Endpoints), len(d.Networks),
				len(d.Endpoints))
		}
		for _, n := range s.ListNetworks(nil) {
			NetworkV1(n)
		}
		for _, e := range s.ListEndpoints(nil) {
			EndpointV1(e, s.Network(e.HostComputeNetwork))
		}
	})
}

func FuzzPolicy(f *testing.F) {
	for _, p := range []Policy{
		NewPolicy(OutBoundNATSettings{Exceptions: []string{"10.0.0.0/8"}}),
		NewPolicy(ACLSettings{Action: ACLAllow, Direction: ACLIn, LocalPorts: "80-90,443", RemoteAddresses: "10.0.0.0/8,fd00::1"}),
		NewPolicy(PortMappingSettings{Protocol: 6, InternalPort: 80, ExternalPort: 80}),
		ParsePolicy("NAT", []byte(`{"Protocol":"TCP"}`)),
	} {
		f.Add(string(p.Type()), []byte(p.JSON()))
	}
	f.Fuzz(func(t *testing.T, typ string, settings []byte) {
		s := NewService(builds.MustLookup("26100.4061"), Options{})
		n, err := s.CreateNetwork(Network{Type: L2Bridge, Ipams: subnets("10.244.1.0/24")})
		if err != nil {
			t.Fatal(err)
		}
		e, err := s.CreateEndpoint(Endpoint{HostComputeNetwork: n.ID, Policies: []Policy{ParsePolicy(PolicyType(typ), settings)}})
		if err != nil {
			return
		}
		if _, err := json.Marshal(e); err != nil {
			t.Fatalf("an accepted policy cannot be written: %v", err)
		}
		back, err := FromPolicyV1(toPolicyV1(e.Policies[0]))
		if err != nil {
			t.Fatalf("policy does not survive v1: %v", err)
		}
		if back.Type() != e.Policies[0].Type() {
			t.Errorf("type %s became %s", e.Policies[0].Type(), back.Type())
		}
	})
}
