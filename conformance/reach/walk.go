package reach

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// walk visits every value that can be reached from one: all fields, exported or not. What
// it visits is not chosen here, so that a field which somebody adds tomorrow counts at once.
type walk struct {
	path []byte
	// leaf gets each value that has no parts, and where it is. It is a string, a
	// netip.Addr, a netip.Prefix, a packet.MAC, or anything else.
	leaf func(path []byte, v any)
	// skip leaves out what is at a path.
	skip func(path []byte) bool
	on   map[unsafe.Pointer]bool
}

var (
	typeOrigin = reflect.TypeFor[*trace.Origin]()
	typeAddr   = reflect.TypeFor[netip.Addr]()
	typePrefix = reflect.TypeFor[netip.Prefix]()
	typeMAC    = reflect.TypeFor[packet.MAC]()
	typePolicy = reflect.TypeFor[hns.Policy]()
)

// made are the fields of a policy of HNS that are made of its type and text, which are
// visited; TestPoliciesAreTheirText holds that.
var made = []string{"settings", "value"}

// visit walks through v.
func (w *walk) visit(v any) {
	if v == nil {
		return
	}
	// A copy can be addressed, which reading fields of other packages needs.
	c := reflect.New(reflect.TypeOf(v)).Elem()
	c.Set(reflect.ValueOf(v))
	w.value(c)
}

func (w *walk) visitPart(part string, v reflect.Value) {
	n := len(w.path)
	w.path = append(append(w.path, '/'), part...)
	if w.skip == nil || !w.skip(w.path) {
		w.value(v)
	}
	w.path = w.path[:n]
}

func (w *walk) value(v reflect.Value) {
	switch v.Type() {
	case typeOrigin:
		return // where something is written decides nothing
	case typeAddr, typePrefix, typeMAC:
		w.leaf(w.path, v.Interface())
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		w.behind(v)
	case reflect.Struct:
		of := v.Type()
		for i := range v.NumField() {
			f, name := v.Field(i), of.Field(i).Name
			if of == typePolicy && slices.Contains(made, name) {
				continue
			}
			w.visitPart(name, reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem())
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 && v.Kind() == reflect.Slice {
			w.leaf(w.path, string(v.Bytes()))
			return
		}
		for i := range v.Len() {
			w.visitPart(strconv.Itoa(i), v.Index(i))
		}
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return slices.Compare([]byte(fmt.Sprint(a)), []byte(fmt.Sprint(b))) })
		for _, k := range keys {
			c := reflect.New(v.Type().Elem()).Elem()
			c.Set(v.MapIndex(k))
			name := fmt.Sprint(k)
			w.leaf(w.path, name)
			w.visitPart(name, c)
		}
	case reflect.String:
		w.leaf(w.path, v.String())
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		// Its inside is not accessible, so it equals nothing but itself.
		if !v.IsNil() {
			w.leaf(w.path, fmt.Sprintf("%s at %x", v.Type(), v.Pointer()))
		}
	default:
		if !v.IsZero() {
			w.leaf(w.path, v.Interface())
		}
	}
}

// behind visits what a pointer or an interface holds, unless the walk is inside it.
func (w *walk) behind(v reflect.Value) {
	if v.IsNil() {
		return
	}
	if v.Kind() == reflect.Interface {
		w.leaf(w.path, v.Elem().Type().String())
		w.visit(v.Elem().Interface())
		return
	}
	p := v.UnsafePointer()
	if w.on[p] {
		return
	}
	if w.on == nil {
		w.on = map[unsafe.Pointer]bool{}
	}
	w.on[p] = true
	w.visitPart("*", v.Elem())
	delete(w.on, p)
}

// names are words that stand for other words in a text: what is a thing's own, so that the
// texts of two things are equal when they say the same, each of itself.
type names struct {
	words    map[string]string
	addr     func(netip.Addr) string
	prefixes map[netip.Prefix]string
}

func (n *names) leaf(v any) string {
	switch x := v.(type) {
	case string:
		return n.text(x)
	case netip.Addr:
		if !x.IsValid() {
			return ""
		}
		return n.addr(x)
	case netip.Prefix:
		return n.prefix(x)
	case packet.MAC:
		return n.text(hex.EncodeToString(x[:]))
	}
	return fmt.Sprint(v)
}

func (n *names) prefix(p netip.Prefix) string {
	if own, ok := n.prefixes[p]; ok {
		return own
	}
	switch {
	case !p.IsValid():
		return ""
	case p == p.Masked() && !p.IsSingleIP():
		return p.String()
	}
	return n.addr(p.Addr()) + "/" + strconv.Itoa(p.Bits())
}

// text replaces whole words of a text: letters, digits, and the characters between them in
// names and addresses. The addresses of a list are put into order: the order in which HNS has them
// is that of the addresses.
func (n *names) text(s string) string {
	if strings.ContainsAny(s, marks) {
		s = strconv.Quote(s) // names do not have such characters, and they are marks here
	}
	b := make([]byte, 0, len(s)+len(s)/4)
	var list []string
	for len(s) > 0 {
		end := 0
		for end < len(s) && inWord(s[end]) {
			end++
		}
		if end == 0 {
			if s[0] != ',' || len(list) == 0 {
				b, list = appendList(b, list), list[:0]
				b = append(b, s[0])
			}
			s = s[1:]
			continue
		}
		word, isAddr := n.word(s[:end])
		s = s[end:]
		if isAddr {
			list = append(list, word)
			continue
		}
		b, list = appendList(b, list), list[:0]
		b = append(b, word...)
	}
	return string(appendList(b, list))
}

// appendList writes the addresses of a list in order. A list with pods that are yet to be named
// ([space.markOf]) is put into order then.
func appendList(b []byte, list []string) []byte {
	if slices.ContainsFunc(list, isMarked) {
		b = append(b, listBegins)
		for i, x := range list {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, x...)
		}
		return append(b, listEnds)
	}
	slices.Sort(list)
	for _, x := range list {
		b = append(append(b, x...), ',')
	}
	return b
}

func inWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '.' || c == ':' || c == '_' || c == '/'
}

// word returns the replacement of a word, and whether it is an address or a prefix.
func (n *names) word(s string) (string, bool) {
	if own, ok := n.words[s]; ok {
		return own, false
	}
	if !mayBeAddress(s) {
		return n.parts(s), false
	}
	if p, err := netip.ParsePrefix(s); err == nil {
		return n.prefix(p), true
	}
	if a, err := netip.ParseAddr(s); err == nil {
		return n.addr(a), true
	}
	if p, err := netip.ParseAddrPort(s); err == nil {
		return n.addr(p.Addr()) + ":" + strconv.Itoa(int(p.Port())), false
	}
	return n.parts(s), false
}

func mayBeAddress(s string) bool {
	dots, colons := 0, 0
	for i := range len(s) {
		switch s[i] {
		case '.':
			dots++
		case ':':
			colons++
		}
	}
	return dots >= 3 || colons >= 2
}

// parts replaces the parts of a path, "default/web-0".
func (n *names) parts(s string) string {
	var out []byte
	from := 0
	part := func(to int) {
		if own, ok := n.words[s[from:to]]; ok {
			out = append(out, own...)
		} else {
			out = append(out, s[from:to]...)
		}
	}
	for i := range len(s) {
		if s[i] == '/' || s[i] == ':' || s[i] == '_' {
			part(i)
			out = append(out, s[i])
			from = i + 1
		}
	}
	part(len(s))
	return string(out)
}
