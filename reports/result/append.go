package result

import (
	"encoding/base64"
	"strconv"
	"unicode/utf8"

	"github.com/winlab-dev/winlab/sim/trace"
)

// The functions of this file write traces as encoding/json does, byte for byte: a run writes
// thousands, most of them again and again, and looking each field up by reflection was a
// tenth of it. TestAppended has every field, by reflection, so that none is forgotten.

// appender appends JSON to b. The first member of an object has no comma before it.
type appender struct{ b []byte }

// key begins a member.
func (a *appender) key(k string) {
	if n := len(a.b); n > 0 && a.b[n-1] != '{' {
		a.b = append(a.b, ',')
	}
	a.b = append(append(append(a.b, '"'), k...), '"', ':')
}

// text is a member that is a string.
func (a *appender) text(k, s string) {
	a.key(k)
	a.b = appendString(a.b, s)
}

// some is text that is left out where it is empty.
func (a *appender) some(k, s string) {
	if s != "" {
		a.text(k, s)
	}
}

func (a *appender) number(k string, n int) {
	a.key(k)
	a.b = strconv.AppendInt(a.b, int64(n), 10)
}

// positive is a number that is left out where it is 0.
func (a *appender) positive(k string, n int) {
	if n != 0 {
		a.number(k, n)
	}
}

func (a *appender) texts(k string, list []string) {
	a.key(k)
	if list == nil {
		a.b = append(a.b, "null"...)
		return
	}
	a.b = append(a.b, '[')
	for i, s := range list {
		if i > 0 {
			a.b = append(a.b, ',')
		}
		a.b = appendString(a.b, s)
	}
	a.b = append(a.b, ']')
}

func (a *appender) someTexts(k string, list []string) {
	if len(list) > 0 {
		a.texts(k, list)
	}
}

// list is a member that is a list of objects, left out where it is empty.
func list[T any](a *appender, k string, all []T, object func(*appender, *T)) {
	if len(all) > 0 {
		a.key(k)
		objects(a, all, object)
	}
}

func objects[T any](a *appender, all []T, object func(*appender, *T)) {
	a.b = append(a.b, '[')
	for i := range all {
		if i > 0 {
			a.b = append(a.b, ',')
		}
		a.object(func() { object(a, &all[i]) })
	}
	a.b = append(a.b, ']')
}

func (a *appender) object(members func()) {
	a.b = append(a.b, '{')
	members()
	a.b = append(a.b, '}')
}

// trace appends a trace without its lab.
func (a *appender) trace(t *trace.Trace) {
	a.object(func() {
		a.text("schema", t.Schema)
		a.text("verdict", string(t.Verdict))
		a.some("reason", string(t.Reason))
		a.some("summary", t.Summary)
		a.someTexts("causes", t.Causes)
		a.some("grade", string(t.Grade))
		a.key("flow")
		a.object(func() { a.flow(&t.Flow) })
		list(a, "assumed", t.Assumed, (*appender).assumption)
		list(a, "notModelled", t.NotModelled, (*appender).notice)
		list(a, "names", t.Names, (*appender).lookup)
		list(a, "open", t.Open, (*appender).open)
		list(a, "paths", t.Paths, (*appender).path)
		a.someTexts("hints", t.Hints)
		a.some("command", t.Command)
	})
}

func (a *appender) flow(f *trace.Flow) {
	a.text("from", f.From)
	a.text("to", f.To)
	a.text("protocol", f.Protocol)
	a.text("src", f.Src)
	a.text("dst", f.Dst)
	a.positive("srcPort", int(f.SrcPort))
	a.positive("dstPort", int(f.DstPort))
	a.some("node", f.Node)
	a.some("build", f.Build)
}

func (a *appender) assumption(x *trace.Assumption) {
	a.text("what", x.What)
	a.text("value", x.Value)
	a.some("flag", x.Flag)
}

func (a *appender) notice(n *trace.Notice) {
	a.text("what", n.What)
	a.text("why", n.Why)
	a.origin("at", n.At)
}

func (a *appender) origin(k string, o *trace.Origin) {
	if o == nil {
		return
	}
	a.key(k)
	a.object(func() {
		a.text("what", o.What)
		a.some("file", o.File)
		a.positive("line", o.Line)
	})
}

func (a *appender) lookup(l *trace.Lookup) {
	a.text("name", l.Name)
	a.text("tool", l.Tool)
	a.someTexts("answers", l.Answers)
	a.text("verdict", string(l.Verdict))
	a.some("reason", string(l.Reason))
	a.some("summary", l.Summary)
	list(a, "open", l.Open, (*appender).open)
	list(a, "queries", l.Queries, (*appender).query)
}

func (a *appender) query(q *trace.Query) {
	a.text("name", q.Name)
	a.text("type", q.Type)
	a.text("server", q.Server)
	a.some("from", q.From)
	a.some("rcode", q.RCode)
	a.someTexts("answers", q.Answers)
	a.some("why", q.Why)
	a.some("evidence", q.Evidence)
	a.some("grade", string(q.Grade))
	if q.Path != nil {
		a.key("path")
		a.object(func() { a.path(q.Path) })
	}
}

func (a *appender) open(q *trace.OpenQuestion) {
	a.text("param", q.Param)
	a.some("about", q.About)
	a.texts("values", q.Values)
	a.texts("means", q.Means)
	a.some("here", q.Here)
	a.some("evidence", q.Evidence)
}

// path has an empty list of steps where there are none, as the schema wants it.
func (a *appender) path(p *trace.Path) {
	list(a, "choices", p.Choices, (*appender).choice)
	a.text("verdict", string(p.Verdict))
	a.some("reason", string(p.Reason))
	a.some("summary", p.Summary)
	a.some("cause", p.Cause)
	a.someTexts("causes", p.Causes)
	a.some("grade", string(p.Grade))
	a.key("steps")
	objects(a, p.Steps, (*appender).step)
	if s := p.Seen; s != nil {
		a.key("seen")
		a.object(func() {
			a.text("where", s.Where)
			a.text("src", s.Src)
			a.text("dst", s.Dst)
		})
	}
}

func (a *appender) choice(c *trace.Choice) {
	a.text("where", c.Where)
	a.number("pick", c.Pick)
	a.number("of", c.Of)
	a.text("label", c.Label)
	a.some("param", c.Param)
	a.some("value", c.Value)
}

func (a *appender) step(s *trace.Step) {
	a.number("n", s.N)
	a.text("leg", string(s.Leg))
	a.text("place", s.Place)
	a.some("object", s.Object)
	a.some("port", s.Port)
	a.some("dir", s.Dir)
	a.some("layer", s.Layer)
	a.some("group", s.Group)
	a.some("rule", s.Rule)
	a.some("ruleType", s.RuleType)
	a.text("action", string(s.Action))
	a.text("text", s.Text())
	list(a, "changes", s.Changes, (*appender).change)
	list(a, "nearest", s.Nearest, (*appender).miss)
	a.origin("from", s.From)
	a.some("evidence", s.Evidence)
	a.some("grade", string(s.Grade))
	a.some("reason", string(s.Reason))
	if !s.Packet.IsZero() {
		a.text("packet", s.Packet.String())
	}
	if len(s.Frame) > 0 {
		a.key("frame")
		a.b = append(base64.StdEncoding.AppendEncode(append(a.b, '"'), s.Frame), '"')
	}
}

func (a *appender) change(c *trace.Change) {
	a.text("field", c.Field)
	if !c.Before.IsZero() {
		a.text("before", c.Before.String())
	}
	if !c.After.IsZero() {
		a.text("after", c.After.String())
	}
}

func (a *appender) miss(m *trace.Miss) {
	a.text("rule", m.Rule)
	a.text("field", m.Field)
	a.text("want", m.Want)
	a.text("got", m.Got)
	a.origin("from", m.From)
}

// appendString appends a string in JSON. What is rare in traces is left to the encoder.
func appendString(b []byte, s string) []byte {
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c < ' ' || c == '"' || c == '\\':
			return appendRare(b, s)
		case c < utf8.RuneSelf:
			i++
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError || r == '\u2028' || r == '\u2029' {
				return appendRare(b, s)
			}
			i += n
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

func appendRare(b []byte, s string) []byte {
	text, _ := encode(s) // of a string there is no error
	return append(b, text...)
}
