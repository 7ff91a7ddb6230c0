package labfile

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/winlab-dev/winlab/internal/strict"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares text with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; -update rewrites it):\n%s", file, diff)
	}
}

// A lab with twenty mistakes gets twenty messages, each with its place and
// with what would be right.
func TestTwentyMistakes(t *testing.T) {
	_, err := Load("testdata/twenty-mistakes.yaml")
	var ms strict.Mistakes
	if !errors.As(err, &ms) {
		t.Fatalf("no list of mistakes, but %v", err)
	}
	if len(ms) != 20 {
		t.Errorf("%d messages for twenty mistakes", len(ms))
	}
	for _, m := range ms {
		if m.Line == 0 || m.Column == 0 || m.File != "testdata/twenty-mistakes.yaml" {
			t.Errorf("no place: %s", m)
		}
	}
	golden(t, "twenty-mistakes.golden", err.Error()+"\n")
}

const head = "apiVersion: winlab.dev/v1alpha1\nkind: Lab\nmetadata: {name: x}\nspec:\n"

// A lab that is right, to which each case adds one mistake.
const right = head + `  network: {plugin: ovn-kubernetes}
  nodes:
    - {name: linux1, os: linux}
    - {name: win1}
  pods:
    - {name: client, node: win1}
  hosts:
    - {name: lan, address: 192.168.1.50}
`

func TestMistakesAreFound(t *testing.T) {
	for _, c := range []struct{ name, lab, want string }{
		{"empty file", "", "x.yaml: the file is empty"},
		{"a comment only", "# nothing\n", "the file is empty"},
		{"a text", "hello", "x.yaml:1:1: the lab is \"hello\"; write a map with the fields"},
		{"a list", "[1, 2]", "x.yaml:1:1: the lab is a list"},
		{"not YAML", "a: [1,\nb: 2", "x.yaml:2:1: not YAML"},
		{"bytes", "\x7fELF\x02\x01\x01\x00\x00", "byte 7 is zero: this is not a text file"},
		{"bytes without zeros", "\x89PNG\r\n", "x.yaml:1:1: "},
		{"another kind", "apiVersion: v1\nkind: Pod\n", "x.yaml:1:13: apiVersion must be winlab.dev/v1alpha1"},
		{"unknown field", right + "  podz: []\n", `x.yaml:13:3: spec has no field "podz"; did you mean "pods"?`},
		{"wrong type", right + "  manifests: web.yaml\n", "x.yaml:13:14: manifests is \"web.yaml\"; write a list"},
		{"wrong type in a list", right + "  flows: [3]\n", "x.yaml:13:11: an entry of flows is \"3\"; write a map with the fields"},
		{"field twice", right + "  pods: []\n", `x.yaml:13:3: field "pods" is here twice; the first is on line 9`},
		{"alias", right + "  dns: &a {off: true}\n", "x.yaml:13:8: anchors and aliases are not used here"},
		{"missing base", head + "  base: other.yaml\n", "x.yaml:5:9: base other.yaml: there is no such file"},
		{"base that is a folder", head + "  base: testdata\n", "x.yaml:5:9: base testdata: there is no such file"},
		{"missing manifest", right + "  manifests: [web.yaml]\n", "x.yaml:13:15: manifest web.yaml: there is no such file"},
		{"no nodes", head + "  network: {plugin: nat}\n", "x.yaml:5:3: the lab has no nodes"},
		{"pod on no node", right + "  variants:\n    - name: v\n      set: {pods: [{name: p2, node: winn1}]}\n",
			`x.yaml:15:37: there is no node "winn1"; did you mean "win1"?`},
		{"pod address twice", right +
			"  variants:\n    - name: v\n      set: {pods: [{name: client, address: 10.244.1.9}, {name: b, address: 10.244.1.9}]}\n",
			"x.yaml:15:76: 10.244.1.9 is already the address of pod default/client"},
		{"pod address of a host", strings.Replace(right, "node: win1}\n  hosts", "node: win1, address: 192.168.1.50}\n  hosts", 1),
			"x.yaml:10:43: 192.168.1.50 is already the address of host lan"},
		{"pod address outside its node", strings.Replace(right, "node: win1}\n  hosts", "node: win1, address: 10.244.7.1}\n  hosts", 1),
			"x.yaml:10:43: 10.244.7.1 is outside 10.244.1.0/24, the pod range of node win1"},
		{"host port twice", strings.Replace(right, "node: win1}\n  hosts", "node: win1, hostPorts: [tcp/80:80, \"tcp/80:81\"]}\n  hosts", 1),
			"x.yaml:10:57: host port 80 of node win1 is already taken by pod default/client"},
		{"run without a program", strings.Replace(right, "node: win1}\n  hosts", "node: win1, run: []}\n  hosts", 1),
			"x.yaml:10:39: run is a program and its arguments"},
		{"run of an empty program", strings.Replace(right, "node: win1}\n  hosts", "node: win1, run: [\"\", a]}\n  hosts", 1),
			"x.yaml:10:39: run is a program and its arguments"},
		{"a program of Windows on Linux", strings.Replace(right, "node: win1}\n  hosts", "node: linux1, run: [./A.EXE]}\n  hosts", 1),
			"x.yaml:10:41: ./A.EXE is a program of Windows, and node linux1 runs Linux"},
		{"a zero byte in a program", strings.Replace(right, "node: win1}\n  hosts", "node: win1, run: [a, \"b\\0\"]}\n  hosts", 1),
			"x.yaml:10:43: an argument of a program cannot contain a zero byte"},
		{"run in a step", right + "  steps: [{name: s, pods: [{name: b, node: linux1, run: [a.exe]}]}]\n",
			"x.yaml:13:57: a.exe is a program of Windows"},
		{"pod ranges overlap", strings.Replace(right, "- {name: win1}", "- {name: win1, podCIDR: 10.244.0.0/23}", 1),
			"x.yaml:8:29: the pod range 10.244.0.0/23 of win1 overlaps 10.244.0.0/24 of linux1"},
		{"HNS of a node of Antrea", strings.Replace(strings.Replace(right, "ovn-kubernetes", "antrea", 1), "- {name: win1}",
			"- {name: win1, hnsDump: [x.yaml]}", 1), "x.yaml:8:29: on an Antrea node the Open vSwitch flows handle packets"},
		{"route without a next hop", strings.Replace(right, "- {name: win1}", "- {name: win1, routes: [{to: 10.0.0.0/8}]}", 1),
			"x.yaml:8:29: the route of win1 needs a next hop"},
		{"host twice", right + "    - {name: lan, address: 192.168.1.51}\n",
			`x.yaml:13:7: a host needs a name of its own; "lan" is empty or taken`},
		{"unknown Service in a flow", right + "  flows: [{from: pod/client, to: svc/kubernets}]\n",
			`x.yaml:13:34: svc/kubernets: there is no Service default/kubernets in this lab; did you mean "default/kubernetes"?`},
		{"unknown host in a flow", right + "  flows: [{from: host/lam, to: pod/client}]\n",
			`x.yaml:13:18: host/lam: there is no host lam in this lab; did you mean "lan"?`},
		{"unknown node in a flow", right + "  flows: [{from: pod/client, to: node/win1:80, seenAs: node/win2}]\n",
			`x.yaml:13:56: node/win2: there is no node win2 in this lab; did you mean "win1"?`},
		{"unknown tool", right + "  flows: [{from: pod/client, to: a.b, resolve: hostname}]\n",
			`x.yaml:13:48: there is no tool "hostname"; write one of Resolve-DnsName, nslookup, ping, linux`},
		{"unknown verdict of a backend", right + "  flows: [{from: pod/client, to: node/win1:80, backends: {win1: fine}}]\n",
			`x.yaml:13:65: no verdict "fine"`},
		{"setting with a bad build", right + "  settings: [{kubernetes: \"1.20\", build: \"9.9\"}]\n", "x.yaml:13:42: "},
		{"setting with a bad proxy mode", right + "  settings: [{kubernetes: \"1.20\", proxy: {mode: iptable}}]\n",
			`x.yaml:13:49: there is no proxy mode "iptable"`},
		{"flag newer than the version", right +
			"  settings: [{kubernetes: \"1.10\", proxy: {mode: kernelspace, flags: [\"--enable-dsr=true\"]}}]\n",
			"--enable-dsr=true: kube-proxy 1.10 does not have this flag; 1.14 introduced it"},
		{"HNS call of two actions", right + "  hns: [{node: win1, restart: true, delete: {kind: endpoint}}]\n",
			"x.yaml:13:9: an HNS call must have exactly one of"},
		{"HNS call on an unknown kind", right + "  hns: [{node: win1, delete: {kind: loadbalancer}}]\n",
			`x.yaml:13:37: there is no kind "loadbalancer"; did you mean "loadBalancer"?`},
		{"HNS call for an unknown pod", right + "  hns: [{node: win1, removePolicy: {kind: endpoint, pod: clientt, type: ACL}}]\n",
			`there is no pod default/clientt in this lab; did you mean "default/client"?`},
		{"HNS call without end", right + "  hns: [{node: win1, create: {kind: loadBalancer, count: 2000000000, object: {}}}]\n",
			"x.yaml:13:58: count is 2000000000; write 1 to 65536"},
		{"HNS call with a bad code", right + "  hns: [{node: win1, restart: true, error: E_FAIL}]\n",
			`x.yaml:13:44: "E_FAIL" is not an error code`},
		{"variant with an unknown field", right + "  variants: [{name: v, set: {nodez: []}}]\n",
			`x.yaml:13:30: set has no field "nodez"; did you mean "nodes"?`},
		{"variant that sets flows", right + "  variants: [{name: v, set: {flows: []}}]\n",
			`x.yaml:13:30: set cannot have flows: write flows beside set`},
		{"variant that sets settings", right + "  variants: [{name: v, set: {settings: []}}]\n",
			`x.yaml:13:30: set cannot have settings: every variant is evaluated with the lab's settings`},
		{"variant that sets a base", right + "  variants: [{name: v, set: {base: y.yaml}}]\n",
			`x.yaml:13:30: set cannot have base: a variant cannot change the base`},
		{"variant that sets variants", right + "  variants: [{name: v, set: {variants: []}}]\n", `x.yaml:13:30: set cannot have variants`},
		{"step with a title", right + "  steps: [{name: a, title: b}]\n", `x.yaml:13:21: an entry of steps has no field "title"`},
		{"fault of two kinds", strings.Replace(right, "- {name: win1}", "- {name: win1, faults: [{pod: client, dropRules: a, keepRules: b}]}", 1),
			"x.yaml:8:29: a fault must have exactly one of dropRules, keepRules and addRule"},
		{"fault without a port", strings.Replace(right, "- {name: win1}", "- {name: win1, faults: [{dropRules: a}]}", 1),
			"x.yaml:8:29: a fault needs the pod whose port it affects, or port: host or external"},
		{"fault of a Linux node", strings.Replace(right, "os: linux}", "os: linux, faults: [{pod: a, dropRules: a}]}", 1),
			"x.yaml:7:42: faults are for Windows nodes"},
		{"extra rule without an action", strings.Replace(right, "- {name: win1}",
			"- {name: win1, faults: [{pod: a, addRule: {layer: LB, direction: out}}]}", 1), `x.yaml:8:47: there is no action ""`},
		{"extra rule that translates to nothing", strings.Replace(right, "- {name: win1}",
			"- {name: win1, faults: [{pod: a, addRule: {layer: LB, direction: out, action: nat}}]}", 1),
			"x.yaml:8:83: nat needs setSource or setDestination"},
		{"extra rule with a bad address", strings.Replace(right, "- {name: win1}",
			"- {name: win1, faults: [{pod: a, addRule: {layer: LB, direction: out, action: nat, setSource: web}}]}", 1),
			`x.yaml:8:99: "web" is not an address with or without a port`},
		{"server of a UDP connection", right +
			"  flows: [{connection: c, from: pod/client, to: host/lan:53, protocol: udp}, {connection: c, by: server}]\n",
			"x.yaml:13:98: by: server is for TCP: a UDP program here answers each datagram"},
		{"end of a UDP connection", right +
			"  flows: [{connection: c, from: pod/client, to: host/lan:53, protocol: udp}, {connection: c, send: fin}]\n",
			"x.yaml:13:100: fin is a segment of TCP, and the connection c is UDP"},
		{"two variants of a name", right + "  variants: [{name: v}, {name: v}]\n", "x.yaml:13:25: a variant needs a name of its own"},
		{"DNS record", right + "  dns: {records: {www: here}}\n", `x.yaml:13:24: "here" is not an answer`},
		{"DNS record of a code in small letters", right + "  dns: {records: {www.a.b: servfail}}\n",
			`x.yaml:13:28: "servfail" is not an answer; write an address, the full name`},
		{"DNS record of no name", right + "  dns: {records: {www..b: 10.1.2.3}}\n", `"www..b" is not a name that DNS can carry`},
		{"DNS record of a forwarded zone", right + "  dns: {records: {www.a.b: 10.1.2.3}, forward: {a.b: [10.1.2.4]}}\n",
			`x.yaml:13:28: www.a.b is in the zone a.b, which dns.forward sends to other servers`},
		{"forward to nobody", right + "  dns: {forward: {a.b: []}}\n", `no name server; write [host/NAME] or [ADDRESS]`},
		{"forward to an unknown host", right + "  dns: {forward: {a.b: [host/lam]}}\n",
			`x.yaml:13:25: there is no host "lam"; did you mean "lan"?`},
		{"forward to a host that is not a name server", right + "  dns: {forward: {a.b: [host/lan]}}\n",
			`x.yaml:13:25: host lan is not a name server; give it records`},
		{"forward to a text", right + "  dns: {forward: {a.b: [10.1.2]}}\n",
			`x.yaml:13:25: "10.1.2" is not a name server; write host/NAME or an address`},
		{"forward of the cluster's own domain", right + "  dns: {forward: {svc.cluster.local: [10.1.2.3]}}\n",
			`svc.cluster.local is in the cluster domain cluster.local, which the cluster DNS answers for itself`},
		{"forward without a cluster DNS", right + "  dns: {off: true, forward: {a.b: [10.1.2.3]}}\n",
			`the cluster has no DNS that could forward (dns.off)`},
		{"zones without records", right + "    - {name: ns, address: 192.168.1.51, zones: [a.b]}\n",
			`x.yaml:13:48: the host has zones and no records`},
		{"record outside of the zones", right + "    - {name: ns, address: 192.168.1.51, zones: [a.b], records: {www.c.d: 10.1.2.3}}\n",
			`www.c.d is not in any of the zones a.b of this host`},
		{"ports of a security rule", head +
			"  network: {plugin: nat}\n  nodes: [{name: w}]\n  fabric: {segments: [{name: nodes, rules: [{action: deny, ports: 9-1}]}]}\n",
			`x.yaml:7:67: "9-1" is not a port or a range of ports; write 80 or 8000-8080`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("x.yaml", []byte(c.lab))
			if err == nil {
				t.Fatalf("accepted; wanted: %s", c.want)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("\ngot  %v\nwant %s", err, c.want)
			}
			if n := strings.Count(err.Error(), "\n"); n > 1 {
				t.Errorf("%d messages for one mistake:\n%v", n+1, err)
			}
		})
	}
}

// write makes files in a new folder, name and text in turn, and returns the path of the
// first.
func write(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		if err := os.WriteFile(filepath.Join(dir, files[i]), []byte(files[i+1]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, files[0])
}

// said fails unless the error names each text; the folder is cut away.
func said(t *testing.T, file string, err error, want ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("accepted; wanted %q", want)
	}
	text := strings.ReplaceAll(err.Error(), filepath.Dir(file)+string(filepath.Separator), "")
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("\ngot  %s\nwant %s", text, w)
		}
	}
}

func TestFilesThatAreNoLab(t *testing.T) {
	_, err := Load(filepath.Join(t.TempDir(), "lab.yaml"))
	said(t, "x/y", err, "lab.yaml: there is no such file")
	dir := t.TempDir()
	_, err = Load(dir)
	said(t, "x/y", err, "this is a folder")
	big := write(t, "big.yaml", head)
	if err := os.Truncate(big, maxSize+1); err != nil {
		t.Fatal(err)
	}
	_, err = Load(big)
	said(t, big, err, "big.yaml: the lab has 67108865 bytes; the limit is 67108864")
	_, err = Parse("big.yaml", bytes.Repeat([]byte("a"), maxSize+1))
	said(t, "x/y", err, "; the limit is ")
}

func TestBases(t *testing.T) {
	loop := write(t, "a.yaml", head+"  base: b.yaml\n", "b.yaml", head+"  base: a.yaml\n")
	_, err := Load(loop)
	said(t, loop, err, "b.yaml:5:9: the lab is its own base: a.yaml -> b.yaml -> a.yaml")
	self := write(t, "a.yaml", head+"  base: ./a.yaml\n")
	_, err = Load(self)
	said(t, self, err, "a.yaml:5:9: the lab is its own base")
	var deep []string
	for i := range 12 {
		deep = append(deep, string(rune('a'+i))+".yaml", head+"  base: "+string(rune('b'+i))+".yaml\n")
	}
	far := write(t, deep...)
	_, err = Load(far)
	said(t, far, err, "i.yaml:5:9: this is base 9 of a chain that begins with a.yaml; up to 8 are read")
	other := write(t, "a.yaml", head+"  base: secrets.yaml\n", "secrets.yaml", "root:x:0:0\n")
	if _, err = Load(other); err == nil || strings.Contains(err.Error(), "root:x") {
		t.Errorf("got %v; want an error that does not quote a file that is not a lab", err)
	}
	bad := write(t, "a.yaml", head+"  base: b.yaml\n", "b.yaml", right+"  podz: []\n")
	_, err = Load(bad)
	said(t, bad, err, `b.yaml:13:3: spec has no field "podz"`)
	// What a base says wrongly is reported where the base says it.
	moved := write(t, "a.yaml", head+"  base: b.yaml\n  nodes: [{name: win1, build: \"1.2\"}]\n", "b.yaml", right+"  params: {gravity: low}\n")
	_, err = Load(moved)
	said(t, moved, err, "a.yaml:6:31: ", `b.yaml:13:21: there is no parameter "gravity"`)
}

// A lab takes the cluster of its base, not what is expected of that.
func TestWhatIsTheBasesOwn(t *testing.T) {
	file := write(t, "a.yaml", head+"  base: b.yaml\n", "b.yaml", right+`  settings: [{kubernetes: "1.20"}]
  flows: [{from: pod/client, to: host/lan:80}]
  variants: [{name: v}]
`)
	f, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if s := f.Lab.Spec; len(s.Settings)+len(s.Flows)+len(s.Variants) != 0 || len(s.Nodes) != 2 {
		t.Errorf("%d settings, %d flows, %d variants, %d nodes; want the nodes only", len(s.Settings), len(s.Flows), len(s.Variants),
			len(s.Nodes))
	}
}

// A base can be named by an absolute path; the files that it names are still its own.
func TestAbsoluteBase(t *testing.T) {
	base, err := filepath.Abs("../../../fixtures/labs/l2bridge-flannel-host-gw.yaml")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.yaml")
	text := "apiVersion: winlab.dev/v1alpha1\nkind: Lab\nmetadata: {name: x}\nspec: {base: " + base + "}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err != nil {
		t.Error(err)
	}
}
