package outcome

import (
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/trace"
)

// Each line is a path: its choices and how it ends. "rp=strict" answers a question,
// "rp@lin1=strict" one about a machine, "#2" picks a backend.
func TestSummarise(t *testing.T) {
	for _, c := range []struct {
		name, paths, verdict, summary, open string
	}{
		{"one path", "delivered", "delivered ok", "", ""},
		{"backends that differ", "#1 delivered\n#2 dropped", "varies depends-on-backend", "2 paths are possible: 1 delivered, 1 dropped.", ""},
		{"a question that decides", "rp=off delivered\nrp=strict dropped", "varies open-question", "Delivered if rp off; dropped if rp strict.",
			"rp"},
		{"a question about a machine", "rp@lin1=off delivered\nrp@lin1=strict dropped", "varies open-question",
			"Delivered if on lin1 rp off; dropped if on lin1 rp strict.", "rp@lin1"},
		{"a question that changes nothing", "rp=off delivered\nrp=strict delivered", "delivered ok", "All 2 paths were tried. ", ""},
		{"a failure whose form is open", "fw=on dropped closed\nfw=off rejected closed", "varies closed", "Dropped if fw on; rejected if fw off.",
			"fw"},
		{"in every world the backends differ", "rp=off #1 delivered\nrp=off #2 dropped\nrp=strict #1 delivered\nrp=strict #2 dropped",
			"varies depends-on-backend", "4 paths are possible: 2 delivered, 2 dropped.", ""},
		{"in one world the backends differ", "#1 delivered\n#2 rp=off delivered\n#2 rp=strict dropped", "varies open-question",
			"Delivered if rp off; varies if rp strict.", "rp"},
		{"two questions, one decides", "rp=off fw=on delivered\nrp=off fw=off delivered\nrp=strict dropped", "varies open-question",
			"Delivered if rp off; dropped if rp strict.", "rp"},
		{"two questions decide", "rp=off fw=on dropped\nrp=off fw=off rejected\nrp=strict no-reply", "varies open-question",
			"If rp off: dropped if fw on; rejected if fw off; no-reply if rp strict.", "rp fw"},
		{"three answers", "x=a delivered\nx=b delivered\nx=c dropped", "varies open-question", "Delivered if x a or if x b; dropped if x c.",
			"x"},
		{"unknown in one world", "rp=off unknown model-hole\nrp=strict dropped", "varies open-question",
			"Unknown if rp off; dropped if rp strict.", "rp"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := &trace.Trace{}
			for _, l := range strings.Split(c.paths, "\n") {
				tr.Paths = append(tr.Paths, pathOf(t, l))
			}
			Summarise(tr, true)
			if got := string(tr.Verdict) + " " + string(tr.Reason); got != c.verdict || tr.Summary != c.summary {
				t.Errorf("got %s: %q\nwant %s: %q", got, tr.Summary, c.verdict, c.summary)
			}
			var open []string
			for _, q := range tr.Open {
				name := q.Param
				if q.About != "" {
					name += "@" + q.About
				}
				open = append(open, name)
			}
			if got := strings.Join(open, " "); got != c.open {
				t.Errorf("open questions %q, want %q", got, c.open)
			}
		})
	}
}

func pathOf(t *testing.T, line string) trace.Path {
	t.Helper()
	var p trace.Path
	for _, w := range strings.Fields(line) {
		name, value, isQuestion := strings.Cut(w, "=")
		switch {
		case isQuestion:
			name, about, _ := strings.Cut(name, "@")
			p.Choices = append(p.Choices, trace.Choice{Where: about, Param: name, Value: value, Label: name + " " + value})
		case strings.HasPrefix(w, "#"):
			p.Choices = append(p.Choices, trace.Choice{Where: "lb", Label: w})
		case p.Verdict == "":
			v, err := trace.ParseVerdict(w)
			if err != nil {
				t.Fatal(err)
			}
			p.Verdict, p.Reason = v, "ok"
			if v != trace.Delivered {
				p.Reason = trace.Reason(v)
			}
		default:
			p.Reason = trace.Reason(w)
		}
	}
	return p
}

// A flow that fails whatever the answer is a failure, also when its form is open.
func TestFails(t *testing.T) {
	for paths, want := range map[string]bool{
		"fw=on dropped\nfw=off rejected":  true,
		"fw=on dropped\nfw=off delivered": false,
		"fw=on dropped\nfw=off unknown":   false,
		"#1 dropped\n#2 no-reply":         true,
		"dropped":                         true,
		"unknown":                         false,
	} {
		tr := &trace.Trace{}
		for _, l := range strings.Split(paths, "\n") {
			tr.Paths = append(tr.Paths, pathOf(t, l))
		}
		Summarise(tr, true)
		if tr.Fails() != want {
			t.Errorf("%q: fails is %v, want %v", paths, !want, want)
		}
	}
}

// What was not tried can end in any way: no verdict is certain then.
func TestSummariseIncomplete(t *testing.T) {
	for paths, want := range map[string]trace.Verdict{
		"#1 delivered\n#2 delivered":                trace.Unknown,
		"#1 dropped\n#2 rejected":                   trace.Unknown,
		"#1 delivered\n#2 dropped":                  trace.Varies,
		"fw=on dropped\nfw=off rejected":            trace.Unknown,
		"fw=on rp=a delivered\nfw=off rp=b dropped": trace.Varies,
	} {
		tr := &trace.Trace{}
		for _, l := range strings.Split(paths, "\n") {
			tr.Paths = append(tr.Paths, pathOf(t, l))
		}
		Summarise(tr, false)
		if tr.Verdict != want || tr.Fails() || !strings.Contains(tr.Summary, "not tried") {
			t.Errorf("%q: %s, fails %v, %q; want %s", paths, tr.Verdict, tr.Fails(), tr.Summary, want)
		}
	}
}

// A trace that did not follow every path is not called delivered.
func TestMoreWaysThanAreTried(t *testing.T) {
	t.Parallel()
	tr := &trace.Trace{Paths: []trace.Path{{Verdict: trace.Delivered}, {Verdict: trace.Delivered}}}
	Summarise(tr, false)
	if tr.Verdict != trace.Unknown || tr.Reason != trace.ModelHole {
		t.Errorf("got %s %s", tr.Verdict, tr.Reason)
	}
	tr = &trace.Trace{Paths: []trace.Path{{Verdict: trace.Delivered}, {Verdict: trace.Dropped}}}
	Summarise(tr, true)
	if tr.Verdict != trace.Varies || tr.Summary != "2 paths are possible: 1 delivered, 1 dropped." {
		t.Errorf("got %s: %s", tr.Verdict, tr.Summary)
	}
}
