package compare

import (
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// filled is a document in which every field has something of what is given.
func filled(each int, names, addrs, texts []string) *Document {
	d := &Document{}
	n := 0
	var fill func(v reflect.Value)
	fill = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.String:
			of := map[reflect.Type][]string{nameType: names, refType: names, addrType: addrs, foreignType: texts}[v.Type()]
			if len(of) > 0 {
				v.SetString(of[n%len(of)])
				n++
			}
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem())
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), each, each))
			for i := range each {
				fill(v.Index(i))
			}
		case reflect.Struct:
			for i := range v.NumField() {
				fill(v.Field(i))
			}
		}
	}
	fill(reflect.ValueOf(d).Elem())
	return d
}

// foreign are the strings of a document that came from outside.
func foreign(d *Document) (all []string) {
	eachString(reflect.ValueOf(d).Elem(), func(v reflect.Value) {
		if v.Type() != reflect.TypeFor[string]() && v.String() != "" {
			all = append(all, v.String())
		}
	})
	return all
}

// The strings that winlab itself writes into a document. A new one with a plain type must be
// looked at: what comes from outside has a type of its own.
func TestPlainStringsAreOurs(t *testing.T) {
	ours := strings.Fields(`Document.Schema Document.Tool Document.Kubernetes Document.Network Read.What NotRead.Why
		Port.Build RuleDiff.Kind Flow.Protocol Flow.Result Flow.Why Flow.Theirs Flow.Code Flow.Verdict Flow.OurReason
		Step.Leg Step.Action Step.Evidence Decided.Param Decided.Is Decided.IsNot
		Tuple.Protocol Tuple.Verdict Tuple.OurReason Tuple.Why`)
	var found []string
	seen := map[reflect.Type]bool{}
	var look func(x reflect.Type, field string)
	look = func(x reflect.Type, field string) {
		switch x.Kind() {
		case reflect.String:
			if x == reflect.TypeFor[string]() && !slices.Contains(found, field) {
				found = append(found, field)
			}
		case reflect.Pointer, reflect.Slice:
			look(x.Elem(), field)
		case reflect.Struct:
			if seen[x] {
				return
			}
			seen[x] = true
			for i := range x.NumField() {
				look(x.Field(i).Type, x.Name()+"."+x.Field(i).Name)
			}
		case reflect.Map, reflect.Interface:
			t.Errorf("%s cannot be made anonymous", field)
		}
	}
	look(reflect.TypeFor[Document](), "")
	slices.Sort(found)
	slices.Sort(ours)
	if !slices.Equal(found, ours) {
		t.Errorf("plain strings are\n%q, want\n%q", found, ours)
	}
}

func TestAnonymous(t *testing.T) {
	names := []string{"win1", "pod/shop/web-0", "nodes/win1/vfp/rules.txt", "node/win1", "pod/nat/route"}
	addrs := []string{"10.244.1.4:40000", "10.96.0.50", "[fd00:10:244::4]:80", "00-15-5D-F4-01-04", "10.244.1.3:80"}
	texts := []string{"LB_24A19_10.96.0.50_80_80_6", "Destination IP : 10.244.1.0-10.244.1.255,10.244.2.0-10.244.2.255", "(to web-0_cbr0)",
		"(exception 10.96.0.0/12)",
		"SNAT_TCP_OUTBOUNDNAT_1_192.168.1.11", "vSwitch (Ethernet Büro)", "INET: accept inspection", "fe80::215:5dff:fef4:104",
		"10.244.1.4-10.244.1.7", "10.244.1.4-10.244.1.6", "pod/shop/web-0", "endpoint route_client", "INBOUNDNAT"}
	d := filled(5, names, addrs, texts)
	x := d.Anonymous([32]byte{1})
	if y := d.Anonymous([32]byte{1}); !reflect.DeepEqual(x, y) {
		t.Error("the same key gives another document")
	}
	if !x.IsAnonymous || d.IsAnonymous {
		t.Error("it is not said")
	}
	var b strings.Builder
	for _, w := range []func() error{func() error { return x.WriteText(&b) }, func() error { return x.WriteJSON(&b) }} {
		if err := w(); err != nil {
			t.Fatal(err)
		}
	}
	for _, secret := range []string{"win1", "shop", "web-0", "10.244.", "10.96.", "192.168.", "fd00:10", "215:5dff", "5D-F4", "24A19", "cbr0",
		"Büro", "Ethernet", "rules.txt", "route_", "client"} {
		if strings.Contains(b.String(), secret) {
			t.Errorf("%q is left in\n%s", secret, b.String())
		}
	}
	all := strings.Join(foreign(x), "\n")
	for _, word := range []string{"LB_x", "_80_80_6", "SNAT_TCP_OUTBOUNDNAT_1_", "(exception ", "/12)", "Destination IP : ", "vSwitch (",
		"INET: accept inspection", "(to x", "node/name-", "pod/name-"} {
		if !strings.Contains(all, word) {
			t.Errorf("%q is not left in\n%s", word, all)
		}
	}
	a := &anonymizer{key: [32]byte{1}}
	if got, want := a.text("10.244.1.0-10.244.1.255", false), a.address(netip.MustParseAddr("10.244.1.0")); !strings.HasPrefix(got,
		netip.PrefixFrom(want, 24).Masked().Addr().String()+"-") || !strings.HasSuffix(got, ".255") {
		t.Errorf("a prefix is %s", got)
	}
}

// Two addresses share as many bits afterwards as before.
func TestPrefixesStay(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	a := &anonymizer{key: [32]byte{7}}
	shared := func(x, y netip.Addr) int {
		b, c := x.AsSlice(), y.AsSlice()
		for i := range 8 * len(b) {
			if (b[i/8]^c[i/8])>>(7-i%8)&1 != 0 {
				return i
			}
		}
		return 8 * len(b)
	}
	random := func(v6 bool) netip.Addr {
		if v6 {
			b := [16]byte{0xfd, 0}
			for i := 2; i < 16; i++ {
				b[i] = byte(r.UintN(4))
			}
			return netip.AddrFrom16(b)
		}
		return netip.AddrFrom4([4]byte{byte(1 + r.UintN(126)), byte(r.UintN(3)), byte(r.UintN(3)), byte(r.UintN(256))})
	}
	for i := range 3000 {
		x, y := random(i%2 == 0), random(i%2 == 0)
		p, q := a.address(x), a.address(y)
		if shared(x, y) != shared(p, q) {
			t.Fatalf("%s and %s share %d bits, %s and %s %d", x, y, shared(x, y), p, q, shared(p, q))
		}
		if p.IsMulticast() || p.Is4() && p.As4()[0] >= 224 {
			t.Fatalf("%s becomes %s", x, p)
		}
	}
	for _, s := range []string{"0.0.0.0", "127.0.0.1", "224.0.0.251", "255.255.255.255", "::", "::1", "ff02::1"} {
		if x := netip.MustParseAddr(s); a.address(x) != x {
			t.Errorf("%s becomes %s", x, a.address(x))
		}
	}
}

// FuzzAnonymised: no name and no address of a document is in the anonymous one.
func FuzzAnonymised(f *testing.F) {
	f.Add("win1", "10.244.1.4", "LB_24A19_10.96.0.50_80_80_6", uint64(1))
	f.Add("pod/shop/web-0", "fd00::1", "(to web-0_cbr0)", uint64(2))
	f.Add("", "[fd00:1::4]:80", "Destination IP : 10.244.1.0-10.244.1.255", uint64(3))
	f.Add("Büro", "00-15-5D-F4-01-04", "1.2.3.4.5 ::ffff:10.0.0.1 a:b:c 10.0.0.0/33 fe80::1%eth0", uint64(4))
	f.Fuzz(func(t *testing.T, name, addr, text string, seed uint64) {
		if !utf8.ValidString(name + addr + text) {
			return
		}
		key := [32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)}
		x := filled(1, []string{name, "node/" + name}, []string{addr, "10.0.0.1"}, []string{text, name + "_" + addr}).Anonymous(key)
		for _, s := range foreign(x) {
			out := map[string]bool{}
			for _, p := range pieces(s) {
				out[p.text] = true
				for _, in := range []string{addr, text, name + "_" + addr} {
					for _, q := range pieces(in) {
						if q.addr.IsValid() && !kept(q.addr) && p.addr == q.addr {
							t.Errorf("the address %s of %q is in %q", q.addr, in, s)
						}
						if q.mac && strings.EqualFold(p.text, q.text) && !strings.HasPrefix(strings.ToUpper(p.text), "02-00-00-00-") {
							t.Errorf("the MAC address %s of %q is in %q", q.text, in, s)
						}
					}
				}
			}
			for _, in := range []string{name, addr, text} {
				for _, q := range pieces(in) {
					if q.word && !number16(q.text) && !(in != name && vocabulary[strings.ToUpper(q.text)]) && !kinds[q.text] && !ownWord(q.text) &&
						out[q.text] {
						t.Errorf("the word %q of %q is in %q", q.text, in, s)
					}
				}
			}
		}
		var b strings.Builder
		if err := x.WriteText(&b); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(textsOf(pieces(text)), ""); got != text {
			t.Errorf("%q is cut into %q", text, got)
		}
	})
}

func textsOf(all []piece) (out []string) {
	for _, p := range all {
		out = append(out, p.text)
	}
	return out
}

// ownWord reports whether a word is one that stands for others: "x12", "name".
func ownWord(s string) bool {
	after, ok := strings.CutPrefix(s, "x")
	return ok && number16(after) || s == "name"
}
