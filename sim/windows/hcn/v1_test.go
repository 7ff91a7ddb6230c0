package hcn

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/windows/hns"
)

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
	into(
		must(c.HNSCall("POST", "/networks/",
			`{"Name":"cbr0","Type":"l2bridge","Subnets":[{"AddressPrefix":"10.244.1.0/24","GatewayAddress":"10.244.1.1"}]}`))(t), &n)
	if n.ManagementIP != "192.168.1.11" || n.ID != strings.ToUpper(n.ID) {
		t.Errorf("network %+v", n)
	}
	var e hns.V1Endpoint
	into(must(c.HNSCall("POST", "/endpoints/", fmt.Sprintf(`{"Name":"e","VirtualNetwork":%q,"Policies":[{"Type":"PA","PA":"1.2.3.4"}]}`,
		n.ID)))(t), &e)
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
		if err := post("/attach", body); refusal(t, err) != want {
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
	into(
		must(c.HNSCall("POST", "/policylists/",
			fmt.Sprintf(
				`{"References":["/endpoints/%s"],"Policies":[{"Type":"ELB","VIPs":["10.96.0.10"],"Protocol":6,"InternalPort":80,"ExternalPort":80}]}`,
				e.ID)))(t), &l)
	var r hns.V1PolicyList
	into(
		must(c.HNSCall("POST", "/policylists/",
			fmt.Sprintf(`{"References":["/endpoints/%s"],"Policies":[{"Type":"ROUTE","DestinationPrefix":"10.96.0.0/12","NeedEncap":true}]}`,
				e.ID)))(t), &r)
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

// TestManagementMACs is hcsshim's test of its accelnet calls, what it does not ask, and
// that the list survives the service.
func TestManagementMACs(t *testing.T) {
	dir := t.TempDir()
	macs := func(c *Client, method, body string) (string, error) {
		raw, err := c.HNSCall(method, "/accelnet/", body)
		return string(raw), err
	}
	const two = `{"MacAddressList":[{"MacAddress":"00-15-5D-0A-B7-C6"},{"MacAddress":"00-15-5D-38-01-00"}]}`
	expect := func(c *Client, method, body, want string) {
		t.Helper()
		if got, err := macs(c, method, body); err != nil || got != want {
			t.Errorf("%s %s: %s, %v; want %s", method, body, got, err, want)
		}
	}
	t.Run("set", func(t *testing.T) {
		s, _, c := serve(t, "10.0.26100", Options{State: dir})
		expect(c, "GET", "", `{}`)
		expect(c, "POST", `{"MacAddressList":[{"MacAddress":"AA-BB-CC-00-00-01"}]}`, `{"MacAddressList":[{"MacAddress":"AA-BB-CC-00-00-01"}]}`)
		expect(c, "POST", two, two)
		_, err := macs(c, "POST", `{"MacAddressList":[{"MacAddress":"00-15-5D-0A-B7-C6"},{"MacAddress":"nonsense"},{}]}`)
		if refusal(t, err) != 0x80070057 || !strings.Contains(err.Error(), `[1]: "nonsense"`) || !strings.Contains(err.Error(), `[2]: ""`) {
			t.Errorf("got %v", err)
		}
		if _, err := macs(c, "POST", `[`); refusal(t, err) != 0x803b001b {
			t.Errorf("no JSON: %v", err)
		}
		expect(c, "GET", "", two)
		killed := t.TempDir() // the journal alone
		must(0, os.CopyFS(killed, os.DirFS(dir)))(t)
		_, _, c = serve(t, "10.0.26100", Options{State: killed})
		expect(c, "GET", "", two)
		must(0, s.Close())(t)
	})
	t.Run("closed and started again", func(t *testing.T) {
		_, _, c := serve(t, "10.0.26100", Options{State: dir})
		expect(c, "GET", "", two)
		expect(c, "DELETE", "", `{}`)
		expect(c, "GET", "", `{}`)
	})
	t.Run("before 15.4", func(t *testing.T) {
		_, _, c := serve(t, "10.0.20348", Options{})
		for _, method := range []string{"GET", "POST", "DELETE"} {
			if _, err := macs(c, method, two); refusal(t, err) != 0x803b0015 || !strings.Contains(err.Error(), "HNS 15.4") {
				t.Errorf("%s: %v", method, err)
			}
		}
	})
}
