package reach

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
)

// analyzed are the connections that np-guard's netpol-analyzer lists, by "from>to": for each
// protocol the ranges of ports; a nil map stands for all connections.
type analyzed map[string]map[string][][2]int

// analyze lets netpol-analyzer read the objects of a folder.
func analyze(t *testing.T, program, dir string) analyzed {
	t.Helper()
	var said strings.Builder // it ends well when it has left out a file
	cmd := exec.CommandContext(t.Context(), program, "list", "-q", "-o", "json", "--dirpath", dir)
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil || said.Len() > 0 {
		t.Fatalf("netpol-analyzer: %v: %s", err, &said)
	}
	var list []struct{ Src, Dst, Conn string }
	if err := json.Unmarshal(out, &list); err != nil {
		t.Fatalf("netpol-analyzer: %v in %s", err, out)
	}
	all := analyzed{}
	for _, c := range list {
		key := strings.TrimSuffix(c.Src, "[Pod]") + ">" + strings.TrimSuffix(c.Dst, "[Pod]")
		if c.Conn == "All Connections" {
			all[key] = nil
			continue
		}
		all[key] = map[string][][2]int{}
		protocol := ""
		for _, part := range strings.Split(c.Conn, ",") { // "TCP 80-82,90,UDP 53"
			if p, rest, ok := strings.Cut(strings.TrimSpace(part), " "); ok {
				protocol, part = p, rest
			}
			first, last, is := strings.Cut(part, "-")
			if !is {
				last = first
			}
			a, err1 := strconv.Atoi(first)
			z, err2 := strconv.Atoi(last)
			if err1 != nil || err2 != nil {
				t.Fatalf("netpol-analyzer: ports %q", c.Conn)
			}
			all[key][protocol] = append(all[key][protocol], [2]int{a, z})
		}
	}
	return all
}

func (a analyzed) admits(from, to, protocol string, port int) bool {
	ports, listed := a[from+">"+to]
	if !listed || ports == nil {
		return listed
	}
	return slices.ContainsFunc(ports[protocol], func(r [2]int) bool { return r[0] <= port && port <= r[1] })
}

// randomPolicies are twelve pods in three namespaces, and policies for them. Named ports and
// exceptions of address ranges are not among them: Felix passes over them on Windows
// (cni.felix-skips), and netpol-analyzer does not.
func randomPolicies(r *rand.Rand) string {
	var b strings.Builder
	doc := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n---\n", args...) }
	for _, ns := range []string{"xx", "yy", "zz"} {
		doc("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s, labels: {ns: %s, side: %s}}", ns, ns,
			map[bool]string{true: "left", false: "right"}[ns == "xx"])
		for i, pod := range []string{"aa", "bb", "cc", "dd"} {
			doc(
				"apiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: %s, labels: {pod: %s, half: h%d}}\nspec: {nodeName: %s, containers: [{name: c, image: i, ports: [{containerPort: 80}, {containerPort: 81}, {containerPort: 53, protocol: UDP}]}]}",
				pod, ns, pod, i/2, []string{"win1", "win1", "win2", "linux1"}[r.IntN(4)])
		}
	}
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	selector := func() string {
		return pick("{}", "{matchLabels: {pod: "+pick("aa", "bb", "cc", "dd")+"}}", "{matchLabels: {half: h"+pick("0", "1")+"}}",
			"{matchExpressions: [{key: pod, operator: "+pick("In", "NotIn")+", values: [aa, "+pick("bb", "cc")+"]}]}",
			"{matchExpressions: [{key: "+pick("pod", "missing")+", operator: "+pick("Exists", "DoesNotExist")+"}]}")
	}
	namespaces := func() string {
		return pick("{}", "{matchLabels: {ns: "+pick("xx", "yy", "zz")+"}}", "{matchLabels: {side: "+pick("left", "right")+"}}",
			"{matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: ["+pick("xx", "yy")+"]}]}")
	}
	rules := func(peers string) string {
		var all []string
		for range r.IntN(3) {
			var rule []string
			if r.IntN(4) > 0 {
				var from []string
				for range 1 + r.IntN(2) {
					from = append(from, pick("{podSelector: "+selector()+"}", "{namespaceSelector: "+namespaces()+"}",
						"{namespaceSelector: "+namespaces()+", podSelector: "+selector()+"}", "{ipBlock: {cidr: 203.0.113.0/24}}"))
				}
				rule = append(rule, peers+": ["+strings.Join(from, ", ")+"]")
			}
			if r.IntN(3) > 0 {
				var ports []string
				for range 1 + r.IntN(2) {
					ports = append(ports, pick("{port: 80}", "{port: 81, protocol: TCP}", "{port: 53, protocol: UDP}", "{protocol: UDP}",
						"{port: 70, endPort: 80}", "{port: 81, endPort: 90}", "{protocol: TCP}"))
				}
				rule = append(rule, "ports: ["+strings.Join(ports, ", ")+"]")
			}
			all = append(all, "{"+strings.Join(rule, ", ")+"}")
		}
		return "[" + strings.Join(all, ", ") + "]"
	}
	for i := range 1 + r.IntN(6) {
		types := pick("[Ingress]", "[Egress]", "[Ingress, Egress]")
		text := ""
		if strings.Contains(types, "Ingress") {
			text += ", ingress: " + rules("from")
		}
		if strings.Contains(types, "Egress") {
			text += ", egress: " + rules("to")
		}
		doc(
			"apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: np%d, namespace: %s}\nspec: {podSelector: %s, policyTypes: %s%s}", i, pick("xx", "yy", "zz"), selector(), types, text)
	}
	return b.String()
}

// TestAnalyzer asks a second opinion: which connections of random pods random policies admit, by
// packets through the ACLs of Calico's agent on nodes with Windows and Linux, and by
// netpol-analyzer, which reads the policies alone.
func TestAnalyzer(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("netpol-analyzer")
	if err != nil {
		t.Skip(
			"netpol-analyzer is not installed; build it from github.com/np-guard/netpol-analyzer (cmd) for a second opinion on NetworkPolicies")
	}
	flows, admitted := 0, 0
	for seed := range uint64(40) {
		text := randomPolicies(rand.New(rand.NewPCG(seed, 15)))
		dir := t.TempDir()
		objects := filepath.Join(dir, "objects.yaml")
		if err := os.WriteFile(objects, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		says := analyze(t, program, dir)
		base := []string{"overlay-calico-vxlan.yaml", "l2bridge-calico-bgp.yaml"}[seed%2]
		f, err := lab.Parse("../../fixtures/plugins/analyzer.yaml",
			fmt.Appendf(nil, "apiVersion: winlab.dev/v1alpha1\nkind: Lab\nmetadata: {name: analyzer}\nspec:\n  base: %s\n  manifests: [%s]\n", base,
				objects))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		c, err := lab.Build(t.Context(), f, lab.Options{Components: labfile.Model})
		if err != nil {
			t.Fatal(err)
		}
		var pods []string
		for _, ns := range []string{"xx", "yy", "zz"} {
			for _, pod := range []string{"aa", "bb", "cc", "dd"} {
				pods = append(pods, ns+"/"+pod)
			}
		}
		for _, from := range pods {
			for _, to := range pods {
				for _, p := range []struct {
					protocol string
					port     int
				}{{"TCP", 80}, {"TCP", 81}, {"UDP", 53}} {
					if from == to {
						continue // no policy is asked
					}
					got, err := c.Trace(t.Context(), lab.Request{From: "pod/" + from, To: fmt.Sprintf("pod/%s:%d", to, p.port),
						Protocol: strings.ToLower(p.protocol)})
					if err != nil {
						t.Fatal(err)
					}
					flows++
					want := "dropped"
					if says.admits(from, to, p.protocol, p.port) {
						want = "delivered"
						admitted++
					}
					if string(got.Verdict) != want {
						t.Errorf("seed %d on %s: %s %s to %s port %d is %s (%s), and by netpol-analyzer %s\n%s", seed, base, p.protocol, from, to, p.port,
							got.Verdict, got.Reason, want, text)
						return
					}
				}
			}
		}
	}
	t.Logf("%d flows, %d of them admitted", flows, admitted)
}
