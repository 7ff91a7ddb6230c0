package cli

import (
	"context"
	"errors"
	"io"
	"path/filepath"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/live/control"
)

// liveTraceArgs are what a lab that is up needs for a trace.
type liveTraceArgs struct {
	Request lab.Request
	Shown   traceShown
}

// traceLive traces a flow in a lab that is up.
func (a *app) traceLive(ctx context.Context, o *traceOptions) error {
	r, err := o.request()
	if err != nil {
		return err
	}
	if err := control.CheckName(o.live); err != nil {
		return usagef("--live: %w", err)
	}
	r.Live = o.live
	s := o.shown(a)
	if s.Capture != "" {
		if s.Capture, err = filepath.Abs(s.Capture); err != nil {
			return err
		}
	}
	return a.call(ctx, o.live, verbTrace, liveTraceArgs{r, s})
}

func (l *liveLab) trace(ctx context.Context, w io.Writer, o liveTraceArgs) error {
	t, err := l.net.Trace(ctx, o.Request)
	if err != nil {
		return err
	}
	return showTrace(w, t, o.Shown)
}

// exitOf is the exit code of an error.
func exitOf(err error) (int, error) {
	var u unexpected
	switch {
	case err == nil:
		return exitOK, nil
	case errors.As(err, &u):
		return exitUnexpected, err
	}
	return exitUsage, err
}
