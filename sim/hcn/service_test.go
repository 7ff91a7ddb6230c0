package hcn

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/winlab-dev/winlab/sim/hns"
	"github.com/winlab-dev/winlab/sim/windows"
)

var testNode = hns.Options{Node: "n1", ManagementIP: netip.MustParseAddr("192.168.1.11")}

// serve starts a service and a server with a client for a test.
func serve(t *testing.T, build string, o Options) (*Service, *Server, *Client) {
	t.Helper()
	s, err := Start(windows.MustLookup(build), testNode, o)
	if err != nil {
		t.Fatal(err)
	}
	v, err := Listen(s, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- v.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s, v, dial(t, v)
}

func dial(t *testing.T, v *Server) *Client {
	t.Helper()
	c, err := Dial(v.Addr(), "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

const l2bridge = `{"Name":"cbr0","Type":"L2Bridge","Ipams":[{"Type":"Static","Subnets":[{"IpAddressPrefix":"10.244.1.0/24","Routes":[{"NextHop":"10.244.1.1","DestinationPrefix":"0.0.0.0/0"}]}]}],"SchemaVersion":{"Major":2,"Minor":0}}`

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// hresult returns the HRESULT of a refused call, 0 for one that succeeded.
func hresult(t *testing.T, err error) uint32 {
	t.Helper()
	if err == nil {
		return 0
	}
	e, ok := err.(*CallError)
	if !ok {
		t.Fatalf("no refusal but %v", err)
	}
	return e.HResult
}

// TestLifeOfAnEndpoint is what a network plugin does: find the network by its
// name, make an endpoint, attach it, give it policies, take it away.
func TestLifeOfAnEndpoint(t *testing.T) {
	_, _, c := serve(t, "10.0.20348", Options{})
	nh := must(c.Create(Network, 0, l2bridge))(t)
	ids := must(c.Enumerate(Network, FilterBy("Name", "CBR0")))(t)
	if len(ids) != 1 {
		t.Fatalf("networks %v", ids)
	}
	if ids := must(c.Enumerate(Network, FilterBy("Name", "nat")))(t); len(ids) != 0 {
		t.Errorf("a filter by another name found %v", ids)
	}
	eh := must(c.Create(Endpoint, nh, `{"Name":"e1"}`))(t)
	if fmt.Sprintf("0x%x", eh) == ids[0] || eh == nh {
		t.Errorf("handle %x", eh)
	}
	var e hns.Endpoint
	if err := json.Unmarshal([]byte(must(c.Query(Endpoint, eh))(t)), &e); err != nil {
		t.Fatal(err)
	}
	if e.HostComputeNetwork != ids[0] || len(e.IpConfigurations) != 1 {
		t.Errorf("endpoint %+v", e)
	}
	for field, value := range map[string]string{"VirtualNetwork": strings.ToUpper(ids[0]), "ID": "{" + strings.ToUpper(e.ID) + "}", "Name": "E1", "MacAddress": e.MacAddress, "IPAddress": e.IpConfigurations[0].IpAddress} {
		if got := must(c.Enumerate(Endpoint, FilterBy(field, value)))(t); len(got) != 1 || got[0] != e.ID {
			t.Errorf("filter by %s %s found %v", field, value, got)
		}
		if got := must(c.Enumerate(Endpoint, FilterBy(field, "0")))(t); len(got) != 0 {
			t.Errorf("filter by another %s found %v", field, got)
		}
	}
	if got := must(c.Enumerate(Endpoint, FilterBy("NoSuchField", "x")))(t); len(got) != 0 {
		t.Errorf("a filter by an unknown field found %v", got)
	}

	nsh := must(c.Create(Namespace, 0, `{"Type":"Host"}`))(t)
	attach := func(kind, what string) string {
		return fmt.Sprintf(`{"ResourceType":%q,"RequestType":%q,"Settings":{"EndpointId":%q}}`, kind, what, e.ID)
	}
	must(0, c.Modify(Namespace, nsh, attach("Endpoint", "Add")))(t)
	if err := c.Modify(Namespace, nsh, attach("Endpoint", "Add")); hresult(t, err) != 0x803b0014 {
		t.Errorf("attached twice: %v", err)
	}
	must(0, c.Modify(Endpoint, eh, `{"ResourceType":"Policy","RequestType":"Add","Settings":{"Policies":[{"Type":"OutBoundNAT","Settings":{"Exceptions":["10.0.0.0/8"]}}]}}`))(t)
	must(0, c.Modify(Namespace, nsh, attach("Endpoint", "Remove")))(t)
	must(0, c.Modify(Endpoint, eh, `{"ResourceType":"Port","RequestType":"Add","Settings":{"VirtualMachineId":"vm"}}`))(t)
	must(0, c.Modify(Endpoint, eh, `{"ResourceType":"Port","RequestType":"Remove","Settings":{"VirtualMachineId":"vm"}}`))(t)

	// The handle outlives the object, but finds it no more.
	must(0, c.Delete(Endpoint, e.ID))(t)
	if _, err := c.Query(Endpoint, eh); hresult(t, err) != 0x803b0002 {
		t.Errorf("a deleted endpoint: %v", err)
	}
	must(0, c.CloseHandle(Endpoint, eh))(t)
	if err := c.CloseHandle(Endpoint, eh); hresult(t, err) != 0x80070006 {
		t.Errorf("closed twice: %v", err)
	}
}

func TestHandles(t *testing.T) {
	s, v, c := serve(t, "10.0.20348", Options{})
	nh := must(c.Create(Network, 0, l2bridge))(t)
	other := dial(t, v)
	for name, err := range map[string]error{
		"foreign":          second(other.Query(Network, nh)),
		"foreign create":   second(other.Create(Endpoint, nh, `{}`)),
		"zero":             second(c.Query(Network, 0)),
		"other kind":       second(c.Query(Endpoint, nh)),
		"made up":          c.Modify(Network, nh+1, `{}`),
		"close other kind": c.CloseHandle(Namespace, nh),
	} {
		if hr := hresult(t, err); hr != 0x80070006 {
			t.Errorf("%s: 0x%x, %v", name, hr, err)
		}
	}
	again := must(c.Open(Network, must(c.Enumerate(Network, ""))(t)[0]))(t)
	if again == nh {
		t.Error("two handles of one object are the same")
	}
	must(0, c.CloseHandle(Network, again))(t)
	must(c.Query(Network, nh))(t) // the other one lives on

	session := s.Session("x")
	session.Call(&Request{Verb: Create, Kind: Namespace, Texts: []string{"{}"}})
	if session.Handles() != 1 {
		t.Errorf("%d handles", session.Handles())
	}
	session.Close()
	if res := session.Call(&Request{Verb: Open, Kind: Network}); res.Handle != 0 {
		t.Error("a closed session got a handle")
	}
}

func second[T any](_ T, err error) error { return err }

func TestRefusals(t *testing.T) {
	_, _, c := serve(t, "10.0.20348", Options{})
	must(c.Create(Network, 0, l2bridge))(t)
	nowhere := "11111111-2222-3333-4444-555555555555"
	for name, x := range map[string]struct {
		err  error
		want uint32
	}{
		"no network":            {second(c.Open(Network, nowhere)), 0x803b0001},
		"no endpoint":           {second(c.Open(Endpoint, nowhere)), 0x803b0002},
		"no namespace":          {second(c.Open(Namespace, nowhere)), 0x80070490},
		"no load balancer":      {c.Delete(LoadBalancer, nowhere), 0x80070490},
		"no route":              {c.Delete(SdnRoute, nowhere), 0x80070490},
		"name taken":            {second(c.Create(Network, 0, l2bridge)), 0x803b0010},
		"settings no JSON":      {second(c.Create(Network, 0, `{"Name":`)), 0x803b001b},
		"settings empty":        {second(c.Create(Network, 0, ``)), 0x803b001b},
		"settings an array":     {second(c.Create(Network, 0, `[]`)), 0x803b001b},
		"settings null":         {second(c.Create(Network, 0, `null`)), 0x803b000b},
		"field of another type": {second(c.Create(Network, 0, `{"Name":7,"Type":"NAT"}`)), 0x803b001b},
		"id no GUID":            {second(c.Create(Network, 0, `{"id":"cbr1","Type":"NAT"}`)), 0x80070057},
		"query no JSON":         {second(c.Enumerate(Network, `{`)), 0x803b001b},
		"filter no JSON":        {second(c.Enumerate(Network, `{"Filter":"{"}`)), 0x803b001b},
		"filter an array":       {second(c.Enumerate(Network, `{"Filter":"[]"}`)), 0x803b001b},
		"schema of the future":  {second(c.Enumerate(Network, `{"SchemaVersion":{"Major":3}}`)), 0x803b001b},
		"no such kind":          {second(c.Enumerate(77, "")), 0x803b0015},
		"no such verb":          {second(c.do(Request{Verb: 99, Kind: Network})), 0x803b0015},
		"v1 no path":            {second(c.HNSCall("GET", "/nothing/", "")), 0x803b0015},
		"v1 no method":          {second(c.HNSCall("PATCH", "/networks/"+nowhere, "")), 0x803b0015},
		"v1 id no GUID":         {second(c.HNSCall("GET", "/networks/cbr0", "")), 0x80070057},
		"v1 too deep":           {second(c.HNSCall("GET", "/a/b/c/d", "")), 0x803b0015},
		"v1 no network":         {second(c.HNSCall("GET", "/networks/"+nowhere, "")), 0x803b0001},
		"v1 no JSON":            {second(c.HNSCall("POST", "/networks/", "{")), 0x803b001b},
		"v1 no endpoint":        {second(c.HNSCall("POST", "/endpoints/"+nowhere+"/attach", "{}")), 0x803b0002},
		"v1 own id no GUID":     {second(c.HNSCall("POST", "/networks/", `{"ID":"x","Type":"nat"}`)), 0x80070057},
		"v1 empty policy list":  {second(c.HNSCall("POST", "/policylists/", `{}`)), 0x803b000d},
		"v1 unknown type":       {second(c.HNSCall("POST", "/networks/", `{"Policies":[{}],"Type":"nat"}`)), 0x803b001b},
	} {
		if hr := hresult(t, x.err); hr != x.want {
			t.Errorf("%s: 0x%x, want 0x%x: %v", name, hr, x.want, x.err)
		}
	}
	// The record is that of Windows: ErrorCode is the HRESULT as a number.
	res, err := c.Call(Request{Verb: Open, Kind: Network})
	if err != nil {
		t.Fatal(err)
	}
	var rec map[string]any
	if err := json.Unmarshal([]byte(res.Record), &rec); err != nil {
		t.Fatal(err)
	}
	if rec["Success"] != false || rec["Error"] != "The network was not found." || rec["ErrorCode"] != float64(0x803b0001) {
		t.Errorf("record %s", res.Record)
	}
}

func TestCreateTakesTheIDOfTheCall(t *testing.T) {
	_, _, c := serve(t, "10.0.20348", Options{})
	id := "6f5c4a4e-0000-4000-8000-0123456789ab"
	g, err := ParseGUID(id)
	if err != nil {
		t.Fatal(err)
	}
	must(c.do(Request{Verb: Create, Kind: Network, ID: g, Texts: []string{l2bridge}}))(t)
	if ids := must(c.Enumerate(Network, ""))(t); len(ids) != 1 || ids[0] != id {
		t.Errorf("ids %v", ids)
	}
	must(c.Create(Namespace, 0, `{"Id":"{6F5C4A4E-0000-4000-8000-0123456789AC}"}`))(t)
	if ids := must(c.Enumerate(Namespace, ""))(t); len(ids) != 1 || ids[0] != id[:35]+"c" {
		t.Errorf("ids %v", ids)
	}
}

// TestV1 is the way of dockershim-era programs and of kube-proxy's v1 mode.
func TestV1(t *testing.T) {
	_, _, c := serve(t, "10.0.17763.1432", Options{})
	into := func(raw json.RawMessage, v any) {
		t.Helper()
		if err := json.Unmarshal(raw, v); err != nil {
			t.Fatalf("%v: %s", err, raw)
		}
	}
	var version struct{ Major, Minor int }
	into(must(c.HNSCall("GET", "/globals/version", ""))(t), &version)
	if version.Major != 9 || version.Minor != 3 {
		t.Errorf("version %v", version)
	}
	var n hns.V1Network
	into(must(c.HNSCall("POST", "/networks/", `{"Name":"cbr0","Type":"l2bridge","Subnets":[{"AddressPrefix":"10.244.1.0/24","GatewayAddress":"10.244.1.1"}]}`))(t), &n)
	if n.ManagementIP != "192.168.1.11" || n.ID != strings.ToUpper(n.ID) {
		t.Errorf("network %+v", n)
	}
	var e hns.V1Endpoint
	into(must(c.HNSCall("POST", "/endpoints/", fmt.Sprintf(`{"Name":"e","VirtualNetwork":%q,"Policies":[{"Type":"PA","PA":"1.2.3.4"}]}`, n.ID)))(t), &e)
	post := func(path, body string) error { return second(c.HNSCall("POST", "/endpoints/"+e.ID+path, body)) }
	state := func(want hns.EndpointState) {
		t.Helper()
		var now hns.V1Endpoint
		into(must(c.HNSCall("GET", "/endpoints/"+e.ID, ""))(t), &now)
		if now.State != want {
			t.Errorf("state %d, want %d", now.State, want)
		}
	}
	state(hns.StateCreated)
	must(0, post("/attach", `{"SystemType":"Host","CompartmentId":1}`))(t)
	state(hns.StateAttachedSharing)
	must(0, post("/detach", `{"SystemType":"Host"}`))(t)
	state(hns.StateDetached)
	must(0, post("/attach", `{"SystemType":"Container","ContainerId":"c1"}`))(t)
	must(0, post("/attach", `{"SystemType":"Container","ContainerId":"c2"}`))(t)
	must(0, post("/detach", `{"SystemType":"Container","ContainerId":"c1"}`))(t)
	state(hns.StateAttachedSharing)
	for body, want := range map[string]uint32{
		`{"SystemType":"Container","ContainerId":"c2"}`: 0x803b0014, `{"SystemType":"Pod"}`: 0x80070057,
		`{"SystemType":"Container"}`: 0x80070057, `{"SystemType":"Host","CompartmentId":99}`: 0x80070490, `{`: 0x803b001b,
	} {
		if err := post("/attach", body); hresult(t, err) != want {
			t.Errorf("attach %s: %v", body, err)
		}
	}
	must(0, post("", `{"Policies":[{"Type":"QOS","MaximumOutgoingBandwidthInBytes":1000}]}`))(t)
	var now hns.V1Endpoint
	into(must(c.HNSCall("GET", "/endpoints/"+strings.ToLower(e.ID), ""))(t), &now)
	if len(now.Policies) != 1 || !strings.Contains(string(now.Policies[0]), "QOS") {
		t.Errorf("policies %s; the new list must be all there is", now.Policies)
	}
	var stats struct{ EndpointId string }
	into(must(c.HNSCall("GET", "/endpointstats/"+e.ID, ""))(t), &stats)
	if stats.EndpointId != e.ID {
		t.Errorf("stats of %q", stats.EndpointId)
	}

	var l hns.V1PolicyList
	into(must(c.HNSCall("POST", "/policylists/", fmt.Sprintf(`{"References":["/endpoints/%s"],"Policies":[{"Type":"ELB","VIPs":["10.96.0.10"],"Protocol":6,"InternalPort":80,"ExternalPort":80}]}`, e.ID)))(t), &l)
	var r hns.V1PolicyList
	into(must(c.HNSCall("POST", "/policylists/", fmt.Sprintf(`{"References":["/endpoints/%s"],"Policies":[{"Type":"ROUTE","DestinationPrefix":"10.96.0.0/12","NeedEncap":true}]}`, e.ID)))(t), &r)
	var lists []hns.V1PolicyList
	into(must(c.HNSCall("GET", "/policylists/", ""))(t), &lists)
	if len(lists) != 2 || lists[0].ID != l.ID || lists[1].ID != r.ID || !strings.Contains(string(lists[1].Policies[0]), `"ROUTE"`) {
		t.Errorf("policy lists %+v", lists)
	}
	for _, id := range []string{l.ID, r.ID} {
		must(c.HNSCall("GET", "/policylists/"+id, ""))(t)
		must(c.HNSCall("DELETE", "/policylists/"+id, ""))(t)
	}

	var ns v1Namespace
	into(must(c.HNSCall("POST", "/namespaces/", `{"IsDefault":false}`))(t), &ns)
	must(0, post("/detach", `{"SystemType":"Container","ContainerId":"c2"}`))(t)
	resource := fmt.Sprintf(`{"Type":"Endpoint","Data":{"ID":%q}}`, e.ID)
	into(must(c.HNSCall("POST", "/namespaces/"+ns.ID+"/addresource", resource))(t), &ns)
	if len(ns.ResourceList) != 1 || !strings.EqualFold(ns.ResourceList[0].Data.ID, e.ID) {
		t.Errorf("namespace %+v", ns)
	}
	must(c.HNSCall("POST", "/namespaces/"+ns.ID+"/removeresource", resource))(t)
	must(c.HNSCall("DELETE", "/namespaces/"+ns.ID, ""))(t)
	must(c.HNSCall("DELETE", "/endpoints/"+e.ID, ""))(t)
	must(c.HNSCall("DELETE", "/networks/"+n.ID, ""))(t)
	if raw := must(c.HNSCall("GET", "/networks", ""))(t); string(raw) != "[]" {
		t.Errorf("networks left: %s", raw)
	}
}

func TestBuildsDecide(t *testing.T) {
	dsr := `{"HostComputeEndpoints":[%q],"FrontendVIPs":["10.96.0.1"],"Flags":1,"PortMappings":[{"Protocol":6,"InternalPort":80,"ExternalPort":80}]}`
	for build, want := range map[string]uint32{"10.0.17763.1000": 0x80004001, "10.0.17763.1432": 0, "10.0.20348": 0} {
		_, _, c := serve(t, build, Options{})
		nh := must(c.Create(Network, 0, l2bridge))(t)
		must(c.Create(Endpoint, nh, `{}`))(t)
		id := must(c.Enumerate(Endpoint, ""))(t)[0]
		if _, err := c.Create(LoadBalancer, 0, fmt.Sprintf(dsr, id)); hresult(t, err) != want {
			t.Errorf("%s: DSR: %v", build, err)
		}
	}
	_, _, c := serve(t, "10.0.14393", Options{})
	if _, err := c.Enumerate(Network, ""); hresult(t, err) != 0x80004001 {
		t.Errorf("Windows Server 2016 has HCN v2: %v", err)
	}
	must(c.HNSCall("GET", "/networks/", ""))(t)
}

func TestManyClientsAtOnce(t *testing.T) {
	var calls safe
	s, v, _ := serve(t, "10.0.20348", Options{CallLog: &calls})
	const clients, rounds = 16, 20
	var wg sync.WaitGroup
	for i := range clients {
		c := dial(t, v)
		wg.Go(func() {
			name := fmt.Sprintf("net%d", i)
			nh, err := c.Create(Network, 0, fmt.Sprintf(`{"Name":%q,"Type":"NAT","Ipams":[{"Subnets":[{"IpAddressPrefix":"10.%d.0.0/16"}]}]}`, name, i))
			if err != nil {
				t.Error(err)
				return
			}
			for range rounds {
				h, err := c.Create(Endpoint, nh, `{}`)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := c.Query(Endpoint, h); err != nil {
					t.Error(err)
				}
				if err := c.CloseHandle(Endpoint, h); err != nil {
					t.Error(err)
				}
			}
			ids, err := c.Enumerate(Network, FilterBy("Name", name))
			if err != nil || len(ids) != 1 {
				t.Errorf("%v %v", ids, err)
				return
			}
			if got, err := c.Enumerate(Endpoint, FilterBy("VirtualNetwork", ids[0])); err != nil || len(got) != rounds {
				t.Errorf("%d endpoints, %v", len(got), err)
			}
		})
	}
	wg.Wait()
	s.With(func(svc *hns.Service) {
		if n := len(svc.ListEndpoints(nil)); n != clients*rounds {
			t.Errorf("%d endpoints", n)
		}
	})
	if n, diff, err := must(Start(windows.MustLookup("10.0.20348"), testNode, Options{}))(t).Replay("log", strings.NewReader(calls.String())); err != nil || len(diff) > 0 || n < clients*rounds*3 {
		t.Errorf("replay: %d calls, %v, %v", n, diff, err)
	}
}

func TestPanicIsOneCall(t *testing.T) {
	var said bytes.Buffer
	s, _, c := serve(t, "10.0.20348", Options{Log: log.New(&said, "", 0)})
	s.With(func(svc *hns.Service) { svc.OnChange(func(hns.Change) { panic("boom") }) })
	if _, err := c.Create(Namespace, 0, `{}`); hresult(t, err) != 0x8000ffff {
		t.Errorf("got %v", err)
	}
	if !strings.Contains(said.String(), "boom") {
		t.Errorf("the log says %q", said.String())
	}
	must(c.Enumerate(Network, ""))(t)
}
