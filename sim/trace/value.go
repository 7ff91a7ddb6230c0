package trace

// Much of what a trace holds is never read: a program that asks for verdicts does not look at
// packets. So values are kept as they are and become text only when they are read.

// Line is one line of text about a packet. The zero Line says nothing.
type Line struct{ of shown }

// shown is what can be put into words; it is not changed afterwards.
type shown interface{ String() string }

// said is a line that was read or written as text.
type said string

func (s said) String() string { return string(s) }

// Says returns the line with a text.
func Says(text string) Line {
	if text == "" {
		return Line{}
	}
	return Line{said(text)}
}

// String returns the line; "" where it says nothing.
func (l Line) String() string {
	if l.of == nil {
		return ""
	}
	return l.of.String()
}

// IsZero reports whether the line says nothing.
func (l Line) IsZero() bool { return l.of == nil }

// Equal reports whether two lines say the same.
func (l Line) Equal(m Line) bool { return l.of == m.of || l.String() == m.String() }

// MarshalText returns the text.
func (l Line) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText takes the text.
func (l *Line) UnmarshalText(text []byte) error {
	*l = Says(string(text))
	return nil
}

// Value is a header field's value: a number, or whatever its words say. The zero Value has
// no text.
type Value struct {
	words func(bits uint64) string
	bits  uint64
}

// Bits is a value of at most 64 bits that words puts into text. Words must not be a
// closure, which would be made for each value.
func Bits(bits uint64, words func(bits uint64) string) Value { return Value{words, bits} }

// Text is the value that text writes. text is called when the value is read.
func Text(text func() string) Value { return Value{func(uint64) string { return text() }, 0} }

// Written returns the value with a text.
func Written(text string) Value {
	if text == "" {
		return Value{}
	}
	return Text(func() string { return text })
}

// String returns the value as text; "" for none.
func (v Value) String() string {
	if v.words == nil {
		return ""
	}
	return v.words(v.bits)
}

// IsZero reports whether there is no value.
func (v Value) IsZero() bool { return v.words == nil }

// Equal reports whether two values are written alike.
func (v Value) Equal(w Value) bool { return v.String() == w.String() }

// MarshalText returns the text.
func (v Value) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText takes the text.
func (v *Value) UnmarshalText(text []byte) error {
	*v = Written(string(text))
	return nil
}

// Change is one header field before and after.
type Change struct {
	// Field is "src", "dst", "src MAC", "dst MAC", "src port", "dst port", "vni", "outer".
	Field  string `json:"field"`
	Before Value  `json:"before,omitzero"`
	After  Value  `json:"after,omitzero"`
}

// Equal reports whether two changes are written alike.
func (c Change) Equal(d Change) bool {
	return c.Field == d.Field && c.Before.Equal(d.Before) && c.After.Equal(d.After)
}
