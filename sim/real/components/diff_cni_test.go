//go:build linux

package components

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/internal/dev/full"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/kube/cni"
	"github.com/winlab-dev/winlab/sim/real/pinned"
	"github.com/winlab-dev/winlab/sim/real/wine/winetest"
	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hcn"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// diffReleases are the releases of containernetworking/plugins with which the
// models are compared, each on some builds and with some configurations (nil:
// all).
var diffReleases = []struct {
	version       string
	builds, confs []string
}{
	{"1.9.1", []string{"17763.1432", "19041", "20348", "26100"}, nil},
	// The last but one before the policies got their current form (1.0.0).
	{"0.8.6", []string{"17763.1432"}, []string{"win-bridge", "win-bridge-masquerade", "win-overlay", "flannel-host-gw-nat-as-is"}},
}

// diffConf is a CNI configuration of a node and how a test changes it.
type diffConf struct {
	name, file, netConf string
	// set are members of the plugin's part, for flannel those of the delegate.
	set map[string]any
	// asIs leaves the policies in the form of the file, whatever apiVersion says.
	asIs bool
}

var diffConfs = []diffConf{
	{name: "win-bridge", file: "win-bridge.conf"},
	{name: "win-bridge-masquerade", file: "win-bridge.conf", set: map[string]any{
		"policies": []any{}, "loopbackDSR": false, "ipMasqNetwork": "10.244.0.0/16", "dns": map[string]any{"nameservers": []any{"10.96.0.10"}},
	}},
	{name: "flannel-host-gw", file: "flannel-host-gw.conf", netConf: "net-conf-host-gw.json"},
	{name: "win-overlay", file: "win-overlay.conf"},
	{name: "win-overlay-mac-prefix", file: "win-overlay.conf", set: map[string]any{"endpointMacPrefix": "02-11", "ipMasq": true}},
	{name: "flannel-vxlan", file: "flannel-vxlan.conf", netConf: "net-conf-vxlan.json", set: map[string]any{"loopbackDSR": true}},
	{name: "flannel-vxlan-as-is", file: "flannel-vxlan.conf", netConf: "net-conf-vxlan.json", asIs: true},
	{name: "flannel-host-gw-nat-as-is", file: "flannel-host-gw.conf", netConf: "net-conf-host-gw.json", asIs: true, set: map[string]any{
		"policies": []any{map[string]any{"name": "endpointpolicy",
			"value": map[string]any{"Type": "OutBoundNAT", "ExceptionList": []any{"10.244.0.0/16"}}},
			map[string]any{"name": "OtherPolicy", "value": map[string]any{"Type": "OutBoundNAT"}}},
		"dns": map[string]any{"nameservers": []any{"10.96.0.10", "8.8.8.8"}, "search": []any{"svc.cluster.local"}, "domain": "x.test",
			"options": []any{"ndots:5"}},
	}},
}

// The model of each plugin makes the HNS objects that the plugin makes, and
// refuses what the plugin refuses, step by step. What differs is listed in
// testdata/cni-exceptions.yaml with its reason.
func TestPluginModels(t *testing.T) {
	winetest.Need(t)
	exceptions := readExceptions(t, "testdata/cni-exceptions.yaml")
	t.Run("builds", func(t *testing.T) {
		for _, build := range full.Ends(diffReleases[0].builds) {
			t.Run(build, func(t *testing.T) {
				host := hostOf(t, builds.MustLookup(build))
				for _, r := range diffReleases {
					if !slices.Contains(r.builds, build) {
						continue
					}
					p := release{r.version, winetest.Binaries(t, "cni-plugins-"+r.version)}
					for _, conf := range diffConfs {
						if r.confs != nil && !slices.Contains(r.confs, conf.name) {
							continue
						}
						for _, api := range []int{1, 2} {
							t.Run(fmt.Sprintf("%s/%s/v%d", r.version, conf.name, api), func(t *testing.T) {
								t.Parallel()
								newDiff(t, host, build, conf, api, p, exceptions).run()
							})
						}
					}
				}
			})
		}
	})
	if t.Failed() || !everySubtest() || !full.Run() {
		return
	}
	for _, e := range exceptions {
		if e.used.Load() == 0 {
			t.Errorf("exception %s was not needed; remove it", e.ID)
		}
	}
}

// everySubtest reports whether -run lets all subtests run.
func everySubtest() bool {
	return !slices.ContainsFunc(os.Args, func(a string) bool { return strings.HasPrefix(a, "-test.run=") && strings.Contains(a, "/") })
}

// release is a release of containernetworking/plugins.
type release struct {
	version string
	*pinned.Binaries
}

// isOlderThan reports whether the release is older than a minor version, such as 1, 0.
func (r release) isOlderThan(major, minor int) bool {
	var m, n int
	if _, err := fmt.Sscanf(r.version, "%d.%d.", &m, &n); err != nil {
		panic(err)
	}
	return m < major || m == major && n < minor
}

// exception is a difference between model and plugin that is known and wanted.
type exception struct {
	ID string
	// Conf and API limit it: a regular expression for the configuration's name,
	// and 1 or 2.
	Conf string
	API  int
	// Versions limits it to versions of the program, in ranges whose ends are part of
	// them: "1.24.10..1.30", "..1.33.7", "1.36..". A minor version is all its patches.
	Versions []string
	// Line matches the lines that differ, without the sign before them.
	Line           string
	Reason, Source string

	used atomic.Int32
}

func readExceptions(t *testing.T, file string) []*exception {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Exceptions []*exception }
	d := yaml.NewDecoder(bytes.NewReader(raw))
	d.KnownFields(true)
	if err := d.Decode(&all); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	for _, e := range all.Exceptions {
		if e.ID == "" || e.Line == "" || e.Reason == "" || e.Source == "" {
			t.Errorf("%s: exception %q needs id, line, reason and source", file, e.ID)
		}
		for _, r := range e.Versions {
			if _, err := inRange(r, "1.20.15"); err != nil {
				t.Errorf("%s: exception %q: %v", file, e.ID, err)
			}
		}
	}
	return all.Exceptions
}

// appliesTo reports whether an exception is for a version.
func (e *exception) appliesTo(version string) bool {
	return len(e.Versions) == 0 || slices.ContainsFunc(e.Versions, func(r string) bool {
		in, err := inRange(r, version)
		return in && err == nil
	})
}

// inRange reports whether a version is in a range as exception.Versions has them.
func inRange(r, version string) (bool, error) {
	from, to, found := strings.Cut(r, "..")
	if !found || from == "" && to == "" {
		return false, fmt.Errorf("%q is no range of versions; write one such as 1.24.10..1.30, ..1.33.7 or 1.36..", r)
	}
	v, err := kube.ParseVersion(version)
	if err != nil {
		return false, err
	}
	in := true
	for i, end := range []string{from, to} {
		if end == "" {
			continue
		}
		e, err := kube.ParseVersion(end)
		if err != nil {
			return false, err
		}
		switch {
		case e.Assumed && e.SameMinor(v):
		case i == 0:
			in = in && v.Compare(e) >= 0
		default:
			in = in && v.Compare(e) <= 0
		}
	}
	return in, nil
}

func TestRangesOfVersions(t *testing.T) {
	for r, want := range map[string]string{
		"..1.33.7": "1.20.15 1.33.0 1.33.7", "1.33.8..1.34": "1.33.8 1.34.0 1.34.4 1.34.11", "1.34..": "1.34.0 1.34.4 1.34.11 1.37.2",
		"1.34.4..1.34.4": "1.34.4",
	} {
		var got []string
		for _, v := range []string{"1.20.15", "1.33.0", "1.33.7", "1.33.8", "1.34.0", "1.34.4", "1.34.11", "1.37.2"} {
			in, err := inRange(r, v)
			if err != nil {
				t.Fatal(err)
			}
			if in {
				got = append(got, v)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", r, got, want)
		}
	}
	for _, bad := range []string{"1.33", "..", "x..1.3"} {
		if _, err := inRange(bad, "1.20.15"); err == nil {
			t.Errorf("%q is a range", bad)
		}
	}
}

// diff is one plugin with one configuration on one build, twice.
type diff struct {
	t          *testing.T
	ctx        context.Context
	conf       diffConf
	api        int
	plugins    release
	exceptions []*exception

	cluster *kube.Cluster
	node    *kube.Node

	// The real side.
	real    *Node
	service *hcn.Service
	program NetConf
	netns   map[string]string
	running map[string]bool
	added   bool // there was an ADD

	// The model's side.
	model cni.Plugin
	hns   *hns.Service
}

func newDiff(t *testing.T, host *Host, build string, conf diffConf, api int, plugins release, exceptions []*exception) *diff {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	b := builds.MustLookup(build)
	d := &diff{t: t, ctx: ctx, conf: conf, api: api, plugins: plugins, exceptions: exceptions, netns: map[string]string{},
		running: map[string]bool{}}
	d.node = &kube.Node{
		Name: "win1", Windows: b, Address: netip.MustParseAddr("192.168.1.11"), Subnet: netip.MustParsePrefix("192.168.1.0/24"),
		Gateway: netip.MustParseAddr("192.168.1.1"), PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.244.1.0/24")},
		VtepMAC: packet.MAC{0x00, 0x15, 0x5d, 1, 2, 3},
	}
	other := &kube.Node{
		Name: "linux1", Address: netip.MustParseAddr("192.168.1.10"), Subnet: d.node.Subnet,
		PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/24")},
		VtepMAC:  packet.MAC{0x0e, 0x2a, 0, 0, 0, 1},
	}
	d.cluster = &kube.Cluster{
		ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")}, ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12")},
		DNSIP: netip.MustParseAddr("10.96.0.10"), Domain: "cluster.local", Nodes: []*kube.Node{other, d.node},
	}
	options := d.options(d.configure())
	program, err := cni.NewBinary(options, d.node)
	if err != nil {
		t.Fatal(err)
	}
	d.program = NetConf(*program)
	d.hns = hns.NewService(b, hns.Options{Node: "win1", ManagementIP: d.node.Address})
	d.model = d.newModel(options)
	if _, err := d.model.Prepare(d.cluster, d.node, d.hns); err != nil {
		t.Fatal(err)
	}

	// The network is there as flanneld or the start script leaves it: the real
	// plugins only look for it.
	real := hns.NewService(b, hns.Options{Node: "win1", ManagementIP: d.node.Address})
	if _, err := d.newModel(options).Prepare(d.cluster, d.node, real); err != nil {
		t.Fatal(err)
	}
	d.service = hcn.New(real, hcn.Options{})
	n, err := host.Node(ctx, NodeConfig{HNS: d.service})
	if err != nil {
		t.Fatal(err)
	}
	d.real = n
	t.Cleanup(func() {
		if err := errors.Join(n.Close(), d.service.Close()); err != nil {
			t.Error(err)
		}
	})
	return d
}

// configure returns the file of the node, with what the test sets.
func (d *diff) configure() []byte {
	d.t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "fixtures", "cni", d.conf.file))
	if err != nil {
		d.t.Fatal(err)
	}
	var file map[string]any
	if err := json.Unmarshal(bytes.ReplaceAll(raw, []byte(cni.ManagementIPToken), []byte(d.node.Address.String())), &file); err != nil {
		d.t.Fatal(err)
	}
	body := file
	if delegate, ok := file["delegate"].(map[string]any); ok {
		body = delegate
	}
	maps.Copy(body, d.conf.set)
	if !d.conf.asIs {
		convertPolicies(body, d.api)
	}
	body["apiVersion"] = d.api
	text, err := json.Marshal(file)
	if err != nil {
		d.t.Fatal(err)
	}
	return text
}

// convertPolicies writes the policies in the form of the API's version.
func convertPolicies(body map[string]any, api int) {
	list, _ := body["policies"].([]any)
	for _, item := range list {
		value := item.(map[string]any)["value"].(map[string]any)
		settings, v2 := value["Settings"].(map[string]any)
		names := map[string]string{"ROUTE": "SDNRoute", "ExceptionList": "Exceptions"}
		switch {
		case api == 2 && !v2:
			settings = map[string]any{}
			for k, v := range value {
				if k != "Type" {
					if names[k] != "" {
						settings[names[k]] = v
					} else {
						settings[k] = v
					}
					delete(value, k)
				}
			}
			value["Settings"] = settings
			if n := names[value["Type"].(string)]; n != "" {
				value["Type"] = n
			}
		case api == 1 && v2:
			delete(value, "Settings")
			maps.Copy(value, settings)
			if e, ok := value["Exceptions"]; ok {
				value["ExceptionList"] = e
				delete(value, "Exceptions")
			}
			if value["Type"] == "SDNRoute" {
				value["Type"] = "ROUTE"
			}
		}
	}
}

// sourceVIP is what the start script takes from host-local for kube-proxy before
// the first pod, on overlay networks.
var sourceVIP = netip.MustParseAddr("10.244.1.2")

// options are those of the model; what the program is given follows from them, too.
func (d *diff) options(text []byte) cni.Options {
	d.t.Helper()
	o := cni.Options{Reserved: []netip.Addr{sourceVIP}}
	var err error
	if o.Conf, err = cni.ParseConf(d.conf.file, text); err != nil {
		d.t.Fatal(err)
	}
	o.Plugin = o.Conf.Type
	if o.Plugin == cni.PluginFlannel {
		o.DelegateVersion = d.plugins.version
	} else {
		o.Version = d.plugins.version
	}
	if d.conf.netConf != "" {
		raw, err := os.ReadFile(filepath.Join("..", "..", "..", "fixtures", "cni", d.conf.netConf))
		if err == nil {
			o.NetConf, err = cni.ParseNetConf(d.conf.netConf, raw)
		}
		if err != nil {
			d.t.Fatal(err)
		}
	}
	return o
}

func (d *diff) newModel(o cni.Options) cni.Plugin {
	d.t.Helper()
	p, err := cni.New(o)
	if err != nil {
		d.t.Fatal(err)
	}
	return p
}

// containerID is the sandbox of a pod: the runtime makes it up.
func containerID(pod string) string { return fmt.Sprintf("5a4db0%s0123456789abcdef", pod) }

// pod is what both sides attach. Pod "a" has hostPorts.
func (d *diff) pod(name string) *kube.Pod {
	p := &kube.Pod{Namespace: "default", Name: name, Node: "win1"}
	if name == "a" {
		p.HostPorts = []kube.HostPort{
			{Proto: packet.TCP, HostPort: 8080, Container: 80},
			{Proto: packet.UDP, HostPort: 5353, Container: 53, HostIP: d.node.Address},
			{Proto: packet.TCP, HostPort: 8443, Container: 443, HostIP: netip.IPv4Unspecified()},
		}
	}
	return p
}

// call calls the plugin for a pod as containerd and dockershim do.
func (d *diff) call(command, pod string) ([]byte, error) {
	d.t.Helper()
	dns := cni.KubeletDNS(d.cluster, d.pod(pod))
	text, err := d.real.runtimeConfig(d.program, d.pod(pod), DNS{Servers: dns.Nameservers, Searches: dns.Search})
	if err != nil {
		d.t.Fatal(err)
	}
	netns := "none" // dockershim's name for a sandbox that is not shared
	if d.api == 1 && command == "ADD" {
		d.service.AddComputeSystem(containerID(pod)) // the sandbox runs before it has a network
	}
	if d.api == 2 {
		if netns = d.netns[pod]; netns == "" {
			d.service.With(func(s *hns.Service) {
				ns, err := s.CreateNamespace(hns.Namespace{})
				if err != nil {
					d.t.Fatal(err)
				}
				netns = ns.ID
			})
			d.netns[pod] = netns
		}
	}
	return d.real.callCNI(d.ctx, cniCall{
		Plugins: d.plugins.Binaries, Plugin: d.program.Program, Command: command, ContainerID: containerID(pod), NetNS: netns, IfName: "eth0",
		Args: "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=" + pod, Config: text,
	})
}

// run does the same on both sides and compares after every step.
func (d *diff) run() {
	if d.program.Program == "win-overlay" {
		text, _ := d.real.runtimeConfig(d.program, &kube.Pod{}, DNS{})
		out, err := d.real.callCNI(d.ctx, cniCall{Plugins: d.plugins.Binaries, Plugin: "host-local", Command: "ADD", ContainerID: "source-vip",
			NetNS: "none", IfName: "source-vip", Config: text})
		if err != nil || !bytes.Contains(out, []byte(sourceVIP.String())) {
			d.t.Fatalf("the source VIP: %v: %s", err, out)
		}
	}
	d.words()
	for i, step := range []string{"DEL x", "ADD a", "ADD b", "ADD a", "DEL b", "ADD b", "ADD c", "DEL c", "DEL a", "DEL a", "DEL b"} {
		command, pod, _ := strings.Cut(step, " ")
		var real, model []string
		if command == "ADD" {
			real, model = d.addBoth(pod)
		} else {
			real, model = d.delBoth(pod)
		}
		if !d.compare(fmt.Sprintf("step %d, %s", i+1, step), real, model) {
			return
		}
	}
}

// words checks what the plugin answers to VERSION and CHECK, which the models do not
// have: it speaks the configuration's version, refuses CHECK before version 0.4.0
// (skel of containernetworking/cni), and accepts anything after it. Releases before
// 1.0.1 do not speak that version.
func (d *diff) words() {
	d.t.Helper()
	var v struct{ SupportedVersions []string }
	out, err := d.call("VERSION", "x")
	if err == nil {
		err = json.Unmarshal(out, &v)
	}
	if err != nil || !slices.Contains(v.SupportedVersions, fmt.Sprint(d.program.Config["cniVersion"])) {
		d.t.Errorf("VERSION: %v: %s", err, out)
	}
	var refusal *cniError
	if _, err := d.call("CHECK", "x"); !errors.As(err, &refusal) || !strings.Contains(refusal.Msg, "does not allow CHECK") {
		d.t.Errorf("CHECK with version %s: %v", d.program.Config["cniVersion"], err)
	}
	old := d.program.Config["cniVersion"]
	d.program.Config["cniVersion"] = "1.0.0"
	switch out, err := d.call("CHECK", "x"); {
	case d.plugins.isOlderThan(1, 0):
		if !errors.As(err, &refusal) || !strings.Contains(refusal.Msg, "plugin version does not allow CHECK") {
			d.t.Errorf("CHECK with version 1.0.0, which the release does not know: %v: %s", err, out)
		}
	case err != nil || len(out) != 0:
		d.t.Errorf("CHECK with version 1.0.0 for a pod that is not there: %v: %s", err, out)
	}
	d.program.Config["cniVersion"] = old
}

func (d *diff) addBoth(pod string) (real, model []string) {
	d.t.Helper()
	running := d.running[pod]
	out, err := d.call("ADD", pod)
	var refusal *cniError
	if d.program.Program == "win-bridge" && !d.added {
		// host-local gives .2 first, which the node's own endpoint has. HNS refuses
		// it, the runtime tries again, and host-local goes on with the next. The
		// model skips it (fact cni.reserved-addresses).
		if !errors.As(err, &refusal) || !strings.Contains(refusal.Msg+refusal.Details, "already exists") {
			d.t.Errorf("the first ADD was not refused for the address of the node's endpoint: %v: %s", err, out)
		}
		out, err = d.call("ADD", pod)
	}
	d.added = true
	switch {
	case err == nil:
		real = append(real, "answer: ok")
		real = append(real, resultLines(d.t, out)...)
	case errors.As(err, &refusal):
		real = append(real, "answer: refused")
	default:
		d.t.Fatal(err)
	}
	if err != nil {
		d.t.Logf("the plugin: %v", err)
		if !running {
			d.endSandbox(pod)
		}
	}
	d.running[pod] = running || err == nil
	r, err := d.model.Add(d.cluster, d.node, d.pod(pod), d.hns)
	if err != nil {
		d.t.Logf("the model: %v", err)
		return real, append(model, "answer: refused")
	}
	model = append(model, "answer: ok", "result: gateway = "+r.Gateway.String())
	for _, a := range r.Addresses {
		model = append(model, "result: address = "+a.String())
	}
	return real, model
}

// resultLines reads a CNI result of version 0.2.0 or later.
func resultLines(t *testing.T, out []byte) []string {
	t.Helper()
	var r struct {
		IPs []struct{ Address, Gateway string }
		IP4 struct{ IP, Gateway string }
	}
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	address, gateway := r.IP4.IP, r.IP4.Gateway
	if len(r.IPs) == 1 {
		address, gateway = r.IPs[0].Address, r.IPs[0].Gateway
	}
	return []string{"result: gateway = " + gateway, "result: address = " + address}
}

func (d *diff) delBoth(pod string) (real, model []string) {
	d.t.Helper()
	if _, err := d.call("DEL", pod); err != nil {
		d.t.Logf("the plugin: %v", err)
		real = append(real, "answer: refused")
	}
	d.endSandbox(pod)
	if err := d.model.Del(d.node, d.pod(pod), d.hns); err != nil {
		d.t.Logf("the model: %v", err)
		model = append(model, "answer: refused")
	}
	return real, model
}

// endSandbox ends a pod's container, or deletes its namespace, as the runtime does.
func (d *diff) endSandbox(pod string) {
	d.t.Helper()
	d.running[pod] = false
	d.service.RemoveComputeSystem(containerID(pod))
	if id := d.netns[pod]; id != "" {
		d.service.With(func(s *hns.Service) {
			if err := s.DeleteNamespace(id); err != nil {
				d.t.Error(err)
			}
		})
		delete(d.netns, pod)
	}
}

// compare reports whether both sides are equal except for listed exceptions.
func (d *diff) compare(step string, real, model []string) bool {
	d.t.Helper()
	var renames []string
	for _, pod := range []string{"a", "b", "c"} {
		renames = append(renames, containerID(pod)+"_", pod+"_", containerID(pod), "default/"+pod)
	}
	d.service.With(func(s *hns.Service) { real = append(real, Normalise(s.Snapshot(), renames...)...) })
	model = append(model, Normalise(d.hns.Snapshot())...)
	var different []string
	for _, l := range real {
		if !slices.Contains(model, l) && !d.excepted(l) {
			different = append(different, "only the plugin: "+l)
		}
	}
	for _, l := range model {
		if !slices.Contains(real, l) && !d.excepted(l) {
			different = append(different, "only the model:  "+l)
		}
	}
	if len(different) > 0 {
		d.t.Errorf("%s:\n%s", step, strings.Join(different, "\n"))
	}
	return len(different) == 0
}

func (d *diff) excepted(line string) bool {
	for _, e := range d.exceptions {
		if e.API != 0 && e.API != d.api || !regexp.MustCompile("^(?:"+e.Conf+")$").MatchString(d.conf.name) && e.Conf != "" {
			continue
		}
		if regexp.MustCompile("^(?:" + e.Line + ")$").MatchString(line) {
			e.used.Add(1)
			return true
		}
	}
	return false
}
