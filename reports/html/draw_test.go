package html

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/winlab-dev/winlab/reports/result/resulttest"
	"github.com/winlab-dev/winlab/sim/trace"
)

// drawn is what the page makes of a path.
type drawn struct {
	SVG  string `json:"svg"`
	Turn *found `json:"turn"`
}

// found is a loop in a path's steps.
type found struct{ From, Len, Times int }

// draw has a browser draw paths, from the JSON that a page has of them.
func draw(t *testing.T, paths ...*trace.Path) []drawn {
	t.Helper()
	p := newPacker()
	var at []ref
	for _, path := range paths {
		text, err := json.Marshal(path)
		if err != nil {
			t.Fatal(err)
		}
		at = append(at, p.path(text))
	}
	var lists []string
	for _, part := range p.finish() {
		lists = append(lists, string(part.JSON))
	}
	where, err := json.Marshal(at)
	if err != nil {
		t.Fatal(err)
	}
	var all []drawn
	script := `(() => { ` + drawJS + `; const parts = [` + strings.Join(lists, ",") + `];
		return ` + string(where) +
		`.map(([n, i]) => { const p = parts[n][i], turn = findTurn(p.steps || []); return {svg: drawing(p, turn), turn}; }); })()`
	if err := chromedp.Run(newTab(t), chromedp.Evaluate(script, &all)); err != nil {
		t.Fatal(err)
	}
	return all
}

// kinds returns the first path of every verdict and form in the sample.
func kinds() map[string]*trace.Path {
	out := map[string]*trace.Path{}
	for _, tr := range resulttest.Sample().Traces.All() {
		for i := range tr.Paths {
			p := &tr.Paths[i]
			name := string(p.Verdict) + "-" + string(p.Reason)
			if slices.ContainsFunc(p.Steps, func(s trace.Step) bool { return s.Action == trace.ActEncap }) {
				name += "-tunnel"
			}
			if out[name] == nil {
				out[name] = p
			}
		}
	}
	return out
}

// drawKinds draws them.
func drawKinds(t *testing.T) (paths map[string]*trace.Path, drawings map[string]string) {
	t.Helper()
	paths = kinds()
	names := slices.Sorted(maps.Keys(paths))
	var list []*trace.Path
	for _, n := range names {
		list = append(list, paths[n])
	}
	drawings = map[string]string{}
	for i, d := range draw(t, list...) {
		drawings[names[i]] = d.SVG
	}
	return paths, drawings
}

func wellFormed(t *testing.T, s string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(s))
	for {
		_, err := d.Token()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatalf("not XML: %v\n%s", err, s)
		}
	}
}

func TestDrawings(t *testing.T) {
	paths, drawings := drawKinds(t)
	if len(paths) < 8 {
		t.Fatalf("only %d kinds of paths", len(paths))
	}
	for name, s := range drawings {
		wellFormed(t, s)
		got := standalone(t, s)
		file := filepath.Join("testdata", "drawings", name+".svg")
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
		turn, _ := trace.FindTurn(paths[name].Steps)
		for i, st := range paths[name].Steps {
			if turn.Len > 0 && i >= turn.From+turn.Len && i < turn.From+turn.Len*turn.Times {
				continue // another turn of a loop
			}
			if !strings.Contains(s, fmt.Sprintf(`data-n="%d"`, st.N)) {
				t.Errorf("%s: step %d is not drawn", name, st.N)
			}
			if st.Place == "host/internet" && !strings.Contains(s, "203.0.113.10") {
				t.Errorf("%s: no address of the internet host", name)
			}
		}
		if !strings.Contains(s, "<title>") || !strings.Contains(s, "<desc>Request: at ") {
			t.Errorf("%s: no accessible description", name)
		}
	}
}

// standalone puts the style sheet into a drawing, so that it is a picture of its own.
func standalone(t *testing.T, s string) []byte {
	t.Helper()
	colours, err := os.ReadFile("testdata/drawings/colours.css")
	if err != nil {
		t.Fatal(err)
	}
	s = strings.Replace(s, "<svg ", `<svg xmlns="http://www.w3.org/2000/svg" `, 1)
	return []byte(strings.Replace(s, "</desc>", "</desc><style>"+string(colours)+drawCSS+"</style>", 1))
}

func TestMarks(t *testing.T) {
	_, drawings := drawKinds(t)
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
		s, ok := drawings[c.path]
		if !ok {
			t.Errorf("the sample has no %s", c.path)
			continue
		}
		if got := strings.Contains(s, c.mark); got != c.want {
			t.Errorf("%s: %q is there: %v, want %v", c.path, c.mark, got, c.want)
		}
	}
}

// A path of many cards that is not a loop is cut in the middle, and says so.
func TestLongPathsAreCutButSaySo(t *testing.T) {
	p := &trace.Path{Verdict: trace.Looped, Reason: trace.TTLExceeded}
	for i := range 128 {
		p.Steps = append(p.Steps, trace.Step{N: i + 1, Leg: trace.Request, Place: []string{"gw", "win2"}[i%2], Action: trace.ActForward,
			Event: trace.Note(fmt.Sprint("route ", i))})
	}
	s := draw(t, p)[0].SVG
	wellFormed(t, s)
	if !strings.Contains(s, "104 steps not drawn") || !strings.Contains(s, `data-n="128"`) {
		t.Error("the cut is not shown or the end is missing")
	}
	if n := strings.Count(s, `class="wc`); n != 25+1 { // 24 cards, the cut, the cross
		t.Errorf("%d cards", n)
	}
}

func TestOddPaths(t *testing.T) {
	cases := map[string]*trace.Path{
		"no steps": {Verdict: trace.Unresolved},
		"no leg":   {Steps: []trace.Step{{N: 1, Place: "win1", Event: trace.Note("x")}}},
		"no place": {Steps: []trace.Step{{N: 1, Leg: trace.Reply}}},
		"hostile text": {Steps: []trace.Step{{N: 1, Leg: trace.Request, Place: "<script>\x1b[31m\nx", Object: "\"&'",
			Event: trace.Note("</svg>\u202e"), Layer: "<b>", Reason: "<i>", Action: trace.ActDrop}}},
		"broken frame": {Steps: []trace.Step{{N: 1, Leg: trace.Request, Place: "a", Frame: []byte{1, 2, 3}},
			{N: 2, Leg: trace.Request, Place: "b", Action: trace.ActDecap}}},
		"tunnel then end": {Steps: []trace.Step{{N: 1, Leg: trace.Request, Place: "a", Action: trace.ActEncap},
			{N: 2, Leg: trace.Request, Place: "b", Action: trace.ActDrop}}},
	}
	names := slices.Sorted(maps.Keys(cases))
	var list []*trace.Path
	for _, n := range names {
		list = append(list, cases[n])
	}
	for i, d := range draw(t, list...) {
		wellFormed(t, d.SVG)
		if strings.Contains(d.SVG, "<script") || strings.ContainsAny(d.SVG, "\x1b\u202e\n") {
			t.Errorf("%s: text from the lab got through", names[i])
		}
		if names[i] == "hostile text" && !strings.Contains(d.SVG, `&lt;script&gt;\x1b[31m\nx`) {
			t.Errorf("hidden characters are not written out: %s", d.SVG)
		}
	}
}

// TestAddressesOfAFrame: what a card says of a frame, with tunnels and tags, and nothing of one
// that is cut off before its addresses.
func TestAddressesOfAFrame(t *testing.T) {
	ether := func(typ ...byte) []byte { return append(make([]byte, 12), typ...) }
	ip4 := func(proto byte, src, dst byte, rest ...byte) []byte {
		return append([]byte{0x45, 0, 0, 0, 0, 0, 0, 0, 64, proto, 0, 0, 10, 0, 0, src, 10, 0, 0, dst}, rest...)
	}
	ip6 := func(proto byte, src, dst []byte, rest ...byte) []byte {
		return slices.Concat([]byte{0x60, 0, 0, 0, 0, 0, proto, 64}, src, dst, rest)
	}
	zeros := func(n int) []byte { return make([]byte, n) }
	udp := func(sp, dp uint16, rest ...byte) []byte {
		return append([]byte{byte(sp >> 8), byte(sp), byte(dp >> 8), byte(dp), 0, 0, 0, 0}, rest...)
	}
	inner := slices.Concat(ether(8, 0), ip4(6, 3, 4, 0, 80, 0, 81))
	vxlan := slices.Concat([]byte{8, 0, 0, 0, 0, 0x10, 0, 0}, inner)
	geneve := slices.Concat([]byte{1, 0, 0x65, 0x58, 0, 0, 5, 0, 9, 9, 9, 9}, inner)
	mapped := append(zeros(10), 255, 255, 1, 2, 3, 4)
	want := map[string]string{}
	add := func(frame []byte, says string) { want[base64.StdEncoding.EncodeToString(frame)] = says }
	add(slices.Concat(ether(8, 0), ip4(17, 1, 2, udp(1000, 53)...)), "10.0.0.1:1000 → 10.0.0.2:53")
	add(slices.Concat(ether(8, 0), ip4(1, 1, 2, 8, 0, 0, 0)), "10.0.0.1 → 10.0.0.2")
	add(slices.Concat(ether(8, 0), ip4(6, 1, 2, 0, 80)), "10.0.0.1 → 10.0.0.2")
	add(slices.Concat(ether(0x81, 0, 0, 7, 8, 0), ip4(6, 1, 2, 0, 80, 0, 81)), "10.0.0.1:80 → 10.0.0.2:81")
	add(slices.Concat(ether(8, 0), ip4(17, 1, 2, udp(5, 4789, vxlan...)...)),
		"10.0.0.3:80 → 10.0.0.4:81 in 10.0.0.1:5 → 10.0.0.2:4789 VXLAN 4096")
	add(slices.Concat(ether(8, 0), ip4(17, 1, 2, udp(5, 8472, vxlan...)...)),
		"10.0.0.3:80 → 10.0.0.4:81 in 10.0.0.1:5 → 10.0.0.2:8472 VXLAN 4096")
	add(slices.Concat(ether(8, 0), ip4(17, 1, 2, udp(5, 6081, geneve...)...)),
		"10.0.0.3:80 → 10.0.0.4:81 in 10.0.0.1:5 → 10.0.0.2:6081 Geneve 5")
	add(slices.Concat(ether(8, 0), ip4(17, 1, 2, udp(5, 4789, vxlan[:30]...)...)), "10.0.0.1:5 → 10.0.0.2:4789")
	add(slices.Concat(ether(8, 0), ip4(17, 1, 2, udp(5, 4790, vxlan...)...)), "10.0.0.1:5 → 10.0.0.2:4790")
	add(slices.Concat(ether(0x86, 0xdd), ip6(6, mapped, append([]byte{0xfd, 0}, append(zeros(13), 9)...), 0, 80, 0, 81)),
		"[::ffff:1.2.3.4]:80 → [fd00::9]:81")
	add(slices.Concat(ether(0x86, 0xdd), ip6(58, zeros(16), zeros(16))), ":: → ::")
	add(ether(8, 6), "nothing")
	add(slices.Concat(ether(8, 0), ip4(6, 1, 2)[:19]), "nothing")
	add(slices.Concat(ether(8, 0), []byte{0x4f}, ip4(6, 1, 2)[1:]), "nothing")
	frames := slices.Sorted(maps.Keys(want))
	list, err := json.Marshal(frames)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	script := `(() => { ` + drawJS + `; return ` + string(list) +
		`.map(b => { const a = addresses(b); return !a ? "nothing" : a.tunnel ? a.flow + " in " + a.outer + " " + a.tunnel + " " + a.vni : a.flow; }); })()`
	if err := chromedp.Run(newTab(t), chromedp.Evaluate(script, &got)); err != nil {
		t.Fatal(err)
	}
	for i, f := range frames {
		if got[i] != want[f] {
			t.Errorf("%s: %q, want %q", f, got[i], want[f])
		}
	}
}

// The page has the facts that its traces cite: those that reading every step finds, and none
// that a text only talks about.
func TestFactsThatAreCited(t *testing.T) {
	doc := resulttest.Sample()
	tr := doc.Traces.Get("l2bridge-flannel-host-gw/1.20 pod/client host/internet ping")
	tr.Paths[0].Steps[0].Event = trace.Note(`"evidence":"talked.about"`)
	tr.Paths[0].Steps[0].Object = `,"evidence":"talked.about","x`
	doc.Traces.Put("talk", tr)
	want := map[string]bool{}
	path := func(p *trace.Path) {
		for i := range p.Steps {
			if id := p.Steps[i].Evidence; id != "" {
				want[id] = true
			}
		}
	}
	p := newPacker()
	for key, tr := range doc.Traces.All() {
		for i := range tr.Paths {
			path(&tr.Paths[i])
		}
		for _, n := range tr.Names {
			for _, q := range n.Queries {
				if q.Evidence != "" {
					want[q.Evidence] = true
				}
				if q.Path != nil {
					path(q.Path)
				}
			}
		}
		raw, _ := doc.Traces.Raw(key)
		if _, err := p.trace(&raw); err != nil {
			t.Fatal(err)
		}
	}
	delete(p.cited, "")
	if len(want) < 5 || !maps.Equal(p.cited, want) {
		t.Errorf("cited %v, want %v", slices.Sorted(maps.Keys(p.cited)), slices.Sorted(maps.Keys(want)))
	}
}
