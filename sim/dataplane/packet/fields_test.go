package packet_test

import (
	"bytes"
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
)

// TestRewriteFields walks the fields of Rewrite by reflection: each has one bit with which
// Apply changes the header field of that name and no other, Patch and Edits do the same, and
// Then keeps it.
func TestRewriteFields(t *testing.T) {
	typ := reflect.TypeFor[packet.Rewrite]()
	all := packet.Rewrite{
		EthSrc: packet.MAC{2, 9}, EthDst: packet.MAC{2, 8},
		Src: netip.MustParseAddr("10.9.0.1"), Dst: netip.MustParseAddr("10.9.0.2"),
		SrcPort: 901, DstPort: 902, ICMPID: 903,
	}
	var found []string
	for bit := packet.RewriteMask(1); bit != 0; bit <<= 1 {
		rw := all
		rw.Set = bit
		field := fieldSetBy(t, &rw)
		if field == "" {
			continue
		}
		if slices.Contains(found, field) {
			t.Errorf("two bits set %s", field)
		}
		found = append(found, field)
		value := func(r packet.Rewrite) any { return reflect.ValueOf(r).FieldByName(field).Interface() }
		for _, joined := range []packet.Rewrite{packet.Rewrite{}.Then(rw), rw.Then(packet.Rewrite{})} {
			if joined.Set != bit || value(joined) != value(all) {
				t.Errorf("Then (rewrite.go) loses %s: %+v", field, joined)
			}
		}
	}
	for i := range typ.NumField() {
		name := typ.Field(i).Name
		if name != "Set" && reflect.ValueOf(all).Field(i).IsZero() {
			t.Errorf("Rewrite.%s is new: give it a value in this test", name)
		}
		if name != "Set" && !slices.Contains(found, name) {
			t.Errorf("no RewriteMask makes Apply (rewrite.go) set Rewrite.%s", name)
		}
	}
}

// fieldSetBy applies a rewrite with one bit to packets of several protocols in each of the
// ways there are, and returns the header field that it changes, "" for none.
func fieldSetBy(t *testing.T, rw *packet.Rewrite) (field string) {
	t.Helper()
	for _, proto := range []packet.Proto{packet.TCP, packet.UDP, packet.ICMP} {
		build := func() *packet.Packet {
			return packet.Build(packet.Spec{
				EthSrc: packet.MAC{2, 1}, EthDst: packet.MAC{2, 2},
				Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2"),
				Proto: proto, SrcPort: 1, DstPort: 2, ICMPType: 8, ICMPID: 3,
			})
		}
		before, applied, patched, redone := build(), build(), build(), build()
		var notes packet.Edits
		applied.Note(&notes)
		applied.Apply(rw)
		if err := notes.Redo(redone, 0, notes.Len()); err != nil {
			t.Fatal(err)
		}
		patch, ok := rw.Patch(before.Tuple())
		if !ok || !patched.Patch(&patch) {
			t.Fatalf("no patch for %v", before)
		}
		for name, p := range map[string]*packet.Packet{"Patch (patch.go)": patched, "Edits.Redo (edits.go)": redone} {
			if !bytes.Equal(p.Bytes(), applied.Bytes()) || *p.Headers() != *applied.Headers() {
				t.Errorf("%s with bit %b makes %v of %v, Apply makes %v", name, rw.Set, p, before, applied)
			}
		}
		for _, changed := range differing(before.Headers(), applied.Headers()) {
			if field != "" && field != changed {
				t.Errorf("bit %b changes %s and %s", rw.Set, field, changed)
			}
			field = changed
		}
	}
	return field
}

// differing are the names of the header fields in which two packets differ.
func differing(a, b *packet.Headers) (names []string) {
	x, y := reflect.ValueOf(*a), reflect.ValueOf(*b)
	for i := range x.NumField() {
		if x.Field(i).Interface() != y.Field(i).Interface() {
			names = append(names, x.Type().Field(i).Name)
		}
	}
	return names
}
