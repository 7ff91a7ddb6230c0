package strict

import (
	"fmt"
	"strings"
	"testing"
)

func TestReadSplitsAndKeepsLines(t *testing.T) {
	const text = "# only a comment\n---\na: 1\n---  # next\n\nb:\n  - c: 2\n--- {d: 3}\n---\n---\n{\"e\":\n\t4}\n"
	docs, mistakes := Read("x.yaml", strings.NewReader(text))
	if len(mistakes) > 0 {
		t.Fatal(mistakes)
	}
	var got []string
	for _, d := range docs {
		n := d.Root.Content[0]
		got = append(got, fmt.Sprintf("%s at %d:%d", n.Value, n.Line, n.Column))
	}
	want := "a at 3:1, b at 6:1, d at 8:6, e at 11:2"
	if s := strings.Join(got, ", "); s != want {
		t.Errorf("got  %s\nwant %s", s, want)
	}
}

func TestReadGoesOnAfterMistakes(t *testing.T) {
	huge := "x: \"" + strings.Repeat("y", MaxDocument) + "\"\n"
	docs, mistakes := Read("f", strings.NewReader("a: [\n---\nb: 1\nb: 2\n---\n"+huge+"---\nname: {{ .Values.x }}\n---\nok: 1\n"))
	if len(docs) != 1 || docs[0].Root.Content[0].Value != "ok" {
		t.Errorf("documents: %d", len(docs))
	}
	var lines []string
	for _, m := range mistakes {
		lines = append(lines, m.String())
	}
	got := strings.Join(lines, "\n")
	for _, want := range []string{"f:1:1: not YAML", `f:4:1: the key "b" is here twice; the first is on line 3`,
		"f:6:1: the document has 4 MB", "f:8:8: a key is a map", "helm template"} {
		if !strings.Contains(got, want) {
			t.Errorf("no mistake says %q:\n%s", want, got)
		}
	}
}

func TestBinaryAndForeignText(t *testing.T) {
	_, mistakes := Read("b", strings.NewReader("PK\x03\x04\x00\x00---\na: 1\n"))
	if len(mistakes) != 1 || !strings.Contains(mistakes[0].Message, "binary") {
		t.Error(mistakes)
	}
}

func TestDeepAndAliased(t *testing.T) {
	_, mistakes := Read("d", strings.NewReader(strings.Repeat("[", 5000)+strings.Repeat("]", 5000)))
	if len(mistakes) != 1 {
		t.Error(mistakes)
	}
	docs, mistakes := Read("a", strings.NewReader("base: &b {x: 1}\nspec:\n  <<: *b\n  y: *b\n"))
	if len(mistakes) > 0 {
		t.Fatal(mistakes)
	}
	for _, path := range []string{"spec.x", "spec.y.x"} {
		p, err := ParsePath(path)
		if err != nil {
			t.Fatal(err)
		}
		if f := Find(docs[0].Root, p); len(f) != 1 || f[0].Missing() || f[0].Node.Value != "1" {
			t.Errorf("%s: %+v", path, f)
		}
	}
}

func TestFind(t *testing.T) {
	docs, _ := Read("f", strings.NewReader("spec:\n  cs:\n  - name: a\n    sec: {p: true}\n  - name: b\nann: {\"a.b/c\": x}\n"))
	for path, want := range map[string]string{
		"spec.cs[*].sec.p": "spec.cs[0].sec.p=true spec.cs[1].sec.p=-",
		"spec.cs[1].name":  "spec.cs[1].name=b",
		"spec.none.at.all": "spec.none.at.all=-",
		"spec.none[*].x":   "",
		"spec.cs[*].a[*]":  "",
		`ann["a.b/c"]`:     `ann["a.b/c"]=x`,
		"spec.cs.name":     "spec.cs.name=-",
	} {
		p, err := ParsePath(path)
		if err != nil {
			t.Fatal(err)
		}
		if p.String() != path {
			t.Errorf("%s is written %s", path, p)
		}
		var got []string
		for _, f := range Find(docs[0].Root, p) {
			v := "-"
			if !f.Missing() {
				v = f.Node.Value
			}
			got = append(got, f.Path.String()+"="+v)
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s: got %q, want %q", path, s, want)
		}
	}
	for _, bad := range []string{"", "a.", "a[", "a[x]", `a["b`, "a..b"} {
		if _, err := ParsePath(bad); err == nil {
			t.Errorf("%q was read as a path", bad)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("a: 1\n---\nb: [1, {c: *x}]\n")
	f.Add("--- {a: b}\n--- # x\n&a [*a]\n")
	f.Add("{\"a\":\t[1]}")
	p, _ := ParsePath("a.b[*].c")
	f.Fuzz(func(t *testing.T, text string) {
		docs, _ := Read("fuzz", strings.NewReader(text))
		lines := 2
		for _, end := range []string{"\n", "\r", "\u0085", "\u2028", "\u2029"} { // YAML's ends of lines
			lines += strings.Count(text, end)
		}
		for _, d := range docs {
			if d.Line < 1 || d.Line > lines || d.Root.Line < d.Line || d.Root.Line > lines {
				t.Errorf("document on line %d, root on %d of %d", d.Line, d.Root.Line, lines)
			}
			Find(d.Root, p)
		}
	})
}

// TestReadStreams: what other programs write instead of documents with
// "---" between them.
func TestReadStreams(t *testing.T) {
	long := `{"x": "` + strings.Repeat("y", 200_000) + `"}`
	for _, c := range []struct{ name, text, want string }{
		{"objects of jq -c", "{\"a\": 1}\n{\"b\": {\"c\": 2}}\n\n{\"d\": 3}", "a 1:2, b 2:2, d 4:2"},
		{"objects of jq", "{\n  \"a\": {\n    \"x\": 1\n  }\n}\n{\n  \"b\": 2\n}\n", "a 2:3, b 7:3"},
		{"long lines", long + "\n" + long + "\n--- {z: 1}\n", "x 1:2, x 2:2, z 3:6"},
		{"a list without indentation is one object", "{\"items\": [\n{\"a\": 1},\n{\"b\": 2}\n]}\n", "items 1:2"},
		{"braces in a script", "a: |\n  }\n  {\nb: 1\n", "a 1:1"},
		{"ends of documents", "a: 1\n...\n---\nb: 2\n...\nc: 3\n", "a 1:1, b 4:1, c 6:1"},
		{"a directive", "%YAML 1.2\n# note\n---\na: 1\n", "a 4:1"},
		{"Windows' ends of lines", "a: 1\r\n---\r\nb: 2\r\n", "a 1:1, b 3:1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			docs, mistakes := Read("x", strings.NewReader(c.text))
			var got []string
			for _, d := range docs {
				n := d.Root.Content[0]
				got = append(got, fmt.Sprintf("%s %d:%d", n.Value, n.Line, n.Column))
			}
			if s := strings.Join(got, ", "); s != c.want || len(mistakes) > 0 {
				t.Errorf("got %s, want %s; mistakes: %v", s, c.want, mistakes)
			}
		})
	}
}

func TestReadTellsWhere(t *testing.T) {
	big := strings.Repeat("# "+strings.Repeat("y", 98)+"\n", MaxDocument/100)
	for _, c := range []struct{ name, text, want string }{
		{"a control character", "x: 1\n---\na: 1\nb: \"\x07\"\n", "f:4:5: not YAML: control characters"},
		{"a tab", "a:\n  b: 1\n\tc: 2\n", "f:3:1: not YAML: a line begins with a tab; write spaces"},
		{"two objects on a line", `{"a": 1}{"b": 2}`, "f:1:1: not YAML: there is more after the end"},
		{"more after an object", "{\"a\": 1}\nb: 2\n", "there is more after the end of the document"},
		{"a long list", "apiVersion: v1\nitems:\n" + big, "jq '.items[]' | winlab check -"},
		{"too many documents", strings.Repeat("a: 1\n---\n", maxDocuments+1), "f:200001:1: the file has more than 100000 documents"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, mistakes := Read("f", strings.NewReader(c.text))
			if len(mistakes) != 1 || !strings.Contains(mistakes[0].String(), c.want) {
				t.Errorf("got %v, want %s", mistakes, c.want)
			}
		})
	}
}
