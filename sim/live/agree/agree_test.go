package agree

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/live/netns"
	"github.com/winlab-dev/winlab/sim/real/wine/winetest"
	"github.com/winlab-dev/winlab/sim/trace"
)

const fixtures = "../../../fixtures"

// TestMain runs more labs at once than there are processors: they mostly wait for
// what does not come.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = flag.Set("test.parallel", "8")
	}
	os.Exit(m.Run())
}

// flowsOfClaims are all flows and look-ups that claims ask about, each once. What of
// them a lab has no actors for it leaves out.
var flowsOfClaims = sync.OnceValues(func() ([]labfile.Flow, error) {
	ledger, err := claims.Load()
	if err != nil {
		return nil, err
	}
	var all []labfile.Flow
	seen := map[string]bool{}
	for _, cl := range ledger.Claims() {
		for _, k := range cl.Checks {
			var f labfile.Flow
			switch {
			case k.Flow != nil:
				f = labfile.Flow{From: k.Flow.From, To: k.Flow.To, Protocol: k.Flow.Protocol, Family: k.Flow.Family}
			case k.Resolve != nil:
				f = labfile.Flow{From: k.Resolve.From, To: "name/" + k.Resolve.Name, Resolve: k.Resolve.Tool}
			default:
				continue
			}
			if key := fmt.Sprint(f); !seen[key] {
				seen[key] = true
				all = append(all, f)
			}
		}
	}
	return all, nil
})

// counts sum up what was made, for the log of a run.
type counts struct {
	mu                    sync.Mutex
	labs, made, differing int
	notMade               map[Reason]int
}

func (n *counts) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d labs, %d flows made, %d agree", n.labs, n.made, n.made-n.differing)
	for r, k := range n.notMade {
		fmt.Fprintf(&b, "\n%d not made: %s", k, r)
	}
	return b.String()
}

// agrees traces flows of a lab, makes them live, and compares.
func (n *counts) agrees(t *testing.T, f *lab.File, o lab.Options, flows []labfile.Flow, optional bool) {
	t.Helper()
	c, err := lab.Build(t.Context(), f, o)
	if errors.Is(err, cluster.ErrNoComponents) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	n.compare(t, c, c, flows, optional, func() (*lab.Cluster, error) { return lab.Build(t.Context(), f, o) })
	if o.Components == labfile.Real && len(c.Components) == 0 {
		if !*everyProgram {
			t.Error("no program ran")
		}
		t.Skip("no program ran, as on nodes whose HNS was read from a dump; the flows agree")
	}
}

// makeAgain makes the flows that differ once more, and replaces their results.
func makeAgain(t *testing.T, traced []Flow, results []Result, again func() (*lab.Cluster, error)) {
	t.Helper()
	var at []int
	var flows []Flow
	for i := range results {
		if results[i].NotMade == "" && results[i].Differs != "" {
			at, flows = append(at, i), append(flows, traced[i])
		}
	}
	if len(at) == 0 {
		return
	}
	t.Logf("%d flows differ and are made again; the first: %s -> %s: %s", len(at), flows[0].From, flows[0].To, results[at[0]].Differs)
	c, err := again()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	second, err := Run(t.Context(), c, flows, Options{Log: func(s string) { t.Log(s) }})
	if err != nil {
		t.Fatal(err)
	}
	for i := range second {
		results[at[i]] = second[i]
	}
}

// compare traces flows on one cluster, makes them live on another one that is the same or
// must do the same, and compares. Where again makes the second cluster anew, flows that differ
// are made once more on it, without the others: a busy machine loses packets and answers late,
// and a model that is wrong is wrong again.
func (n *counts) compare(t *testing.T, traces, c *lab.Cluster, flows []labfile.Flow, optional bool, again func() (*lab.Cluster, error)) {
	t.Helper()
	t.Cleanup(func() { _ = c.Close() })
	var traced []Flow
	for _, fl := range flows {
		r, err := traces.Run(t.Context(), fl)
		switch {
		case err != nil && optional:
		case err != nil:
			t.Error(err)
		default:
			traced = append(traced, Flow{Flow: fl, Trace: r.Trace, Lookup: r.Lookup})
		}
	}
	start := time.Now()
	results, err := Run(t.Context(), c, traced, Options{Log: func(s string) { t.Log(s) }})
	if errors.Is(err, netns.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if again != nil {
		makeAgain(t, traced, results, again)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.labs++
	made := 0
	for i := range results {
		r, fl := &results[i], &traced[i]
		if r.NotMade != "" {
			n.notMade[r.NotMade]++
			continue
		}
		made++
		if r.Differs != "" {
			n.differing++
			t.Errorf("%s -> %s %s%s%s: %s", fl.From, fl.To, fl.Protocol, fl.Resolve, fl.Idle, r.Differs)
		}
	}
	n.made += made
	t.Logf("%d flows, %d made, %s %v", len(results), made, time.Since(start).Round(10*time.Millisecond), c.Components)
}

// inShort is how many designs run in -short.
const inShort = 2

// TestDesigns: every flow that claims ask about, in every network design.
func TestDesigns(t *testing.T) {
	flows, err := flowsOfClaims()
	if err != nil {
		t.Fatal(err)
	}
	n := &counts{notMade: map[Reason]int{}}
	t.Cleanup(func() { t.Log(n) })
	for i, path := range labs(t, "labs") {
		if testing.Short() && i >= inShort {
			break
		}
		f, err := lab.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		variants := []string{""}
		for _, v := range f.Lab.Spec.Variants {
			variants = append(variants, v.Name)
		}
		for _, v := range variants {
			t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml")+" "+v, func(t *testing.T) {
				t.Parallel()
				n.agrees(t, f, lab.Options{Variant: v, Components: labfile.Model}, slices.Concat(flows, f.Lab.Spec.AllFlows()), true)
			})
		}
	}
}

// everyProgram lets TestProgramsThatStay run all designs and incidents.
var everyProgram = flag.Bool("all", false, "run every design and incident with real components, which takes minutes")

// withPrograms is how many labs run with programs at once: each has Wine on each node.
const withPrograms = 3

// TestProgramsThatStay: every flow that claims ask about, and those of incidents, where
// kube-proxy.exe and the plugin's program have made a node's HNS, and kube-proxy runs on.
// Without -all two designs.
func TestProgramsThatStay(t *testing.T) {
	winetest.Need(t)
	t.Parallel()
	flows, err := flowsOfClaims()
	if err != nil {
		t.Fatal(err)
	}
	n := &counts{notMade: map[Reason]int{}}
	t.Cleanup(func() { t.Log(n) })
	slots := make(chan struct{}, withPrograms)
	run := func(path, variant string, flows []labfile.Flow, optional bool) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml")+" "+variant, func(t *testing.T) {
			t.Parallel()
			slots <- struct{}{}
			defer func() { <-slots }()
			f, err := lab.Load(path)
			if err != nil {
				t.Fatal(err)
			}
			o := lab.Options{Variant: variant, Components: labfile.Real, Keep: true}
			if !optional {
				c, err := lab.Build(t.Context(), f, lab.Options{Variant: variant, Components: labfile.Model})
				if err != nil {
					t.Fatal(err)
				}
				flows = c.Plan.File.Lab.Spec.AllFlows()
			} else {
				flows = slices.Concat(flows, f.Lab.Spec.AllFlows())
			}
			n.agrees(t, f, o, flows, optional)
		})
	}
	for _, path := range labs(t, "labs") {
		if name := filepath.Base(path); *everyProgram || name == "l2bridge-flannel-host-gw.yaml" || name == "overlay-win-overlay.yaml" {
			run(path, "", flows, true)
		}
	}
	if !*everyProgram {
		return
	}
	for _, path := range labs(t, "incidents") {
		f, err := lab.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range f.Lab.Spec.Variants {
			run(path, v.Name, nil, false)
		}
	}
}

// TestProgramsFollow: the flows of a story at each of its steps, which kube-proxy.exe and
// the plugin's program follow.
func TestProgramsFollow(t *testing.T) {
	winetest.Need(t)
	t.Parallel()
	f, err := lab.Load("../../lab/testdata/story.yaml")
	if err != nil {
		t.Fatal(err)
	}
	set := &labfile.Setting{Kubernetes: "1.36.3"}
	model, err := lab.Build(t.Context(), f, lab.Options{Setting: set, Components: labfile.Model})
	if err != nil {
		t.Fatal(err)
	}
	real, err := lab.Build(t.Context(), f, lab.Options{Setting: set, Components: labfile.Real, Keep: true})
	if err != nil {
		t.Fatal(err)
	}
	n := &counts{notMade: map[Reason]int{}}
	n.compare(t, model, real, f.Lab.Spec.AllFlows(), false, nil)
	t.Log(n)
}

// TestIncidents: every flow of every incident, in each of its states.
func TestIncidents(t *testing.T) {
	if testing.Short() {
		t.Skip("only two designs in -short")
	}
	n := &counts{notMade: map[Reason]int{}}
	t.Cleanup(func() { t.Log(n) })
	for _, path := range labs(t, "incidents") {
		f, err := lab.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range f.Lab.Spec.Variants {
			t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml")+" "+v.Name, func(t *testing.T) {
				t.Parallel()
				c, err := lab.Build(t.Context(), f, lab.Options{Variant: v.Name, Components: labfile.Model})
				if err != nil {
					t.Fatal(err)
				}
				n.agrees(t, f, lab.Options{Variant: v.Name, Components: labfile.Model}, c.Plan.File.Lab.Spec.AllFlows(), false)
			})
		}
	}
}

// TestDifferencesAreSeen: traces of one cluster against another one that differs, and
// traces that say something else than what is so.
func TestDifferencesAreSeen(t *testing.T) {
	f, err := lab.Load(filepath.Join(fixtures, "incidents", "059-host-route.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := lab.Build(t.Context(), f, lab.Options{Variant: "broken", Components: labfile.Model})
	if err != nil {
		t.Fatal(err)
	}
	other, err := lab.Build(t.Context(), f, lab.Options{Variant: "fixed", Components: labfile.Model})
	if err != nil {
		t.Fatal(err)
	}
	var traced []Flow
	want := map[int]string{}
	add := func(fl labfile.Flow, differs string, edit func(*trace.Trace)) {
		r, err := c.Run(t.Context(), fl)
		if err != nil {
			t.Fatal(err)
		}
		edit(r.Trace)
		want[len(traced)] = differs
		traced = append(traced, Flow{Flow: fl, Trace: r.Trace})
	}
	same := func(*trace.Trace) {}
	toPod := labfile.Flow{From: "pod/client", To: "pod/neighbour:80"}
	add(toPod, "", same)
	add(toPod, "nothing", func(t *trace.Trace) { t.Paths[0].Verdict = trace.Dropped })
	add(toPod, "refused", func(t *trace.Trace) { t.Paths[0].Verdict = trace.Rejected })
	add(toPod, "another source", func(t *trace.Trace) { t.Paths[0].Seen.Src = "10.9.9.9" })
	add(toPod, "another server", func(t *trace.Trace) { t.Paths[0].Seen.Dst = "10.9.9.9:80" })
	add(toPod, "another port", func(t *trace.Trace) { t.Paths[0].Seen.Dst = strings.Replace(t.Paths[0].Seen.Dst, ":80", ":81", 1) })
	add(labfile.Flow{From: "pod/client", To: "pod/neighbour:9"}, "a port that is closed", func(t *trace.Trace) {
		t.Paths[0].Verdict, t.Paths[0].Seen = trace.Delivered, nil
	})
	add(labfile.Flow{From: "node/win1", To: "pod/client:80"}, "broken there, and fixed here", same)
	toService := labfile.Flow{From: "pod/client", To: "svc/win-webserver:80"}
	add(toService, "", same)
	add(toService, "a backend that does not answer", func(t *trace.Trace) {
		more := t.Paths[0]
		seen := *more.Seen
		seen.Dst = "10.244.9.9:80"
		more.Seen = &seen
		t.Paths = append(t.Paths, more)
	})
	add(toService, "a backend that the trace has not", func(t *trace.Trace) { t.Paths = t.Paths[:1] })
	ping := labfile.Flow{From: "pod/client", To: "pod/neighbour", Protocol: "ping"}
	add(ping, "", same)
	add(ping, "an echo request from another source", func(t *trace.Trace) { t.Paths[0].Seen.Src = "10.9.9.9" })
	nowhere := labfile.Flow{From: "pod/client", To: "10.99.99.99:80"}
	add(nowhere, "", same)
	add(nowhere, "lost for another reason", func(t *trace.Trace) { t.Paths[0].Reason, t.Paths[0].Steps = trace.ACLBlock, nil })
	large := ping
	large.Size, large.DontFragment = 1450, true
	add(large, "", same)
	add(large, "a request that is too large", func(t *trace.Trace) { t.Paths[0].Verdict = trace.Delivered })
	for _, proto := range []string{"tcp", "udp"} {
		add(labfile.Flow{From: "pod/client", To: "pod/neighbour:53", Protocol: "udp", Size: 1400}, "", same)
		sized := labfile.Flow{From: "pod/client", To: "pod/neighbour:80", Protocol: proto, Size: 1400}
		if proto == "udp" {
			sized.To, sized.Size, sized.DontFragment = "pod/neighbour:53", 1450, true
		}
		add(sized, "", same)
		add(sized, "the size of "+proto, func(t *trace.Trace) {
			t.Paths[0].Verdict = map[string]trace.Verdict{"tcp": trace.Dropped, "udp": trace.Delivered}[proto]
		})
	}
	meanwhile := labfile.Flow{From: "pod/client", To: "svc/win-webserver:80",
		Meanwhile: []labfile.HNSCall{{Node: "win1", Delete: &labfile.HNSSelector{Kind: "loadBalancer"}}}}
	add(meanwhile, "", same)
	add(meanwhile, "HNS called in the middle", func(t *trace.Trace) {
		for i := range t.Paths {
			if t.Paths[i].Verdict == trace.Delivered {
				t.Paths[i].Verdict = trace.Dropped
			} else {
				t.Paths[i].Verdict = trace.Delivered
			}
		}
	})
	name := labfile.Flow{From: "pod/linux-client", To: "name/win-webserver", Resolve: "linux"}
	addName := func(differs string, edit func(*trace.Lookup)) {
		r, err := c.Run(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		edit(r.Lookup)
		want[len(traced)] = differs
		traced = append(traced, Flow{Flow: name, Lookup: r.Lookup})
	}
	addName("", func(*trace.Lookup) {})
	addName("another address", func(l *trace.Lookup) { l.Answers = []string{"10.9.9.9"} })
	results, err := Run(t.Context(), other, traced, Options{})
	if errors.Is(err, netns.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		if (r.Differs != "") != (want[i] != "") {
			t.Errorf("%s -> %s (%s): %q, %s", traced[i].From, traced[i].To, want[i], r.Differs, r.Got)
		}
	}
}

// mesh are flows from every machine of a cluster to every other and to itself, to
// all Services and their node ports: by TCP to a port that is open and to one that is
// not, by UDP, and echo requests; in both families.
func mesh(c *lab.Cluster) []labfile.Flow {
	var from, to []string
	for _, k := range []cluster.Kind{cluster.PodKind, cluster.NodeKind, cluster.HostKind} {
		for _, m := range c.Machines(k) {
			from = append(from, m.Ref.String())
			to = append(to, m.Ref.String()+" ping", m.Ref.String(), m.Ref.String()+":9", m.Ref.String()+":9 udp", m.Ref.String()+":53 udp")
		}
	}
	for _, s := range c.Kube.Services {
		for _, p := range s.Ports {
			proto := ""
			if p.Proto == packet.UDP {
				proto = " udp"
			}
			to = append(to, fmt.Sprintf("svc/%s:%d%s", s.Key(), p.Port, proto))
			for _, m := range c.Machines(cluster.NodeKind) {
				if p.NodePort != 0 {
					to = append(to, fmt.Sprintf("%s:%d%s", m.Ref, p.NodePort, proto))
				}
			}
		}
		to = append(to, "svc/"+s.Key()+" ping", "svc/"+s.Key()+":9", "name/"+s.Name+"."+s.Namespace+".svc.cluster.local")
	}
	var all []labfile.Flow
	for _, a := range from {
		for _, b := range to {
			target, proto, _ := strings.Cut(b, " ")
			for _, family := range []string{"", labfile.FamilyIPv6} {
				all = append(all, labfile.Flow{From: a, To: target, Protocol: proto, Family: family})
			}
		}
	}
	return all
}

// TestMesh: all with all, in every design; two of them in -short.
func TestMesh(t *testing.T) {
	n := &counts{notMade: map[Reason]int{}}
	t.Cleanup(func() { t.Log(n) })
	for i, path := range labs(t, "labs") {
		if testing.Short() && i >= inShort {
			break
		}
		f, err := lab.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml"), func(t *testing.T) {
			t.Parallel()
			o := lab.Options{Components: labfile.Model}
			c, err := lab.Build(t.Context(), f, o)
			if err != nil {
				t.Fatal(err)
			}
			n.agrees(t, f, o, mesh(c), true)
		})
	}
}

func labs(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(fixtures, dir, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no labs in %s: %v", dir, err)
	}
	return files
}
