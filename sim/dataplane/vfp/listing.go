package vfp

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Listing returns the condition as vfpctrl lists it. Fields of which no listing was seen
// are left out.
func (c *Cond) Listing() (lines []string) {
	for set := c.set(); set != 0; set &= set - 1 {
		if listing := condFields[set.first()].listing; listing != nil {
			name, values := listing(c)
			lines = append(lines, name+" : "+strings.Join(values, ","))
		}
	}
	return lines
}

// numbers are values as decimal numbers.
func numbers[T ~uint8](vs []T) (all []string) {
	for _, v := range vs {
		all = append(all, strconv.Itoa(int(v)))
	}
	return all
}

// texts are values as they write themselves.
func texts[T fmt.Stringer](vs []T) (all []string) {
	for _, v := range vs {
		all = append(all, v.String())
	}
	return all
}

// spans are prefixes as ranges.
func spans(ps []netip.Prefix) (all []string) {
	for _, p := range ps {
		all = append(all, span(p))
	}
	return all
}

// span is a prefix as a range: 10.244.4.0-10.244.4.255.
func span(p netip.Prefix) string {
	if p.IsSingleIP() {
		return p.Addr().String()
	}
	last := p.Masked().Addr().AsSlice()
	for i := range last {
		for bit := range 8 {
			if 8*i+bit >= p.Bits() {
				last[i] |= 0x80 >> bit
			}
		}
	}
	end, _ := netip.AddrFromSlice(last)
	return p.Masked().Addr().String() + "-" + end.String()
}
