package plan

import (
	"errors"
	"fmt"

	"github.com/winlab-dev/winlab/internal/strict"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Link is the state of a segment, or of a machine's cables.
type Link struct {
	// Of is its name in the lab: "router/gw@internet".
	Of string
	// Kind and Name are the segment's or the machine's, On the segment of one cable,
	// "" for all of a machine.
	Kind, Name, On string
	labfile.LinkState
	Down   bool
	Text   string
	Origin *trace.Origin
}

// Slow reports whether something of the link needs time or chance, which only a network
// that runs has.
func (l *Link) Slow() bool { return l.Delay > 0 || l.Rate > 0 || l.Loss > 0 && l.Loss < 1 }

// Notice says what a trace does not follow of the link.
func (l *Link) Notice() (trace.Notice, bool) {
	return trace.Notice{What: fmt.Sprintf("%s of link %s", l.Text, l.Of), At: l.Origin,
			Why: "a trace takes no time and follows a packet that no link loses by chance; only programs in a running lab (winlab up) see this"},
		l.Slow()
}

// links reads what is wrong with links; path is where the list stands.
func (p *Plan) links(s *labfile.Spec, in []labfile.Link, path ...any) ([]Link, error) {
	var all []Link
	var errs []error
	for i, l := range in {
		at := append(path[:len(path):len(path)], i)
		out := Link{Of: l.Of, Down: l.Down, Text: l.Text(), Origin: p.File.Origin("link "+l.Of, at...)}
		err := s.CheckLink(l.Of)
		if err == nil {
			out.Kind, out.Name, out.On, _ = labfile.ParseLinkName(l.Of)
			out.LinkState, _, err = l.State()
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if n, ok := out.Notice(); ok {
			p.NotModelled = trace.AddNotice(p.NotModelled, n)
		}
		all = append(all, out)
	}
	return all, errors.Join(errs...)
}

// startLinks reads the links as they are in the beginning.
func (p *Plan) startLinks(s *labfile.Spec) (err error) {
	if p.Links, err = p.links(s, s.Links, "spec", "links"); err != nil {
		o := p.File.Origin("", "spec", "links")
		return strict.Mistakes{{File: o.File, Line: o.Line, Column: 1, Message: err.Error()}}.AsError()
	}
	return nil
}
