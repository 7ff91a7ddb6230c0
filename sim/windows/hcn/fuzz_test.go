package hcn

import (
	"bytes"
	"encoding/json"
	"log"
	"testing"

	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// FuzzCalls makes random calls: the input is a list of short instructions that
// choose verbs, kinds, handles, ids and texts, some good, some malformed. No
// call may panic, the state must be loadable at every end, and the journal of
// the calls must make the same objects again.
func FuzzCalls(f *testing.F) {
	f.Add([]byte{2, 1, 0, 0, 2, 2, 1, 1, 2, 3, 0, 2, 4, 3, 2, 5, 8, 0, 0, 9})
	f.Add([]byte{2, 1, 0, 0, 2, 2, 1, 1, 2, 4, 0, 3, 6, 2, 1, 0, 6, 1, 0, 0})
	f.Add([]byte{8, 0, 0, 10, 8, 0, 0, 11, 8, 0, 0, 12})
	f.Add([]byte{8, 6, 0, 12}) // HNSCall with a kind, though it has none
	f.Add([]byte{2, 1, 0, 0, 2, 2, 0, 1, 3, 6, 0, 27, 4, 6, 2, 26, 4, 6, 1, 26, 5, 6, 2, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 400 {
			return
		}
		var said bytes.Buffer
		b := builds.MustLookup("10.0.26100")
		s, err := Start(b, testNode, Options{Log: log.New(&said, "", 0)})
		if err != nil {
			t.Fatal(err)
		}
		c := s.session("fuzz")
		s.AddComputeSystem("pod")
		var handles []uint64
		var ids []string
		again := hns.NewService(b, testNode)
		for ; len(data) >= 4; data = data[4:] {
			r := &request{Verb: verb(data[0] % 12), Kind: Kind(data[1] % 7)}
			if len(handles) > 0 {
				r.Handle = handles[int(data[2])%len(handles)]
			}
			id := "11111111-2222-3333-4444-555555555555"
			if len(ids) > 0 {
				id = ids[int(data[2])%len(ids)]
			}
			if r.Verb == verbOpen || r.Verb == verbDelete {
				r.ID, _ = ParseGUID(id)
			}
			text := fuzzTexts[int(data[3])%len(fuzzTexts)]
			r.Texts = []string{string(bytes.ReplaceAll([]byte(text), []byte("$ID"), []byte(id)))}
			if r.Verb == verbHNSCall {
				x := fuzzV1[int(data[3])%len(fuzzV1)]
				r.Texts = []string{x[0], string(bytes.ReplaceAll([]byte(x[1]), []byte("$ID"), []byte(id))), r.Texts[0]}
			}
			h := c.handles[r.Handle]
			res := c.call(r)
			if res.HResult == 0x8000ffff {
				t.Fatalf("%+v: %s", r, said.String())
			}
			o := &operation{Verb: r.Verb, Kind: r.Kind, ID: r.ID.String(), Texts: r.Texts}
			if attach, err := hotAttachCall("", h.id, r.Texts[0]); r.Kind == computeSystem && r.Verb == verbModify && err == nil {
				o = attach
			}
			if o.changes() && res.HResult != 0x80070006 {
				if r.Verb == verbCreate {
					o.Network = h.id
				} else if r.Verb == verbModify {
					o.ID = h.id
				}
				_, _ = apply(again, o)
			}
			if res.Handle != 0 {
				handles = append(handles, res.Handle)
				ids = append(ids, c.handles[res.Handle].id)
			}
		}
		raw := []byte(held(s))
		var p hns.Snapshot
		if err := json.Unmarshal(raw, &p); err != nil {
			t.Fatal(err)
		}
		if err := hns.NewService(b, testNode).Restore(&p); err != nil {
			t.Fatalf("the state cannot be loaded: %v\n%s", err, raw)
		}
		if same, _ := json.Marshal(again.Snapshot()); !bytes.Equal(same, raw) {
			t.Fatalf("the operations make other objects:\n%s\n%s", raw, same)
		}
	})
}

var fuzzTexts = []string{
	l2bridge,
	`{"Name":"e"}`,
	`{"Type":"HostDefault"}`,
	`{"HostComputeEndpoints":["$ID"],"FrontendVIPs":["10.96.0.1"],"PortMappings":[{"Protocol":6,"InternalPort":80,"ExternalPort":80}]}`,
	`{"HostComputeEndpoints":["$ID"],"Setting":[{"DestinationPrefix":"10.96.0.0/12"}]}`,
	`{"ResourceType":"Endpoint","RequestType":"Add","Settings":{"EndpointId":"$ID"}}`,
	`{"ResourceType":"Endpoint","RequestType":"Remove","Settings":{"EndpointId":"$ID"}}`,
	`{"ResourceType":"Container","RequestType":"Add","Settings":{"ContainerId":"$ID"}}`,
	`{"ResourceType":"Policy","RequestType":"Add","Settings":{"Policies":[{"Type":"OutBoundNAT","Settings":{"Destinations":["10.244.1.2"]}}]}}`,
	`{"ResourceType":"Policy","RequestType":"Refresh","Settings":{"Policies":[{"Type":"PortMapping","Settings":{"Protocol":6,"InternalPort":80,"ExternalPort":80}}]}}`,
	`{"ResourceType":"Policy","RequestType":"Remove","Settings":{"Policies":[{"Type":"ACL"}]}}`,
	`{"ResourceType":"Port","RequestType":"Add","Settings":{"VirtualMachineId":"vm"}}`,
	`{"SystemType":"Host","CompartmentId":1}`,
	`{"SystemType":"Container","ContainerId":"c"}`,
	`{"Name":"v1","Type":"nat","Subnets":[{"AddressPrefix":"10.0.0.0/30"}],"Policies":[{"Type":"VLAN","VLAN":1}]}`,
	`{"VirtualNetwork":"$ID","IPAddress":"10.244.1.300","Policies":[{"Type":"NAT","Protocol":"TCP"}]}`,
	`{"Name":"o","Type":"overlay","Flags":8,"Ipams":[{"Subnets":[{"IpAddressPrefix":"fd00::/126","Policies":[{"Type":"VSID","Settings":{"IsolationId":4096}}]}]}]}`,
	`{"References":["/endpoints/$ID"],"Policies":[{"Type":"ELB","VIPs":["10.96.0.9"],"Protocol":17,"InternalPort":53,"ExternalPort":53}]}`,
	`{"Filter":"{\"ID\":\"$ID\"}"}`, `{"Filter":"{\"State\":1}"}`,
	`{`, `null`, `[]`, `{"ID":"$ID"}`, `{"Settings":null,"ResourceType":"DNS"}`,
	`{"MacPool":{"Ranges":[{"StartMacAddress":"x"}]},"Type":"NAT"}`,
	`{"ResourceType":"Network","RequestType":"Add","Settings":"$ID"}`, "pod",
}

var fuzzV1 = [][2]string{
	{"GET", "/networks/"}, {"POST", "/networks/"}, {"DELETE", "/networks/$ID"}, {"GET", "/endpoints/"}, {"POST", "/endpoints/"},
	{"POST", "/endpoints/$ID"}, {"POST", "/endpoints/$ID/attach"}, {"POST", "/endpoints/$ID/detach"}, {"DELETE", "/endpoints/$ID"},
	{"POST", "/policylists/"}, {"DELETE", "/policylists/$ID"}, {"GET", "/policylists"}, {"POST", "/namespaces/"}, {"GET", "/namespaces/$ID"},
	{"POST", "/namespaces/$ID/addresource"}, {"DELETE", "/namespaces/$ID"}, {"GET", "/globals/version"}, {"GET", "//"}, {"", ""},
}
