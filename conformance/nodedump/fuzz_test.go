package nodedump

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// seeds are the files of the folders in fixtures.
func seeds(f *testing.F, as func(string)) {
	f.Helper()
	files, _ := filepath.Glob("../../fixtures/nodes/*/*")
	deeper, _ := filepath.Glob("../../fixtures/nodes/healthy-*/*/*")
	for _, name := range append(files, deeper...) {
		if data, err := os.ReadFile(name); err == nil && len(data) < 20000 {
			if text, ok := decode(data); ok {
				as(text)
			}
		}
	}
}

// FuzzFile reads any file: nothing may panic, and every fact has a place in it.
func FuzzFile(f *testing.F) {
	for _, name := range []string{"x", "x.txt", "x.json", "x.log", "x.yaml", "cni.conf", "subnet.env"} {
		f.Add(name, []byte(network))
		f.Add(name, []byte(utf16le(network)))
	}
	seeds(f, func(s string) { f.Add("x.txt", []byte(s)); f.Add("y.log", []byte(s)) })
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		if strings.ContainsAny(name, "/\\") || name == "" || name == "." || name == ".." || len(data) > 1<<16 {
			return
		}
		n := one(name, string(data))
		last := 0
		if text, ok := decode(data); ok {
			last = len(split(name, text).text)
		}
		for what, places := range placesOf(n) {
			for _, p := range places {
				if p.File != name || p.Line < 0 || p.Line > last {
					t.Errorf("%s has the place %q in a file of %d lines", what, p, last)
				}
			}
		}
	})
}

// placesOf are the places of all facts, by the kind of fact.
func placesOf(n *Node) map[string][]Place {
	return map[string][]Place{
		"a network":      places(n.Networks, func(x Network) Place { return x.Place }),
		"an endpoint":    places(n.Endpoints, func(x Endpoint) Place { return x.Place }),
		"an adapter":     places(n.Adapters, func(x Adapter) Place { return x.Place }),
		"a route":        places(n.routes, func(x route) Place { return x.place }),
		"a service":      places(n.Services, func(x Service) Place { return x.Place }),
		"a process":      places(n.Processes, func(x Process) Place { return x.place }),
		"a node":         places(n.Machines, func(x Machine) Place { return x.Place }),
		"a pod":          places(n.Pods, func(x Pod) Place { return x.Place }),
		"a source VIP":   places(n.SourceVIPs, func(x SourceVIP) Place { return x.Place }),
		"a variable":     places(n.Variables, func(x Variable) Place { return x.Place }),
		"a trial":        places(n.Trials, func(x Trial) Place { return x.Place }),
		"a sign":         places(n.signs, func(x Sign) Place { return x.Place }),
		"a command":      places(n.Commands, func(x Command) Place { return x.Place }),
		"a pause image":  places(n.Pause, func(x Text) Place { return x.Place }),
		"a kind of list": slices.Collect(maps.Values(n.listed)),
	}
}

func places[T any](list []T, place func(T) Place) []Place {
	var out []Place
	for _, x := range list {
		out = append(out, place(x))
	}
	return out
}

// FuzzListValue reads values as the list form prints them.
func FuzzListValue(f *testing.F) {
	for _, s := range []string{"{@{A=1; B=@{C=2}}, @{A=}...}", "{a, b}", "@{}", "{}", "{@{A={1, 2}; B=3}}", "@{A", "{,}", "{@{=}}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n := psValue(scalar(s, 1))
		if n == nil {
			t.Fatal("no value")
		}
	})
}

// FuzzTable cuts rows at the dashes of a heading: every character that is not
// a blank is in one cell.
func FuzzTable(f *testing.F) {
	f.Add("Name  Id", "----  --", "kubelet  12")
	f.Add("  Id Name", "  -- ----", "1234 a b c")
	f.Fuzz(func(t *testing.T, head, rule, row string) {
		if strings.ContainsAny(head+rule+row, "\n\r") || !ruleForm.MatchString(rule) || blank(row) {
			return
		}
		got := strings.Join(cut(row, words(rule)), "")
		squeeze := func(s string) string { return strings.Join(strings.Fields(s), "") }
		if squeeze(got) != squeeze(row) {
			t.Errorf("%q cut at %q loses or repeats something: %q", row, rule, got)
		}
		tables(lines{file: "x", first: 1, text: []string{head, rule, row}})
	})
}

// FuzzJSON compares the places of JSON with the text.
func FuzzJSON(f *testing.F) {
	f.Add(network)
	f.Add("{}\n[]\n{\"a\":\n1}")
	f.Fuzz(func(t *testing.T, s string) {
		l := split("x", s)
		trees, err := jsonTrees(l)
		if err != nil {
			return
		}
		for _, n := range trees {
			if n.Line < 1 || n.Line > len(l.text) {
				t.Errorf("a value on line %d of %d", n.Line, len(l.text))
			}
		}
		parts(l)
	})
}

// FuzzTranscript cuts a transcript into sections: no line is lost or is in two
// sections.
func FuzzTranscript(f *testing.F) {
	f.Add("PS C:\\k> ipconfig\n\nWindows IP Configuration\nPS C:\\k> \nC:\\>ver\n")
	f.Add("PS C:\\> kubectl exec -it a -- cmd\nC:\\>ipconfig\nC:\\>exit\nPS C:\\> a\n")
	f.Fuzz(func(t *testing.T, s string) {
		l := split("x", s)
		at := 0
		for _, sec := range sections(l) {
			if sec.first-1 < at {
				t.Fatalf("the section at line %d begins in the one before it", sec.first)
			}
			for ; at < sec.first-1; at++ {
				if promptForm.FindString(l.text[at]) == "" {
					t.Fatalf("line %d is in no section: %q", at+1, l.text[at])
				}
			}
			at = sec.first - 1 + len(sec.text)
		}
	})
}

// FuzzTrials reads what people tried.
func FuzzTrials(f *testing.F) {
	seeds(f, func(s string) { f.Add(s) })
	f.Fuzz(func(t *testing.T, s string) {
		for _, x := range one("x", s).Trials {
			if x.Host == "" || x.Port < 0 || x.Tool == "" {
				t.Errorf("a trial without tool, host or port: %+v", x)
			}
		}
	})
}
