package nodeconf

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/winlab-dev/winlab/internal/strict"
	"github.com/winlab-dev/winlab/sim/lab"
)

// A lab and the check say the same about a bad file, line by line. What winlab's model does not follow
// (noModel) only a lab says: on a node it may matter.
func TestLabSaysTheSame(t *testing.T) {
	const winBridge, azure = "l2bridge-win-bridge-udr", "l2bridge-azure-cni"
	const hostGw, vxlan = "l2bridge-flannel-host-gw", "overlay-flannel-vxlan"
	bridge := func(fields string) string {
		return "{\"cniVersion\": \"0.3.0\", \"name\": \"l2bridge\", \"type\": \"win-bridge\",\n" + fields + "}"
	}
	policy := func(value string) string {
		return bridge("\"policies\": [{\"name\": \"EndpointPolicy\", \"value\":\n" + value + "}]")
	}
	policy2 := func(typ, settings string) string {
		return bridge(fmt.Sprintf("\"apiVersion\": 2, \"policies\": [{\"name\": \"EndpointPolicy\", \"value\": {\"Type\": %q, \"Settings\":\n%s}}]", typ,
			settings))
	}
	for _, c := range []struct {
		name, lab, field, text string
		// want are the remarks of both, noModel those of the lab.
		want, noModel []string
	}{
		{"a comment and a comma", winBridge, "conf", bridge("// why\n\"dns\": {},"), []string{
			"2:1: JSON has no comments, and the program that reads this file refuses it; remove them",
			"3:10: not JSON: a comma before }, which the program that reads this file refuses; remove it"}, nil},
		{"a byte order mark", winBridge, "conf", "\xef\xbb\xbf" + bridge(`"dns": {}`), []string{
			"1:1: the file is written with a byte order mark, which the JSON parsers of a node's programs refuse; save it as UTF-8 without a byte order mark (Windows PowerShell's Out-File and Set-Content -Encoding utf8 write one)"}, nil},
		{"a tab in a text", winBridge, "conf", bridge("\"dns\": {\"domain\": \"a\tb\"}"), []string{
			`2:21: not JSON: invalid character '\t' in string literal`}, nil},
		{"a key twice", winBridge, "conf", bridge(`"name": "l2bridge"`), []string{
			`2:1: "name" is here twice; the first is on line 1, and the last one counts`}, nil},
		{"a misspelt field", winBridge, "conf", bridge(`"polices": []`), []string{
			`2:1: win-bridge ignores "polices"; it reads AdditionalArgs, HcnPolicyArgs, apiVersion, args, capabilities, cniVersion, dns, ipMasqNetwork, ipam, loopbackDSR, master, name, policies, prevResult, runtimeConfig, type`}, nil},
		{"a misspelt field of a policy", winBridge, "conf", policy(`{"Type": "OutBoundNAT", "Exceptions": []}`), []string{
			`3:25: OUTBOUNDNAT ignores "Exceptions"; it reads Type, VIP, ExceptionList, Destinations, MaxPortPoolUsage`}, nil},
		{"a misspelt field of an ACL", winBridge, "conf", policy2("ACL", `{"Action": "Allow", "Direction": "In", "RemoteAdresses": "10.0.0.0/8"}`),
			[]string{
				`3:40: ACL ignores "RemoteAdresses"; it reads Protocols, Action, Direction, LocalAddresses, RemoteAddresses, LocalPorts, RemotePorts, RuleType, Priority, Id`}, nil},
		{"a misspelt field of a hostPort", winBridge, "conf", policy2("PortMapping", `{"Protocol": 6, "InternalPort": 80, "ExternalPort": 81, "Vip": "", "HostIP": ""}`),
			[]string{`3:68: PortMapping ignores "HostIP"; it reads Protocol, InternalPort, ExternalPort, VIP, Flags`}, nil},
		{"prefixes and types", winBridge, "conf", bridge("\"loopbackDSR\": \"true\",\n\"dns\": {\"nameservers\": [\"dns\"]}"), []string{
			`2:16: loopbackDSR is the string "true"; it must be true or false`,
			`3:24: nameservers holds "dns", which is not an address`}, nil},
		{"a policy that nobody has", winBridge, "conf", policy(`{"Type": "Nonsense"}`), []string{
			`3:10: there is no endpoint policy "Nonsense" in HNS v1; there are ACL, L2DRIVER, L4WFPPROXY, NAT, OUTBOUNDNAT, PA, PROXY, QOS, ROUTE, SDNROUTE`}, nil},
		// A plugin ignores the value of a field that it does not have, whatever it is; one that it has must fit.
		{"ipMasq of win-bridge", winBridge, "conf", bridge(`"ipMasq": "yes"`), []string{
			`2:1: win-bridge ignores "ipMasq"; it reads AdditionalArgs, HcnPolicyArgs, apiVersion, args, capabilities, cniVersion, dns, ipMasqNetwork, ipam, loopbackDSR, master, name, policies, prevResult, runtimeConfig, type`}, nil},
		{"runtimeConfig", winBridge, "conf", bridge(`"runtimeConfig": true, "prevResult": []`), []string{
			"2:18: runtimeConfig is true; it must be an object {...}", "2:38: prevResult is a list; it must be an object {...}"}, nil},
		{"what the model does not follow", winBridge, "conf", bridge(`"args": {}, "ipam": {"type": "dhcp"}`), nil, []string{
			"2:1: args of win-bridge has no effect: what plugins get as CNI arguments is not simulated",
			`2:30: pods do not get the addresses that ipam "dhcp" would give: the model assigns them as host-local does`}},
		{"ipMasq of flannel's delegate", hostGw, "conf", "{\"name\": \"cbr0\", \"type\": \"flannel\", \"cniVersion\": \"0.3.0\", \"delegate\": {\"type\": \"win-bridge\",\n\"ipMasq\": 1, \"ipMasqNetwork\": 1}}", []string{
			"2:1: ipMasq of win-bridge has no effect: flannel writes its own value over it (flannel-io/cni-plugin flannel_windows.go)",
			"2:14: ipMasqNetwork of win-bridge has no effect: flannel writes its own value over it (flannel-io/cni-plugin flannel_windows.go)"}, nil},
		{"azure-vnet", azure, "conf", "{\"cniVersion\": \"0.3.0\", \"name\": \"azure\", \"plugins\": [{\"type\": \"azure-vnet\", \"mode\": \"transparent\"}]}", []string{
			`1:85: mode is "transparent"; on Windows it is bridge (l2bridge) or tunnel (l2tunnel)`}, nil},
		{"net-conf.json", vxlan, "netConf", "{\"Network\": \"10.244.0.0/16\", \"Backend\": {\n\"Type\": \"vxlan\", \"VNI\": \"4096\", \"Port\": 4789}}", []string{
			`2:25: VNI is the string "4096"; it must be a number of 0 to 16777215`}, nil},
		{"a field of net-conf.json", hostGw, "netConf", "{\"Network\": \"10.244.0.0/16\", \"Backend\": {\"Type\": \"host-gw\",\n\"VNI\": 4096}, \"SubnetLen\": 24}", []string{
			"2:1: VNI of the backend host-gw has no effect: flanneld on Windows does not read it for this backend (flannel-io/flannel pkg/backend)"},
			[]string{"2:15: SubnetLen of flannel has no effect: the pod range of a node is its podCIDR, as with flanneld's --kube-subnet-mgr"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			name := map[string]string{"conf": "cni.conf", "netConf": "net-conf.json"}[c.field]
			subjects, ok, mistakes := Read(name, []byte(c.text))
			if !ok {
				t.Fatal("the check does not know the file")
			}
			for _, s := range subjects {
				refused, ignored := remarksOn(s)
				mistakes = slices.Concat(mistakes, refused, ignored)
			}
			if diff := cmp.Diff(c.want, placesOf(mistakes)); diff != "" {
				t.Errorf("check (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(linesOf(append(slices.Clone(c.want), c.noModel...)), labSays(t, c.lab, c.field, name, c.text)); diff != "" {
				t.Errorf("lab (-want +got):\n%s", diff)
			}
		})
	}
}

// placesOf writes remarks without their file.
func placesOf(all strict.Mistakes) (out []string) {
	for _, m := range all.Sorted() {
		out = append(out, strings.TrimPrefix(m.String(), m.File+":"))
	}
	return out
}

// linesOf leaves out columns, which notices of a lab do not have.
func linesOf(all []string) (out []string) {
	for _, s := range all {
		line, rest, _ := strings.Cut(s, ":")
		_, message, _ := strings.Cut(rest, ": ")
		out = append(out, line+": "+message)
	}
	slices.Sort(out)
	return out
}

// labSays is what a lab says of its file: why it is refused, or its notices.
func labSays(t *testing.T, base, field, name, text string) (out []string) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	labs, err := filepath.Abs("../../../fixtures/labs")
	if err != nil {
		t.Fatal(err)
	}
	f, err := lab.Parse(filepath.Join(dir, "lab.yaml"), fmt.Appendf(nil,
		"apiVersion: winlab.dev/v1alpha1\nkind: Lab\nmetadata: {name: changed}\nspec:\n  base: %s/%s.yaml\n  network: {%s: %s}\n", labs, base, field, name))
	if err != nil {
		t.Fatal(err)
	}
	c, err := lab.Build(t.Context(), f, lab.Options{})
	if err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			if _, at, ok := strings.Cut(line, path+":"); ok {
				out = append(out, at)
			}
		}
		return linesOf(out)
	}
	for _, n := range c.Notices() {
		if n.At != nil && n.At.File == path {
			out = append(out, fmt.Sprintf("%d: %s", n.At.Line, n.Why))
		}
	}
	slices.Sort(out)
	return out
}
