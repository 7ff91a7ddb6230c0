package hcn

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// TestModify makes every request of every kind: the resource types of HCN's schema
// (HNS_Schema.md NetworkResourceType, EndpointResourceType, NamespaceResourceType)
// with the request types Add, Remove, Update, Refresh and Reset, one after the
// other on the same objects. What HNS has afterwards is in the object.
func TestModify(t *testing.T) {
	const unsupported, notFound, noPolicy, noJSON = 0x803b0015, 0x80070490, 0x803b0008, 0x803b001b
	s, _, c := serve(t, "10.0.26100", Options{})
	nh := must(c.Create(Network, 0, l2bridge))(t)
	eh := must(c.Create(Endpoint, nh, `{"Name":"e"}`))(t)
	nsh := must(c.Create(Namespace, 0, `{}`))(t)
	e := must(c.Enumerate(Endpoint, ""))(t)[0]
	backend := fmt.Sprintf(
		`{"HostComputeEndpoints":[%q],"FrontendVIPs":["10.96.0.1"],"PortMappings":[{"Protocol":6,"InternalPort":80,"ExternalPort":80}]}`, e)
	lh := must(c.Create(LoadBalancer, 0, backend))(t)
	rh := must(c.Create(SdnRoute, 0, fmt.Sprintf(`{"HostComputeEndpoints":[%q],"Setting":[{"DestinationPrefix":"10.96.0.0/12"}]}`, e)))(t)
	handles := map[Kind]uint64{Network: nh, Endpoint: eh, Namespace: nsh, LoadBalancer: lh, SdnRoute: rh}

	driver := func(id int) string {
		return fmt.Sprintf(
			`{"Policies":[{"Type":"ACL","Settings":{"Protocols":"6","Action":"Allow","Direction":"In","RuleType":"Switch","Priority":%d}}]}`, id)
	}
	extension := func(on bool) string {
		return fmt.Sprintf(`{"Id":"e7c3b2f0-f3c5-48df-af2b-10fed6d72e7a","IsEnabled":%t}`, on)
	}
	automatic := func(on bool) string {
		return fmt.Sprintf(`{"Policies":[{"Type":"AutomaticDNS","Settings":{"Enable":%t}}]}`, on)
	}
	endpoint, container := fmt.Sprintf(`{"EndpointId":%q}`, e), `{"ContainerId":"pod1"}`
	for _, step := range []struct {
		kind              Kind
		resource, request string
		settings          string
		want              uint32
		has, hasNot       string // in the object's JSON after it
	}{
		{Network, "Policy", "Add", automatic(true), 0, `{"Type":"AutomaticDNS","Settings":{"Enable":true}}`, ""},
		{Network, "Policy", "Update", automatic(false), 0, `{"Type":"AutomaticDNS","Settings":{"Enable":false}}`, `"Enable":true`},
		{Network, "Policy", "Refresh", automatic(true), 0, `"Enable":true`, `"Enable":false`},
		{Network, "Policy", "Remove", automatic(true), 0, "", "AutomaticDNS"},
		{Network, "Policy", "Remove", automatic(true), noPolicy, "", "AutomaticDNS"},
		{Network, "Policy", "Reset", automatic(true), unsupported, "", "AutomaticDNS"},
		{Network, "policy", "add", automatic(true), 0, "AutomaticDNS", ""}, // in any case
		{Network, "DNS", "Update", `{"Domain":"cluster.local","ServerList":["10.96.0.10"]}`, 0, `"Domain":"cluster.local"`, ""},
		{Network, "DNS", "Update", `[]`, noJSON, `"Domain":"cluster.local"`, ""},
		{Network, "Extension", "Add", extension(true), 0,
			`"Type":"VSwitchExtension","Settings":{"ExtensionID":"e7c3b2f0-f3c5-48df-af2b-10fed6d72e7a","Enable":true}`, ""},
		{Network, "Extension", "Update", extension(false), 0, "VSwitchExtension", `10fed6d72e7a","Enable":true`},
		{Network, "Extension", "Refresh", extension(true), 0, `10fed6d72e7a","Enable":true`, ""},
		{Network, "Extension", "Remove", extension(false), 0, "", "VSwitchExtension"},
		{Network, "Extension", "Remove", extension(false), noPolicy, "", "VSwitchExtension"},
		{Network, "Extension", "Update", extension(true), 0, "VSwitchExtension", ""}, // Update also adds
		{Network, "Extension", "Reset", extension(true), unsupported, "VSwitchExtension", ""},
		{Network, "Extension", "Add", `{"Id":"none"}`, 0x80070057, "", ""},
		{Network, "Extension", "Add", ``, noJSON, "", ""},
		{Network, "Subnet", "Add", `{"Subnets":[]}`, unsupported, "", ""},
		{Network, "IPSubnet", "Add", `{"IpSubnets":[]}`, unsupported, "", ""},
		{Network, "", "", ``, unsupported, "", ""},

		{Endpoint, "Policy", "Add", driver(100), 0, `"Priority":100`, ""},
		{Endpoint, "Policy", "Add", driver(200), 0, `"Priority":200`, ""},
		{Endpoint, "Policy", "Remove", driver(100), 0, `"Priority":200`, `"Priority":100`},
		{Endpoint, "Policy", "Remove", driver(100), noPolicy, `"Priority":200`, ""},
		{Endpoint, "Policy", "Update", driver(300), 0, `"Priority":300`, `"Priority":200`},
		{Endpoint, "Policy", "Refresh", driver(400), 0, `"Priority":400`, `"Priority":300`},
		{Endpoint, "Policy", "Reset", driver(500), unsupported, `"Priority":400`, `"Priority":500`},
		{Endpoint, "Policy", "Add", `{"Policies":[{"Type":"NoSuchPolicy"}]}`, 0x803b000e, "", "NoSuchPolicy"},
		{Endpoint, "Policy", "Add", `{"Policies":7}`, noJSON, "", ""},
		{Endpoint, "Port", "Add", `{"VirtualNicName":"nic1"}`, 0, "", ""},
		{Endpoint, "Port", "Add", `{"VirtualNicName":"nic1"}`, 0x803b0014, "", ""},
		{Endpoint, "Port", "Remove", `{"VirtualNicName":"nic1"}`, 0, "", ""},
		{Endpoint, "Port", "Update", `{"VirtualNicName":"nic1"}`, unsupported, "", ""},
		{Endpoint, "Port", "Add", `{}`, 0x80070057, "", ""},
		{Endpoint, "DNS", "Update", `{}`, unsupported, "", ""},

		{Namespace, "Endpoint", "Add", endpoint, 0, e, ""},
		{Namespace, "Endpoint", "Add", endpoint, 0x803b0014, e, ""},
		{Namespace, "Endpoint", "Remove", endpoint, 0, "", e},
		{Namespace, "Endpoint", "Remove", endpoint, 0x803b0002, "", e},
		{Namespace, "Endpoint", "Update", endpoint, unsupported, "", e},
		{Namespace, "Endpoint", "Add", `{"EndpointId":"11111111-2222-3333-4444-555555555555"}`, 0x803b0002, "", ""},
		{Namespace, "Container", "Add", container, 0, "pod1", ""},
		{Namespace, "Container", "Remove", container, 0, "", "pod1"},
		{Namespace, "Container", "Refresh", container, unsupported, "", "pod1"},
		{Namespace, "Endpoint", "Add", endpoint, 0, e, ""}, // a backend has a port

		// Of a load balancer the settings are the whole; HNS 15.4 ignores them.
		{LoadBalancer, "whole", "", strings.Replace(backend, "10.96.0.1", "10.96.0.2", 1), 0, "10.96.0.1", "10.96.0.2"},
		{LoadBalancer, "whole", "", `{`, noJSON, "10.96.0.1", ""},
		{SdnRoute, "Policy", "Update", `{}`, unsupported, "10.96.0.0/12", ""},
	} {
		settings := step.settings
		if step.kind != LoadBalancer {
			settings = fmt.Sprintf(`{"ResourceType":%q,"RequestType":%q,"Settings":%s}`, step.resource, step.request, settings)
			if step.settings == "" {
				settings = fmt.Sprintf(`{"ResourceType":%q,"RequestType":%q}`, step.resource, step.request)
			}
		}
		name := fmt.Sprintf("%s %s %s %s", kindNames[step.kind], step.request, step.resource, step.settings)
		if hr := refusal(t, c.modify(step.kind, handles[step.kind], settings)); hr != step.want {
			t.Errorf("%s: 0x%x, want 0x%x", name, hr, step.want)
		}
		text := must(c.query(step.kind, handles[step.kind]))(t)
		if !strings.Contains(text, step.has) || step.hasNot != "" && strings.Contains(text, step.hasNot) {
			t.Errorf("%s: want %q and not %q in %s", name, step.has, step.hasNot, text)
		}
	}

	// What is not a request, for each kind; and an object that is gone.
	for kind, h := range handles {
		if hr := refusal(t, c.modify(kind, h, `{"ResourceType":7}`)); kind != LoadBalancer && hr != noJSON {
			t.Errorf("%s: 0x%x", kindNames[kind], hr)
		}
	}
	s.With(func(svc *hns.Service) {
		for _, n := range svc.ListNamespaces(nil) {
			if err := svc.DeleteNamespace(n.ID); err != nil {
				t.Error(err)
			}
		}
	})
	if hr := refusal(t, c.modify(Namespace, nsh, `{}`)); hr != notFound {
		t.Errorf("a namespace that is gone: 0x%x", hr)
	}
}

// TestOneCallCanBeTraced: the call log has for each call who made it, with what,
// what HNS said, and every object that changed by it; one call can be made again
// alone from its line.
func TestOneCallCanBeTraced(t *testing.T) {
	var calls safe
	_, _, c := serve(t, "10.0.20348", Options{CallLog: &calls})
	nh := must(c.Create(Network, 0, l2bridge))(t)
	must(c.Create(Endpoint, nh, `{"Name":"e"}`))(t)
	e := must(c.Enumerate(Endpoint, ""))(t)[0]
	nsh := must(c.Create(Namespace, 0, `{}`))(t)
	ns := must(c.Enumerate(Namespace, ""))(t)[0]
	must(0, c.modify(Namespace, nsh, fmt.Sprintf(`{"ResourceType":"Endpoint","RequestType":"Add","Settings":{"EndpointId":%q}}`, e)))(t)
	must(0, c.Delete(Namespace, ns))(t)
	if err := c.Delete(Namespace, ns); refusal(t, err) != 0x80070490 {
		t.Errorf("deleted twice: %v", err)
	}
	var seen []string
	for line := range strings.Lines(calls.String()) {
		var entry Entry
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if !strings.HasSuffix(entry.Call, "Namespace") {
			continue
		}
		text := entry.Call + " " + entry.HResult
		for _, change := range entry.Changes {
			text += fmt.Sprintf(" %s %s", change.What, strings.NewReplacer(e, "E", ns, "NS").Replace(change.ID))
		}
		if !strings.HasPrefix(entry.Client, "test#") {
			t.Errorf("no client: %s", line)
		}
		if entry.HResult != "0x0" && !strings.Contains(string(entry.Record), "Element not found") {
			t.Errorf("no record: %s", line)
		}
		seen = append(seen, text)
	}
	want := []string{
		"HcnCreateNamespace 0x0 created NS", "HcnModifyNamespace 0x0 modified E",
		"HcnDeleteNamespace 0x0 modified E deleted NS", "HcnDeleteNamespace 0x80070490",
	}
	if strings.Join(seen, "\n") != strings.Join(want, "\n") {
		t.Errorf("the log has\n%s\nwant\n%s", strings.Join(seen, "\n"), strings.Join(want, "\n"))
	}
}
