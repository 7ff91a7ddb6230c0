package compare

import (
	"bytes"
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/winlab-dev/winlab/internal/lazyregexp"
	doc "github.com/winlab-dev/winlab/reports/compare"
	"github.com/winlab-dev/winlab/sim/windows/dump"
)

// maxFile is the size in bytes of a file that is read into memory.
const maxFile = 64 << 20

// evidence is what a bundle shows of its nodes.
type evidence struct {
	// ports are the listings of rules, by node.
	ports     map[string][]dump.Port
	sightings []*sighting
	tuples    []asked
}

// asked is a tuple that somebody wants to try.
type asked struct {
	text string
	file string
	line int
}

// processTuples is how somebody asks VFP; the form of the arguments is that of the program's help.
var processTuples = lazyregexp.New(`(?i)/process-tuples\s+["']([^"']+)["']`)

// read reads all files of the bundle that show something to compare.
func (x *comparison) read(ctx context.Context) (*evidence, error) {
	e := &evidence{ports: map[string][]dump.Port{}}
	facts := map[string]*dump.Facts{}
	for _, file := range x.b.Files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		head, err := x.b.Head(file, 1<<16)
		if err != nil || len(head) == 0 {
			continue // the importer has named what cannot be read
		}
		node := x.nodeOf(file)
		if large := x.b.Size(file) > maxFile; large {
			if isCapture(head) || bytes.Contains(head, []byte("PktGroupId")) || bytes.Contains(head, []byte("RULE :")) {
				x.notRead(file, 0, node, "it has more than 64 MiB; filter it, and convert a part")
			}
			continue
		}
		data, err := x.b.Read(file)
		if err != nil {
			continue
		}
		if isCapture(head) {
			x.capture(e, file, node, data)
			continue
		}
		text, ok := dump.Decode(data)
		if !ok {
			continue
		}
		x.text(e, facts, file, node, text)
	}
	for node, f := range facts {
		e.ports[node] = f.Ports
	}
	return e, nil
}

// text reads what a file of text shows.
func (x *comparison) text(e *evidence, facts map[string]*dump.Facts, file, node, text string) {
	l := dump.Split(file, text)
	if dump.IsPacketLog(text) {
		x.packetLog(e, file, node, dump.ReadPacketLog(l))
		return
	}
	if name := file[strings.LastIndexByte(file, '/')+1:]; name == "tuples.txt" {
		x.listed(e, l)
		return
	}
	rules := dump.HasAny(text, "RULE :", "Port name", `"Rules"`)
	asked := strings.Contains(text, "process-tuples")
	if !rules && !asked {
		return
	}
	if f := facts[node]; f == nil {
		facts[node] = &dump.Facts{}
	}
	f := facts[node]
	for _, s := range dump.Sections(l) {
		command := s.Command
		if command == nil {
			command = x.command(file)
		}
		if command != nil && strings.Contains(strings.ToLower(command.Text), "process-tuples") {
			if m := processTuples.FindStringSubmatch(command.Text); m != nil {
				e.tuples = append(e.tuples, tried(m[1], file, command.Place.Line))
			}
			x.doc.NotRead = append(x.doc.NotRead, doc.NotRead{Place: x.place(file, command.Place.Line), Node: doc.Name(node),
				Why: "what /process-tuples prints: no public example is known. Compare it with what the model does to this tuple"})
			continue
		}
		if node == "" || !rules {
			continue
		}
		for _, p := range dump.Parts(s.Lines) {
			if !p.JSON {
				f.ReadText(command, p.Lines)
				continue
			}
			trees, err := dump.JSONTrees(p.Lines)
			if err != nil {
				x.notRead(file, p.First, node, "it is not JSON to its end")
				continue
			}
			for _, o := range trees {
				f.ReadObject(command, p.Lines, o)
			}
		}
	}
	if rules && node == "" {
		x.notRead(file, 0, "", "nothing says of which node it is; put it into a folder with the files of its node")
	}
}

// command is what the manifest says that a file comes from: listings do not name their port.
func (x *comparison) command(file string) *dump.Command {
	if x.b.Manifest == nil {
		return nil
	}
	m, ok := x.b.Manifest.Find(file)
	if !ok || !strings.Contains(m.From, "/port ") || strings.Contains(m.From, "/port GUID") {
		return nil
	}
	return &dump.Command{Text: m.From, From: "node", Place: dump.Place{File: file}}
}

// listed reads tuples.txt: one tuple on a line, # for remarks.
func (x *comparison) listed(e *evidence, l dump.Lines) {
	n := len(e.tuples)
	for i, text := range l.Text {
		if text = strings.TrimSpace(text); text != "" && text[0] != '#' {
			e.tuples = append(e.tuples, tried(strings.Trim(text, `"'`), l.File, l.First+i))
		}
	}
	x.doc.Read = append(x.doc.Read, doc.Read{Place: x.place(l.File, 0), What: "tuples to try", Count: len(e.tuples) - n})
}

func tried(text, file string, line int) asked { return asked{text: text, file: file, line: line} }

// packetLog takes what pktmon saw.
func (x *comparison) packetLog(e *evidence, file, node string, log *dump.PacketLog) {
	if node == "" {
		node = x.nodeOfComponents(log.Components)
	}
	x.doc.Read = append(x.doc.Read, doc.Read{Place: x.place(file, 0), Node: doc.Name(node), What: "packets that pktmon saw",
		Count: len(log.Sightings)})
	if log.Unread > 0 {
		x.doc.NotRead = append(x.doc.NotRead, doc.NotRead{Place: x.place(file, 0), Node: doc.Name(node),
			Why: "sightings of packets in a form that is not read: other protocols, or a form of which no public example is known"})
	}
	if node == "" {
		x.notRead(file, 0, "", "nothing says on which node it was taken; put it into a folder with the files of its node")
		return
	}
	names := map[int]string{}
	for _, c := range log.Components {
		names[c.ID] = c.Name
	}
	for i := range log.Sightings {
		s := &log.Sightings[i]
		e.sightings = append(e.sightings, &sighting{
			node: node, file: file, line: s.Place.Line, time: clock(s.Time), component: names[s.Component],
			packet:  packetID{file: file, group: s.Group, number: s.Number},
			header:  headerOf(&s.Header),
			dropped: s.Dropped, reason: s.DropReason, code: hexCode(s.DropCode),
		})
	}
}

// clock is a time as pktmon prints it, with a date or without; zero for none.
func clock(s string) time.Time {
	for _, form := range []string{"2006-01-02 15:04:05.999999999", "15:04:05.999999999"} {
		if t, err := time.Parse(form, s); err == nil {
			return t
		}
	}
	return time.Time{}
}

// hexCode is a code as pktmon writes it, "" for anything else.
func hexCode(s string) string {
	if len(s) < 3 || len(s) > 10 || !strings.HasPrefix(s, "0x") || strings.Trim(s[2:], "0123456789abcdefABCDEF") != "" {
		return ""
	}
	return s
}

// nodeOfComponents is the node that has the addresses of pktmon's components.
func (x *comparison) nodeOfComponents(all []dump.Component) string {
	var found []string
	for _, c := range all {
		for _, a := range c.Addresses {
			if m := x.c.Owner(a); m != nil && m.Node != nil && a.IsGlobalUnicast() && !slices.Contains(found, m.Node.Name) {
				found = append(found, m.Node.Name)
			}
		}
	}
	if len(found) == 1 {
		return found[0]
	}
	return ""
}

func headerOf(h *dump.Header) header {
	out := header{srcMAC: strings.ToUpper(h.SrcMAC), dstMAC: strings.ToUpper(h.DstMAC), proto: h.Protocol, form: form{src: h.Src, dst: h.Dst},
		echo: h.Echo, echoReply: h.EchoReply, id: h.ID, seq: uint32(h.EchoSeq)}
	if h.Protocol == "tcp" {
		out.seq, out.ack = h.Seq, h.Ack
		out.syn, out.isAck = strings.Contains(h.Flags, "S"), strings.Contains(h.Flags, ".")
	}
	if h.Protocol == "udp" && slices.Contains(tunnelPorts, h.Dst.Port()) {
		// The text ends at the tunnel's own header.
		out.form = form{outerSrc: h.Src.Addr(), outerDst: h.Dst.Addr()}
	}
	return out
}

// tunnelPorts are those of VXLAN (RFC 7348), of Linux' older default, and of Geneve (RFC 8926).
var tunnelPorts = []uint16{4789, 8472, 6081}

// form is what two sightings of a packet are compared by.
type form struct {
	src, dst           netip.AddrPort
	outerSrc, outerDst netip.Addr
}

// onlyOuter says that what is in the tunnel was not seen.
func (f form) onlyOuter() bool { return !f.src.IsValid() }

// header is what a sighting says of a packet.
type header struct {
	srcMAC, dstMAC string
	proto          string
	form
	syn, isAck, echo, echoReply bool
	seq, ack                    uint32
	id                          uint16
}

// packetID says which sightings are of one packet, as far as the one who saw them says so.
type packetID struct {
	file   string
	group  uint64
	number int
}

// sighting is a packet in one place of a node.
type sighting struct {
	node, file, component string
	line                  int
	time                  time.Time // zero where nothing says it
	packet                packetID
	header
	dropped      bool
	reason, code string
	// mark is what no translation changes of a packet that carries no number of its own: the
	// sequence number of an echo, and the payload; "" where the packet has its group.
	mark string
}
