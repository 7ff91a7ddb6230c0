package live

import (
	"bytes"
	"slices"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/lab/inject"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Captured is a packet at each place that it crossed.
type Captured struct {
	Time time.Time
	// Comment is what became of it: "delivered: win1, pod/default/web".
	Comment string
	Hops    []CapturedFrame
}

// CapturedFrame is a packet at one place: "pod/default/client eth0" where a program
// sent or got it, "win1 endpoint client into switch", "wire nodes".
type CapturedFrame struct {
	Place string
	Frame []byte
}

// captures are those who want packets. The Net's lock is around it.
type captures struct {
	to   []*capturer
	hops []CapturedFrame // of the packet under way
}

type capturer struct {
	machine string
	packets chan Captured
	missed  uint64
}

// Capture reports the packets that a machine sends or gets, or all with "", until stop
// is called. A reader that is slower than the network misses some; missed says how
// many.
func (n *Net) Capture(machine string) (packets <-chan Captured, missed func() uint64, stop func(), err error) {
	c := &capturer{packets: make(chan Captured, 1024)}
	if machine != "" {
		s, err := n.find(machine)
		if err != nil {
			return nil, nil, nil, err
		}
		c.machine = s.name
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.captures.to = append(n.captures.to, c)
	return c.packets, func() uint64 {
			n.mu.Lock()
			defer n.mu.Unlock()
			return c.missed
		}, func() {
			n.mu.Lock()
			defer n.mu.Unlock()
			if i := slices.Index(n.captures.to, c); i >= 0 {
				n.captures.to = slices.Delete(n.captures.to, i, i+1)
				close(c.packets)
			}
		}, nil
}

// hop sees every frame at every hop.
func (n *Net) hop(at *inject.Boundary, frame []byte) {
	if n.o.Hop != nil {
		n.o.Hop(at, frame)
	}
	if len(n.captures.to) == 0 {
		return
	}
	text := at.String()
	n.captures.hops = append(n.captures.hops, CapturedFrame{text, bytes.Clone(frame)})
}

// begin notes a packet that a program sends; s is nil for one that goes on.
func (c *captures) begin(s *space, frame []byte) {
	c.hops = c.hops[:0]
	if len(c.to) > 0 && s != nil {
		c.hops = append(c.hops, CapturedFrame{s.name + " eth0", bytes.Clone(frame)})
	}
}

// end hands a packet to those who want it. Checksums that its sender left to the
// device are filled in, so that tools do not complain.
func (c *captures) end(s *space, f inject.Outcome, arrived []inject.Arrival, unfinished bool) {
	if len(c.to) == 0 {
		return
	}
	p := Captured{Time: time.Now(), Comment: comment(f)}
	for i := range arrived {
		c.hops = append(c.hops, CapturedFrame{arrived[i].To.Name + " eth0", bytes.Clone(arrived[i].Packet.Bytes())})
	}
	for _, h := range c.hops {
		if unfinished {
			h.Frame = filled(h.Frame)
		}
		p.Hops = append(p.Hops, h)
	}
	for _, to := range c.to {
		if to.machine != "" && to.machine != s.name && !slices.ContainsFunc(arrived,
			func(a inject.Arrival) bool { return a.To.Name == to.machine }) {
			continue
		}
		select {
		case to.packets <- p:
		default:
			to.missed++
		}
	}
}

// filled is a frame with its checksum. What is inside a tunnel stays as it is, as with
// a NIC that fills it in later.
func filled(frame []byte) []byte {
	p, err := packet.New(frame)
	if err != nil || p.Headers().Proto != packet.TCP {
		return frame
	}
	p.FillChecksum()
	return p.Bytes()
}

// comment says what became of a packet.
func comment(f inject.Outcome) string {
	if f.Held {
		return "on its way over a slow link"
	}
	s := string(f.Verdict)
	if f.Reason != "" && f.Reason != trace.OK {
		s += " " + string(f.Reason)
	}
	if w := f.Where(); w != "" {
		s += ": " + w
	}
	return s
}
