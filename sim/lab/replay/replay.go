package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/winlab-dev/winlab/internal/capture"
	"github.com/winlab-dev/winlab/internal/ctxio"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/inject"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Options choose where packets go in and what is written.
type Options struct {
	// Port is where every packet goes in: pod/NAME, node/NAME, host/NAME or
	// wire/SEGMENT. Empty is the port of the pod that has the packet's
	// source MAC address or source address, else the wire of its segment.
	Port string
	// Record sends every packet the slow way, with every step recorded. The
	// output is the same.
	Record bool
	// Progress, when set, is called after every 4096th packet with the number
	// of packets so far.
	Progress func(packets int)
}

// inputInterface is the name of the interface that shows packets as they were in
// the capture. The other interfaces are hops.
const inputInterface = "capture"

// Run plays a capture into a cluster and writes what comes out. out may be nil:
// then nothing is written but the summary. The error is about a capture that
// cannot be read at all, a port that the lab does not have, or the output. What
// was skipped in a damaged capture is in the summary. The context ends it between
// two packets, also while it waits for the next one.
func Run(ctx context.Context, c *lab.Cluster, in io.Reader, out io.Writer, o Options) (*Summary, error) {
	if err := c.OneBuild(); err != nil {
		return nil, err
	}
	if err := c.AsMade(); err != nil {
		return nil, err
	}
	r, err := capture.Open(ctxio.Reader(ctx, in))
	if err != nil {
		return nil, err
	}
	p := &player{sum: newSummary(), counts: map[inject.Outcome]*Count{}, outcomes: map[*inject.Outcome]*Count{},
		hops: map[*inject.Boundary]int{},
		few:  make([]fewCount, 0, 16)}
	if out != nil {
		if p.w, err = capture.NewWriter(out, inputInterface); err != nil {
			return nil, err
		}
	}
	hop := p.crosses
	if out == nil {
		hop = nil // the frames are not needed
	}
	j := inject.New(c.Cluster, hop, o.Record)
	var entry *inject.Entry
	if o.Port != "" {
		if entry, err = j.Entry(o.Port); err != nil {
			return nil, err
		}
	}
	if err := p.playAll(ctx, j, entry, r, o.Progress); err != nil {
		return nil, err
	}
	if p.w != nil {
		if err := p.w.Close(); err != nil {
			return nil, err
		}
	}
	p.finish()
	p.sum.Assumed = c.Assumptions()
	return p.sum, nil
}

// playAll plays every packet of a capture. What is damaged ends it early and is
// noted.
func (p *player) playAll(ctx context.Context, j *inject.Injector, e *inject.Entry, r *capture.Reader, progress func(int)) error {
	for {
		data, info, err := r.Next()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == io.EOF:
			return nil
		case damaged(err):
			p.sum.Skipped = append(p.sum.Skipped, err.Error())
			return nil
		case err != nil:
			return err
		}
		if err := p.play(j, e, data, info); err != nil {
			return err
		}
		if progress != nil && p.sum.Packets%4096 == 0 {
			progress(p.sum.Packets)
		}
	}
}

// damaged reports whether an error is about one place in a capture whose packets
// before that are good.
func damaged(err error) bool {
	if err == nil {
		return false
	}
	var cut *capture.TruncatedError
	var bad *capture.PacketError
	return errors.As(err, &cut) || errors.As(err, &bad)
}

// seen is a frame at a boundary, a part of the player's buffer.
type seen struct {
	at       *inject.Boundary
	from, to int
}

// fewCount is what counts an outcome.
type fewCount struct {
	outcome *inject.Outcome
	count   *Count
}

// player holds what one replay needs.
type player struct {
	w        *capture.Writer
	sum      *Summary
	counts   map[inject.Outcome]*Count
	outcomes map[*inject.Outcome]*Count // the same counts
	few      []fewCount                 // the first of them, which are looked at in turn
	hops     map[*inject.Boundary]int   // interface of the output
	buf      []byte
	seen     []seen
	start    time.Time
}

// crosses notes a frame at a hop until the packet's verdict is known.
func (p *player) crosses(at *inject.Boundary, frame []byte) {
	n := len(p.buf)
	p.buf = append(p.buf, frame...)
	p.seen = append(p.seen, seen{at, n, len(p.buf)})
}

// play sends one packet through the cluster and writes it.
func (p *player) play(j *inject.Injector, e *inject.Entry, data []byte, info capture.Info) error {
	s := p.sum
	s.Packets++
	p.buf, p.seen = p.buf[:0], p.seen[:0]
	if p.start.IsZero() {
		p.start = info.Time
	}
	became := &partOnly
	var err error
	if len(data) < info.Length {
		s.CutShort++
	} else {
		if became, err = j.Inject(e, data, info.Time.Sub(p.start)); err != nil {
			s.Malformed++
			if s.firstBad == "" {
				s.firstBad = fmt.Sprintf("packet %d: %v", info.Number, err)
			}
		}
		s.Frames += j.Crossed()
	}
	if became.Readdressed {
		s.Readdressed++
	}
	c := p.count(became)
	c.Packets++
	if p.w == nil {
		return nil
	}
	if err := p.w.WriteWith(0, info.Time, data, c.comment); err != nil {
		return fmt.Errorf("packet %d: %w", info.Number, err)
	}
	for i := range p.seen {
		f := &p.seen[i]
		n, err := p.interfaceOf(f.at)
		if err != nil {
			return err
		}
		if err := p.w.WriteWith(n, info.Time, p.buf[f.from:f.to], c.comment); err != nil {
			return fmt.Errorf("packet %d: %w", info.Number, err)
		}
	}
	return nil
}

// partOnly is what becomes of a packet that is not all in the capture.
var partOnly = inject.Outcome{Verdict: trace.Dropped, Reason: trace.BadPacket, Place: "capture",
	Object: "not played: the capture has only part of the packet"}

// count is what counts the packets with an outcome.
func (p *player) count(o *inject.Outcome) *Count {
	for i := range p.few {
		if p.few[i].outcome == o {
			return p.few[i].count
		}
	}
	if c := p.outcomes[o]; c != nil {
		return c
	}
	became := *o
	became.Readdressed = false
	c := p.counts[became]
	if c == nil {
		c = &Count{Verdict: became.Verdict, Reason: became.Reason, Where: became.Where(), comment: capture.NewComment(comment(became))}
		p.counts[became] = c
	}
	p.outcomes[o] = c
	if len(p.few) < cap(p.few) {
		p.few = append(p.few, fewCount{o, c})
	}
	return c
}

// interfaceOf is the interface of the output for a hop; it is added
// when the first frame crosses the hop.
func (p *player) interfaceOf(h *inject.Boundary) (int, error) {
	n, ok := p.hops[h]
	if !ok {
		var err error
		if n, err = p.w.AddInterface(h.String()); err != nil {
			return 0, err
		}
		p.hops[h] = n
		p.sum.Hops = append(p.sum.Hops, h.String())
	}
	return n, nil
}

// comment is the comment of a packet: what became of it.
func comment(f inject.Outcome) string {
	s := string(f.Verdict)
	if f.Reason != "" && f.Reason != trace.OK {
		s += " " + string(f.Reason)
	}
	if w := f.Where(); w != "" {
		s += ": " + w
	}
	return s
}
