package html

import (
	"bytes"
	"testing"
)

// What is written in one look is what the encoder writes.
func FuzzDrawing(f *testing.F) {
	for _, s := range []string{"", `<svg class="x">→ a &amp; b</svg>`, `back\slash`, "new\nline", "\x00\x1f\x7f~", "\u0085 \u2028 \u202e \ufeff \U000e0001", "\xff\xfe", "\ufffd", "é✓…\u00ad"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, d := range []drawing{{SVG: s}, {SVG: s, Turn: &turn{1, 2, 3}}} {
			want, err := encode(d)
			if err != nil {
				t.Fatal(err)
			}
			got, err := d.append([]byte("{"))
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%q: %s, want %s (%v)", s, got, want, err)
			}
		}
	})
}

// A drawing without rare characters is written in one look.
func TestDrawingInOneLook(t *testing.T) {
	if _, ok := appendQuoted(nil, `<text class="a">10.0.0.1 → 10.0.0.2 …</text>`); !ok {
		t.Error("the encoder wrote it")
	}
}
