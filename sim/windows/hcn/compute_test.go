package hcn

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// compute makes a call of the Host Compute Service and returns its HRESULT.
func compute(t *testing.T, c *Client, v verb, h uint64, text string) (uint32, *response) {
	t.Helper()
	res := must(c.call(request{Verb: v, Kind: computeSystem, Handle: h, Texts: []string{text}}))(t)
	return res.HResult, res
}

// TestHotAttach is what a plugin of HNS v1 does with the Host Compute Service:
// it opens the container and adds a network to it.
func TestHotAttach(t *testing.T) {
	dir := t.TempDir()
	var calls safe
	s, v, c := serve(t, "10.0.17763.1432", Options{State: dir, CallLog: &calls})
	var n hns.V1Network
	var e hns.V1Endpoint
	for _, made := range []struct {
		path, body string
		v          any
	}{
		{"/networks/", `{"Name":"cbr0","Type":"l2bridge","Subnets":[{"AddressPrefix":"10.244.1.0/24","GatewayAddress":"10.244.1.1"}]}`, &n},
		{"/endpoints/", `{"Name":"e","VirtualNetworkName":"cbr0"}`, &e},
	} {
		if err := json.Unmarshal(must(c.HNSCall("POST", made.path, made.body))(t), made.v); err != nil {
			t.Fatal(err)
		}
	}
	attached := func(want ...string) {
		t.Helper()
		var now hns.V1Endpoint
		if err := json.Unmarshal(must(c.HNSCall("GET", "/endpoints/"+e.ID, ""))(t), &now); err != nil ||
			!reflect.DeepEqual(now.SharedContainers, want) {
			t.Errorf("attached are %q, want %q (%v)", now.SharedContainers, want, err)
		}
	}

	// The container does not run yet: hcsshim knows that error by its number.
	hr, res := compute(t, c, verbOpen, 0, "pod1")
	if hr != 0xc037010e || !strings.HasPrefix(res.Record, `{"Error":-1070137074,"ErrorMessage":"A virtual machine or container`) {
		t.Errorf("0x%x %s", hr, res.Record)
	}
	s.AddComputeSystem("pod1")
	s.AddComputeSystem("pod1")
	hr, res = compute(t, c, verbOpen, 0, "POD1")
	if hr != 0 {
		t.Fatalf("open: 0x%x %s", hr, res.Record)
	}
	h := res.Handle
	var properties struct{ Id, SystemType string }
	if hr, res := compute(t, c, verbQuery, h, "{}"); hr != 0 || json.Unmarshal([]byte(res.Output), &properties) != nil ||
		properties.SystemType != "Container" {
		t.Errorf("properties: 0x%x %s", hr, res.Output)
	}
	change := func(request string) string {
		return fmt.Sprintf(`{"ResourceType":"Network","Settings":%q,"RequestType":%q}`, e.ID, request)
	}
	for _, step := range []struct {
		settings string
		want     uint32
		attached []string
	}{
		{change("Add"), 0, []string{"POD1"}},
		{change("Add"), 0x803b0014, []string{"POD1"}}, // HNS: already attached
		{change("Remove"), 0, nil},
		{change("Remove"), 0x80070490, nil},
		{change("Update"), 0x80070032, nil},
		{`{"ResourceType":"Memory","RequestType":"Add","Settings":1}`, 0x80070032, nil},
		{`{"ResourceType":"Network","RequestType":"Add","Settings":{}}`, 0xc037010d, nil},
		{`{"ResourceType":"Network","RequestType":"Add","Settings":"11111111-2222-3333-4444-555555555555"}`, 0x803b0002, nil},
		{`{"ResourceType":"Network","RequestType":"Add","Settings":""}`, 0x80070057, nil},
		{`{`, 0xc037010d, nil},
		{change("Add"), 0, []string{"POD1"}},
	} {
		if hr, res := compute(t, c, verbModify, h, step.settings); hr != step.want {
			t.Errorf("%s: 0x%x %s, want 0x%x", step.settings, hr, res.Record, step.want)
		}
		attached(step.attached...)
	}

	// A handle is of its kind; nothing can be made or ended here.
	if _, err := c.query(Network, h); refusal(t, err) != 0x80070006 {
		t.Errorf("a container as a network: %v", err)
	}
	if hr, _ := compute(t, c, verbDelete, h, ""); hr != 0x80070032 {
		t.Errorf("delete: 0x%x", hr)
	}
	s.RemoveComputeSystem("pod1")
	if hr, _ := compute(t, c, verbModify, h, change("Remove")); hr != 0xc0370110 {
		t.Errorf("a container that has ended: 0x%x", hr)
	}
	for _, want := range []uint32{0, 0x80070006} {
		if hr, _ := compute(t, c, verbClose, h, ""); hr != want {
			t.Errorf("close: 0x%x, want 0x%x", hr, want)
		}
	}
	attached("POD1")

	_ = v.Close()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	madeAgain(t, dir, calls.String(), e.ID)
}

// madeAgain: what was attached is kept in a state folder, and a call log makes it
// again.
func madeAgain(t *testing.T, state, calls, endpoint string) {
	t.Helper()
	b := builds.MustLookup("10.0.17763.1432")
	kept, replayed := must(Start(b, testNode, Options{State: state}))(t), must(Start(b, testNode, Options{}))(t)
	if _, different, err := replayed.Replay(t.Context(), "log", strings.NewReader(calls)); err != nil || len(different) > 0 {
		t.Errorf("replay: %v, %v", different, err)
	}
	for name, again := range map[string]*Service{"state": kept, "log": replayed} {
		again.With(func(svc *hns.Service) {
			if e := svc.Endpoint(endpoint); e == nil || !reflect.DeepEqual(e.SharedContainers, []string{"POD1"}) {
				t.Errorf("%s: endpoint %+v", name, e)
			}
		})
	}
}
