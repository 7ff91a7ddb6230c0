package dump

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// PacketLog is what pktmon prints of the packets that it saw: pktmon etl2txt, or
// pktmon start with --log-mode real-time.
//
// The form is that of outputs that people posted: microsoft/Windows-Containers issue 439
// (20348, etl2txt, an l2bridge network of Kubernetes), the article of Microsoft Learn on
// dropped packets ("Discarded packets"), and RoseSecurity/Red-Teaming-TTPs Windows.md
// (real-time). The text of a packet is tcpdump's. Newer builds print "MAC:", "IPv4:" and
// "TCP:" on lines of their own; no such output has been published with its whole
// context, so it is counted as not read.
type PacketLog struct {
	Components []Component
	Sightings  []Sighting
	// Unread counts sightings of which the packet was not understood: other protocols, other
	// forms, lines that were cut.
	Unread int
}

// Component is a part of the network stack that pktmon lists: a driver, a NIC, a port of the
// switch.
type Component struct {
	ID         int
	Type, Name string
	// MAC is that of its adapter, "00-15-5D-3A-AA-31"; "" if not shown.
	MAC       string
	Addresses []netip.Addr
	Place     Place
}

// Sighting is a packet where a component saw it.
type Sighting struct {
	// Group and Number are the packet's own in pktmon: each component that sees the packet
	// reports the same. Appearance counts these reports from 1; it is 0 for a drop.
	Group              uint64
	Number, Appearance int
	Component          int
	// Rx says that it came to the component from below, else it goes down.
	Rx bool
	// Time is "" if the log does not show it.
	Time string
	// Dropped says that the component dropped it, with pktmon's reason and place in the code.
	Dropped              bool
	DropReason, DropCode string
	Header               Header
	Place                Place
}

// Header is what a printed packet says of itself.
type Header struct {
	// SrcMAC and DstMAC are "00-15-5D-3A-AA-31", "" where the frame was not an Ethernet frame.
	SrcMAC, DstMAC string
	// Protocol is "tcp", "udp" or "icmp".
	Protocol string
	// Src and Dst have port 0 for icmp.
	Src, Dst netip.AddrPort
	// Flags are the flags of TCP as tcpdump prints them, "S" or "P."; Seq its first number and
	// Ack the number that it acknowledges, 0 where they are not printed.
	Flags    string
	Seq, Ack uint32
	// Echo says that it is an echo request, EchoReply that it is the answer.
	Echo, EchoReply bool
	// ID and EchoSeq are those of an echo request or reply.
	ID, EchoSeq uint16
}

// pktmonMark is in the line of every sighting.
const pktmonMark = "PktGroupId "

// IsPacketLog reports whether a text is one that [ReadPacketLog] reads.
func IsPacketLog(text string) bool {
	i := strings.Index(text, pktmonMark)
	return i >= 0 && strings.Contains(text[i:min(len(text), i+400)], "Component ")
}

// OnlyPackets reports whether a text is what pktmon printed and nothing else: its lines begin with
// "[01]36E0", which is not JSON, and show no state of a node.
func OnlyPackets(l Lines) bool {
	mark := false
	for _, t := range l.Text {
		if mark = mark || strings.Contains(t, pktmonMark); strings.HasPrefix(strings.TrimSpace(t), "{") {
			return false
		}
	}
	return mark && IsPacketLog(l.Join())
}

// ReadPacketLog reads what pktmon printed.
func ReadPacketLog(l Lines) *PacketLog {
	r := &pktmonReader{log: &PacketLog{}, byID: map[int]int{}}
	for i, text := range l.Text {
		r.line(text, l.Place(i))
	}
	r.end()
	return r.log
}

type pktmonReader struct {
	log  *PacketLog
	byID map[int]int // of components, by their number
	// open is the sighting whose packet comes on the next lines.
	open *Sighting
}

func (r *pktmonReader) end() {
	if r.open != nil {
		r.log.Unread++
		r.open = nil
	}
}

func (r *pktmonReader) line(text string, at Place) {
	if i := strings.Index(text, pktmonMark); i >= 0 {
		r.end()
		r.open = sighting(text, i, at)
		if r.open == nil {
			r.log.Unread++
		}
		return
	}
	if r.open != nil && !Blank(text) {
		// Most indent it; of a packet on several lines the first with addresses counts.
		if h, ok := printedPacket(strings.TrimPrefix(strings.TrimSpace(text), "Drop: ")); ok {
			r.open.Header = h
			r.log.Sightings = append(r.log.Sightings, *r.open)
			r.open = nil
			return
		}
		if Indent(text) > 0 {
			return
		}
	}
	r.component(text, at)
}

// sighting reads the first line of one, in which the mark is at i:
//
//	[01]36E0.37B0::2024-04-02 10:26:54.059070900 [Microsoft-Windows-PktMon] PktGroupId 281474976710694, PktNumber 1, Appearance 1, Direction Tx , Type Ethernet , Component 57, Edge 1, Filter 1, OriginalSize 74, LoggedSize 74
func sighting(text string, i int, at Place) *Sighting {
	s := &Sighting{Place: at}
	head := text[:i]
	if strings.HasSuffix(head, "Drop: ") {
		s.Dropped, head = true, strings.TrimSuffix(head, "Drop: ")
	}
	head = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(head), "[Microsoft-Windows-PktMon]"))
	if _, after, ok := strings.Cut(head, "::"); ok {
		head = after
	}
	s.Time = clock(head)
	known, inReason := false, false
	for _, field := range strings.Split(text[i:], ", ") {
		key, value, _ := strings.Cut(strings.TrimSpace(field), " ")
		value = strings.TrimSpace(value)
		n, err := strconv.ParseUint(value, 10, 64)
		known = known || err == nil
		switch key {
		case "PktGroupId":
			s.Group = n
		case "PktNumber":
			s.Number = int(min(n, 1<<30))
		case "Appearance":
			s.Appearance = int(min(n, 1<<30))
		case "Direction":
			s.Rx = value == "Rx" || value == "Ingress"
		case "Component":
			s.Component = int(min(n, 1<<30))
		case "DropReason":
			s.DropReason, inReason = value, true
		case "DropLocation":
			s.DropCode, inReason = value, false
		default:
			if inReason { // one with a comma
				s.DropReason += ", " + strings.TrimSpace(field)
			}
		}
	}
	if !known || s.Component == 0 {
		return nil
	}
	return s
}

// clock is the time at the end of a heading, "" for none: what a machine has for its date is
// not needed.
func clock(head string) string {
	f := strings.Fields(head)
	if len(f) == 0 {
		return ""
	}
	t := f[len(f)-1]
	if i := strings.LastIndexByte(t, '-'); i >= 0 { // 2025/03/27-16:12:13.966
		t = t[i+1:]
	}
	if _, err := time.Parse("15:04:05.999999999", t); err != nil {
		return ""
	}
	return strings.Join(f[max(0, len(f)-2):], " ")
}

// printedPacket reads a packet as tcpdump prints it, with its Ethernet header or without.
//
//	00-15-5D-3A-AA-31 > 00-15-5D-C9-8C-10, ethertype IPv4 (0x0800), length 74: 10.127.130.131 > 10.127.130.9: ICMP echo request, id 1, seq 759, length 40
//	ip: 192.168.5.88.50005 > 192.168.5.68.50005: UDP, length 374
func printedPacket(text string) (h Header, ok bool) {
	rest := text
	if a, after, found := strings.Cut(rest, " > "); found && isMAC(a) {
		b, more, found := strings.Cut(after, ", ")
		if !found || !isMAC(b) || !strings.HasPrefix(more, "ethertype IPv") {
			return h, false
		}
		h.SrcMAC, h.DstMAC = strings.ToUpper(a), strings.ToUpper(b)
		if _, rest, found = strings.Cut(more, ": "); !found {
			return h, false
		}
	} else if after, found := strings.CutPrefix(rest, "ip: "); found {
		rest = after
	} else if after, found := strings.CutPrefix(rest, "ip6: "); found {
		rest = after
	}
	a, rest, found := strings.Cut(rest, " > ")
	if !found {
		return h, false
	}
	b, rest, found := strings.Cut(rest, ": ")
	if !found {
		return h, false
	}
	if strings.HasPrefix(rest, "ICMP") {
		return icmpPacket(h, a, b, rest)
	}
	if h.Src, ok = addrPort(a); !ok {
		return h, false
	}
	if h.Dst, ok = addrPort(b); !ok {
		return h, false
	}
	if after, found := strings.CutPrefix(rest, "Flags ["); found {
		h.Protocol = "tcp"
		if h.Flags, rest, found = strings.Cut(after, "]"); !found {
			return h, false
		}
		h.Seq, h.Ack = numberAfter(rest, "seq "), numberAfter(rest, "ack ")
		return h, true
	}
	// tcpdump writes "UDP, length 374", or decodes what it knows by its port, such as DNS.
	// Of the protocols with ports only TCP begins with its flags; SCTP says its name.
	h.Protocol = "udp"
	return h, !strings.HasPrefix(rest, "sctp")
}

// numberAfter is the number behind a word, 0 for none.
func numberAfter(s, word string) uint32 {
	_, after, _ := strings.Cut(s, word)
	n, _ := strconv.ParseUint(after[:len(after)-len(strings.TrimLeft(after, "0123456789"))], 10, 32)
	return uint32(n)
}

func icmpPacket(h Header, a, b, rest string) (Header, bool) {
	src, err1 := netip.ParseAddr(a)
	dst, err2 := netip.ParseAddr(b)
	if err1 != nil || err2 != nil {
		return h, false
	}
	h.Protocol, h.Src, h.Dst = "icmp", netip.AddrPortFrom(src, 0), netip.AddrPortFrom(dst, 0)
	h.Echo, h.EchoReply = strings.Contains(rest, "echo request"), strings.Contains(rest, "echo reply")
	number := func(key string) uint16 {
		for _, f := range strings.Split(rest, ", ") {
			if v, ok := strings.CutPrefix(f, key+" "); ok {
				n, _ := strconv.ParseUint(v, 10, 16)
				return uint16(n)
			}
		}
		return 0
	}
	h.ID, h.EchoSeq = number("id"), number("seq")
	return h, h.Echo || h.EchoReply
}

// addrPort reads an address and a port as tcpdump joins them: 192.168.5.88.50005.
func addrPort(s string) (netip.AddrPort, bool) {
	i := strings.LastIndexByte(s, '.')
	if i < 0 {
		return netip.AddrPort{}, false
	}
	a, err := netip.ParseAddr(s[:i])
	n, err2 := strconv.ParseUint(s[i+1:], 10, 16)
	if err != nil || err2 != nil || a.Zone() != "" {
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(a, uint16(n)), true
}

// isMAC reports whether a text is 00-15-5D-3A-AA-31.
func isMAC(s string) bool {
	if len(s) != 17 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		hex := c >= '0' && c <= '9' || c >= 'A' && c <= 'F' || c >= 'a' && c <= 'f'
		if i%3 == 2 && c != '-' || i%3 != 2 && !hex {
			return false
		}
	}
	return true
}

// component reads what pktmon says of a component at the end of a log:
//
//	[00]425C.34D8::2024-04-02 10:27:05.458538900 [Microsoft-Windows-PktMon] Component 134, Type VmsMiniport , Name vmswitch.sys, cbr0_ep
//	[00]425C.34D8::2024-04-02 10:27:05.458539800 [Microsoft-Windows-PktMon] Property: Component 134, PhysAddress  = 0x00155DC5E288
func (r *pktmonReader) component(text string, at Place) {
	i := strings.Index(text, "Component ")
	if i < 0 || strings.Contains(text, "Counters:") {
		return
	}
	number, rest, found := strings.Cut(text[i+len("Component "):], ", ")
	id, err := strconv.Atoi(number)
	if !found || err != nil || id <= 0 {
		return
	}
	if !strings.HasSuffix(text[:i], "Property: ") {
		typ, rest, found := strings.Cut(rest, ", Name ")
		typ, isType := strings.CutPrefix(typ, "Type ")
		if found && isType {
			c := r.componentByID(id, at)
			c.Type, c.Name = strings.TrimSpace(typ), strings.TrimSpace(rest)
		}
		return
	}
	key, value, found := strings.Cut(rest, "=")
	if !found {
		return
	}
	value = strings.TrimSpace(value)
	switch strings.TrimSpace(key) {
	case "PhysAddress", "Physical Address":
		if mac := dashes(strings.ToUpper(strings.TrimPrefix(value, "0x"))); isMAC(mac) {
			r.componentByID(id, at).MAC = mac
		}
	case "IP Address":
		if a, err := netip.ParseAddr(value); err == nil {
			if c := r.componentByID(id, at); !slices.Contains(c.Addresses, a) {
				c.Addresses = append(c.Addresses, a)
			}
		}
	}
}

func (r *pktmonReader) componentByID(id int, at Place) *Component {
	i, ok := r.byID[id]
	if !ok {
		i = len(r.log.Components)
		r.byID[id] = i
		r.log.Components = append(r.log.Components, Component{ID: id, Place: at})
	}
	return &r.log.Components[i]
}
