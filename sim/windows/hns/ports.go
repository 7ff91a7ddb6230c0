package hns

import (
	"fmt"
)

// PortBlock is a range of the node's ports, both ends included.
type PortBlock struct {
	First, Last uint16
}

// IsZero reports whether there is no block.
func (b PortBlock) IsZero() bool { return b == PortBlock{} }

// String returns "49152-49215".
func (b PortBlock) String() string { return fmt.Sprintf("%d-%d", b.First, b.Last) }

// portPool hands out blocks of the node's dynamic port range, lowest first.
type portPool struct {
	first, last, size int
	owner             []string // by block number; "" is free
}

func newPortPool(first, last uint16, size int) *portPool {
	n := 0
	if size > 0 && last >= first {
		n = (int(last) - int(first) + 1) / size
	}
	return &portPool{first: int(first), last: int(last), size: size, owner: make([]string, n)}
}

// take reserves the lowest free block for owner.
func (p *portPool) take(owner string) (PortBlock, bool) {
	for i, o := range p.owner {
		if o == "" {
			p.owner[i] = owner
			first := p.first + i*p.size
			return PortBlock{uint16(first), uint16(first + p.size - 1)}, true
		}
	}
	return PortBlock{}, false
}

// release frees all blocks of owner.
func (p *portPool) release(owner string) {
	for i, o := range p.owner {
		if o == owner {
			p.owner[i] = ""
		}
	}
}

func (p *portPool) free() int {
	n := 0
	for _, o := range p.owner {
		if o == "" {
			n++
		}
	}
	return n
}

// reservePorts takes a port block for owner, for example an endpoint whose
// OutBoundNAT translates. It fails with ErrPortAlreadyExists when none is free.
func (s *Service) reservePorts(owner string) (PortBlock, error) {
	b, ok := s.pool.take(owner)
	if !ok {
		return PortBlock{}, ErrPortAlreadyExists.withf("ReservePorts",
			"no free block of %d ports in %d-%d", s.pool.size, s.pool.first, s.pool.last)
	}
	return b, nil
}
