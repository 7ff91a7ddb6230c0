package compare

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// WriteText writes the document for people.
func (d *Document) WriteText(w io.Writer) error {
	var b strings.Builder
	for _, r := range d.Read {
		fmt.Fprintf(&b, "read       %s: %s, %d%s\n", r.Place, r.What, r.Count, prefixUnlessEmpty(" of ", string(r.Node)))
	}
	for _, n := range d.NotRead {
		what := string(n.What)
		if what != "" {
			what += ": "
		}
		fmt.Fprintf(&b, "not read   %s: %s%s\n", n.Place, what, n.Why)
	}
	for i := range d.Ports {
		d.Ports[i].text(&b)
	}
	for i := range d.Flows {
		d.Flows[i].text(&b)
	}
	for i := range d.Tuples {
		d.Tuples[i].text(&b)
	}
	rules, compared := d.Compared()
	agree, same := 0, 0
	for _, f := range d.Flows {
		if f.Result == Agrees {
			agree++
		}
	}
	for _, p := range d.Ports {
		same += p.Same
	}
	fmt.Fprintf(&b, "%d of %d rules on %d ports are the same, %d of %d flows agree, %d were not compared; %d differences\n", same, rules,
		len(d.Ports), agree, compared, len(d.Flows)-compared, d.Differences)
	_, err := io.WriteString(w, b.String())
	return err
}

// String is "file:12", as much of it as is known.
func (p Place) String() string {
	if p.Line == 0 {
		return string(p.File)
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// prefixUnlessEmpty is a text with words in front, "" for none.
func prefixUnlessEmpty(words, s string) string {
	if s == "" {
		return ""
	}
	return words + s
}

func (p *Port) text(b *strings.Builder) {
	fmt.Fprintf(b, "port       %s of %s%s: %d of %d rules are the same\n", p.Port, p.Node, prefixUnlessEmpty(", ", string(p.Owner)), p.Same,
		p.Theirs)
	for _, d := range p.Diffs {
		switch {
		case d.Ours == nil:
			fmt.Fprintf(b, "  differs  the node has %s, and the model does not make it\n", d.Theirs.text())
		case d.Theirs == nil:
			fmt.Fprintf(b, "  differs  the model makes %s, and the node does not have it\n", d.Ours.text())
		default:
			fmt.Fprintf(b, "  differs  %s of %s%s: node %s, model %s\n", d.Kind, d.Theirs.Name, line(d.Theirs.Line), d.Theirs.field(d.Kind),
				d.Ours.field(d.Kind))
		}
	}
	for _, d := range p.Named {
		fmt.Fprintf(b, "  name     what the model calls %s is %s on the node%s\n", d.Ours.Name, d.Theirs.Name, line(d.Theirs.Line))
	}
	if n := len(p.Unnamed); n > 0 {
		fmt.Fprintf(b, "  open     %d rules of the model have no name that a source gives, and no rule of the node has their conditions\n", n)
		for _, d := range p.Unnamed {
			fmt.Fprintf(b, "           %s\n", d.Ours.text())
		}
	}
}

func line(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (line %d)", n)
}

func (r *Rule) text() string {
	out := string(r.Name) + line(r.Line) + prefixUnlessEmpty(" in ", string(r.Layer)) + prefixUnlessEmpty(", ", string(r.Type))
	if len(r.Conditions) > 0 {
		out += ", " + r.field("conditions")
	}
	return out
}

// field is what a rule has of the kind that differs.
func (r *Rule) field(kind string) string {
	var all []string
	switch kind {
	case "layer":
		return string(r.Layer)
	case "type":
		return string(r.Type)
	case "priority":
		return strconv.Itoa(r.Priority)
	case "conditions":
		for _, c := range r.Conditions {
			all = append(all, string(c))
		}
	case "backends":
		for _, a := range r.Backends {
			all = append(all, string(a))
		}
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, "; ")
}

func (f *Flow) text(b *strings.Builder) {
	fmt.Fprintf(b, "flow       %s %s > %s%s (%s): %s", f.Protocol, f.Src, f.Dst, prefixUnlessEmpty(" from ", string(f.From)), f.At, f.Result)
	if f.Result == NotCompared {
		fmt.Fprintf(b, ": %s\n", f.Why)
		return
	}
	fmt.Fprintf(b, "; node: %s%s%s, model: %s %s\n", f.Theirs, prefixUnlessEmpty(" for ", string(f.Reason)), prefixUnlessEmpty(" at ", f.Code),
		f.Verdict, f.OurReason)
	if f.Why != "" {
		fmt.Fprintf(b, "  differs  %s\n", f.Why)
	}
	for _, u := range f.Uncounted {
		fmt.Fprintf(b, "  counter  0 of %s on port %s of %s\n", u.Rule.text(), u.Port, u.Node)
	}
	if f.Counted > 0 {
		fmt.Fprintf(b, "  counters of %d rules that it meets are above 0\n", f.Counted)
	}
	for _, d := range f.Decided {
		fmt.Fprintf(b, "  decides  %s%s is %s, and not %s\n", d.Param, prefixUnlessEmpty(" of ", string(d.About)), strings.Join(d.Is, " or "),
			strings.Join(d.IsNot, " or "))
	}
	if f.Result == Beyond {
		fmt.Fprintf(b, "  learnt   what the node did where the model does not know\n")
	}
	if f.Result == Differs || f.Result == Beyond {
		steps(b, f.Steps)
	}
}

func steps(b *strings.Builder, all []Step) {
	for _, s := range all {
		mark := "="
		switch {
		case s.Theirs == nil:
			mark = " "
		case !s.Same:
			mark = "!"
		}
		fmt.Fprintf(b, "    %s %-7s %s: ", mark, s.Leg, s.Node)
		switch {
		case s.Ours == nil && s.Theirs == nil:
		case s.Theirs == nil:
			fmt.Fprintf(b, "model %s", s.Ours)
		case s.Ours == nil:
			fmt.Fprintf(b, "node %s%s%s", s.Theirs, prefixUnlessEmpty(", ", string(s.Theirs.SrcMAC)),
				prefixUnlessEmpty(" > ", string(s.Theirs.DstMAC)))
		default:
			fmt.Fprintf(b, "%s", s.Theirs)
		}
		if s.Ours == nil && s.Theirs == nil {
			fmt.Fprintf(b, "%s of %s: %s", s.Rule, s.Layer, s.Action)
		} else if s.Rule != "" {
			fmt.Fprintf(b, "  by %s of %s%s", s.Rule, s.Layer, prefixUnlessEmpty(" on ", string(s.Object)))
		} else if s.Object != "" {
			fmt.Fprintf(b, "  %s %s", s.Object, s.Action)
		}
		if s.Component != "" || s.Seen.File != "" {
			fmt.Fprintf(b, "  seen%s %s", prefixUnlessEmpty(" by ", string(s.Component)), s.Seen)
		}
		b.WriteByte('\n')
	}
}

// String is "10.244.1.4:40000 > 10.96.0.50:80 in 192.168.1.11 > 192.168.1.12".
func (f *Form) String() string {
	if f.Src == "" {
		return fmt.Sprintf("a tunnel packet %s > %s", f.OuterSrc, f.OuterDst)
	}
	out := fmt.Sprintf("%s > %s", f.Src, f.Dst)
	if f.OuterSrc != "" {
		out += fmt.Sprintf(" in a tunnel %s > %s", f.OuterSrc, f.OuterDst)
	}
	return out
}

func (t *Tuple) text(b *strings.Builder) {
	fmt.Fprintf(b, "tuple      %s %s > %s (%s): ", t.Protocol, t.Src, t.Dst, t.At)
	if t.Why != "" {
		fmt.Fprintf(b, "not compared: %s\n", t.Why)
		return
	}
	fmt.Fprintf(b, "model: %s %s\n", t.Verdict, t.OurReason)
	steps(b, t.Steps)
}
