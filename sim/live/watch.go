package live

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/lab/inject"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Connection is what became of the first packets of a connection, a conversation by
// UDP or an echo request.
type Connection struct {
	Time time.Time `json:"time"`
	// From and To are the machines at its ends; To is empty when it reached none.
	From string `json:"from"`
	To   string `json:"to,omitempty"`
	// Protocol is TCP, UDP, ICMP or ICMPv6. Source and Destination are the ends as
	// the client sees them, SeenSource and SeenDestination as the server does.
	Protocol        string         `json:"protocol"`
	Source          netip.AddrPort `json:"source"`
	Destination     netip.AddrPort `json:"destination"`
	SeenSource      netip.AddrPort `json:"seenSource,omitzero"`
	SeenDestination netip.AddrPort `json:"seenDestination,omitzero"`
	Verdict         trace.Verdict  `json:"verdict"`
	Reason          trace.Reason   `json:"reason,omitempty"`
	// Where is where it was lost, Why the step that decided: "layer/group/rule: what
	// it does".
	Where string `json:"where,omitempty"`
	Why   string `json:"why,omitempty"`
	// RestsOn are the questions that no source decides and that its packets met: a
	// network that runs has the first answer. What a lab pins is not here.
	RestsOn []Answer `json:"restsOn,omitempty"`
	// Took is the time until the answer, 0 for none.
	Took time.Duration `json:"took,omitempty"`
	// Repeats counts further first packets of the same connection without an answer.
	Repeats int `json:"repeats,omitempty"`
}

// Answer is the answer that a network that runs has to a question that no source decides.
type Answer struct {
	// Param is the lab parameter that pins another answer, About the machine or rule
	// that it is about, Value the answer as a lab writes it, Means what it means.
	Param string `json:"param"`
	About string `json:"about,omitempty"`
	Value string `json:"value"`
	Means string `json:"means"`
}

// rest notes the answers that a packet of a connection has met.
func (c *Connection) rest(met []trace.Choice) {
	for _, m := range met {
		if a := (Answer{m.Param, m.Where, m.Value, m.Label}); !slices.Contains(c.RestsOn, a) {
			c.RestsOn = append(c.RestsOn, a)
		}
	}
}

// How long a connection may take until it counts as without an answer, and how long
// its first packets are then taken for the same attempt.
const (
	answerWithin = time.Second
	sameAttempt  = 10 * time.Second
)

// maxPending bounds the connections that wait for an answer.
const maxPending = 1 << 16

// watch follows connections for those who look on. The Net's lock is around it.
type watch struct {
	p       packet.Packet
	to      []*watcher
	pending map[packet.Tuple]*pending // by the client's tuple
	servers map[packet.Tuple]*pending // by the tuple of the server's answers
}

type watcher struct {
	events chan Connection
	missed uint64
}

type pending struct {
	Connection
	client, answer packet.Tuple
	done           bool
	// held says that the first packet is on its way over a slow link; within is how
	// long the answer may take.
	held   bool
	within time.Duration
}

func (w *watch) init() {
	w.pending, w.servers = map[packet.Tuple]*pending{}, map[packet.Tuple]*pending{}
}

// Watch reports connections from now on until stop is called. A reader that is
// slower than the network misses some; missed says how many.
func (n *Net) Watch() (events <-chan Connection, missed func() uint64, stop func()) {
	v := &watcher{events: make(chan Connection, 4096)}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.watch.to = append(n.watch.to, v)
	if len(n.watch.to) == 1 {
		go n.expire()
	}
	return v.events, func() uint64 {
			n.mu.Lock()
			defer n.mu.Unlock()
			return v.missed
		}, func() {
			n.mu.Lock()
			defer n.mu.Unlock()
			if i := slices.Index(n.watch.to, v); i >= 0 {
				n.watch.to = slices.Delete(n.watch.to, i, i+1)
				close(v.events)
			}
		}
}

// expire ends attempts without an answer while somebody looks on.
func (n *Net) expire() {
	tick := time.NewTicker(answerWithin / 4)
	defer tick.Stop()
	for now := range tick.C {
		n.mu.Lock()
		w := &n.watch
		on := len(w.to) > 0 && !n.closed
		for t, p := range w.pending {
			switch {
			case !on || p.done && now.Sub(p.Time) > sameAttempt:
				delete(w.pending, t)
				delete(w.servers, p.answer)
			case !p.done && !p.held && now.Sub(p.Time) > p.within:
				// Nothing was lost, and nothing came back: the program there is silent.
				w.end(p, trace.NoReply, "", p.Why)
			}
		}
		n.mu.Unlock()
		if !on {
			return
		}
	}
}

// maxWatched bounds the frames that are looked at: larger ones open nothing.
const maxWatched = 2048

// wants reports whether the steps of a frame are asked for.
func (w *watch) wants(frame []byte) bool {
	if len(w.to) == 0 || len(frame) > maxWatched || w.p.Load(frame) != nil {
		return false
	}
	h, t := w.p.Headers(), w.p.Tuple()
	if answer := w.servers[t]; answer != nil {
		return !answer.done
	}
	return h.Opens() && !h.EthDst.IsMulticast() && w.pending[t] == nil
}

// see takes what became of a frame. The frame is in w.p if wants has looked at it.
// One that goes on after a slow link held it was seen before.
func (w *watch) see(n *Net, from *space, frame []byte, f inject.Outcome, arrived []inject.Arrival, goesOn bool) {
	if len(w.to) == 0 || len(frame) > maxWatched || w.p.Load(frame) != nil || w.p.Headers().IPVersion == 0 || group(frame) {
		return
	}
	h, t := w.p.Headers(), w.p.Tuple()
	if answer := w.servers[t]; answer != nil {
		if !answer.done {
			answer.rest(n.ports.Answers())
		}
		if len(arrived) == 0 && !answer.done && !f.Held {
			answer.Where = f.Where()
			w.end(answer, lostAnswer(f), f.Reason, decidingStep(n.ports.Steps()))
		}
	} else if h.Opens() {
		w.opened(n, from, h, t, f, arrived, goesOn)
	}
	for i := range arrived {
		a := arrived[i].Packet
		p := w.pending[a.Tuple().Reverse()]
		if p == nil || p.done || arrived[i].To.Name != p.From {
			continue
		}
		p.Took = time.Since(p.Time)
		if ah := a.Headers(); ah.Proto == packet.TCP && ah.TCPFlags&packet.RST != 0 {
			w.end(p, trace.Rejected, trace.PortClosed, p.Why)
		} else {
			w.end(p, trace.Delivered, trace.OK, p.Why)
		}
	}
}

// lostAnswer is the verdict of an attempt whose answer was lost.
func lostAnswer(f inject.Outcome) trace.Verdict {
	if f.Verdict == trace.Unknown {
		return trace.Unknown
	}
	return trace.NoReply
}

// opened notes the first packet of a connection.
func (w *watch) opened(n *Net, from *space, h *packet.Headers, t packet.Tuple, f inject.Outcome, arrived []inject.Arrival, goesOn bool) {
	if p := w.pending[t]; goesOn {
		if p != nil && p.held && !p.done {
			w.reached(n, p, h, f, arrived)
		}
		return
	} else if p != nil {
		if p.Repeats++; p.done && (time.Since(p.Time) > sameAttempt || p.Reason == trace.LinkLoss) {
			delete(w.pending, t)
			delete(w.servers, p.answer)
		} else {
			return
		}
	}
	if len(w.pending) >= maxPending {
		for _, v := range w.to {
			v.missed++
		}
		return
	}
	p := &pending{client: t, Connection: Connection{Time: time.Now(), From: from.name, Protocol: h.Proto.String(),
		Source: netip.AddrPortFrom(h.Src, h.SrcPort), Destination: netip.AddrPortFrom(h.Dst, h.DstPort)}}
	w.pending[t] = p
	w.reached(n, p, h, f, arrived)
}

// reached notes what became of the first packet of a connection.
func (w *watch) reached(n *Net, p *pending, h *packet.Headers, f inject.Outcome, arrived []inject.Arrival) {
	p.Why = decidingStep(n.ports.Steps())
	p.rest(n.ports.Answers())
	if p.held = f.Held; p.held {
		return
	}
	// The answer may take as long as the packet did.
	p.within = answerWithin + 2*time.Since(p.Time)
	if len(arrived) == 0 {
		p.Where = f.Where()
		w.end(p, f.Verdict, f.Reason, p.Why)
		return
	}
	a := &arrived[0]
	ah := a.Packet.Headers()
	p.To, p.SeenSource, p.SeenDestination = a.To.Name, netip.AddrPortFrom(ah.Src, ah.SrcPort), netip.AddrPortFrom(ah.Dst, ah.DstPort)
	if a.To.Name == p.From && ah.Dst == h.Src {
		return // the simulation answered itself: see takes that for the answer
	}
	p.answer = a.Packet.Tuple().Reverse()
	w.servers[p.answer] = p
}

// end reports an attempt.
func (w *watch) end(p *pending, v trace.Verdict, r trace.Reason, why string) {
	p.done, p.Verdict, p.Reason, p.Why = true, v, r, why
	for _, to := range w.to {
		select {
		case to.events <- p.Connection:
		default:
			to.missed++
		}
	}
}

// decidingStep is the step that decided: the one that ended the way, else the last choice of a
// load balancer, else the last rule that changed the packet.
func decidingStep(steps []trace.Step) string {
	best, rank := -1, 0
	for i := range steps {
		s, r := &steps[i], 0
		switch {
		case s.Reason != "" && s.Reason != trace.OK:
			r = 3
		case s.Rule != "" && strings.HasPrefix(s.RuleType, "lb"):
			r = 2
		case s.Rule != "" && s.Action == trace.ActRewrite:
			r = 1
		}
		if r > 0 && r >= rank {
			best, rank = i, r
		}
	}
	if best < 0 {
		return ""
	}
	s := &steps[best]
	if s.Rule != "" {
		return s.Place + " " + s.Layer + "/" + s.Rule + ": " + s.Text()
	}
	return s.Place + ": " + s.Text()
}
