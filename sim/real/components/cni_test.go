//go:build linux

package components

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/internal/dev/full"
	"github.com/winlab-dev/winlab/sim/real/wine"
	"github.com/winlab-dev/winlab/sim/real/wine/winetest"
	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hcn"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// node starts a node of a build and a client of its HNS; it skips where Wine or
// mingw is missing.
func node(t *testing.T, build string) (*Node, *hcn.Client) {
	t.Helper()
	n, c, _ := nodeAndHNS(t, build)
	return n, c
}

func nodeAndHNS(t *testing.T, build string) (*Node, *hcn.Client, *hcn.Service) {
	t.Helper()
	winetest.Need(t)
	b := builds.MustLookup(build)
	service, err := hcn.Start(b, hns.Options{Node: "win1", ManagementIP: netip.MustParseAddr("192.168.1.11")}, hcn.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n, end := newNodeAlone(t, b, service)
	c, err := hcn.Dial(t.Context(), n.address, "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(c.Close(), end(), service.Close()); err != nil {
			t.Error(err)
		}
	})
	return n, c, service
}

// newNodeAlone makes a node on a host of its own; end ends its programs, then the node.
func newNodeAlone(tb testing.TB, b *builds.Build, service *hcn.Service) (n *Node, end func() error) {
	tb.Helper()
	h, err := newHost(tb.Context(), tb.TempDir(), b)
	if err != nil {
		tb.Fatal(err)
	}
	n, err = h.Node(tb.Context(), NodeConfig{HNS: service})
	if err != nil {
		tb.Fatal(errors.Join(err, h.Close()))
	}
	return n, func() error { return errors.Join(h.Close(), n.Close()) }
}

const bridgeNetwork = `{"Name":"cbr0","Type":"L2Bridge","Ipams":[{"Type":"Static","Subnets":[{"IpAddressPrefix":"10.244.1.0/24",` +
	`"Routes":[{"NextHop":"10.244.1.1","DestinationPrefix":"0.0.0.0/0"}]}]}],"SchemaVersion":{"Major":2,"Minor":0}}`

const bridgeConf = `{"cniVersion":"1.0.0","name":"cbr0","type":"win-bridge","apiVersion":2,"ipMasqNetwork":"10.244.0.0/16",
"capabilities":{"dns":true},"dns":{"nameservers":["10.96.0.10"],"search":["svc.cluster.local"]},
"ipam":{"type":"host-local","ranges":[[{"subnet":"10.244.1.0/24","rangeStart":"10.244.1.10"}]],"routes":[{"dst":"0.0.0.0/0"}]},
"policies":[{"name":"EndpointPolicy","value":{"Type":"SDNRoute","Settings":{"DestinationPrefix":"10.96.0.0/12","NeedEncap":true}}}]}`

// sandbox makes a namespace, as containerd does for a pod.
func sandbox(t *testing.T, c *hcn.Client) (id string) {
	t.Helper()
	before, err := c.Enumerate(hcn.Namespace, "")
	if err != nil {
		t.Fatal(err)
	}
	h, err := c.Create(hcn.Namespace, 0, `{"Type":"Host","SchemaVersion":{"Major":2,"Minor":0}}`)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.CloseHandle(hcn.Namespace, h); err != nil {
		t.Fatal(err)
	}
	after, err := c.Enumerate(hcn.Namespace, "")
	if err != nil || len(after) != len(before)+1 {
		t.Fatalf("%d namespaces after %d, error %v", len(after), len(before), err)
	}
	return after[slices.IndexFunc(after, func(id string) bool { return !slices.Contains(before, id) })]
}

// The plugins say which versions of CNI they speak; that needs no HNS.
func TestPluginVersions(t *testing.T) {
	n, _ := node(t, "2022")
	plugins := winetest.Binaries(t, "cni-plugins-1.9.1")
	for _, name := range []string{"win-bridge", "win-overlay", "host-local"} {
		out, err := n.callCNI(t.Context(), cniCall{Plugins: plugins, Plugin: name, Command: "VERSION", Config: []byte(`{"cniVersion":"1.0.0"}`)})
		var v struct{ SupportedVersions []string }
		if err == nil {
			err = json.Unmarshal(out, &v)
		}
		if err != nil || !slices.Contains(v.SupportedVersions, "1.0.0") {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}

// The real host-local hands out addresses one after another, and again when they
// have been given back.
func TestHostLocal(t *testing.T) {
	n, _ := node(t, "2022")
	plugins := winetest.Binaries(t, "cni-plugins-1.9.1")
	call := func(command, id string) string {
		t.Helper()
		out, err := n.callCNI(t.Context(), cniCall{Plugins: plugins, Plugin: "host-local", Command: command, ContainerID: id, NetNS: "x",
			IfName: "eth0", Config: []byte(bridgeConf)})
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	for i, id := range []string{"a", "b"} {
		if out, want := call("ADD", id), fmt.Sprintf("10.244.1.%d/24", 10+i); !strings.Contains(out, want) {
			t.Errorf("container %s got %s, want %s", id, out, want)
		}
	}
	call("DEL", "a")
	call("DEL", "b")
	if out := call("ADD", "c"); !strings.Contains(out, "10.244.1.12/24") {
		t.Errorf("after all are free again, the next is %s, want the one after the last", out)
	}
}

// The real win-bridge attaches a pod to the HNS by the v2 API, and takes it away
// again.
func TestWinBridge(t *testing.T) {
	for _, build := range []string{"17763.1432", "20348.2582", "2025"} {
		t.Run(build, func(t *testing.T) {
			n, c := node(t, build)
			plugins := winetest.Binaries(t, "cni-plugins-1.9.1")
			call := cniCall{Plugins: plugins, Plugin: "win-bridge", ContainerID: "0123456789ab", IfName: "eth0", Config: []byte(bridgeConf)}

			// Without its network the plugin refuses.
			call.Command, call.NetNS = "ADD", sandbox(t, c)
			var refusal *cniError
			if _, err := n.callCNI(t.Context(), call); !errors.As(err, &refusal) || !strings.Contains(refusal.Msg, "cbr0") {
				t.Fatalf("without the network: %v", err)
			}
			if _, err := c.Create(hcn.Network, 0, bridgeNetwork); err != nil {
				t.Fatal(err)
			}
			out, err := n.callCNI(t.Context(), call)
			if err != nil {
				t.Fatal(err)
			}
			attachedByBridge(t, c, call.NetNS, out)
			// CHECK is not implemented upstream: the plugin accepts anything.
			call.Command = "CHECK"
			withResult := strings.Replace(bridgeConf, "{", `{"prevResult":`+string(out)+",", 1)
			checked := call
			checked.Config = []byte(withResult)
			if out, err := n.callCNI(t.Context(), checked); err != nil || len(out) != 0 {
				t.Errorf("CHECK: %v: %s", err, out)
			}
			for _, command := range []string{"DEL", "DEL"} { // the second finds nothing, and that is well
				call.Command = command
				if _, err := n.callCNI(t.Context(), call); err != nil {
					t.Errorf("%s: %v", command, err)
				}
			}
			if ids, err := c.Enumerate(hcn.Endpoint, ""); err != nil || len(ids) != 0 {
				t.Errorf("after DEL there are endpoints %v, error %v", ids, err)
			}
		})
	}
}

// attachedByBridge compares the endpoint of a pod with the answer of win-bridge.
func attachedByBridge(t *testing.T, c *hcn.Client, namespace string, out []byte) {
	t.Helper()
	var result struct {
		IPs []struct{ Address, Gateway string }
		DNS struct{ Nameservers []string }
	}
	if err := json.Unmarshal(out, &result); err != nil || len(result.IPs) != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	ids, err := c.Enumerate(hcn.Endpoint, "")
	if err != nil || len(ids) != 1 {
		t.Fatalf("endpoints %v, error %v", ids, err)
	}
	text, err := c.Get(hcn.Endpoint, ids[0])
	if err != nil {
		t.Fatal(err)
	}
	var ep struct {
		Name, HostComputeNamespace string
		IPConfigurations           []struct{ IPAddress string }
		Policies                   []struct{ Type string }
	}
	if err := json.Unmarshal([]byte(text), &ep); err != nil {
		t.Fatal(err)
	}
	if ep.Name != "0123456789ab_cbr0" || !strings.EqualFold(ep.HostComputeNamespace, namespace) {
		t.Errorf("endpoint %q in namespace %q, want 0123456789ab_cbr0 in %s", ep.Name, ep.HostComputeNamespace, namespace)
	}
	if len(ep.IPConfigurations) != 1 || ep.IPConfigurations[0].IPAddress+"/24" != result.IPs[0].Address {
		t.Errorf("HNS has %+v, the plugin says %+v", ep.IPConfigurations, result.IPs)
	}
	var kinds []string
	for _, p := range ep.Policies {
		kinds = append(kinds, p.Type)
	}
	for _, want := range []string{"OutBoundNAT", "SDNRoute"} {
		if !slices.Contains(kinds, want) {
			t.Errorf("no policy %s among %v", want, kinds)
		}
	}
}

const overlayNetwork = `{"Name":"vxlan0","Type":"Overlay","Policies":[{"Type":"VxlanPort","Settings":{"Port":4789}}],` +
	`"Ipams":[{"Type":"Static","Subnets":[{"IpAddressPrefix":"10.244.1.0/24","Routes":[{"NextHop":"10.244.1.1","DestinationPrefix":"0.0.0.0/0"}],` +
	`"Policies":[{"Type":"VSID","Settings":{"IsolationId":4096}}]}]}],"SchemaVersion":{"Major":2,"Minor":0}}`

const overlayConf = `{"cniVersion":"1.0.0","name":"vxlan0","type":"win-overlay","apiVersion":2,"endpointMacPrefix":"0E-2A","ipMasq":true,
"ipam":{"type":"host-local","ranges":[[{"subnet":"10.244.1.0/24","rangeStart":"10.244.1.20"}]]}}`

// The real win-overlay gives an endpoint the MAC address that it derives from the
// address, as flannel's neighbours expect.
func TestWinOverlay(t *testing.T) {
	n, c := node(t, "2022")
	if _, err := c.Create(hcn.Network, 0, overlayNetwork); err != nil {
		t.Fatal(err)
	}
	call := cniCall{Plugins: winetest.Binaries(t, "cni-plugins-1.9.1"), Plugin: "win-overlay", Command: "ADD", ContainerID: "ba9876543210",
		IfName: "eth0",
		NetNS:  sandbox(t, c), Config: []byte(overlayConf)}
	out, err := n.callCNI(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	var result struct {
		Interfaces []struct{ Mac string }
		IPs        []struct{ Address string }
	}
	if err := json.Unmarshal(out, &result); err != nil || len(result.IPs) != 1 || len(result.Interfaces) != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	// 10.244.1.20 is 0a-f4-01-14.
	if mac := result.Interfaces[0].Mac; !strings.EqualFold(strings.ReplaceAll(mac, ":", "-"), "0E-2A-0a-f4-01-14") ||
		result.IPs[0].Address != "10.244.1.20/24" {
		t.Errorf("%s", out)
	}
	call.Command = "DEL"
	if _, err := n.callCNI(t.Context(), call); err != nil {
		t.Error(err)
	}
	if ids, err := c.Enumerate(hcn.Endpoint, ""); err != nil || len(ids) != 0 {
		t.Errorf("after DEL there are endpoints %v, error %v", ids, err)
	}
}

// With HNS v1 the plugin attaches the sandbox's container through the Host Compute
// Service (containernetworking/plugins pkg/hns/endpoint_windows.go AddHnsEndpoint).
// Where the container does not run (HCS_E_SYSTEM_NOT_FOUND, whose text Wine does not
// have), it takes its new endpoint away again; and a
// container that has ended before DEL does not stop that.
func TestWinBridgeV1(t *testing.T) {
	n, c, service := nodeAndHNS(t, "17763.1432")
	if _,
		err := c.HNSCall("POST", "/networks/",
		`{"Name":"cbr0","Type":"l2bridge","Subnets":[{"AddressPrefix":"10.244.1.0/24","GatewayAddress":"10.244.1.1"}]}`); err != nil {
		t.Fatal(err)
	}
	conf := strings.NewReplacer(`"apiVersion":2`, `"apiVersion":1`, `"policies":[`, `"x":[`).Replace(bridgeConf)
	call := cniCall{Plugins: winetest.Binaries(t, "cni-plugins-1.9.1"), Plugin: "win-bridge", Command: "ADD", ContainerID: "0123456789ab",
		NetNS: "none", IfName: "eth0", Config: []byte(conf)}
	attached := func() (all [][]string) {
		t.Helper()
		raw, err := c.HNSCall("GET", "/endpoints/", "")
		var list []struct{ SharedContainers []string }
		if err == nil {
			err = json.Unmarshal(raw, &list)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			all = append(all, e.SharedContainers)
		}
		return all
	}
	var refusal *cniError
	if _, err := n.callCNI(t.Context(), call); !errors.As(err, &refusal) ||
		!strings.Contains(refusal.Msg+refusal.Details, fmt.Sprint("winapi error #", 0xc037010e)) {
		t.Errorf("a container that does not run: %v", err)
	}
	if a := attached(); len(a) != 0 {
		t.Errorf("after a refused ADD there are endpoints of %q", a)
	}
	service.AddComputeSystem(call.ContainerID)
	for range 2 { // the second finds it attached
		if _, err := n.callCNI(t.Context(), call); err != nil {
			t.Fatal(err)
		}
		if a := attached(); len(a) != 1 || !slices.Equal(a[0], []string{call.ContainerID}) {
			t.Errorf("endpoints of %q, want one of %s", a, call.ContainerID)
		}
	}
	service.RemoveComputeSystem(call.ContainerID)
	call.Command = "DEL"
	if _, err := n.callCNI(t.Context(), call); err != nil {
		t.Error(err)
	}
	if a := attached(); len(a) != 0 {
		t.Errorf("after DEL there are endpoints of %q", a)
	}
}

// Only what Wine did is tried again, not what a plugin refuses.
func TestNotStarted(t *testing.T) {
	for msg, want := range map[string]bool{
		`netplugin failed with no error message: fork/exec Z:\bin\host-local.exe: Internal error.`: true,
		`netplugin failed with no error message: fork/exec Z:\bin\host-local.exe: File not found.`: false,
		`failed to create the new HNSEndpoint: hnsCall failed in Win32: Internal error.`:           false,
	} {
		for _, e := range []*cniError{{Msg: msg}, {Msg: "error while ipam.ExecAdd", Details: msg}} {
			if e.notStarted() != want {
				t.Errorf("%v: %v", e, !want)
			}
		}
	}
}

// Each pinned kube-proxy starts and says which it is.
func TestKubeProxyVersions(t *testing.T) {
	n, _ := node(t, "2022")
	for _, version := range full.Ends(proxyVersions) {
		r, err := n.run(t.Context(), wine.Command{Path: winetest.Binaries(t, "kube-proxy-"+version).Path("kube-proxy.exe"),
			Args: []string{"--version"}})
		if err != nil || strings.TrimSpace(r.Stdout) != "Kubernetes v"+version {
			t.Errorf("%v: %+v", err, r)
		}
	}
}
