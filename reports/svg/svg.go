// Package svg draws one path of a trace: a lane for each place, a card for each
// stay of the packet there, the request above and the reply below, tunnels as
// pipes, and a cross where it ends badly. It reads the trace and nothing else.
// The same path gives the same bytes. Colours are CSS variables, so a page can
// set its own; a drawing on its own carries light and dark ones.
package svg

import (
	_ "embed"
	"fmt"
	"html"
	"strings"
	"unicode/utf8"

	"github.com/winlab-dev/winlab/reports/clean"
	"github.com/winlab-dev/winlab/sim/trace"
)

// CSS are the rules of a drawing; they use the variables --wl-..., which the page sets.
//
//go:embed svg.css
var CSS string

// Draw returns the path as an SVG element, for a page that has CSS and the colours. A
// path without steps gives a drawing that says so.
func Draw(p *trace.Path) []byte {
	pic := layout(cards(p))
	d := &drawing{}
	title := strings.TrimSpace(string(p.Verdict) + " " + string(p.Reason))
	if len(pic.cards) == 0 {
		pic.w, pic.h = 320, 60
	}
	d.f(`<svg class="wl" role="img" viewBox="0 0 %d %d" width="%d" height="%d"><title>%s</title><desc>%s</desc>`, pic.w, pic.h, pic.w, pic.h, esc(title), esc(describe(p)))
	if len(pic.cards) == 0 {
		d.text(16, 36, "wd", "no packet was sent")
	}
	d.lanes(pic)
	for i, c := range pic.cards {
		if i > 0 {
			d.join(pic, pic.cards[i-1], c)
		}
	}
	d.tubes(pic)
	for i, c := range pic.cards {
		d.card(c)
		if i == 0 || pic.cards[i-1].leg != c.leg {
			word := "request"
			if c.leg == trace.Reply {
				word = "reply"
			}
			d.text(c.x+2, c.y-7, "wg", word)
		}
	}
	d.WriteString("</svg>")
	return []byte(d.String())
}

// describe puts the path into words, for those who do not see it.
func describe(p *trace.Path) string {
	var b strings.Builder
	place, leg := "", trace.Leg("")
	for _, s := range p.Steps {
		if s.Leg != leg {
			fmt.Fprintf(&b, "%s: ", strings.ToUpper(string(s.Leg[:min(1, len(s.Leg))]))+string(s.Leg[min(1, len(s.Leg)):]))
			leg, place = s.Leg, ""
		}
		if s.Place != place {
			fmt.Fprintf(&b, "at %s ", clean.Line(s.Place))
			place = s.Place
		}
		fmt.Fprintf(&b, "%d %s; ", s.N, clean.Line(s.Text()))
	}
	fmt.Fprintf(&b, "verdict %s", p.Verdict)
	if p.Reason != "" {
		fmt.Fprintf(&b, ", %s", p.Reason)
	}
	return b.String()
}

type drawing struct{ strings.Builder }

func (d *drawing) f(format string, a ...any) { fmt.Fprintf(d, format, a...) }

func (d *drawing) text(x, y int, class, s string) {
	d.f(`<text x="%d" y="%d" class="%s">%s</text>`, x, y, class, esc(s))
}

func (d *drawing) lanes(pic *picture) {
	for i, l := range pic.lanes {
		d.f(`<rect x="%d" y="4" width="%d" height="%d" rx="8" class="wl%d"/>`, l.x-10, l.w+20, pic.bottom-4, i%2)
		d.text(l.x, 24, "wn", short(l.name, l.w/8))
	}
}

// wireY is where arrows leave and enter a card.
func (c *card) wireY() int {
	if c.transit() {
		return c.y - 16 - tubeH/2 - 5 + 8
	}
	return c.y + tubeH/2 + 3
}

// join draws the arrow from a to b.
func (d *drawing) join(pic *picture, a, b *card) {
	class := "wa"
	if a.leg == trace.Reply || b.leg == trace.Reply {
		class = "wa wr"
	}
	if a.band == b.band {
		y := b.y + tubeH/2 + 3
		if b.transit() {
			y = b.wireY()
		}
		x1, x2 := a.x+a.w, b.x
		dir := 1
		if b.lane < a.lane {
			x1, x2, dir = a.x, b.x+b.w, -1
		}
		if a.transit() {
			// The packet passed above the card, inside the tunnel.
			x1 = a.x + a.w/2
		}
		if b.transit() {
			x2 = b.x + b.w/2
			d.f(`<path class="%s" d="M%d %dH%d"/>`, class, x1, y, x2)
			d.f(`<path class="wo" d="M%d %dV%d"/>`, x2, y+tubeH/2, b.y)
			return
		}
		d.f(`<path class="%s" d="M%d %dH%d"/><path class="wh" d="M%d %dl%d -5v10z"/>`, class, x1, y, x2-dir*6, x2, y, -dir*9)
		return
	}
	// Down through the gutter into the next band.
	x1, x2 := a.x+a.w/2, b.x+b.w/2
	y1, y2 := a.y+a.h, b.y
	if a.end != "" {
		y1 += 24
	}
	if a.transit() || b.transit() || a.lane != b.lane {
		g := b.y - gapY/2 - 2
		if b.transit() {
			g = b.y - tubeH - 16 - gapY/2 - 2
		}
		d.f(`<path class="%s" d="M%d %dV%dH%dV%d"/>`, class, x1, y1, g, x2, y2-6)
	} else {
		d.f(`<path class="%s" d="M%d %dV%d"/>`, class, x1, y1, y2-6)
	}
	d.f(`<path class="wh" d="M%d %dl-5 -9h10z"/>`, x2, y2)
}

// tubes draws the pipes: from the card that puts the packet into a tunnel to the
// one that takes it out, over all cards between.
func (d *drawing) tubes(pic *picture) {
	cs := pic.cards
	for i := 0; i < len(cs); i++ {
		if !cs[i].encOut || cs[i].end != "" {
			continue
		}
		j := i + 1
		for j < len(cs)-1 && cs[j].band == cs[i].band && cs[j].transit() {
			j++
		}
		if j >= len(cs) || cs[j].band != cs[i].band {
			continue
		}
		a, b := cs[i], cs[j]
		x1, x2 := a.x+a.w, b.x
		if b.lane < a.lane {
			x1, x2 = b.x+b.w, a.x
		}
		y := b.wireY() - tubeH/2
		w := x2 - x1
		d.f(`<g class="wt"><rect x="%d" y="%d" width="%d" height="%d" rx="%d"/><ellipse cx="%d" cy="%d" rx="4" ry="%d"/><ellipse cx="%d" cy="%d" rx="4" ry="%d"/></g>`,
			x1, y, w, tubeH, 4, x1+4, y+tubeH/2, tubeH/2, x2-4, y+tubeH/2, tubeH/2)
		// The arrow is drawn again, inside.
		dir, from, to := 1, x1, x2
		if b.lane < a.lane {
			dir, from, to = -1, x2, x1
		}
		name := a.tunnel
		n := utf8.RuneCountInString(name) * charW
		if name == "" || n > w-34 {
			// No room for the name: the card's last line has it.
			d.f(`<path class="wa" d="M%d %dH%d"/><path class="wh" d="M%d %dl%d -5v10z"/>`, from, y+tubeH/2, to-dir*6, to, y+tubeH/2, -dir*9)
		} else {
			mid := (x1 + x2) / 2
			d.f(`<path class="wa" d="M%d %dH%dM%d %dH%d"/><path class="wh" d="M%d %dl%d -5v10z"/>`, from, y+tubeH/2, mid-dir*(n/2+8), mid+dir*(n/2+8), y+tubeH/2, to-dir*6, to, y+tubeH/2, -dir*9)
			d.f(`<text x="%d" y="%d" class="wv" text-anchor="middle">%s</text>`, mid, y+tubeH/2+4, esc(name))
		}
		i = j - 1
	}
}

func (d *drawing) card(c *card) {
	cl := "wc"
	if c.end == "bad" || c.end == "hole" {
		cl += " w" + c.end
	}
	d.f(`<rect x="%d" y="%d" width="%d" height="%d" rx="6" class="%s"/>`, c.x, c.y, c.w, c.h, cl)
	room := (c.w-2*padX-indent)/charW + 1
	y := c.y + 6
	for i, r := range c.rows {
		if r.n == 0 {
			if i > 0 {
				d.f(`<path class="wk" d="M%d %dh%d"/>`, c.x, y+3, c.w)
				y += 4
			}
			d.text(c.x+padX, y+lineH-3, "wd", short(r.head, room+3))
			y += lineH + 2
			continue
		}
		d.step(c, r, y, room)
		y += r.height()
	}
	if c.flow != "" {
		d.f(`<path class="wk" d="M%d %dh%d"/>`, c.x, y+5, c.w)
		class := "wf"
		if c.changed {
			class = "wf wx"
		}
		d.text(c.x+padX, y+lineH+3, class, short(c.flow, room+3))
		if c.tunnel != "" {
			d.text(c.x+padX, y+2*lineH+2, "wf wv", short("in "+strings.TrimSpace(c.outer), room+3))
		}
	}
	d.end(c)
}

func (d *drawing) step(c *card, r row, y, room int) {
	d.f(`<g class="ws" data-n="%d"><title>%d %s</title>`, r.n, r.n, esc(r.tip))
	if r.kind != "" {
		d.f(`<rect x="%d" y="%d" width="%d" height="%d" class="wb%s"/>`, c.x+2, y, c.w-4, r.height(), r.kind)
	}
	d.f(`<circle cx="%d" cy="%d" r="8" class="wi%s"/><text x="%d" y="%d" class="wq">%d</text>`, c.x+padX+6, y+10, r.kind, c.x+padX+6, y+13, r.n)
	x := c.x + padX + indent - 4
	left := room
	if r.tag != "" {
		left -= len(r.tag) + 1
		d.f(`<text x="%d" y="%d" class="wu" text-anchor="end">%s</text>`, c.x+c.w-padX, y+14, r.tag)
	}
	d.text(x, y+14, "wm", short(r.label, left))
	for i, l := range r.lines {
		class := "wd"
		switch {
		case i >= r.said:
			class = "wx"
		case r.tag == "":
			class = "wm" // the first line goes on
		}
		d.text(x, y+14+(i+1)*(lineH-2)+1, class, short(l, room))
	}
	d.WriteString("</g>")
}

// end draws how the path ends: a cross on the way out and a label below.
func (d *drawing) end(c *card) {
	if c.end == "" {
		return
	}
	n := utf8.RuneCountInString(c.endText)*charW + 32
	y := c.y + c.h + 4
	d.f(`<g class="we%s"><rect x="%d" y="%d" width="%d" height="20" rx="10"/>`, c.end, c.x, y, n)
	cx, cy := c.x+13, y+10
	switch c.end {
	case "good":
		d.f(`<path d="M%d %dl3 4l6 -8"/>`, cx-4, cy)
	case "hole":
		d.f(`<text x="%d" y="%d" class="wz" text-anchor="middle">?</text>`, cx, cy+4)
	default:
		d.f(`<path d="M%d %dl8 8m0 -8l-8 8"/>`, cx-4, cy-4)
	}
	d.f(`<text x="%d" y="%d" class="wz">%s</text></g>`, c.x+24, cy+4, esc(c.endText))
	if c.end != "bad" {
		return
	}
	dir, x := 1, c.x+c.w
	if c.leg == trace.Reply {
		dir, x = -1, c.x
	}
	wy := c.wireY()
	d.f(`<path class="wa" d="M%d %dh%d"/><path class="wcross" d="M%d %dl12 12m0 -12l-12 12"/>`, x, wy, dir*12, x+dir*20-6, wy-6)
}

// short cuts s to n characters.
func short(s string, n int) string {
	n = max(n, 2)
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	r := []rune(s)
	return string(r[:n-1]) + "…"
}

func esc(s string) string { return html.EscapeString(clean.Line(s)) }
