package hns

import (
	"fmt"
	"slices"
)

// PortBlock is a range of the node's ports, both ends included.
type PortBlock struct {
	First, Last uint16
}

// IsZero reports whether there is no block.
func (b PortBlock) IsZero() bool { return b == PortBlock{} }

// String returns "49152-49215".
func (b PortBlock) String() string { return fmt.Sprintf("%d-%d", b.First, b.Last) }

// Contains reports whether a port is in the block.
func (b PortBlock) Contains(port uint16) bool { return b.First <= port && port <= b.Last }

// portPool hands out blocks of the node's dynamic port range, lowest first.
type portPool struct {
	first, last, size int
	starts            []int    // of the blocks
	owner             []string // by block number; "" is free
	full              int      // no block before this one is free
}

// newPortPool cuts a range into blocks. A block is of consecutive ports of which none
// is excluded; where it would meet an excluded one, it begins behind that
// (hns.port-blocks-avoid-excluded).
func newPortPool(first, last uint16, size int, excluded []PortBlock) *portPool {
	p := &portPool{first: int(first), last: int(last), size: size}
	for start := p.first; size > 0 && start+size-1 <= p.last; {
		meets := slices.IndexFunc(excluded, func(x PortBlock) bool { return int(x.First) < start+size && start <= int(x.Last) })
		if meets >= 0 {
			start = int(excluded[meets].Last) + 1
			continue
		}
		p.starts = append(p.starts, start)
		start += size
	}
	p.owner = make([]string, len(p.starts))
	return p
}

// block is the block with a number.
func (p *portPool) block(i int) PortBlock {
	return PortBlock{uint16(p.starts[i]), uint16(p.starts[i] + p.size - 1)}
}

// take reserves the lowest free block for owner. A block with a port that published
// says is the node's is not free.
func (p *portPool) take(owner string, published func(PortBlock) bool) (PortBlock, bool) {
	for p.full < len(p.owner) && p.owner[p.full] != "" {
		p.full++
	}
	for i := p.full; i < len(p.owner); i++ {
		if p.owner[i] != "" {
			continue
		}
		if b := p.block(i); !published(b) {
			p.owner[i] = owner
			return b, true
		}
	}
	return PortBlock{}, false
}

// holder returns who has reserved the block that a port is in, or "".
func (p *portPool) holder(port uint16) string {
	for i, o := range p.owner {
		if o != "" && p.block(i).Contains(port) {
			return o
		}
	}
	return ""
}

// release frees all blocks of owner.
func (p *portPool) release(owner string) {
	for i, o := range p.owner {
		if o == owner {
			p.owner[i] = ""
			p.full = min(p.full, i)
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
	b, ok := s.pool.take(owner, s.publishes)
	if !ok {
		return PortBlock{}, ErrPortAlreadyExists.withf("ReservePorts",
			"no free block of %d ports in %d-%d", s.pool.size, s.pool.first, s.pool.last)
	}
	return b, nil
}

// PortBlocks are the blocks that HNS holds for load balancers, endpoints and shared
// pools, lowest first. netsh shows them among the excluded ranges, without the mark of
// those that somebody excluded.
func (s *Service) PortBlocks() []PortBlock {
	s.Settle()
	var all []PortBlock
	for i, o := range s.pool.owner {
		if o != "" {
			all = append(all, s.pool.block(i))
		}
	}
	return all
}

// publishes reports whether a load balancer of the node's own address has a port of a
// block.
func (s *Service) publishes(b PortBlock) bool {
	if len(s.hostPorts) == 0 {
		return false
	}
	for port := int(b.First); port <= int(b.Last); port++ {
		if s.hostPorts[uint16(port)] > 0 {
			return true
		}
	}
	return false
}

// addFrontend and removeFrontend keep who serves an address and port.
func (s *Service) addFrontend(f frontendKey, id string) {
	if _, ok := s.frontends[f]; !ok && f.vip == "" {
		s.hostPorts[f.port]++
	}
	s.frontends[f] = id
}

func (s *Service) removeFrontend(f frontendKey) {
	if _, ok := s.frontends[f]; ok && f.vip == "" {
		if s.hostPorts[f.port]--; s.hostPorts[f.port] == 0 {
			delete(s.hostPorts, f.port)
		}
	}
	delete(s.frontends, f)
}

// excluded reports whether a port is in a range that the node excludes.
func (s *Service) excluded(port uint16) bool {
	return slices.ContainsFunc(s.opts.ExcludedPorts, func(b PortBlock) bool { return b.Contains(port) })
}
