package vfp

import (
	"maps"
	"net/netip"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/journal"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
)

// blockSize is the number of consecutive ports that a pool takes at a time.
const blockSize = 64

// Pool hands out source addresses and ports for translation.
type Pool struct {
	Name string
	Addr netip.Addr
	// Blocks are the first ports of the blocks the pool has. More gets another
	// block when they are used up; nil for a pool that has only these. Back, called
	// with the Blocks of before, gives back what More gave last.
	Blocks []uint16
	More   func() (first uint16, ok bool)
	Back   func()

	used map[portKey]*conn
	next int
}

type portKey struct {
	proto packet.Proto
	port  uint16
}

// bind finds a free port for a new connection, or false when there is none. A
// port is free again when the connection that had it has expired.
func (p *Pool) bind(proto packet.Proto, c *conn, env *Env) (uint16, bool) {
	if p.used == nil {
		p.used = map[portKey]*conn{}
	}
	journal.Keep(env.Journal, &p.next)
	for {
		n := len(p.Blocks) * blockSize
		for range n {
			i := p.next % n
			p.next++
			k := portKey{proto, p.Blocks[i/blockSize] + uint16(i%blockSize)}
			if old := p.used[k]; old == nil || old.hasExpired(env.Now) {
				journal.KeepKey(env.Journal, p.used, k)
				p.used[k] = c
				return k.port, true
			}
		}
		if p.More == nil {
			return 0, false
		}
		first, ok := p.More()
		if !ok {
			return 0, false
		}
		if env.Journal.On() {
			if p.Back != nil {
				env.Journal.Add(p.Back)
			}
			journal.Keep(env.Journal, &p.Blocks)
		}
		p.next = len(p.Blocks) * blockSize
		p.Blocks = append(p.Blocks, first)
	}
}

// hasExpired is expired for somebody who is not at the connection's port.
func (c *conn) hasExpired(now time.Duration) bool {
	if c.port != nil && c.expired(now) {
		c.port.tell()
	}
	return c.expired(now)
}

// release frees what a port's connections have bound. A pool that nothing uses
// starts over, so that two runs of a lab translate alike.
func (p *Pool) release(of *Port) {
	maps.DeleteFunc(p.used, func(_ portKey, c *conn) bool { return c.dead || c.port == of })
	if len(p.used) == 0 {
		p.next = 0
	}
}
