package live

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
)

// cutUp makes IPv4 fragments of a frame with n bytes of payload each.
func cutUp(frame []byte, n int) [][]byte {
	var all [][]byte
	data := frame[34:]
	for at := 0; at < len(data); at += n {
		end := min(at+n, len(data))
		f := append(bytes.Clone(frame[:34]), data[at:end]...)
		bits := uint16(at / 8)
		if end < len(data) {
			bits |= 0x2000
		}
		binary.BigEndian.PutUint16(f[16:], uint16(len(f)-14))
		binary.BigEndian.PutUint16(f[20:], bits)
		all = append(all, f)
	}
	return all
}

// cutUp6 makes IPv6 fragments of a frame with n bytes of payload each.
func cutUp6(frame []byte, n int, id byte) [][]byte {
	var all [][]byte
	data := frame[54:]
	for at := 0; at < len(data); at += n {
		end := min(at+n, len(data))
		bits := uint16(at)
		if end < len(data) {
			bits |= 1
		}
		f := append(bytes.Clone(frame[:54]), frame[20], 0, byte(bits>>8), byte(bits), 0, 0, 0, id)
		f = append(f, data[at:end]...)
		f[20] = 44
		binary.BigEndian.PutUint16(f[18:], uint16(len(f)-54))
		all = append(all, f)
	}
	return all
}

func datagramFrame(id uint16) []byte {
	payload := make([]byte, 4000)
	for i := range payload {
		payload[i] = byte(i * 7)
	}
	return packet.Build(packet.Spec{Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2"), Proto: packet.UDP, SrcPort: 1,
		DstPort: 2, IPID: id, Payload: payload}).Bytes()
}

// Fragments in any order, of two datagrams at once, come together as what was sent.
func TestFragmentsComeTogether(t *testing.T) {
	var f fragments
	s := &space{}
	a, b := cutUp(datagramFrame(1), 1480), cutUp(datagramFrame(2), 1480)
	for i, in := range [][]byte{a[2], b[0], a[0], b[1], a[1], b[2]} {
		whole, largest := f.add(s, in)
		done := i >= 4
		if (whole != nil) != done {
			t.Fatalf("after %d: %d bytes", i, len(whole))
		}
		if !done {
			continue
		}
		if !bytes.Equal(whole, datagramFrame(uint16(i-3))) || largest != 1500 {
			t.Errorf("another datagram, largest %d", largest)
		}
	}
	if len(f.open) != 0 || len(f.order) != 0 {
		t.Errorf("%d are left", len(f.open))
	}
}

// The same of IPv6.
func TestFragments6ComeTogether(t *testing.T) {
	var f fragments
	s := &space{}
	spec := packet.Spec{Src: netip.MustParseAddr("fd00::1"), Dst: netip.MustParseAddr("fd00::2"), Proto: packet.UDP, SrcPort: 1, DstPort: 2,
		Payload: bytes.Repeat([]byte("winlab"), 700)}
	frame := packet.Build(spec).Bytes()
	a, b := cutUp6(frame, 1448, 1), cutUp6(frame, 1448, 2)
	for i, in := range [][]byte{a[2], b[0], a[0], b[1], a[1], b[2]} {
		if !fragmentOf(in) {
			t.Fatal("no fragment")
		}
		whole, largest := f.add(s, in)
		if done := i >= 4; (whole != nil) != done || done && (!bytes.Equal(whole, frame) || largest != 1496) {
			t.Fatalf("after %d: %d bytes, largest %d", i, len(whole), largest)
		}
	}
	if len(f.open) != 0 {
		t.Errorf("%d are left", len(f.open))
	}
}

// What never comes together is forgotten, and what is not right changes nothing.
func TestFragmentsAreBounded(t *testing.T) {
	var f fragments
	s := &space{}
	for id := range 1000 {
		f.add(s, cutUp(datagramFrame(uint16(id)), 1480)[id%3])
	}
	if len(f.open) != maxDatagrams || len(f.order) != maxDatagrams {
		t.Errorf("%d, %d are kept", len(f.open), len(f.order))
	}
	bad := cutUp(datagramFrame(5), 1480)
	for _, in := range bad {
		in[14] = 0x41 // a header of 4 bytes
		if whole, _ := f.add(s, in); whole != nil {
			t.Error("taken")
		}
	}
	overlap := cutUp(datagramFrame(6), 1480)
	binary.BigEndian.PutUint16(overlap[1][20:], 0x2000|8) // begins within the first
	for _, in := range overlap {
		if whole, _ := f.add(s, in); whole != nil {
			t.Error("overlapping fragments are taken")
		}
	}
}

// FuzzFragments: nothing that programs send makes the network panic, or what comes
// together is a packet.
func FuzzFragments(f *testing.F) {
	for _, in := range cutUp(datagramFrame(1), 1480) {
		f.Add(in, in)
	}
	six := packet.Build(packet.Spec{Src: netip.MustParseAddr("fd00::1"), Dst: netip.MustParseAddr("fd00::2"), Proto: packet.UDP, SrcPort: 1,
		DstPort: 2, Payload: make([]byte, 2000)}).Bytes()
	parts := cutUp6(six, 1448, 1)
	f.Add(parts[0], parts[1])
	nested := cutUp6(parts[0], 1448, 2)
	f.Add(nested[0], nested[len(nested)-1])
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var x fragments
		s := &space{}
		for _, in := range [][]byte{a, b, a} {
			if !fragmentOf(in) {
				continue
			}
			whole, _ := x.add(s, in)
			if whole == nil {
				continue
			}
			if _, err := packet.New(whole); err == nil && fragmentOf(whole) {
				t.Errorf("still a fragment: %x", whole)
			}
		}
	})
}
