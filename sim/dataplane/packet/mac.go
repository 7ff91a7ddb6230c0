package packet

import "fmt"

// MAC is an Ethernet address.
type MAC [6]byte

// Broadcast is the address of every station on a segment.
var Broadcast = MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

const hexDigits = "0123456789abcdef"

// String returns the address as Windows writes it, in lower case:
// "00-15-5d-4a-01-04".
func (m MAC) String() string {
	return string(m.append(make([]byte, 0, 17)))
}

func (m MAC) append(b []byte) []byte {
	for i, x := range m {
		if i > 0 {
			b = append(b, '-')
		}
		b = append(b, hexDigits[x>>4], hexDigits[x&15])
	}
	return b
}

// IsZero reports whether m is 00-00-00-00-00-00, which no interface has.
func (m MAC) IsZero() bool { return m == MAC{} }

// IsMulticast reports whether m addresses a group. Broadcast is one.
func (m MAC) IsMulticast() bool { return m[0]&1 != 0 }

// MarshalText returns the form of String.
func (m MAC) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads what [ParseMAC] reads.
func (m *MAC) UnmarshalText(b []byte) error {
	x, err := ParseMAC(string(b))
	if err == nil {
		*m = x
	}
	return err
}

// ParseMAC reads "00-15-5D-4A-01-04" or "00:15:5d:4a:01:04", in either case.
// The two separators must not be mixed.
func ParseMAC(s string) (MAC, error) {
	var m MAC
	if len(s) != 17 || s[2] != '-' && s[2] != ':' {
		return m, notMAC(s)
	}
	for i := range m {
		hi, lo := unhex(s[3*i]), unhex(s[3*i+1])
		if hi > 15 || lo > 15 || i < 5 && s[3*i+2] != s[2] {
			return MAC{}, notMAC(s)
		}
		m[i] = hi<<4 | lo
	}
	return m, nil
}

func notMAC(s string) error {
	return fmt.Errorf("%q is not a MAC address; write it like 00-15-5d-4a-01-04", s)
}

// unhex returns the value of a hexadecimal digit, or 255.
func unhex(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}
