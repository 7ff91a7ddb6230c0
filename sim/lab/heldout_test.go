package lab

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/trace"
)

// The held-out incidents were encoded, and their outcomes predicted in writing, by
// someone who did not know the model (fixtures/held-out/README.md). What their labs
// expect is what the source says, so a flow that comes out otherwise is a miss of
// the model and stands in misses.yaml with its reason. The list goes red both ways: a
// miss that is not listed is a regression, a listed one that holds is to be taken
// from the list.
const heldOutDir = "../../fixtures/held-out"

// heldOutList is misses.yaml.
type heldOutList struct {
	Misses []heldOutMiss `yaml:"misses"`
	// Open are the flows whose labs expect nothing, with what predictions.md accepts.
	Open []heldOutOpen `yaml:"open"`
}

type heldOutMiss struct {
	Lab     string `yaml:"lab"`
	Variant string `yaml:"variant"`
	// Flow is "pod/client -> svc/web:80", as heldOutFlow writes it.
	Flow string `yaml:"flow"`
	// Error is a part of the error with which the variant cannot be built; Flow is "".
	Error string `yaml:"error"`
	Why   string `yaml:"why"`
}

type heldOutOpen struct {
	Lab     string   `yaml:"lab"`
	Variant string   `yaml:"variant"`
	Flow    string   `yaml:"flow"`
	Accept  []string `yaml:"accept"`
	Why     string   `yaml:"why"`
}

func readHeldOut(t *testing.T) heldOutList {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(heldOutDir, "misses.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var l heldOutList
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(&l); err != nil {
		t.Fatal(err)
	}
	return l
}

func heldOutFlow(f labfile.Flow) string {
	s := f.From + " -> " + f.To
	switch {
	case f.Resolve != "":
		s += " (" + f.Resolve + ")"
	case f.Protocol != "" && f.Protocol != "tcp":
		s += " (" + f.Protocol + ")"
	}
	return s
}

// TestHeldOut runs every variant of every held-out lab.
func TestHeldOut(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(heldOutDir, "[0-9]*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no labs in %s: %v", heldOutDir, err)
	}
	h := heldOutRun{list: readHeldOut(t), used: map[string]bool{}}
	for _, path := range files {
		f, err := Load(path)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		for _, v := range f.Lab.Spec.Variants {
			h.variant(t, f, strings.TrimSuffix(filepath.Base(path), ".yaml"), v.Name)
		}
	}
	for _, m := range h.list.Misses {
		if m.Why == "" {
			t.Errorf("misses.yaml: %s %s %s has no reason", m.Lab, m.Variant, m.Flow)
		}
		if !h.used[heldOutKey(m.Lab, m.Variant, m.Flow)] {
			t.Errorf("misses.yaml names %s, variant %s, flow %q, and there is no such flow to judge", m.Lab, m.Variant, m.Flow)
		}
	}
	for _, o := range h.list.Open {
		if o.Why == "" || len(o.Accept) == 0 {
			t.Errorf("misses.yaml: open flow %s %s %s has no reason or accepts nothing", o.Lab, o.Variant, o.Flow)
		}
		if !h.used[heldOutKey(o.Lab, o.Variant, o.Flow)] {
			t.Errorf("misses.yaml: open flow %s, variant %s, %q: there is no such flow that expects nothing", o.Lab, o.Variant, o.Flow)
		}
	}
}

type heldOutRun struct {
	list heldOutList
	used map[string]bool
}

func heldOutKey(lab, variant, flow string) string { return lab + "|" + variant + "|" + flow }

// miss is the entry for a flow; flow "" for a variant that cannot be built.
func (h *heldOutRun) miss(lab, variant, flow string) *heldOutMiss {
	i := slices.IndexFunc(h.list.Misses, func(m heldOutMiss) bool {
		return m.Lab == lab && m.Variant == variant && m.Flow == flow
	})
	if i < 0 {
		return nil
	}
	h.used[heldOutKey(lab, variant, flow)] = true
	return &h.list.Misses[i]
}

// variant judges all flows of one state.
func (h *heldOutRun) variant(t *testing.T, f *File, lab, variant string) {
	t.Helper()
	built := h.miss(lab, variant, "")
	c, err := Build(t.Context(), f, Options{Variant: variant})
	if err != nil {
		if built == nil || built.Error == "" || !strings.Contains(err.Error(), built.Error) {
			t.Errorf("%s: %v\n  if this is so, add to fixtures/held-out/misses.yaml:\n  - {lab: %s, variant: %s, error: %q, why: ...}", f.Path, err,
				lab, variant, err)
		}
		return
	}
	if built != nil {
		t.Errorf(
			"%s, variant %s can be built now: take the entry with its error from fixtures/held-out/misses.yaml, and say so in docs/reference/accuracy.md", f.Path, variant)
	}
	for _, fl := range c.Plan.File.Lab.Spec.Flows {
		name := heldOutFlow(fl)
		o, err := c.Run(t.Context(), fl)
		if err != nil {
			t.Errorf("%s, variant %s: %s: %v", f.Path, variant, name, err)
			continue
		}
		h.judge(t, f, lab, variant, name, o)
	}
}

// judge compares one flow with what its lab expects, or with what is accepted of a
// flow whose source leaves the outcome open, and with the list.
func (h *heldOutRun) judge(t *testing.T, f *File, lab, variant, name string, o Outcome) {
	t.Helper()
	holds, why := o.Pass, o.Why
	if o.Flow.Expect == "" && len(o.Flow.Backends) == 0 {
		i := slices.IndexFunc(h.list.Open, func(w heldOutOpen) bool { return w.Lab == lab && w.Variant == variant && w.Flow == name })
		if i < 0 {
			t.Errorf("%s, variant %s: %s expects nothing, and misses.yaml does not say what the prediction accepts", f.Path, variant, name)
			return
		}
		h.used[heldOutKey(lab, variant, name)] = true
		accept := h.list.Open[i].Accept
		if holds = slices.Contains(accept, string(o.Verdict)); !holds {
			why = fmt.Sprintf("the prediction accepts %s, got %s", strings.Join(accept, ", "), o.Verdict)
		}
	}
	m := h.miss(lab, variant, name)
	switch {
	case holds && m != nil:
		t.Errorf("%s, variant %s: %s holds now (%s, %s): take it from fixtures/held-out/misses.yaml, and say so in docs/reference/accuracy.md",
			f.Path, variant, name, o.Verdict, o.Reason)
	case !holds && m == nil:
		t.Errorf(
			"%s, variant %s: %s\n  %s\n  got %s (%s): %s\n%s  the source says otherwise (predictions.md). If the model cannot, add to fixtures/held-out/misses.yaml:\n  - {lab: %s, variant: %s, flow: %q, why: ...}",
			f.Path, variant, name, why, o.Verdict, o.Reason, o.Summary, pathsOf(o), lab, variant, name)
	}
}

// TestOnlyBackend: where a load balancer has one backend there is no choice to
// read, and the receiver tells which backend it was.
func TestOnlyBackend(t *testing.T) {
	f, err := Load(filepath.Join(heldOutDir, "007-internal-traffic-policy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := Build(t.Context(), f, Options{Variant: fixed})
	if err != nil {
		t.Fatal(err)
	}
	fl := c.Plan.File.Lab.Spec.Flows[0]
	for _, k := range []struct {
		backends map[string]string
		pass     bool
	}{
		{map[string]string{"web-1": "delivered", "web-2": labfile.NotChosen}, true},
		{map[string]string{"web-1": "dropped"}, false},
		{map[string]string{"web-1": labfile.NotChosen}, false},
		{map[string]string{"web-2": "delivered"}, false},
	} {
		fl.Backends = k.backends
		if o, err := c.Run(t.Context(), fl); err != nil || o.Pass != k.pass {
			t.Errorf("%v: %v, pass is %t: %s", k.backends, err, o.Pass, o.Why)
		}
	}
}

// TestDNSConfigNeedsCapability: a plugin without the capability dns gets nothing of a
// pod's dnsConfig, and the lab says so.
func TestDNSConfigNeedsCapability(t *testing.T) {
	f, err := Load(filepath.Join(heldOutDir, "034-dns-config-ignored.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for variant, want := range map[string]bool{broken: true, fixed: false} {
		c, err := Build(t.Context(), f, Options{Variant: variant})
		if err != nil {
			t.Fatal(err)
		}
		said := slices.ContainsFunc(c.NotModelled, func(n trace.Notice) bool { return n.What == "dnsConfig of pod default/eks-app" })
		if said != want {
			t.Errorf("%s: notice of the dnsConfig %t, want %t: %v", variant, said, want, c.NotModelled)
		}
	}
}
