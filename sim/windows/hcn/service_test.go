package hcn

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

var testNode = hns.Options{Node: "n1", ManagementIP: netip.MustParseAddr("192.168.1.11")}

// serve starts a service and a server with a client for a test.
func serve(t *testing.T, build string, o Options) (*Service, *Server, *Client) {
	t.Helper()
	s, err := Start(builds.MustLookup(build), testNode, o)
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
	c, err := Dial(t.Context(), v.Addr(), "test")
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
func refusal(t *testing.T, err error) uint32 {
	t.Helper()
	if err == nil {
		return 0
	}
	e, ok := err.(*CallError)
	if !ok {
		t.Fatalf("no refusal but %v", err)
	}
	return e.hresult
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
	if err := json.Unmarshal([]byte(must(c.query(Endpoint, eh))(t)), &e); err != nil {
		t.Fatal(err)
	}
	if e.HostComputeNetwork != ids[0] || len(e.IpConfigurations) != 1 {
		t.Errorf("endpoint %+v", e)
	}
	for field, value := range map[string]string{"VirtualNetwork": strings.ToUpper(ids[0]), "ID": "{" + strings.ToUpper(e.ID) + "}",
		"Name": "E1", "MacAddress": e.MacAddress, "IPAddress": e.IpConfigurations[0].IpAddress} {
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
	must(0, c.modify(Namespace, nsh, attach("Endpoint", "Add")))(t)
	if err := c.modify(Namespace, nsh, attach("Endpoint", "Add")); refusal(t, err) != 0x803b0014 {
		t.Errorf("attached twice: %v", err)
	}
	must(0,
		c.modify(Endpoint, eh,
			`{"ResourceType":"Policy","RequestType":"Add","Settings":{"Policies":[{"Type":"OutBoundNAT","Settings":{"Exceptions":["10.0.0.0/8"]}}]}}`))(t)
	must(0, c.modify(Namespace, nsh, attach("Endpoint", "Remove")))(t)
	must(0, c.modify(Endpoint, eh, `{"ResourceType":"Port","RequestType":"Add","Settings":{"VirtualMachineId":"vm"}}`))(t)
	must(0, c.modify(Endpoint, eh, `{"ResourceType":"Port","RequestType":"Remove","Settings":{"VirtualMachineId":"vm"}}`))(t)

	// The handle outlives the object, but finds it no more.
	must(0, c.Delete(Endpoint, e.ID))(t)
	if _, err := c.query(Endpoint, eh); refusal(t, err) != 0x803b0002 {
		t.Errorf("a deleted endpoint: %v", err)
	}
	must(0, c.CloseHandle(Endpoint, eh))(t)
	if err := c.CloseHandle(Endpoint, eh); refusal(t, err) != 0x80070006 {
		t.Errorf("closed twice: %v", err)
	}
}

func TestHandles(t *testing.T) {
	s, v, c := serve(t, "10.0.20348", Options{})
	nh := must(c.Create(Network, 0, l2bridge))(t)
	other := dial(t, v)
	for name, err := range map[string]error{
		"foreign":          second(other.query(Network, nh)),
		"foreign create":   second(other.Create(Endpoint, nh, `{}`)),
		"zero":             second(c.query(Network, 0)),
		"other kind":       second(c.query(Endpoint, nh)),
		"made up":          c.modify(Network, nh+1, `{}`),
		"close other kind": c.CloseHandle(Namespace, nh),
	} {
		if hr := refusal(t, err); hr != 0x80070006 {
			t.Errorf("%s: 0x%x, %v", name, hr, err)
		}
	}
	again := must(c.Open(Network, must(c.Enumerate(Network, ""))(t)[0]))(t)
	if again == nh {
		t.Error("two handles of one object are the same")
	}
	must(0, c.CloseHandle(Network, again))(t)
	must(c.query(Network, nh))(t) // the other one lives on

	session := s.session("x")
	session.call(&request{Verb: verbCreate, Kind: Namespace, Texts: []string{"{}"}})
	if len(session.handles) != 1 {
		t.Errorf("%d handles", len(session.handles))
	}
	session.close()
	if res := session.call(&request{Verb: verbOpen, Kind: Network}); res.Handle != 0 {
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
		"no such verb":          {second(c.do(request{Verb: 99, Kind: Network})), 0x803b0015},
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
		if hr := refusal(t, x.err); hr != x.want {
			t.Errorf("%s: 0x%x, want 0x%x: %v", name, hr, x.want, x.err)
		}
	}
	// The record is that of Windows: ErrorCode is the HRESULT as a number.
	res, err := c.call(request{Verb: verbOpen, Kind: Network})
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
	must(c.do(request{Verb: verbCreate, Kind: Network, ID: g, Texts: []string{l2bridge}}))(t)
	if ids := must(c.Enumerate(Network, ""))(t); len(ids) != 1 || ids[0] != id {
		t.Errorf("ids %v", ids)
	}
	must(c.Create(Namespace, 0, `{"Id":"{6F5C4A4E-0000-4000-8000-0123456789AC}"}`))(t)
	if ids := must(c.Enumerate(Namespace, ""))(t); len(ids) != 1 || ids[0] != id[:35]+"c" {
		t.Errorf("ids %v", ids)
	}
}

func TestCounts(t *testing.T) {
	s, err := Start(builds.MustLookup("10.0.20348"), testNode, Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := s.session("test")
	defer c.close()
	for range 2 {
		c.call(&request{Verb: verbEnumerate, Kind: Network})
	}
	c.call(&request{Verb: verbDelete, Kind: Endpoint}) // refused calls count too
	if got := fmt.Sprint(s.Counts()); got != "map[HcnDeleteEndpoint:1 HcnEnumerateNetworks:2]" {
		t.Error(got)
	}
}
