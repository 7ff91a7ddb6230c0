package cli

import (
	"context"
	"time"

	"github.com/winlab-dev/winlab/sim/live"
	"github.com/winlab-dev/winlab/sim/live/control"
)

// Served is a network that another program holds, as winlab's verbs see it.
type Served struct {
	l    *liveLab
	stop context.CancelFunc
}

// kept is how many connections of a served network winlab watch --last can show.
const kept = 1000

// Serve makes a network known to winlab's verbs; down is called when somebody asks for
// its end.
func Serve(name, path string, n *live.Net, down func()) *Served {
	ctx, stop := context.WithCancel(context.Background())
	l := &liveLab{name: name, path: path, since: time.Now(), net: n, down: make(chan struct{}), log: &ring{}, history: newHistory(kept),
		programs: map[int]*liveProgram{}}
	go l.history.keep(ctx, n)
	go func() {
		select {
		case <-l.down:
			down()
		case <-ctx.Done():
		}
	}()
	return &Served{l, stop}
}

// Handle does what a winlab asks for.
func (s *Served) Handle(ctx context.Context, c control.Call) (int, error) { return s.l.handle(ctx, c) }

// Log notes a line for winlab logs.
func (s *Served) Log(line string) { s.l.log.add(line) }

// Close ends what is kept of the network.
func (s *Served) Close() { s.stop() }
