//go:build linux

package components

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/kube/cni"
	"github.com/winlab-dev/winlab/sim/real/pinned"
	"github.com/winlab-dev/winlab/sim/real/wine/winetest"
	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hcn"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// flannelCase is a node with flannel. plugins is the release of its delegate.
type flannelCase struct {
	file, netConf string
	api           int
	plugins       string
	ipMasq        bool // flanneld --ip-masq
}

func (c flannelCase) name() string {
	backend, _ := strings.CutSuffix(strings.TrimPrefix(c.netConf, "net-conf-"), ".json")
	return fmt.Sprintf("%s-%s-v%d", backend, c.plugins, c.api)
}

// flannel's own plugin, the real one, and its delegate lead to what the delegate
// alone leads to with the configuration of cni.NewBinary. So labs and
// TestPluginModels may leave flannel's plugin out.
//
// The plugin is of release 0.8.6 of containernetworking/plugins, where it was until
// 1.0.0. What it writes for a delegate on Windows is what that of
// flannel-io/cni-plugin writes (doCmdAdd in flannel_windows.go of both).
func TestFlannelPlugin(t *testing.T) {
	winetest.Need(t)
	cases := []flannelCase{
		{"flannel-host-gw.conf", "net-conf-host-gw.json", 2, "1.9.1", true},
		{"flannel-host-gw.conf", "net-conf-host-gw.json", 1, "0.8.6", true},
		{"flannel-vxlan.conf", "net-conf-vxlan.json", 1, "1.9.1", true},
		{"flannel-vxlan.conf", "net-conf-vxlan.json", 2, "1.9.1", false},
	}
	host := hostOf(t, builds.MustLookup("20348"))
	for _, c := range cases {
		t.Run(c.name(), func(t *testing.T) {
			t.Parallel()
			f := newFlannel(t, host, c)
			f.step("ADD", f.add)
			f.step("DEL", f.del)
			f.step("DEL again", f.del)
		})
	}
}

// flannelDiff is the node twice: with flannel's plugin, and without.
type flannelDiff struct {
	t        *testing.T
	scratch  string // where flannel's plugin keeps the delegate's configuration
	pod      *kube.Pod
	dns      DNS
	delegate map[string]any // as cni.NewBinary says
	sides    [2]flannelSide // flannel's plugin, the delegate alone
}

type flannelSide struct {
	*Node
	service  *hcn.Service
	plugins  *pinned.Binaries
	conf     NetConf
	attached *Attached
	netns    string
}

func newFlannel(t *testing.T, host *Host, c flannelCase) *flannelDiff {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	win := &kube.Node{
		Name: "win1", Windows: builds.MustLookup("20348"), Address: netip.MustParseAddr("192.168.1.11"),
		Subnet:  netip.MustParsePrefix("192.168.1.0/24"),
		Gateway: netip.MustParseAddr("192.168.1.1"), PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.244.1.0/24")},
		VtepMAC: packet.MAC{0x00, 0x15, 0x5d, 1, 2, 3},
	}
	cluster := &kube.Cluster{
		ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")}, ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12")},
		DNSIP: netip.MustParseAddr("10.96.0.10"), Domain: "cluster.local", Nodes: []*kube.Node{win},
	}
	// The nodes share a disk, and flannel's plugin says nothing of host-local's
	// folder: each case has a network of its own name.
	network := c.name()
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "fixtures", "cni", c.file))
	must(err)
	var file map[string]any
	must(json.Unmarshal(bytes.ReplaceAll(raw, []byte(cni.ManagementIPToken), []byte(win.Address.String())), &file))
	file["name"] = network
	delegate := file["delegate"].(map[string]any)
	delegate["apiVersion"] = c.api
	convertPolicies(delegate, c.api)
	// The defaults, with a drive: Wine takes a path that begins with a slash for one of
	// this machine.
	file["subnetFile"], file["dataDir"] = `C:\run\flannel\`+network+`.env`, `C:\var\lib\cni\flannel`
	text, err := json.Marshal(file)
	must(err)
	o := cni.Options{Plugin: cni.PluginFlannel, IPMasq: &c.ipMasq}
	o.Conf, err = cni.ParseConf(c.file, text)
	must(err)
	raw, err = os.ReadFile(filepath.Join("..", "..", "..", "fixtures", "cni", c.netConf))
	must(err)
	o.NetConf, err = cni.ParseNetConf(c.netConf, raw)
	must(err)
	o.NetConf.Backend.Name = network
	binary, err := cni.NewBinary(o, win)
	must(err)
	must(writeSubnetEnv(host, network, o.NetConf.Network, win.PodCIDRs[0], c.ipMasq))

	f := &flannelDiff{
		t: t, scratch: filepath.Join(host.Dir, "drive_c", "var", "lib", "cni", "flannel"), delegate: binary.Config,
		pod: &kube.Pod{Namespace: network, Name: "web", Node: "win1",
			HostPorts: []kube.HostPort{{Proto: packet.TCP, HostPort: 8080, Container: 80}}},
		dns: DNS{Servers: []string{"10.96.0.10"}, Searches: []string{"default.svc.cluster.local", "svc.cluster.local", "cluster.local"}},
	}
	plugins := winetest.Binaries(t, "cni-plugins-"+c.plugins)
	f.sides[0] = flannelSide{plugins: inOneFolder(t, plugins, winetest.Binaries(t, "cni-plugins-0.8.6"), "flannel.exe"),
		conf: NetConf{Program: "flannel", Config: file, Capabilities: o.Conf.Capabilities, APIVersion: c.api}}
	f.sides[1] = flannelSide{plugins: plugins,
		conf: NetConf{Program: binary.Program, Config: binary.Config, Capabilities: binary.Capabilities, APIVersion: binary.APIVersion}}
	for i := range f.sides {
		s := &f.sides[i]
		objects := hns.NewService(win.Windows, hns.Options{Node: "win1", ManagementIP: win.Address})
		p, err := cni.New(o)
		must(err)
		_, err = p.Prepare(cluster, win, objects)
		must(err)
		s.service = hcn.New(objects, hcn.Options{})
		s.Node, err = host.Node(t.Context(), NodeConfig{HNS: s.service})
		must(err)
		t.Cleanup(func() {
			if err := errors.Join(s.Close(), s.service.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	return f
}

// writeSubnetEnv writes what flanneld tells its plugin (flannel-io/flannel
// pkg/subnet/subnet.go WriteSubnetFile): the subnet is written there with its first
// address.
func writeSubnetEnv(host *Host, name string, network, subnet netip.Prefix, ipMasq bool) error {
	dir := filepath.Join(host.Dir, "drive_c", "run", "flannel")
	text := fmt.Sprintf("FLANNEL_NETWORK=%s\nFLANNEL_SUBNET=%s\nFLANNEL_MTU=1500\nFLANNEL_IPMASQ=%v\n",
		network, netip.PrefixFrom(subnet.Addr().Next(), subnet.Bits()), ipMasq)
	return errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, name+".env"), []byte(text), 0o600))
}

// inOneFolder is a folder with all programs of plugins and one more of another release, as
// a node has them in one folder.
func inOneFolder(t *testing.T, plugins, other *pinned.Binaries, program string) *pinned.Binaries {
	t.Helper()
	all := &pinned.Binaries{Dir: t.TempDir(), Names: append([]string{program}, plugins.Names...)}
	slices.Sort(all.Names)
	all.Names = slices.Compact(all.Names)
	for _, name := range all.Names {
		from := plugins.Path(name)
		if name == program {
			from = other.Path(name)
		}
		if err := os.Symlink(from, filepath.Join(all.Dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// step does the same on both sides and compares.
func (f *flannelDiff) step(name string, do func(s *flannelSide) []string) {
	f.t.Helper()
	var got [2][]string
	for i := range f.sides {
		s := &f.sides[i]
		got[i] = do(s)
		s.service.With(func(h *hns.Service) { got[i] = append(got[i], Normalise(h.Snapshot())...) })
	}
	if d := cmp.Diff(got[1], got[0]); d != "" {
		f.t.Errorf("%s: the delegate alone (-), flannel's plugin (+):\n%s", name, d)
	}
}

func (f *flannelDiff) add(s *flannelSide) []string {
	f.t.Helper()
	var err error
	if s.attached, err = s.AttachPod(f.t.Context(), s.plugins, s.conf, f.pod, f.dns); err != nil {
		f.t.Fatalf("%s: %v", s.conf.Program, err)
	}
	s.service.With(func(h *hns.Service) { s.netns = h.Endpoint(s.attached.Endpoint).HostComputeNamespace })
	if s.netns == "" {
		s.netns = "none"
	}
	if s == &f.sides[0] {
		f.compareConfig(s)
	}
	return []string{fmt.Sprintf("result: %s via %s after %d refusals", s.attached.Addresses, s.attached.Gateway, len(s.attached.Refusals))}
}

// compareConfig compares what flannel's plugin has written for its delegate with
// cni.NewBinary, and with what the runtime has passed.
func (f *flannelDiff) compareConfig(s *flannelSide) {
	f.t.Helper()
	want := NetConf{Config: f.delegate, Capabilities: s.conf.Capabilities}
	text, err := s.runtimeConfig(want, f.pod, f.dns)
	if err != nil {
		f.t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(f.scratch, s.attached.container))
	if err != nil {
		f.t.Fatalf("the configuration that flannel's plugin keeps for DEL: %v", err)
	}
	var got, wanted map[string]any
	if err := errors.Join(json.Unmarshal(raw, &got), json.Unmarshal(text, &wanted)); err != nil {
		f.t.Fatal(err)
	}
	delete(wanted["ipam"].(map[string]any), "dataDir") // winlab's own, as nodes share a disk
	if d := cmp.Diff(wanted, got); d != "" {
		f.t.Errorf("the delegate's configuration by cni.NewBinary (-), by flannel's plugin (+):\n%s", d)
	}
}

func (f *flannelDiff) del(s *flannelSide) []string {
	f.t.Helper()
	text, err := s.runtimeConfig(s.conf, f.pod, f.dns)
	if err != nil {
		f.t.Fatal(err)
	}
	answer := "answer: ok"
	if _, err := s.callCNI(f.t.Context(), cniCall{Plugins: s.plugins, Plugin: s.conf.Program, Command: "DEL",
		ContainerID: s.attached.container,
		NetNS:       s.netns, IfName: "eth0", Args: args(f.pod), Config: text}); err != nil {
		f.t.Logf("%s: %v", s.conf.Program, err)
		answer = "answer: refused"
	}
	if _, err := os.Stat(filepath.Join(f.scratch, s.attached.container)); !errors.Is(err, fs.ErrNotExist) {
		f.t.Errorf("after DEL flannel's plugin still has the delegate's configuration: %v", err)
	}
	return []string{answer}
}
