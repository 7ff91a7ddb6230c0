package compare

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
)

// Anonymous returns the document with other names and addresses, which are the same in all its
// places. Addresses keep their structure: two that share their first n bits still do, and no
// more, so prefixes stay prefixes (Xu, Fan, Ammar, Moon: Prefix-preserving IP address
// anonymization, ICNP 2002). Ports, protocols, and the words of which VFP makes names of layers,
// groups, rules and conditions stay; all other words become x1, x2, ... Without the key
// the addresses cannot be restored; two documents with the same key get the same ones.
//
// The first 16 bits of IPv6 addresses stay, and so do multicast, loopback and the unspecified
// address.
func (d *Document) Anonymous(key [32]byte) *Document {
	a := &anonymizer{names: map[string]string{}, words: map[string]string{}, macs: map[string]string{}, given: map[netip.Addr]bool{},
		never: map[string]bool{}}
	for _, n := range d.Hidden {
		a.hide(string(n))
	}
	eachString(reflect.ValueOf(d).Elem(), a.collect)
	for n := uint32(0); ; n++ { // no address may be one of the cluster's by chance
		a.key, a.done = key, map[netip.Addr]netip.Addr{}
		binary.BigEndian.PutUint32(a.key[28:], binary.BigEndian.Uint32(key[28:])+n)
		if !a.collides() || n == 1000 {
			break
		}
	}
	out := reflect.New(reflect.TypeFor[Document]()).Elem()
	out.Set(copied(reflect.ValueOf(d).Elem()))
	eachString(out, a.replace)
	x := out.Addr().Interface().(*Document)
	x.IsAnonymous, x.Hidden = true, nil
	return x
}

// eachString calls do with every string of a value.
func eachString(v reflect.Value, do func(reflect.Value)) {
	switch v.Kind() {
	case reflect.String:
		do(v)
	case reflect.Pointer:
		if !v.IsNil() {
			eachString(v.Elem(), do)
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachString(v.Index(i), do)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			eachString(v.Field(i), do)
		}
	}
}

// copied is a value that shares nothing with v.
func copied(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			out.Set(copied(v.Elem()).Addr())
		}
	case reflect.Slice:
		if !v.IsNil() {
			out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			for i := range v.Len() {
				out.Index(i).Set(copied(v.Index(i)))
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			out.Field(i).Set(copied(v.Field(i)))
		}
	default:
		out.Set(v)
	}
	return out
}

var (
	nameType    = reflect.TypeFor[Name]()
	refType     = reflect.TypeFor[Ref]()
	addrType    = reflect.TypeFor[Addr]()
	foreignType = reflect.TypeFor[Foreign]()
)

// anonymizer maps names, words and addresses to their replacements.
type anonymizer struct {
	key                [32]byte
	names, words, macs map[string]string
	// given are the addresses of the document, done their replacements under the key.
	given map[netip.Addr]bool
	done  map[netip.Addr]netip.Addr
	// never are the words of names, in upper case.
	never map[string]bool
}

// kinds are what a [Ref] begins with.
var kinds = map[string]bool{"pod": true, "node": true, "svc": true, "host": true, "router": true}

// hide keeps the words of a name out, but for the numbers in it, which may be ports elsewhere.
func (a *anonymizer) hide(name string) {
	for _, p := range pieces(name) {
		if p.word {
			a.never[strings.ToUpper(p.text)] = true
		}
	}
}

// stays reports whether a word is VFP's and no name of the cluster has it.
func (a *anonymizer) stays(word string) bool {
	word = strings.ToUpper(word)
	return vocabulary[word] && !a.never[word]
}

// collect notes the addresses in a string, and the words of names.
func (a *anonymizer) collect(v reflect.Value) {
	if v.Type() == refType {
		_, name, _ := strings.Cut(v.String(), "/")
		a.hide(name)
	}
	switch v.Type() {
	case nameType, refType, addrType, foreignType:
		for _, p := range pieces(v.String()) {
			if p.addr.IsValid() {
				a.given[p.addr] = true
			}
		}
	}
}

// collides reports whether an address would become one of those that are to be hidden.
func (a *anonymizer) collides() bool {
	for x := range a.given {
		if y := a.address(x); !kept(x) && a.given[y] || x.Is4() && !kept(x) && (y.As4()[0] == 0 || y.As4()[0] == 127) {
			return true
		}
	}
	return false
}

func (a *anonymizer) replace(v reflect.Value) {
	s := v.String()
	if s == "" {
		return
	}
	switch v.Type() {
	case nameType:
		v.SetString(number(a.names, s, "name-"))
	case refType:
		kind, name, ok := strings.Cut(s, "/")
		if !ok || !kinds[kind] {
			kind, name = "name", s
		}
		v.SetString(a.ref(kind, name))
	case foreignType:
		// A machine stands in a text as in a Ref.
		if kind, name, ok := strings.Cut(s, "/"); ok && kinds[kind] && name != "" && !strings.ContainsAny(name, " ()") {
			v.SetString(a.ref(kind, name))
			return
		}
		v.SetString(a.text(s, false))
	case addrType:
		v.SetString(a.text(s, true))
	}
}

// ref is a machine with other names.
func (a *anonymizer) ref(kind, name string) string {
	parts := strings.Split(name, "/")
	for i := range parts {
		parts[i] = number(a.names, parts[i], "name-")
	}
	return kind + "/" + strings.Join(parts, "/")
}

// number is the replacement for a text: a prefix and the next number.
func number(m map[string]string, s, prefix string) string {
	if m[s] == "" {
		m[s] = prefix + strconv.Itoa(len(m)+1)
	}
	return m[s]
}

// text replaces what is in a text. Of an address nothing but addresses stays.
func (a *anonymizer) text(s string, address bool) string {
	var b strings.Builder
	for _, p := range pieces(s) {
		switch {
		case p.prefix.IsValid():
			fmt.Fprintf(&b, "%s/%d", netip.PrefixFrom(a.address(p.prefix.Addr()), p.prefix.Bits()).Masked().Addr(), p.prefix.Bits())
		case p.last.IsValid():
			b.WriteString(a.span(p.addr, p.last))
		case p.addr.IsValid():
			b.WriteString(a.address(p.addr).String())
		case p.mac:
			if a.macs[strings.ToUpper(p.text)] == "" {
				n := len(a.macs) + 1
				a.macs[strings.ToUpper(p.text)] = fmt.Sprintf("02-00-00-%02X-%02X-%02X", n>>16&255, n>>8&255, n&255)
			}
			b.WriteString(a.macs[strings.ToUpper(p.text)])
		case !p.word || number16(p.text) || !address && a.stays(p.text):
			b.WriteString(p.text)
		default:
			b.WriteString(number(a.words, p.text, "x"))
		}
	}
	return b.String()
}

// number16 reports whether a text is a number such as a port.
func number16(s string) bool {
	_, err := strconv.ParseUint(s, 10, 16)
	return err == nil
}

// span is a range of addresses: one that is a prefix stays one.
func (a *anonymizer) span(first, last netip.Addr) string {
	for bits := first.BitLen(); bits >= 0; bits-- {
		p := netip.PrefixFrom(first, bits)
		if p.Masked().Addr() == first && lastOf(p) == last {
			q := netip.PrefixFrom(a.address(first), bits).Masked()
			return q.Addr().String() + "-" + lastOf(q).String()
		}
	}
	return a.address(first).String() + "-" + a.address(last).String()
}

func lastOf(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := p.Bits(); i < p.Addr().BitLen(); i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// kept reports whether an address stays: it says nothing of the cluster.
func kept(x netip.Addr) bool {
	return x.IsUnspecified() || x.IsLoopback() || x.IsMulticast() || x == netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

// address is the replacement for an address. Each bit is turned or not by the bits before it.
func (a *anonymizer) address(x netip.Addr) netip.Addr {
	x = x.Unmap().WithZone("")
	if kept(x) {
		return x
	}
	if y, ok := a.done[x]; ok {
		return y
	}
	in := x.AsSlice()
	out := make([]byte, len(in))
	for i := range 8 * len(in) {
		bit := in[i/8] >> (7 - i%8) & 1
		out[i/8] |= (bit ^ a.turns(in, i)) << (7 - i%8)
	}
	y, _ := netip.AddrFromSlice(out)
	if a.done != nil {
		a.done[x] = y
	}
	return y
}

// turns says whether the bit behind the first n is turned.
func (a *anonymizer) turns(in []byte, n int) byte {
	switch {
	case len(in) == 16 && n < 16:
		return 0
	case len(in) == 4 && (n == 0 || n == 1 && in[0]>>7 == 1 || n == 2 && in[0]>>6 == 3):
		return 0 // 224.0.0.0/3 stays what it is, and nothing else comes into it
	}
	prefix := make([]byte, len(in))
	copy(prefix, in[:n/8])
	if n%8 != 0 {
		prefix[n/8] = in[n/8] &^ (0xff >> (n % 8))
	}
	h := hmac.New(sha256.New, a.key[:])
	h.Write([]byte{byte(len(in)), byte(n)})
	h.Write(prefix)
	return h.Sum(nil)[0] & 1
}
