package hcn

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// GUID is an identifier in the memory layout of Windows: the first three groups
// are little-endian.
type GUID [16]byte

// ParseGUID reads "{6f5c4a4e-...}", with or without braces, in any case.
func ParseGUID(s string) (GUID, error) {
	var g GUID
	digits := strings.ReplaceAll(strings.Trim(strings.TrimSpace(s), "{}"), "-", "")
	if len(digits) != 32 {
		return g, fmt.Errorf("%q is not a GUID", s)
	}
	for i := range g {
		hi, lo := unhex(digits[2*i]), unhex(digits[2*i+1])
		if hi < 0 || lo < 0 {
			return GUID{}, fmt.Errorf("%q is not a GUID", s)
		}
		g[i] = byte(hi<<4 | lo)
	}
	return g.swap(), nil
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

func (g GUID) swap() GUID {
	g[0], g[1], g[2], g[3] = g[3], g[2], g[1], g[0]
	g[4], g[5], g[6], g[7] = g[5], g[4], g[7], g[6]
	return g
}

// String returns the GUID in lower case without braces, "" for the zero GUID.
func (g GUID) String() string {
	if g == (GUID{}) {
		return ""
	}
	b := g.swap()
	var text [36]byte
	at := 0
	for i, end := range []int{4, 6, 8, 10, 16} {
		if i > 0 {
			text[at] = '-'
			at++
		}
		at += hex.Encode(text[at:], b[(at-i)/2:end])
	}
	return string(text[:])
}
