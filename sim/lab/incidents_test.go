package lab

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/trace"
)

// The incidents are public threads about Windows nodes, retold as labs. Each
// has the broken state as it was reported and the state that helped; the model
// must come to both by itself.
const (
	incidentsDir = "../../fixtures/incidents"
	broken       = "broken"
	fixed        = "fixed"
	// onlyOneState is how a story says that a second state does not exist.
	onlyOneState = "There is only one state"
)

func incidentLabs(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(incidentsDir, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no incidents in %s: %v", incidentsDir, err)
	}
	return files
}

func TestIncidents(t *testing.T) {
	for _, path := range incidentLabs(t) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml"), func(t *testing.T) {
			f, err := Load(path)
			if err != nil {
				t.Fatal(err)
			}
			describesIncident(t, f)
			for _, v := range f.Lab.Spec.Variants {
				t.Run(v.Name, func(t *testing.T) { incidentHolds(t, f, v.Name) })
			}
		})
	}
}

// describesIncident checks what every retelling must have.
func describesIncident(t *testing.T, f *File) {
	t.Helper()
	m := f.Lab.Metadata
	if m.Title == "" || m.Incident == "" || m.Story == "" {
		t.Errorf("%s: title, incident and story must be given", f.Path)
	}
	name, _, _ := strings.Cut(filepath.Base(f.Path), "-")
	if len(name) < 3 || strings.Trim(name[:3], "0123456789") != "" || len(name) > 4 {
		t.Errorf("%s: the file's name must start with the incident's number", f.Path)
	}
	var names []string
	for _, v := range f.Lab.Spec.Variants {
		names = append(names, v.Name)
		if len(v.Flows) == 0 && len(v.HNS) == 0 {
			t.Errorf("%s: variant %s expects nothing", f.Path, v.Name)
		}
		for _, fl := range v.Flows {
			if fl.Expect == "" && len(fl.Backends) == 0 && fl.Spread == "" {
				t.Errorf("%s: variant %s, flow %s to %s expects nothing", f.Path, v.Name, fl.From, fl.To)
			}
		}
	}
	if !slices.Contains(names, broken) {
		t.Errorf("%s: there is no variant %s", f.Path, broken)
	}
	if slices.Contains(names, fixed) && strings.Contains(m.Story, onlyOneState) {
		t.Errorf("%s: the story says %q, and there is a variant %s", f.Path, onlyOneState, fixed)
	}
	if !slices.Contains(names, fixed) && !strings.Contains(m.Story, onlyOneState) {
		t.Errorf("%s: there is no variant %s, and the story does not say %q", f.Path, fixed, onlyOneState)
	}
}

// incidentHolds runs all flows of one state. A lab's calls to HNS are compared
// with their expected error codes while it is built.
func incidentHolds(t *testing.T, f *File, variant string) {
	t.Helper()
	c, err := Build(t.Context(), f, Options{Variant: variant})
	if err != nil {
		t.Fatal(err)
	}
	for i, fl := range c.Plan.File.Lab.Spec.AllFlows() {
		o, err := c.Run(t.Context(), fl)
		if err != nil {
			t.Errorf("flow %d, %s to %s: %v", i+1, fl.From, fl.To, err)
			continue
		}
		if !o.Pass {
			t.Errorf("%s, variant %s, flow %d: %s to %s\n  %s\n  got %s (%s): %s\n%s", f.Path, variant, i+1, fl.From, fl.To, o.Why, o.Verdict,
				o.Reason, o.Summary, pathsOf(o))
		}
	}
}

// pathsOf sums up each path, for a failure's reader.
func pathsOf(o Outcome) string {
	var b strings.Builder
	if o.Trace == nil {
		return ""
	}
	for _, p := range o.Trace.Paths {
		b.WriteString("    ")
		for _, ch := range p.Choices {
			b.WriteString(ch.Label + " ")
		}
		b.WriteString(string(p.Verdict) + " (" + string(p.Reason) + ")")
		if p.Seen != nil {
			b.WriteString(" seen as " + p.Seen.Src)
		}
		b.WriteString(": " + p.Summary + "\n")
	}
	return b.String()
}

// TestIncidentsCanFail tests the check itself: a state that is expected to be
// the other one must not pass.
func TestIncidentsCanFail(t *testing.T) {
	f, err := Load(filepath.Join(incidentsDir, "044-idle-connection-lost.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := Build(t.Context(), f, Options{Variant: broken})
	if err != nil {
		t.Fatal(err)
	}
	fl := c.Plan.File.Lab.Spec.Flows[0]
	fl.Expect, fl.Reason, fl.Backends = string(trace.Delivered), "", nil
	if o, err := c.Run(t.Context(), fl); err != nil || o.Pass {
		t.Errorf("a lost connection passes as delivered: %v %+v", err, o.Verdict)
	}
}

// TestPeerIsReset: what the pod of incident 78 does not get, its peer does.
func TestPeerIsReset(t *testing.T) {
	f, err := Load(filepath.Join(incidentsDir, "078-acls-applied-again.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := Build(t.Context(), f, Options{Variant: broken})
	if err != nil {
		t.Fatal(err)
	}
	o, err := c.Run(t.Context(), c.Plan.File.Lab.Spec.Flows[0])
	if err != nil {
		t.Fatal(err)
	}
	reset := map[string]bool{}
	for _, s := range o.Trace.Paths[0].Steps {
		if strings.Contains(s.Text(), "the connection was reset") {
			reset[s.Place] = true
		}
	}
	if !reset["host/lan"] || reset["win1"] {
		t.Errorf("the reset reached %v; only host/lan should get it", reset)
	}
}

// TestMeanwhileIsUndone: a call in the middle of one way does not reach into
// the next.
func TestMeanwhileIsUndone(t *testing.T) {
	f, err := Load(filepath.Join(incidentsDir, "036-dsr-own-service.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := Build(t.Context(), f, Options{Variant: fixed})
	if err != nil {
		t.Fatal(err)
	}
	gone := []HNSCall{{Node: "win1", Delete: &HNSSelector{Kind: "loadBalancer", VIP: "10.96.5.5", Port: 80}}}
	// Whether the flow of the load balancer lives on is open, so there are two ways
	// for each backend.
	for range 2 {
		o, err := c.Run(t.Context(), Flow{From: "pod/p1", To: "svc/web:80", Idle: "1s", Meanwhile: gone, Expect: string(trace.Varies)})
		if err != nil {
			t.Fatal(err)
		}
		if n := len(o.Trace.Paths); n != 6 || !o.Pass {
			t.Errorf("%d ways, want 6, three of them cut: %s\n%s", n, o.Why, pathsOf(o))
		}
	}
	if o, err := c.Run(t.Context(), Flow{From: "pod/p1", To: "name/web", Resolve: "Resolve-DnsName",
		Expect: string(trace.Delivered)}); err != nil || !o.Pass {
		t.Errorf("a name after the call was undone: %v %s", err, o.Why)
	}
	if o, err := c.Run(t.Context(), Flow{From: "pod/p1", To: "svc/web:80", Expect: string(trace.Delivered)}); err != nil || !o.Pass {
		t.Errorf("after the call was undone: %v %s", err, o.Why)
	}
}
