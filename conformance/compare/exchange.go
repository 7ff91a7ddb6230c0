package compare

import (
	"cmp"
	"net/netip"
	"slices"
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
	x := sorting{byID: map[packetID]*sorted{}, bySYN: map[synKey]*exchange{}}
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

type synKey struct {
	seq   uint32
	reply bool
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
	bySYN map[synKey]*exchange
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
	switch s.proto {
	case "tcp":
		switch {
		case s.syn && !s.isAck:
			e := x.bySYN[synKey{s.seq, false}]
			if e == nil {
				e = x.begin(s)
				x.bySYN[synKey{s.seq, false}] = e
			}
			return &sorted{e, false}
		case s.syn:
			if e := x.bySYN[synKey{s.ack - 1, false}]; e != nil {
				return &sorted{e, true}
			}
		}
		return nil
	case "icmp":
		if !s.echo && !s.echoReply {
			return nil
		}
	}
	for _, e := range x.list { // the last packets of a long capture find theirs at once
		if e.proto != s.proto {
			continue
		}
		for _, r := range e.request {
			switch {
			case r.onlyOuter():
			case s.mark != "" && r.mark == s.mark && (r.src.Addr() == s.src.Addr() || r.dst.Addr() == s.dst.Addr()):
				return &sorted{e, false}
			case r.src == s.dst && r.dst == s.src && !s.echo && (s.proto != "icmp" || r.seq == s.seq):
				return &sorted{e, true}
			case r.src == s.src && r.dst == s.dst && s.proto == "icmp" && s.echo && r.seq == s.seq, s.proto == "udp" && r.src == s.src && r.dst == s.dst:
				return &sorted{e, false}
			}
		}
	}
	for _, e := range x.list { // an answer in a form that the request was not seen in
		for _, r := range e.reply {
			if s.mark != "" && r.mark == s.mark && (r.src.Addr() == s.src.Addr() || r.dst.Addr() == s.dst.Addr()) {
				return &sorted{e, true}
			}
		}
	}
	if s.echoReply {
		return nil
	}
	return &sorted{x.begin(s), false}
}

func (x *sorting) begin(s *sighting) *exchange {
	e := &exchange{proto: s.proto, times: map[timesKey]int{}}
	x.list = append(x.list, e)
	return e
}

// inOrder sorts sightings by time, and by file and line where one has none.
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
