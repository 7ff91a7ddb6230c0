package reach

import (
	"fmt"
	"html/template"
	"io"
	"strings"
	"sync"

	"github.com/winlab-dev/winlab/reports/clean"
	"github.com/winlab-dev/winlab/sim/trace"
)

// page is a matrix as a page: a table of destinations and senders, and below it each
// destination with what decides. It needs no script and nothing from elsewhere.
// It is parsed when the first matrix is written: other verbs must not wait for it.
var page = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("reach").Parse(`<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{{.Title}}: who reaches whom</title>
<style>
:root{color-scheme:light dark;--ink:#1c2733;--bg:#fff;--line:#c9d2dc;--good:#0b6b35;--good-bg:#e0f4e7;--bad:#a11c1c;--bad-bg:#fbe5e3;--open:#7a5300;--open-bg:#fdf0cf}
@media(prefers-color-scheme:dark){:root{--ink:#e4eaf0;--bg:#12181f;--line:#3a4653;--good:#86dba6;--good-bg:#12331f;--bad:#ff9d94;--bad-bg:#43191a;--open:#f2ca70;--open-bg:#3c2f0d}}
body{font:15px/1.45 system-ui,sans-serif;color:var(--ink);background:var(--bg);margin:1.5rem}
.wide{overflow-x:auto}table{border-collapse:separate;border-spacing:2px}
th{font-weight:500;text-align:left;padding:.15rem .5rem;white-space:nowrap}thead th{vertical-align:bottom;writing-mode:vertical-rl;transform:rotate(180deg);padding:.4rem .15rem}
td{text-align:center;border-radius:4px;padding:.15rem .45rem;font-weight:600}
.good{background:var(--good-bg);color:var(--good)}.bad{background:var(--bad-bg);color:var(--bad)}.open{background:var(--open-bg);color:var(--open)}
h2{font-size:1.1rem;margin:2rem 0 .5rem}dt{margin-top:.6rem}dt span{border-radius:4px;padding:.1rem .4rem;font-weight:600}dd{margin:.15rem 0 .15rem 1.5rem}code{font-size:.86rem;overflow-wrap:anywhere}
</style>
<h1>{{.Title}}</h1>
<p>{{.Says}}</p>
<p><span class="good">yes</span> delivered, <span class="bad">no</span> not delivered, <span class="open">?</span> it depends, or it is unknown; several marks where the answer depends on which nodes the two are on.</p>
<div class="wide" tabindex="0" role="region" aria-label="who reaches whom"><table>
<thead><tr><td></td>{{range .Senders}}<th scope="col">{{.}}</th>{{end}}</tr></thead>
<tbody>{{range .Rows}}<tr><th scope="row"><a href="#r{{.N}}">{{.To}} {{.Port}}</a></th>{{range .Cells}}<td class="{{.Class}}" title="{{.Says}}">{{.Mark}}</td>{{end}}</tr>
{{end}}</tbody></table></div>
{{range .Rows}}<h2 id="r{{.N}}">to {{.To}} {{.Port}}</h2>
<dl>{{range .Endings}}<dt><span class="{{.Class}}">{{.Head}}</span> {{.Who}}</dt>{{if .Why}}<dd>{{.Why}}</dd>{{end}}{{if .Command}}<dd><code>{{.Command}}</code></dd>{{end}}
{{end}}</dl>
{{end}}{{if .Classes}}<h2>Differ only in names and addresses</h2>
<dl>{{range .Classes}}<dt>{{.Title}} {{.System}}</dt><dd>{{.Who}}</dd>
{{end}}</dl>{{end}}
{{if .NotAsked}}<h2>Not asked</h2><ul>{{range .NotAsked}}<li>{{.}}</li>{{end}}</ul>{{end}}
</html>
`))
})

type pageCell struct{ Class, Mark, Says string }

type pageEnding struct{ Class, Head, Who, Why, Command string }

type pageRow struct {
	N        int
	To, Port string
	Cells    []pageCell
	Endings  []pageEnding
}

type pageClass struct{ Title, System, Who string }

// WriteHTML writes a matrix as a page.
func WriteHTML(w io.Writer, m *Matrix) error {
	p := struct {
		Title, Says string
		Senders     []string
		Rows        []pageRow
		Classes     []pageClass
		NotAsked    []string
	}{Title: clean.Line(m.Lab.Name), Says: clean.Line(fmt.Sprintf("Kubernetes %s, %s. %s between %s; %d were sent.", m.Lab.Kubernetes,
		m.Lab.Network, count(m.Pairs, "flow"), count(len(m.Classes), "class"), m.Traced))}
	senders := m.senders()
	for _, c := range senders {
		p.Senders = append(p.Senders, clean.Line(c.Title))
	}
	for i, r := range m.Rows() {
		row := pageRow{N: i + 1, To: clean.Line(r.To), Port: r.Port}
		for _, c := range senders {
			row.Cells = append(row.Cells, mark(r.cells, c.ID))
		}
		for _, e := range r.Endings {
			x := pageEnding{Class: style(e.Verdict), Head: ending(e.Verdict, e.Reason), Who: clean.Line(strings.Join(e.Senders, ", "))}
			if e.Verdict != trace.Delivered {
				x.Why, x.Command = clean.Line(e.Why), clean.Line(e.Cell.Example.Command)
			}
			row.Endings = append(row.Endings, x)
		}
		p.Rows = append(p.Rows, row)
	}
	for _, c := range m.Classes {
		if len(c.Members) > 1 {
			p.Classes = append(p.Classes, pageClass{clean.Line(c.Title), clean.Line(c.System), clean.Line(strings.Join(c.Members, ", "))})
		}
	}
	for _, n := range m.NotAsked {
		p.NotAsked = append(p.NotAsked, clean.Line(n))
	}
	return page().Execute(w, p)
}

// senders are the classes from which flows go.
func (m *Matrix) senders() []Class {
	from := map[string]bool{}
	for i := range m.Cells {
		from[m.Cells[i].From] = true
	}
	var all []Class
	for _, c := range m.Classes {
		if from[c.ID] {
			all = append(all, c)
		}
	}
	return all
}

// mark sums up the cells of one sender.
func mark(cells []*Cell, from string) pageCell {
	var marks, says []string
	classes := map[string]bool{}
	for _, c := range cells {
		if c.From != from {
			continue
		}
		text := ending(c.Verdict, c.Reason)
		if c.Where != "" {
			text = c.Where + ": " + text
		}
		says = append(says, text)
		k := style(c.Verdict)
		if !classes[k] {
			classes[k] = true
			marks = append(marks, map[string]string{"good": "yes", "bad": "no", "open": "?"}[k])
		}
	}
	one := pageCell{Mark: strings.Join(marks, " "), Says: clean.Line(strings.Join(says, "; "))}
	switch {
	case len(classes) == 0:
	case len(classes) > 1:
		one.Class = "open"
	default:
		for k := range classes {
			one.Class = k
		}
	}
	return one
}

func style(v trace.Verdict) string {
	switch v {
	case trace.Delivered:
		return "good"
	case trace.Varies, trace.Unknown:
		return "open"
	}
	return "bad"
}

// ending is a verdict with its reason.
func ending(v trace.Verdict, r trace.Reason) string {
	if r == "" || r == trace.OK {
		return string(v)
	}
	return string(v) + " " + string(r)
}
