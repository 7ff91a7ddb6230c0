package vfp

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
)

// A key says of a packet what its tuple says, in both directions, and two keys are the
// same where the tuples, the destinations of the frames and the directions are.
func TestKeyIsATuple(t *testing.T) {
	type what struct {
		packet.Tuple
		mac packet.MAC
		dir Direction
	}
	data := make([]byte, 1<<16)
	rng := rand.New(rand.NewPCG(1, 3))
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	d := &dice{data}
	names, keys, hashes := map[what]key{}, map[key]what{}, map[uint64]key{}
	var seen [][]byte
	packets := 0
	for len(d.data) > 100 {
		frame := d.packet(seen, seen)
		seen = append(seen, frame)
		p, _ := packet.New(frame)
		h, dir := p.Headers(), Direction(d.roll(2))
		if h.IPVersion == 0 {
			continue
		}
		packets++
		of := h.Tuple()
		of.ICMPID = 0
		k := keyOf(p, dir)
		if k.tuple() != of || k.dir() != dir {
			t.Fatalf("the key of %v, %s, says %v, %s", p, dir, k.tuple(), k.dir())
		}
		reverses(t, k, of)
		k.unify(p)
		w := what{h.Tuple(), h.EthDst, dir}
		if k.tuple() != w.Tuple || k.dir() != dir {
			t.Fatalf("the key of %v, %s, and its identifier says %v, %s", p, dir, k.tuple(), k.dir())
		}
		if was, there := names[w]; there && (was != k || !was.equals(&k)) {
			t.Fatalf("%+v has the keys %x and %x; if a key holds more now, it belongs into what", w, was, k)
		}
		if was, there := keys[k]; there && was != w {
			t.Fatalf("%+v and %+v have the key %x", was, w, k)
		}
		if was, there := hashes[k.hash()]; there && was != k {
			t.Fatalf("%x and %x have one hash", was, k)
		}
		names[w], keys[k], hashes[k.hash()] = k, w, k
	}
	if packets < 1000 || len(keys) < 100 {
		t.Errorf("%d packets with %d keys show little", packets, len(keys))
	}
}

// reverses holds that a key, of packets with that tuple, turns round as the tuple does.
func reverses(t *testing.T, k key, of packet.Tuple) {
	t.Helper()
	r := k.reversed(k.dir().opposite())
	if r.tuple() != of.Reverse() || r.dir() == k.dir() || r.reversed(k.dir()) != k {
		t.Fatalf("the key of replies to %v, %s, says %v, %s", of, k.dir(), r.tuple(), r.dir())
	}
	r.setDstPort(7)
	if to := of.Reverse(); r.dstPort() != 7 || r.srcPort() != to.SrcPort || r.tuple().Dst != to.Dst {
		t.Fatalf("with port 7 it says %v", r.tuple())
	}
}

// One bit of one word makes another key, with another hash.
func TestKeysDiffer(t *testing.T) {
	var k key
	words := (*[unsafe.Sizeof(k) / 8]uint64)(unsafe.Pointer(&k)) // all of them, also one that comes later
	for i := range words {
		for _, bit := range []uint64{1 << 40, 1 << 20} {
			words[i] = bit
			if (&key{}).equals(&k) || !k.equals(&k) {
				t.Errorf("key.is (key.go) does not compare word %d", i)
			}
			// The first word of an address is hashed in keys of IPv6 only.
			v6, other := key{way: isV6}, k
			if other.way |= isV6; v6.hash() == other.hash() {
				t.Errorf("key.hash (key.go) does not read word %d", i)
			}
			words[i] = 0
		}
	}
}
