package clean

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestLine(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain text stays", "pod/client → 10.0.0.1 ü 日本", "pod/client → 10.0.0.1 ü 日本"},
		{"terminal colour", "\x1b[31mred", `\x1b[31mred`},
		{"line break in a command", "winlab run\nrm -rf x", `winlab run\nrm -rf x`},
		{"right-to-left override", "a\u202eb", `a\u202eb`},
		{"zero width", "a\u200bb", `a\u200bb`},
		{"tag character", "a\U000e0041b", `a\U000e0041b`},
		{"C1 control", "a\u009bb", `a\x9bb`},
		{"not UTF-8", "a\xffb", "a\ufffdb"},
	} {
		if got := Line(c.in); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	if got := Text("a\n\tb\x07"); got != "a\n    b\\x07" {
		t.Errorf("Text: got %q", got)
	}
}

func TestJSONCleansEveryStringAndKeepsTheRest(t *testing.T) {
	in := map[string]any{"a\x1b": "x\x1b[0m", "back\\slash": `\u001b stays`, "nl": "a\nb", "q": `"quoted"`, "bidi": "\u202e", "del": "\x7f",
		"sep": "\u2028", "ok": "日本 <b>", "n": 1.5}
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(JSON(b), &out); err != nil {
		t.Fatalf("no longer JSON: %v", err)
	}
	for k, want := range map[string]any{`a\x1b`: `x\x1b[0m`, "back\\slash": `\u001b stays`, "nl": "a\nb", "q": `"quoted"`, "bidi": `\u202e`,
		"del": `\x7f`, "sep": `\u2028`, "ok": "日本 <b>", "n": 1.5} {
		if out[k] != want {
			t.Errorf("%q: got %q, want %q", k, out[k], want)
		}
	}
}

func FuzzJSON(f *testing.F) {
	f.Add("a\x1b\u202e\\u001b\"")
	f.Fuzz(func(t *testing.T, s string) {
		b, err := json.Marshal(s)
		if err != nil {
			t.Skip("not a string that JSON can hold")
		}
		var out string
		if err := json.Unmarshal(JSON(b), &out); err != nil {
			t.Fatalf("%q: %v", b, err)
		}
		if i := strings.IndexFunc(strings.ReplaceAll(out, "\n", ""), Hidden); i >= 0 {
			t.Fatalf("%q still hides something: %q", s, out)
		}
	})
}
