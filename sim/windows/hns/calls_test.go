package hns

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// TestCalls reads the cases of testdata/calls: calls of HNS, one on a line, in its own
// JSON; behind each what HNS answers ("=") and whom it tells of what ("~"); and at the
// end what it holds, as HCN v2 and as HNS v1 show it. Write the head and the calls;
// -update adds the rest. It writes all cases, so read the difference of the others too.
//
// A call is "KIND JSON" to create an object, "v1 KIND JSON" for one in the form of HNS
// v1, "modify KIND ID JSON", "delete KIND ID", "attach ENDPOINT NAMESPACE", "detach
// ENDPOINT", "container ENDPOINT NAME" and "no-container ENDPOINT NAME", "load DUMP",
// "ports OWNER" or "restart".
func TestCalls(t *testing.T) {
	files, err := filepath.Glob("testdata/calls/*.txt")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d cases (%v)", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := runCalls(t, string(text))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(text) {
				t.Errorf("%s: %s; run with -update and read the difference", file, firstDifference(string(text), got))
			}
		})
	}
}

func runCalls(t *testing.T, text string) string {
	head, calls, _ := strings.Cut(text, "-- calls --\n")
	calls, _, _ = strings.Cut(calls, "-- state --\n")
	opts := Options{Node: "win1", Seed: "calls", ManagementIP: management}
	build := builds.MustLookup("10.0.20348.2762")
	for l := range strings.Lines(head) {
		word, rest, _ := strings.Cut(strings.TrimSpace(l), " ")
		switch word {
		case "build":
			build = builds.MustLookup(rest)
		case "without":
			var err error
			if build, err = build.WithQuirks(nil, []string{rest}); err != nil {
				t.Fatal(err)
			}
		case "share":
			opts.SharePortPools = true
		case "ports":
			if _, err := fmt.Sscanf(rest, "%d-%d", &opts.PortRangeFirst, &opts.PortRangeLast); err != nil {
				t.Fatal(err)
			}
		}
	}
	s := NewService(build, opts)
	var told []Change
	s.OnChange(func(c Change) { told = append(told, c) })
	var b strings.Builder
	b.WriteString(head + "-- calls --\n")
	for l := range strings.Lines(calls) {
		l = strings.TrimSuffix(l, "\n")
		if strings.HasPrefix(l, "  ") {
			continue
		}
		b.WriteString(l + "\n")
		if l == "" || l[0] == '#' {
			continue
		}
		before, kept := stateOf(t, s), snapshotObjects(s)
		told = nil
		answer, err := callHNS(t, s, l)
		if err != nil {
			answer = err.Error()
			if after := stateOf(t, s); after != before && !strings.HasPrefix(l, "load") {
				t.Errorf("%s: it failed and changed something:\n%s", l, after)
			}
		}
		b.WriteString("  = " + strings.ReplaceAll(answer, "\n", "\n    ") + "\n")
		for _, c := range told {
			fmt.Fprintf(&b, "  ~ %s\n", changeText(c))
		}
		kept.unchanged(t, l)
	}
	b.WriteString("-- state --\n" + stateOf(t, s))
	checkRestored(t, s, build)
	return b.String()
}

func changeText(c Change) string {
	text := fmt.Sprintf("%s %s %s", c.Kind, c.ID, c.What)
	if c.PolicyOnly {
		text += ", policies only"
	}
	if c.ACLs {
		text += ", ACLs"
	}
	return text
}

// callHNS makes one call.
func callHNS(t *testing.T, s *Service, line string) (string, error) {
	word, rest, _ := strings.Cut(line, " ")
	first, second, _ := strings.Cut(rest, " ")
	ok := func(err error) (string, error) { return "ok", err }
	switch word {
	case "restart":
		s.Restart()
		return ok(nil)
	case "delete":
		return ok(s.Delete(Kind(first), second))
	case "attach":
		return ok(s.AttachEndpoint(first, second))
	case "detach":
		return ok(s.DetachEndpoint(first))
	case "container":
		return ok(s.AttachContainer(first, second))
	case "no-container":
		return ok(s.DetachContainer(first, second))
	case "ports":
		b, err := s.reservePorts(first)
		return b.String(), err
	case "load":
		d, err := ParseDump("dump.json", []byte(rest))
		if err != nil {
			return "", err
		}
		return ok(s.Load(d))
	case "v1":
		return createV1(t, s, Kind(first), []byte(second))
	case "modify":
		id, body, _ := strings.Cut(second, " ")
		var req ModifyRequest
		if err := json.Unmarshal([]byte(body), &req); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		return ok(map[Kind]func(string, ModifyRequest) error{
			KindNetwork: s.ModifyNetwork, KindEndpoint: s.ModifyEndpoint, KindNamespace: s.ModifyNamespace, KindLoadBalancer: s.ModifyLoadBalancer,
			KindRoute: s.ModifyRoute,
		}[Kind(first)](id, req))
	}
	return s.Create(Kind(word), []byte(rest))
}

// createV1 makes an object from its form in HNS v1.
func createV1(t *testing.T, s *Service, kind Kind, data []byte) (string, error) {
	read := func(v any) {
		if err := json.Unmarshal(data, v); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
	}
	switch kind {
	case KindNetwork:
		var v V1Network
		read(&v)
		n, err := FromNetworkV1(v)
		if err != nil {
			return "", err
		}
		made, err := s.CreateNetwork(n)
		if err != nil {
			return "", err
		}
		return made.ID, nil
	case KindEndpoint:
		var v V1Endpoint
		read(&v)
		e, err := FromEndpointV1(v)
		if err != nil {
			return "", err
		}
		made, err := s.CreateEndpoint(e)
		if err != nil {
			return "", err
		}
		return made.ID, nil
	}
	var v V1PolicyList
	read(&v)
	l, r, err := FromPolicyListV1(v)
	switch {
	case err != nil:
		return "", err
	case l != nil:
		made, err := s.CreateLoadBalancer(*l)
		if err != nil {
			return "", err
		}
		return "load balancer " + made.ID, nil
	case r == nil:
		return "neither a load balancer nor a route", nil
	}
	made, err := s.CreateRoute(*r)
	if err != nil {
		return "", err
	}
	return "route " + made.ID, nil
}

// stateOf is everything that a service holds, an object on a line in the form of HCN v2,
// and below it that of HNS v1.
func stateOf(t *testing.T, s *Service) string {
	var b strings.Builder
	line := func(word string, v any) {
		var buf bytes.Buffer
		enc := json.NewEncoder(&buf)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %s", word, buf.String())
	}
	for _, n := range s.ListNetworks(nil) {
		line("network", n)
		fmt.Fprintf(&b, "  management %v, tunnel port %d, router %q\n", n.ManagementIP, n.TunnelPort(), n.drMacAddress())
		line("  v1", NetworkV1(n))
	}
	for _, e := range s.ListEndpoints(nil) {
		line("endpoint", e)
		fmt.Fprintf(&b, "  state %d, attached %v, gateways %v %v\n", e.State, e.Attached(), e.Gateway(false), e.Gateway(true))
		line("  v1", EndpointV1(e, s.Network(e.HostComputeNetwork)))
	}
	for _, n := range s.ListNamespaces(nil) {
		line("namespace", n)
	}
	for _, l := range s.ListLoadBalancers(nil) {
		line("load balancer", l)
		if !l.Ports.IsZero() {
			fmt.Fprintf(&b, "  ports %s\n", l.Ports)
		}
		line("  v1", PolicyListV1(l))
	}
	for _, r := range s.ListRoutes(nil) {
		line("route", r)
		line("  v1", RoutePolicyListV1(r))
	}
	fmt.Fprintf(&b, "free port blocks %d\n", s.pool.free())
	return b.String()
}

// handed are objects that a service has handed out, with their text at that time: no
// later call may change them.
type handed []struct {
	object any
	text   string
}

func snapshotObjects(s *Service) (all handed) {
	add := func(o any) {
		all = append(all, struct {
			object any
			text   string
		}{o, objectText(o)})
	}
	for _, o := range s.ListNetworks(nil) {
		add(o)
	}
	for _, o := range s.ListEndpoints(nil) {
		add(o)
	}
	for _, o := range s.ListNamespaces(nil) {
		add(o)
	}
	for _, o := range s.ListLoadBalancers(nil) {
		add(o)
	}
	return all
}

func objectText(o any) string {
	text, _ := json.Marshal(o)
	if e, ok := o.(*Endpoint); ok {
		return fmt.Sprintf("%s state %d containers %v", text, e.State, e.SharedContainers)
	}
	return string(text)
}

func (h handed) unchanged(t *testing.T, call string) {
	t.Helper()
	for _, o := range h {
		if now := objectText(o.object); now != o.text {
			t.Errorf("%s changed an object that was handed out:\n%s\n%s", call, o.text, now)
		}
	}
}

// checkRestored compares a service with one that was restored from its snapshot, and
// what both do next.
func checkRestored(t *testing.T, s *Service, build *builds.Build) {
	t.Helper()
	text, err := json.Marshal(s.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	var snap Snapshot
	if err := json.Unmarshal(text, &snap); err != nil {
		t.Fatal(err)
	}
	other := NewService(build, s.Options())
	made := map[Kind]int{}
	other.OnChange(func(c Change) {
		if c.What == Created && c.ID != "" {
			made[c.Kind]++
		}
	})
	if err := other.Restore(&snap); err != nil {
		t.Fatalf("restore: %v", err)
	}
	if a, b := stateOf(t, s), stateOf(t, other); a != b {
		t.Errorf("the restored service differs: %s", firstDifference(a, b))
	}
	want := map[Kind]int{}
	for kind, n := range map[Kind]int{KindNetwork: s.networks.len(), KindEndpoint: s.endpoints.len(), KindNamespace: s.namespaces.len(),
		KindLoadBalancer: s.loadBalancers.len(), KindRoute: s.routes.len()} {
		if n > 0 {
			want[kind] = n
		}
	}
	if !maps.Equal(made, want) {
		t.Errorf("the restore tells of %v, and there are %v", made, want)
	}
	if err := other.Restore(&snap); err == nil && len(want) > 0 {
		t.Error("a snapshot was restored into a service that has its objects")
	}
	for _, call := range []string{`namespace {}`, `network {"Type":"L2Bridge","Name":"next","Ipams":[{"Subnets":[{"IpAddressPrefix":"10.77.0.0/24"}]}]}`, "ports next"} {
		a, errA := callHNS(t, s, call)
		b, errB := callHNS(t, other, call)
		if a != b || (errA == nil) != (errB == nil) {
			t.Errorf("%s: %s (%v), after a restore %s (%v)", call, a, errA, b, errB)
		}
	}
	for _, n := range s.ListNetworks(nil) {
		e := fmt.Sprintf(`{"HostComputeNetwork":%q}`, n.ID)
		a, errA := s.Create(KindEndpoint, []byte(e))
		b, errB := other.Create(KindEndpoint, []byte(e))
		if a != b || (errA == nil) != (errB == nil) {
			t.Errorf("endpoint on %s: %s (%v), after a restore %s (%v)", n.Name, a, errA, b, errB)
		}
	}
	if a, b := stateOf(t, s), stateOf(t, other); a != b {
		t.Errorf("after the next calls the restored service differs: %s", firstDifference(a, b))
	}
	if slices.Contains(s.pool.owner, "") != slices.Contains(other.pool.owner, "") {
		t.Error("the restored service has other port blocks")
	}
}
