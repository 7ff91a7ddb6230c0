// Package text writes a trace for a terminal.
//
// It reads the typed tree of package trace and nothing else: it knows no
// packets, no switches and no Kubernetes. Whatever it prints is in the tree, so
// the text, the JSON and the report say the same. All text that came out of a
// lab passes through one function that escapes control characters, so a lab
// file cannot steer the reader's terminal.
package text

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/trace"
)

// Detail is how much is printed. The zero value is Normal.
type Detail int

// The levels of detail, shortest first.
const (
	// Minimal prints one line: the verdict, its reason and the flow.
	Minimal Detail = iota - 2
	// Summary prints one line for each machine that changed the packet.
	Summary
	// Normal prints the first path step by step and the others where they
	// differ from it.
	Normal
	// Verbose prints every path step by step, with the evidence behind each
	// step and the packet after it.
	Verbose
)

// details names the levels for a command line, shortest first.
var details = []string{"minimal", "summary", "normal", "verbose"}

// ParseDetail returns the level with that name, or an error that lists them all.
func ParseDetail(s string) (Detail, error) {
	i := slices.Index(details, strings.ToLower(s))
	if i < 0 {
		return Normal, fmt.Errorf("no detail %q; write one of %s", s, strings.Join(details, ", "))
	}
	return Minimal + Detail(i), nil
}

// String returns the level's name.
func (d Detail) String() string {
	if i := int(d - Minimal); i >= 0 && i < len(details) {
		return details[i]
	}
	return fmt.Sprintf("detail(%d)", int(d))
}

// Options choose how a trace is written.
type Options struct {
	Detail Detail
	// Color marks verdicts, headings and changes with ANSI colours.
	Color bool
	// Width is the width of the terminal in columns; 0 means 100, and less
	// than 60 counts as 60.
	Width int
	// Hex prints the frames that were recorded, with Normal and Verbose.
	Hex bool
}

// label is the width of the column of words at the left margin ("verdict  ").
const label = 9

// Render writes a trace. The error is that of the writer.
func Render(w io.Writer, t *trace.Trace, o Options) error {
	p := newPrinter(w, o)
	switch {
	case o.Detail <= Minimal:
		p.minimal(t)
	case o.Detail == Summary:
		p.summary(t)
	default:
		p.full(t)
	}
	return p.flush()
}

// full writes everything, in the order in which it happened.
func (p *printer) full(t *trace.Trace) {
	p.phrases("lab", labParts(t.Lab), " · ")
	p.phrases("flow", flowParts(t.Flow), ", ")
	if len(t.Assumed) > 0 {
		p.labelled("assumed", assumedLine(t.Assumed))
	}
	p.notModelled(t.NotModelled)
	if p.o.Detail >= Verbose && t.Command != "" {
		p.labelled("repeat", t.Command)
	}
	for i := range t.Names {
		p.blank()
		p.lookup(&t.Names[i])
	}
	p.paths(t.Paths)
	p.blank()
	p.verdict(t)
}

// labParts describes the lab: its name and what makes it different from others.
func labParts(l trace.Lab) []string {
	name := l.Name
	if name == "" {
		name = l.File
	}
	if l.Variant != "" {
		name += " (" + l.Variant + ")"
	}
	parts := []string{name}
	if l.Live != "" {
		parts[0] = name + ", as it runs now"
	}
	if l.Kubernetes != "" {
		version := "Kubernetes " + l.Kubernetes
		if l.KubernetesRead != "" {
			version += " (read as " + l.KubernetesRead + ")"
		}
		parts = append(parts, version)
	}
	if l.Network != "" {
		parts = append(parts, l.Network)
	}
	if l.Proxy != "" {
		parts = append(parts, "kube-proxy "+l.Proxy)
	}
	if len(l.Components) > 0 {
		parts = append(parts, "real "+strings.Join(l.Components, ", "))
	}
	return parts
}

// flowParts describes the packet that was sent, and who sent it where to.
func flowParts(f trace.Flow) []string {
	var parts []string
	packet := protocolName(f) + " to " + f.To
	if f.Dst != "" {
		packet = fmt.Sprintf("%s %s -> %s", protocolName(f), hostPort(f.Src, f.SrcPort), hostPort(f.Dst, f.DstPort))
	}
	parts = append(parts, packet)
	from := ""
	if f.From != "" && f.From != f.Src {
		from = "from " + f.From
	}
	if f.Node != "" {
		from += " on " + f.Node
	}
	if f.Build != "" {
		from += " (Windows " + f.Build + ")"
	}
	if from != "" {
		parts = append(parts, strings.TrimSpace(from))
	}
	switch {
	case f.Dst == "":
		parts = append(parts, "not sent: there is no address to send to")
	case f.To != "" && f.To != f.Dst && f.To != hostPort(f.Dst, f.DstPort):
		parts = append(parts, "to "+f.To)
	}
	return parts
}

func protocolName(f trace.Flow) string {
	switch f.Protocol {
	case "ping", "icmp":
		if strings.Contains(f.Dst, ":") {
			return "ICMPv6 echo request"
		}
		return "ICMP echo request"
	}
	return strings.ToUpper(f.Protocol)
}

// hostPort joins an address and a port; port 0 means none.
func hostPort(addr string, port uint16) string {
	switch {
	case port == 0:
		return addr
	case strings.Contains(addr, ":"):
		return fmt.Sprintf("[%s]:%d", addr, port)
	}
	return fmt.Sprintf("%s:%d", addr, port)
}

// assumedLine lists the defaults, each with the flag that changes it.
func assumedLine(as []trace.Assumption) string {
	var what, flags []string
	for _, a := range as {
		what = append(what, strings.TrimSpace(a.What+" "+a.Value))
		if a.Flag != "" && !slices.Contains(flags, a.Flag) {
			flags = append(flags, a.Flag)
		}
	}
	s := strings.Join(what, ", ")
	if len(flags) > 0 {
		s += " (" + strings.Join(flags, ", ") + ")"
	}
	return s
}

// notModelled lists what the lab says and the simulation does not follow: what, where
// it is written, and below it why.
func (p *printer) notModelled(list []trace.Notice) {
	for _, n := range list {
		l := p.line()
		l.put(warn, "not modelled: ")
		l.put(plain, n.What)
		if at := n.Place(); at != "" {
			l.put(dim, "  "+at)
		}
		l.end()
		p.para(label, plain, n.Why)
	}
}

// verdict writes the last block: the verdict, what it means and how to go on.
func (p *printer) verdict(t *trace.Trace) {
	e, known := trace.Explain(t.Reason)
	l := p.line()
	l.put(bold, "verdict")
	l.pad(label)
	l.verdict(t.Verdict)
	if t.Reason != "" {
		l.put(plain, "  "+string(t.Reason))
	}
	if t.Grade != "" {
		l.right(dim, "weakest evidence: "+gradeWords(t.Grade))
	}
	l.end()
	says := t.Summary
	if says == "" && known {
		says = e.Means
	}
	p.para(label, plain, says)
	if known && t.Reason != trace.OK {
		p.labelled("look", e.Look)
	}
	p.known(t.Known)
	for _, h := range t.Hints {
		p.labelled("hint", h)
	}
}

// known names the issues with which a flow could end in another way.
func (p *printer) known(issues []trace.KnownIssue) {
	for i, k := range issues {
		name := ""
		if i == 0 {
			name = "unless"
		}
		p.labelled(name, fmt.Sprintf("known issue %d is yours: %s. It is not simulated; see winlab known show %d.", k.ID, k.Title, k.ID))
	}
}
