package lab

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
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

// shortTrace is a trace without frames, defaults and the words that change with
// every better sentence: what happened where, by which rule, for which reason.
type shortTrace struct {
	Flow    string       `json:"flow"`
	Verdict string       `json:"verdict"`
	Reason  trace.Reason `json:"reason"`
	Grade   string       `json:"grade"`
	Paths   []shortPath  `json:"paths"`
}

type shortPath struct {
	Choices []string `json:"choices,omitempty"`
	Verdict string   `json:"verdict"`
	Seen    string   `json:"seen,omitempty"`
	Steps   []string `json:"steps"`
}

func shorten(t *trace.Trace) shortTrace {
	s := shortTrace{Flow: t.Flow.From + " -> " + t.Flow.To + " " + t.Flow.Protocol, Verdict: string(t.Verdict), Reason: t.Reason,
		Grade: string(t.Grade)}
	for _, p := range t.Paths {
		sp := shortPath{Verdict: string(p.Verdict)}
		for _, c := range p.Choices {
			sp.Choices = append(sp.Choices, c.Where+": "+c.Label)
		}
		if p.Seen != nil {
			sp.Seen = p.Seen.Src + " at " + p.Seen.Where
		}
		for _, st := range p.Steps {
			line := fmt.Sprintf("%s %s", st.Leg, st.Place)
			for _, part := range []string{st.Object, string(st.Action), st.Layer, st.Rule, string(st.Reason)} {
				if part != "" {
					line += " | " + part
				}
			}
			for _, c := range st.Changes {
				line += fmt.Sprintf(" {%s: %s => %s}", c.Field, c.Before, c.After)
			}
			sp.Steps = append(sp.Steps, line)
		}
		s.Paths = append(s.Paths, sp)
	}
	return s
}

// The traces of a dozen typical flows: each driver between nodes, each kind of
// Service, each way to fail.
func TestGoldenTraces(t *testing.T) {
	for _, g := range []struct{ name, design, from, to, proto string }{
		{"l2bridge-pod-to-pod", hostGW, "pod/client", "pod/peer:80", ""},
		{"l2bridge-pod-to-service", hostGW, "pod/client", "svc/win-webserver:80", ""},
		{"l2bridge-nodeport", hostGW, "host/lan", "node/win1:30080", ""},
		{"l2bridge-ping-outside", hostGW, "pod/client", "host/internet", "ping"},
		{"l2bridge-tcp-outside", hostGW, "pod/client", "host/internet:443", ""},
		{"overlay-pod-to-pod", vxlan, "pod/client", "pod/peer:80", ""},
		{"overlay-to-linux", vxlan, "pod/client", "pod/linux-client:53", "udp"},
		{"overlay-node-to-remote-pod", vxlan, "node/win1", "pod/peer:80", ""},
		{"l2tunnel-same-node", l2tunnel, "pod/client", "pod/neighbour:80", ""},
		{"ovn-pod-to-service", "transparent-ovn-kubernetes", "pod/client", "svc/win-webserver:80", ""},
		{"nat-outside-ping", "nat-winnat", "pod/client", "host/internet", "ping"},
		{"rras-userspace-proxy", "rras-l3", "pod/client", "svc/win-webserver:80", ""},
		{"ovs-pod-to-pod", "ovs-l3", "pod/client", "pod/peer:80", ""},
	} {
		t.Run(g.name, func(t *testing.T) {
			tr, err := built(t, design(t, g.design)).Trace(t.Context(), Request{From: g.from, To: g.to, Protocol: g.proto})
			if err != nil {
				t.Fatal(err)
			}
			data, err := json.MarshalIndent(shorten(tr), "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			text := strings.NewReplacer(`\u003e`, ">", `\u003c`, "<").Replace(string(data))
			golden(t, filepath.Join("traces", g.name+".json"), text+"\n")
		})
	}
}

// everywhere calls f for every fixture lab in every setting and variant.
func everywhere(t *testing.T, f func(t *testing.T, file *File, o Options)) {
	for _, path := range fixtures(t) {
		file, err := Load(path)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		run := func(o Options, what string) {
			t.Run(file.Lab.Metadata.Name+what, func(t *testing.T) { f(t, file, o) })
		}
		run(Options{}, "")
		for i := range file.Lab.Spec.Settings {
			s := &file.Lab.Spec.Settings[i]
			run(Options{Setting: s}, fmt.Sprintf(" %s %s %d", s.Kubernetes, s.Build, i))
		}
		for _, v := range file.Lab.Spec.Variants {
			run(Options{Variant: v.Name}, " "+v.Name)
		}
	}
}

// has reports whether somebody is in a lab.
func has(c *Cluster, name string) bool {
	_, err := c.Address(name)
	return err == nil
}

// sampleRequests are flows of a lab: its own, and a few that every lab with the common
// actors has.
func sampleRequests(c *Cluster) []Request {
	var rs []Request
	for _, f := range c.Plan.File.Lab.Spec.AllFlows() {
		if f.Resolve == "" && len(f.Meanwhile) == 0 {
			rs = append(rs, Request{From: f.From, To: f.To, Protocol: f.Protocol, IPv6: f.Family == "ipv6"})
		}
	}
	if has(c, "pod/default/client") && has(c, "pod/default/peer") {
		rs = append(rs, flows("pod/client", "pod/peer")...)
	}
	if has(c, "pod/default/client") && has(c, "host/internet") {
		rs = append(rs, Request{From: "pod/client", To: "host/internet:443"}, Request{From: "pod/client", To: "host/internet", Protocol: "ping"})
	}
	if c.Service("default", "win-webserver") != nil && has(c, "host/lan") && c.Kube.Node("win1") != nil {
		rs = append(rs, Request{From: "host/lan", To: "node/win1:30080"})
		if has(c, "pod/default/client") {
			rs = append(rs, Request{From: "pod/client", To: "svc/win-webserver:80"}, Request{From: "node/win1", To: "svc/win-webserver:80"})
		}
	}
	return rs
}

// Two builds of the same lab say the same, byte for byte, and so does the same
// cluster when it is asked again after other flows.
func TestTracesAreDeterministic(t *testing.T) {
	everywhere(t, func(t *testing.T, file *File, o Options) {
		say := func(c *Cluster) string {
			var all strings.Builder
			for _, r := range sampleRequests(c) {
				tr, err := c.Trace(t.Context(), r)
				if err != nil {
					t.Fatalf("%s -> %s: %v", r.From, r.To, err)
				}
				data, err := tr.MarshalIndent()
				if err != nil {
					t.Fatal(err)
				}
				all.Write(data)
			}
			return all.String()
		}
		a, err := Build(t.Context(), file, o)
		if err != nil {
			t.Fatal(err)
		}
		b, err := Build(t.Context(), file, o)
		if err != nil {
			t.Fatal(err)
		}
		one := say(a)
		for what, two := range map[string]string{"another build": say(b), "the same cluster, later": say(a)} {
			if one != two {
				t.Errorf("%s says something else: %s", what, firstDifference(one, two))
			}
		}
	})
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("line %d: %s / %s", i+1, x[i], y[i])
		}
	}
	return fmt.Sprintf("%d and %d lines", len(x), len(y))
}

// Every step says how it is known, every reason can be explained, and no path
// is without a verdict that the design lists.
func TestEveryStepCitesItsEvidence(t *testing.T) {
	everywhere(t, func(t *testing.T, file *File, o Options) {
		c, err := Build(t.Context(), file, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range sampleRequests(c) {
			tr, err := c.Trace(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			reason := func(what string, code trace.Reason) {
				if _, ok := trace.Explain(code); !ok {
					t.Errorf("%s -> %s: %s: the reason %q is not explained", r.From, r.To, what, code)
				}
			}
			reason("verdict", tr.Reason)
			if !tr.Verdict.Valid() || tr.Summary == "" {
				t.Errorf("%s -> %s: verdict %q, summary %q", r.From, r.To, tr.Verdict, tr.Summary)
			}
			for _, p := range tr.Paths {
				reason("path", p.Reason)
				if !p.Verdict.Valid() || len(p.Steps) == 0 {
					t.Errorf("%s -> %s: path with verdict %q and %d steps", r.From, r.To, p.Verdict, len(p.Steps))
				}
				for _, s := range p.Steps {
					if s.Reason != "" {
						reason("step", s.Reason)
					}
					if s.Action == trace.ActSend || s.Action == trace.ActNote && s.Evidence == "" {
						continue
					}
					if f := evidence.Lookup(s.Evidence); f == nil {
						t.Errorf("%s -> %s: step %d (%s, %s, %s) cites %q", r.From, r.To, s.N, s.Place, s.Object, s.Action, s.Evidence)
					} else if f.Grade != s.Grade {
						t.Errorf("%s -> %s: step %d has the grade %s, its fact %s has %s", r.From, r.To, s.N, s.Grade, f.ID, f.Grade)
					}
				}
			}
		}
	})
}
