package compare

import (
	"cmp"
	"net/netip"
	"slices"
	"time"
)

// exchange is a first packet that was seen, and its answer.
type exchange struct {
	proto string
	// request and reply are their sightings, in the order of the files; the first one is
	// nearest to the sender.
	request, reply []*sighting
	// sent counts how often the request was sent.
	sent int
	// times counts how often a place saw it in one form, for captures that do not say which of
	// these are one packet.
	times map[timesKey]int
}

type timesKey struct {
	file, component, macs string
	form                  form
}

// exchanges sorts sightings into connections. Two sightings are of one packet when the one who
// saw them says so, or when they are a SYN with the same number, which no translation changes.
func exchanges(all []*sighting) (list []*exchange) {
	x := sorting{byID: map[packetID]*sorted{}, bySYN: map[uint32]*exchange{}}
	var tunnels []*sighting
	for _, s := range all {
		if s.onlyOuter() {
			tunnels = append(tunnels, s)
			continue
		}
		x.add(s)
	}
	// What shows the tunnel alone is of the packet that another component saw open.
	for _, s := range tunnels {
		if of := x.byID[s.packet]; of != nil {
			of.add(s)
		}
	}
	for _, e := range x.list {
		inOrder(e.request)
		inOrder(e.reply)
	}
	return x.list
}

// sorted is where the sightings of a packet belong.
type sorted struct {
	e     *exchange
	reply bool
}

func (o *sorted) add(s *sighting) {
	if o.reply {
		o.e.reply = append(o.e.reply, s)
	} else {
		o.e.request = append(o.e.request, s)
	}
}

type sorting struct {
	list  []*exchange
	byID  map[packetID]*sorted
	bySYN map[uint32]*exchange // by the number of the SYN
}

func (x *sorting) add(s *sighting) {
	if of := x.byID[s.packet]; of != nil && s.packet.group != 0 {
		of.add(s)
		return
	}
	of := x.belongs(s)
	if of == nil {
		return
	}
	switch k := (timesKey{s.file, s.component, s.srcMAC + s.dstMAC, s.form}); {
	case s.packet.group != 0:
		x.byID[s.packet] = of
		if !of.reply {
			of.e.sent++
		}
	case !of.reply:
		of.e.times[k]++
		of.e.sent = max(of.e.sent, of.e.times[k])
	}
	of.add(s)
}

// belongs finds the exchange of the first sighting of a packet, or begins one; nil is for packets
// in the middle of a connection.
func (x *sorting) belongs(s *sighting) *sorted {
	switch {
	case s.proto == "tcp":
		return x.tcp(s)
	case s.proto == "icmp" && !s.echo && !s.echoReply:
		return nil
	}
	for _, e := range x.list {
		if e.proto != s.proto {
			continue
		}
		if of := e.takes(s); of != nil {
			return of
		}
	}
	if s.echoReply {
		return nil
	}
	return &sorted{x.begin(s), false}
}

// tcp finds the exchange of a SYN or of the answer to one.
func (x *sorting) tcp(s *sighting) *sorted {
	switch {
	case !s.syn:
		return nil
	case s.isAck:
		if e := x.bySYN[s.ack-1]; e != nil {
			return &sorted{e, true}
		}
		return nil
	}
	e := x.bySYN[s.seq]
	if e == nil {
		e = x.begin(s)
		x.bySYN[s.seq] = e
	}
	return &sorted{e, false}
}

// takes says as what a datagram or an echo belongs to the exchange, nil for not at all.
func (e *exchange) takes(s *sighting) *sorted {
	for _, r := range e.request {
		switch {
		case sameMark(r, s), s.sends() && r.src == s.src && r.dst == s.dst && r.seq == s.seq:
			return &sorted{e, false}
		case r.src == s.dst && r.dst == s.src && !s.echo && r.seq == s.seq:
			return &sorted{e, true}
		}
	}
	for _, r := range e.reply { // in a form that is not the request's backwards
		if sameMark(r, s) {
			return &sorted{e, true}
		}
	}
	return nil
}

// sends reports whether a datagram or an echo may be the first of an exchange.
func (s *sighting) sends() bool { return s.proto == "udp" || s.echo }

// oneMoment is the time within which two datagrams with one payload are one datagram. A resolver
// asks again after a second at the soonest.
const oneMoment = time.Second

// sameMark reports whether two sightings are of one packet by what no translation changes. A load
// balancer can change both ends of a datagram; nothing does that to an echo.
func sameMark(a, b *sighting) bool {
	switch {
	case b.mark == "" || a.mark != b.mark:
		return false
	case a.src.Addr() == b.src.Addr() || a.dst.Addr() == b.dst.Addr():
		return true
	}
	return b.proto == "udp" && !a.time.IsZero() && !b.time.IsZero() && a.time.Sub(b.time).Abs() < oneMoment
}

func (x *sorting) begin(s *sighting) *exchange {
	e := &exchange{proto: s.proto, times: map[timesKey]int{}}
	x.list = append(x.list, e)
	return e
}

// inOrder sorts sightings by time, and by file and line where one has no time.
func inOrder(all []*sighting) {
	first := map[string]int{}
	timed := true
	for _, s := range all {
		if _, ok := first[s.file]; !ok {
			first[s.file] = len(first)
		}
		timed = timed && !s.time.IsZero()
	}
	slices.SortStableFunc(all, func(a, b *sighting) int {
		if c := a.time.Compare(b.time); c != 0 && timed {
			return c
		}
		return cmp.Or(cmp.Compare(first[a.file], first[b.file]), cmp.Compare(a.line, b.line))
	})
}

// first is the sighting nearest to the sender that shows more than a tunnel.
func (e *exchange) first(owner func(netip.Addr) string) *sighting {
	var open *sighting
	for _, s := range e.request {
		if s.onlyOuter() {
			continue
		}
		if open == nil {
			open = s
		}
		if owner(s.src.Addr()) == s.node { // the sender is on this node
			return s
		}
	}
	return open
}
