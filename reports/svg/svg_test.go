package svg

import (
	"bytes"
	"encoding/xml"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/reports/result/resulttest"
	"github.com/winlab-dev/winlab/sim/trace"
)

var update = flag.Bool("update", false, "write the golden files")

// sample returns the first path of every verdict and form in the sample.
func sample(t *testing.T) map[string]*trace.Path {
	t.Helper()
	doc := resulttest.Sample()
	out := map[string]*trace.Path{}
	for _, tr := range doc.Traces.All() {
		for i := range tr.Paths {
			p := &tr.Paths[i]
			name := string(p.Verdict) + "-" + string(p.Reason)
			for _, s := range p.Steps {
				if s.Action == trace.ActEncap {
					name += "-tunnel"
					break
				}
			}
			if out[name] == nil {
				out[name] = p
			}
		}
	}
	return out
}

func wellFormed(t *testing.T, b []byte) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(b))
	for {
		_, err := d.Token()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatalf("not XML: %v\n%s", err, b)
		}
	}
}

func TestGolden(t *testing.T) {
	paths := sample(t)
	if len(paths) < 8 {
		t.Fatalf("only %d kinds of paths", len(paths))
	}
	for name, p := range paths {
		got := Draw(p)
		wellFormed(t, got)
		if again := Draw(p); !bytes.Equal(got, again) {
			t.Errorf("%s: two drawings differ", name)
		}
		got = standalone(t, got)
		file := filepath.Join("testdata", name+".svg")
		if *update {
			if err := os.WriteFile(file, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Errorf("%v (run go test with -update)", err)
		} else if !bytes.Equal(got, want) {
			t.Errorf("%s differs from its golden file; look at it and run go test -update", name)
		}
	}
}

// standalone puts the style sheet into a drawing, so that it is a picture of its own.
func standalone(t *testing.T, b []byte) []byte {
	t.Helper()
	colours, err := os.ReadFile("testdata/colours.css")
	if err != nil {
		t.Fatal(err)
	}
	b = bytes.Replace(b, []byte("<svg "), []byte(`<svg xmlns="http://www.w3.org/2000/svg" `), 1)
	return bytes.Replace(b, []byte("</desc>"), []byte("</desc><style>"+string(colours)+CSS+"</style>"), 1)
}

func TestDrawingNumbersEveryStep(t *testing.T) {
	for name, p := range sample(t) {
		s := string(Draw(p))
		for _, st := range p.Steps {
			if !strings.Contains(s, fmt.Sprintf(`data-n="%d"`, st.N)) {
				t.Errorf("%s: step %d is not drawn", name, st.N)
			}
		}
		if !strings.Contains(s, "<title>") || !strings.Contains(s, "<desc>Request: at ") {
			t.Errorf("%s: no accessible description", name)
		}
	}
}

func TestMarks(t *testing.T) {
	paths := sample(t)
	for _, c := range []struct {
		path, mark string
		want       bool
	}{
		{"no-reply-icmp-not-translated", `class="wcross"`, true},
		{"no-reply-icmp-not-translated", ">no-route<", true},
		{"dropped-acl-block", `class="wcross"`, true},
		{"unknown-model-hole", `class="wehole"`, true},
		{"unknown-model-hole", `class="wcross"`, false},
		{"delivered-ok-tunnel", ">VXLAN · VNI 4096<", true},
		{"delivered-ok-tunnel", ">in 192.168.1.11:51000 → 192.168.1.12:4789<", true},
		{"delivered-ok-tunnel", `class="wcross"`, false},
		{"delivered-ok-tunnel", ">reply received<", true},
		{"delivered-ok", `class="wt"`, false},
	} {
		p := paths[c.path]
		if p == nil {
			t.Errorf("the sample has no %s", c.path)
			continue
		}
		if got := strings.Contains(string(Draw(p)), c.mark); got != c.want {
			t.Errorf("%s: %q is there: %v, want %v", c.path, c.mark, got, c.want)
		}
	}
}

func TestAddressesComeFromTheFrame(t *testing.T) {
	for _, p := range sample(t) {
		cs := cards(p)
		for _, c := range cs {
			if c.place == "host/internet" && !strings.Contains(c.flow, "203.0.113.10") {
				t.Errorf("at the internet host the label is %q", c.flow)
			}
		}
	}
}

func TestLongLoopsAreCutButSaySo(t *testing.T) {
	p := &trace.Path{Verdict: trace.Looped, Reason: trace.TTLExceeded}
	for i := range 128 {
		p.Steps = append(p.Steps, trace.Step{N: i + 1, Leg: trace.Request, Place: []string{"gw", "win2"}[i%2], Action: trace.ActForward, Event: trace.Note("default route")})
	}
	b := Draw(p)
	wellFormed(t, b)
	if !strings.Contains(string(b), "steps not drawn") || !strings.Contains(string(b), `data-n="128"`) {
		t.Error("the cut is not shown or the end is missing")
	}
	if n := strings.Count(string(b), `class="wc`); n > maxCards+2 {
		t.Errorf("%d cards", n)
	}
}

func TestOddPaths(t *testing.T) {
	for name, p := range map[string]*trace.Path{
		"no steps":        {Verdict: trace.Unresolved},
		"no leg":          {Steps: []trace.Step{{N: 1, Place: "win1", Event: trace.Note("x")}}},
		"no place":        {Steps: []trace.Step{{N: 1, Leg: trace.Reply}}},
		"hostile text":    {Steps: []trace.Step{{N: 1, Leg: trace.Request, Place: "<script>\x1b[31m", Object: "\"&'", Event: trace.Note("</svg>\u202e"), Layer: "<b>", Reason: "<i>", Action: trace.ActDrop}}},
		"broken frame":    {Steps: []trace.Step{{N: 1, Leg: trace.Request, Place: "a", Frame: []byte{1, 2, 3}}, {N: 2, Leg: trace.Request, Place: "b", Action: trace.ActDecap}}},
		"tunnel then end": {Steps: []trace.Step{{N: 1, Leg: trace.Request, Place: "a", Action: trace.ActEncap}, {N: 2, Leg: trace.Request, Place: "b", Action: trace.ActDrop}}},
	} {
		b := Draw(p)
		wellFormed(t, b)
		if s := string(b); strings.Contains(s, "<script") || strings.Contains(s, "\x1b") {
			t.Errorf("%s: text from the lab got through", name)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, t := range resulttest.Small().Traces.All() {
		for _, p := range t.Paths {
			for _, s := range p.Steps {
				if s.Frame != nil {
					f.Add(s.Frame)
				}
			}
		}
	}
	f.Fuzz(func(_ *testing.T, b []byte) { parse(b) })
}
