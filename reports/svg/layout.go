package svg

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/winlab-dev/winlab/reports/clean"
	"github.com/winlab-dev/winlab/sim/trace"
)

// A card is what happened in one place without leaving it.
type card struct {
	place string
	leg   trace.Leg
	lane  int
	rows  []row
	// flow is the packet as it is after the card, changed whether the card
	// changed its addresses, tunnel and outer what is around it.
	flow    string
	changed bool
	tunnel  string
	outer   string
	// encIn and encOut say whether the packet came and left inside a tunnel.
	encIn, encOut bool
	// end is how the path ends here: "" when it goes on.
	end, endText string

	band       int
	x, y, w, h int
}

// transit reports whether the card only sees the tunnel from outside.
func (c *card) transit() bool { return c.encIn && c.encOut && c.end == "" }

// A row is a heading (n is 0) or a step.
type row struct {
	n     int
	head  string   // heading: the object that acts
	label string   // first line
	tag   string   // what it did, at the right
	lines []string // further lines, the first said of them words, the rest changes
	said  int
	kind  string // class: "", "chg", "bad", "hole", "good"
	tip   string
}

const (
	charW    = 7  // width of a character of the drawing's font, rounded up
	lineH    = 16 // height of a line
	minChars = 22
	maxChars = 42
	wrapAt   = 34 // characters of a line of words
	padX     = 10
	indent   = 24 // room for the number
	gapX     = 54 // between lanes
	gapY     = 34 // between bands
	headH    = 30 // lane heading
	margin   = 30
	tubeH    = 22 // height of the tunnel
	maxCards = 24 // more are cut out of the middle
)

var tags = map[trace.Action]string{
	trace.ActAllow: "allow", trace.ActRewrite: "rewrite", trace.ActEncap: "encap", trace.ActDecap: "decap", trace.ActNoMatch: "no match",
	trace.ActDrop: "drop", trace.ActReject: "reject", trace.ActUnknown: "unknown", trace.ActCallProxy: "proxy",
}

// cards groups the steps of a path and follows the tunnel around the packet.
func cards(p *trace.Path) []*card {
	d := dealer{path: p}
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.Action == trace.ActNoMatch && len(s.Nearest) == 0 && s.Reason == "" {
			continue // a layer that had nothing to say; the list of steps has it
		}
		if d.card == nil || d.card.place != s.Place || d.card.leg != s.Leg {
			d.next(i, s)
		}
		d.heading(s)
		d.encapsulation(s)
		d.packet(s)
		d.card.rows = append(d.card.rows, stepRow(s))
		d.card.flow, d.card.tunnel, d.card.outer, d.card.encOut = d.shown, d.tunnel, d.outer, d.encapsulated
		d.end(i, s)
	}
	return cut(d.cards)
}

// dealer makes cards, step by step. It knows the packet as it is after the last step:
// flow and shown are its addresses, as the bytes have them and as the card shows them;
// tunnel and outer what is around it.
type dealer struct {
	path          *trace.Path
	cards         []*card
	card          *card  // the last
	object        string // the last heading
	flow, shown   string
	tunnel, outer string
	encapsulated  bool
}

// next begins a card for the step.
func (d *dealer) next(i int, s *trace.Step) {
	turned := i > 0 && d.path.Steps[i-1].Leg != s.Leg
	d.card = &card{place: s.Place, leg: s.Leg, encIn: d.encapsulated}
	if turned && s.Action == trace.ActAnswer {
		d.card.encIn = false
	}
	d.cards = append(d.cards, d.card)
	d.object = ""
	if turned {
		d.flow, d.shown = "", "" // the answer's addresses are the question's, swapped: no rewrite
	}
}

// heading adds a row for the object that acts, if it is another one than before.
func (d *dealer) heading(s *trace.Step) {
	o := clean.Line(s.Object)
	if s.Port != "" {
		o = strings.TrimSpace(o + " · port " + clean.Line(s.Port))
		if s.Dir != "" {
			o += " " + clean.Line(s.Dir)
		}
	}
	if o != d.object && o != "" {
		d.card.rows = append(d.card.rows, row{head: o})
		d.object = o
	}
}

func (d *dealer) encapsulation(s *trace.Step) {
	switch s.Action {
	case trace.ActEncap:
		d.encapsulated = true
		for _, ch := range s.Changes {
			switch ch.Field {
			case "vni":
				d.tunnel = "VNI " + clean.Line(ch.After.String())
			case "outer":
				d.outer = strings.ReplaceAll(clean.Line(ch.After.String()), "->", "→")
			}
		}
	case trace.ActDecap:
		d.encapsulated = false
	}
}

// packet takes the addresses from the frame, or from the simulator's own words where a
// step has no bytes.
func (d *dealer) packet(s *trace.Step) {
	if h, ok := parse(s.Frame); ok {
		d.card.changed = d.card.changed || d.flow != "" && h.flow != d.flow
		d.flow, d.shown = h.flow, h.flow
		if h.tunnel != "" {
			d.tunnel, d.outer = h.tunnel+" · VNI "+h.vni, h.outer
		}
	} else if !s.Packet.IsZero() {
		d.shown = strings.ReplaceAll(clean.Line(s.Packet.String()), "->", "→")
	}
	if !d.encapsulated {
		d.tunnel, d.outer = "", ""
	}
	if len(s.Frame) == 0 && len(s.Changes) > 0 && s.Action == trace.ActRewrite {
		d.card.changed = true
	}
}

// end says how the path ends, if it does with this step.
func (d *dealer) end(i int, s *trace.Step) {
	c := d.card
	last := i == len(d.path.Steps)-1
	switch {
	case bad(s) && (last || d.path.Steps[i+1].Leg != s.Leg):
		c.end, c.endText = "bad", cmp.Or(string(s.Reason), string(s.Action))
		if s.Action == trace.ActUnknown {
			c.end = "hole"
		}
	case last && s.Action == trace.ActDeliver && s.Leg == trace.Reply:
		c.end, c.endText = "good", "reply received"
	case last && s.Action == trace.ActDeliver:
		c.end, c.endText = "good", "delivered"
	case last && d.path.Verdict != trace.Delivered:
		c.end, c.endText = "bad", string(d.path.Reason)
	}
}

// bad reports whether a step ends a leg badly.
func bad(s *trace.Step) bool {
	switch s.Action {
	case trace.ActDrop, trace.ActReject, trace.ActUnknown:
		return true
	}
	return s.Reason != "" && s.Reason != trace.OK
}

func stepRow(s *trace.Step) row {
	r := row{n: s.N, label: clean.Line(s.Layer), tag: tags[s.Action], tip: clean.Line(s.Text())}
	if r.label == "" {
		text := wrap(clean.Line(s.Text()), wrapAt, 3)
		r.label, r.lines = text[0], text[1:]
		r.tag = ""
	} else if s.Action != trace.ActAllow && len(s.Changes) == 0 {
		r.lines = append(r.lines, wrap(clean.Line(s.Text()), wrapAt, 3)...)
	}
	r.said = len(r.lines)
	r.lines = append(r.lines, changes(s.Changes)...)
	switch {
	case s.Action == trace.ActUnknown:
		r.kind = "hole"
	case bad(s):
		r.kind = "bad"
	case len(s.Changes) > 0:
		r.kind = "chg"
	}
	return r
}

// changes writes before and after on two lines each; an address and its port
// are one change.
func changes(cs []trace.Change) []string {
	var out []string
	port := map[string]trace.Change{}
	addr := map[string]bool{}
	for _, c := range cs {
		switch c.Field {
		case "src port", "dst port":
			port[strings.TrimSuffix(c.Field, " port")] = c
		case "src", "dst":
			addr[c.Field] = true
		}
	}
	for _, c := range cs {
		field, before, after := c.Field, clean.Line(c.Before.String()), clean.Line(c.After.String())
		if side, ok := strings.CutSuffix(field, " port"); ok && addr[side] {
			continue
		}
		if p, ok := port[field]; ok {
			before, after = before+":"+clean.Line(p.Before.String()), after+":"+clean.Line(p.After.String())
		}
		one := fmt.Sprintf("%s %s → %s", field, before, after)
		switch {
		case before == "":
			one = field + " " + strings.ReplaceAll(after, "->", "→")
		case after == "":
			one = field + " " + before + " removed"
		}
		if utf8.RuneCountInString(one) <= maxChars-4 || before == "" || after == "" {
			out = append(out, one)
			continue
		}
		out = append(out, field+" "+before, strings.Repeat(" ", utf8.RuneCountInString(field)-1)+"→ "+after)
	}
	return out
}

// wrap breaks s at spaces into at most most lines of n characters; what does
// not fit stays on the last line, which is cut when it is drawn.
func wrap(s string, n, most int) []string {
	out := []string{""}
	for _, w := range strings.Fields(s) {
		last := &out[len(out)-1]
		switch {
		case *last == "":
			*last = w
		case utf8.RuneCountInString(*last)+1+utf8.RuneCountInString(w) <= n || len(out) == most:
			*last += " " + w
		default:
			out = append(out, w)
		}
	}
	return out
}

// cut takes cards out of the middle of a long path, as loops make them.
func cut(cs []*card) []*card {
	if len(cs) <= maxCards {
		return cs
	}
	head, tail := cs[:maxCards*2/3], cs[len(cs)-maxCards/3:]
	gone := cs[len(head) : len(cs)-len(tail)]
	n := 0
	for _, c := range gone {
		for _, r := range c.rows {
			if r.n > 0 {
				n++
			}
		}
	}
	mid := &card{place: gone[0].place, leg: gone[0].leg, rows: []row{{head: fmt.Sprintf("… %d steps not drawn", n)}}}
	return append(append(append([]*card{}, head...), mid), tail...)
}

// A picture is cards with their places.
type picture struct {
	cards  []*card
	lanes  []lane
	w, h   int
	top    int // of the first band
	bottom int // of the lanes
}

type lane struct {
	name string
	x, w int
}

// layout gives every card a lane (its place, in order of appearance) and a band
// (a run in which the request only goes right and the reply only left).
func layout(cs []*card) *picture {
	pic := &picture{cards: cs}
	at := map[string]int{}
	for _, c := range cs {
		i, ok := at[c.place]
		if !ok {
			i = len(pic.lanes)
			at[c.place] = i
			pic.lanes = append(pic.lanes, lane{name: clean.Line(c.place)})
		}
		c.lane = i
		if w := c.width(); w > pic.lanes[i].w {
			pic.lanes[i].w = w
		}
	}
	x := margin
	for i := range pic.lanes {
		if n := utf8.RuneCountInString(pic.lanes[i].name)*8 + 2*padX; n > pic.lanes[i].w {
			pic.lanes[i].w = min(n, maxChars*charW)
		}
		pic.lanes[i].x = x
		x += pic.lanes[i].w + gapX
	}
	pic.w = x - gapX + margin
	band := 0
	for i, c := range cs {
		if i > 0 {
			p := cs[i-1]
			if c.leg != p.leg || (c.leg == trace.Reply) != (c.lane < p.lane) {
				band++
			}
		}
		c.band = band
	}
	pic.top = headH + gapY
	y := pic.top
	for from := 0; from < len(cs); {
		to, h := from, 0
		for ; to < len(cs) && cs[to].band == cs[from].band; to++ {
			c := cs[to]
			l := pic.lanes[c.lane]
			c.x, c.y, c.w, c.h = l.x, y, l.w, c.height()
			if c.transit() {
				c.y += tubeH + 16
			}
			h = max(h, c.y-y+c.h)
			if c.end != "" {
				h = max(h, c.y-y+c.h+24)
			}
		}
		y += h + gapY
		from = to
	}
	pic.bottom = y - gapY + 12
	pic.h = pic.bottom + 6
	return pic
}

func (c *card) width() int {
	n := minChars
	long := func(s string, extra int) { n = max(n, utf8.RuneCountInString(s)+extra) }
	for _, r := range c.rows {
		if r.n == 0 {
			long(r.head, -2)
			continue
		}
		long(r.label, len(r.tag)+2)
		for _, l := range r.lines {
			long(l, 0)
		}
	}
	long(c.flow, -2)
	long(c.outer, 4)
	return min(n, maxChars)*charW + indent + 2*padX - charW
}

func (c *card) height() int {
	h := 12
	for i, r := range c.rows {
		if r.n == 0 {
			h += lineH + 2
			if i > 0 {
				h += 4
			}
			continue
		}
		h += r.height()
	}
	return h + c.footer()
}

func (r *row) height() int { return lineH + 4 + len(r.lines)*(lineH-2) }

func (c *card) footer() int {
	switch {
	case c.flow == "":
		return 0
	case c.tunnel != "":
		return 2*lineH + 8
	}
	return lineH + 8
}
