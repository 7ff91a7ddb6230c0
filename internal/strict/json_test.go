package strict

import (
	"encoding/json"
	"strings"
	"testing"
)

// What JSON takes without a word is what encoding/json takes, and written again it means the same.
func FuzzJSON(f *testing.F) {
	for _, text := range []string{`{"a": [1, -2.5e3, "\u00e9\ud83d\ude00", null, true], "a": {}}`, "{'a': 1,}", "// c\n[01]", `"C:\k"`, "{\n\"a\"\n", "\xef\xbb\xbf{}"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		root, refused, _ := JSON("f", data)
		var want any
		err := json.Unmarshal(data, &want)
		if (err == nil) != (len(refused) == 0) && strings.Count(string(data), "[")+strings.Count(string(data), "{") <= maxJSONDepth {
			t.Fatalf("%q: encoding/json says %v, and this reader %v", data, err, refused)
		}
		if root == nil || len(refused) > 0 {
			return
		}
		var again any
		if err := json.Unmarshal(AppendJSON(nil, root), &again); err != nil {
			t.Fatalf("%q became %q: %v", data, AppendJSON(nil, root), err)
		}
		a, _ := json.Marshal(want)
		if b, _ := json.Marshal(again); string(a) != string(b) {
			t.Fatalf("%q became %q", a, b)
		}
	})
}

func TestJSONKeepsPlaces(t *testing.T) {
	for text, want := range map[string]string{
		"{\"\u00fc\": [1,\n  'x', // c\n  True,]}": "2:3 2:8 3:3 3:7",
		"{\"a\": 1\n\"b\": 2}":                     "2:1",
		"[\"a\nb\"]":                               "1:2",
		"[1] 2":                                    "1:5",
		"[1, 02]":                                  "1:6",
	} {
		_, refused, _ := JSON("f", []byte(text))
		var got []string
		for _, m := range refused {
			got = append(got, strings.TrimPrefix(m.Place(), "f:"))
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%q: %s, want %s: %v", text, s, want, refused)
		}
	}
}
