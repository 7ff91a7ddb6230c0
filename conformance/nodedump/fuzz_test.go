package nodedump

import (
	"os"
	"path/filepath"
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
		check := func(what string, p Place) {
			if p.File != name || p.Line < 0 || p.Line > last {
				t.Errorf("%s has the place %q in a file of %d lines", what, p, last)
			}
		}
		for _, x := range n.Networks {
			check("a network", x.Place)
		}
		for _, x := range n.Endpoints {
			check("an endpoint", x.Place)
		}
		for _, x := range n.Adapters {
			check("an adapter", x.Place)
		}
		for _, x := range n.Routes {
			check("a route", x.Place)
		}
		for _, x := range n.Services {
			check("a service", x.Place)
		}
		for _, x := range n.Processes {
			check("a process", x.Place)
		}
		for _, x := range n.Machines {
			check("a node", x.Place)
		}
		for _, x := range n.Pods {
			check("a pod", x.Place)
		}
		for _, x := range n.SourceVIPs {
			check("a source VIP", x.Place)
		}
		for _, x := range n.Variables {
			check("a variable", x.Place)
		}
		for _, x := range n.Trials {
			check("a trial", x.Place)
		}
		for _, x := range n.Signs {
			check("a sign", x.Place)
		}
		for _, x := range n.Commands {
			check("a command", x.Place)
		}
		for _, x := range n.Pause {
			check("a pause image", x.Place)
		}
		for kind, p := range n.listed {
			check("the list of "+kind, p)
		}
	})
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
