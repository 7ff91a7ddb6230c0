package vfp

import (
	"net/netip"
	"time"

	"github.com/winlab-dev/winlab/sim/packet"
)

// BlockSize is the number of consecutive ports that a pool takes at a time.
const BlockSize = 64

// PortSpace is the range of ports that one machine's pools share.
type PortSpace struct {
	lo, hi uint16
	taken  map[uint16]bool // by first port of the block
}

// NewPortSpace returns the space of the ports lo to hi, both included.
func NewPortSpace(lo, hi uint16) *PortSpace {
	return &PortSpace{lo: lo, hi: hi, taken: map[uint16]bool{}}
}

// Take takes the lowest free block and returns its first port, or false when
// none is left.
func (s *PortSpace) Take() (first uint16, ok bool) {
	for p := int(s.lo); p+BlockSize-1 <= int(s.hi); p += BlockSize {
		if !s.taken[uint16(p)] {
			s.taken[uint16(p)] = true
			return uint16(p), true
		}
	}
	return 0, false
}

// Release gives a block back.
func (s *PortSpace) Release(first uint16) { delete(s.taken, first) }

// Free counts the free blocks.
func (s *PortSpace) Free() int {
	return (int(s.hi)-int(s.lo)+1)/BlockSize - len(s.taken)
}

// Pool hands out source addresses and ports for translation.
type Pool struct {
	Name string
	Addr netip.Addr
	// Space is where the pool takes blocks from when it needs one; nil for a
	// pool that has only its first Blocks.
	Space  *PortSpace
	Blocks []uint16

	used map[portKey]*flow
	next int
}

type portKey struct {
	proto packet.Proto
	port  uint16
}

// bind finds a free port for a new flow, or false when there is none. A port
// is free again when the flow that had it has expired.
func (p *Pool) bind(proto packet.Proto, f *flow, now time.Duration) (uint16, bool) {
	if p.used == nil {
		p.used = map[portKey]*flow{}
	}
	for {
		n := len(p.Blocks) * BlockSize
		for range n {
			i := p.next % n
			p.next++
			k := portKey{proto, p.Blocks[i/BlockSize] + uint16(i%BlockSize)}
			if old := p.used[k]; old == nil || old.expired(now) {
				p.used[k] = f
				return k.port, true
			}
		}
		if p.Space == nil {
			return 0, false
		}
		first, ok := p.Space.Take()
		if !ok {
			return 0, false
		}
		p.next = len(p.Blocks) * BlockSize
		p.Blocks = append(p.Blocks, first)
	}
}

// reset forgets all bindings but keeps the blocks.
func (p *Pool) reset() {
	clear(p.used)
	p.next = 0
}
