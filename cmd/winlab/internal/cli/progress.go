package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/winlab-dev/winlab/conformance/claims/verify"
)

// progress shows how far a run is: one line that changes on a terminal, a line
// for every tenth of the work elsewhere.
type progress struct {
	w     io.Writer
	term  bool
	start time.Time
	now   func() time.Time
	tenth int
	shown bool
}

func newProgress(w io.Writer, term bool) *progress {
	return &progress{w: w, term: term, start: time.Now(), now: time.Now}
}

func (p *progress) event(e verify.Event) {
	if e.Total == 0 {
		return
	}
	failed := ""
	if e.Failed > 0 {
		failed = fmt.Sprintf(", %d unexpected", e.Failed)
	}
	if p.term {
		left := ""
		if e.Done > 0 && e.Done < e.Total {
			d := p.now().Sub(p.start) * time.Duration(e.Total-e.Done) / time.Duration(e.Done)
			left = fmt.Sprintf(", %s left", d.Round(time.Second))
		}
		fmt.Fprintf(p.w, "\r\033[K%d of %d%s%s  %s", e.Done, e.Total, failed, left, e.What)
		p.shown = true
		return
	}
	if t := e.Done * 10 / e.Total; t > p.tenth {
		p.tenth = t
		fmt.Fprintf(p.w, "%3d %%  %d of %d%s\n", t*10, e.Done, e.Total, failed)
	}
}

// end removes the changing line.
func (p *progress) end() {
	if p.shown {
		fmt.Fprint(p.w, "\r\033[K")
	}
}
