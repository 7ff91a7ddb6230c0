package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/sim/live"
	"github.com/winlab-dev/winlab/sim/trace"
)

// watchArgs are what a lab that is up needs for watch.
type watchArgs struct {
	Output string
	Colour bool
	Filter connectionFilter
	// Last are how many of the past to show; Follow shows those to come.
	Last   int
	Follow bool
	// summary keeps a line with the counts below the connections, on a terminal.
	summary bool
}

// connectionFilter says which connections somebody wants; an empty field wants all.
type connectionFilter struct {
	Verdicts []string
	// Machine is at either end, From opened the connection, To is where it went: a
	// machine, or an address.
	Machine, From, To string
	// Protocol is tcp, udp or icmp. Port is the one that the client asked for, or that
	// the server has.
	Protocol string
	Port     uint16
}

func (f *connectionFilter) wants(c *live.Connection) bool {
	switch {
	case len(f.Verdicts) > 0 && !slices.Contains(f.Verdicts, string(c.Verdict)),
		f.Machine != "" && !isMachine(f.Machine, c.From) && !isMachine(f.Machine, c.To),
		f.From != "" && !isEnd(f.From, c.From, c.Source, c.SeenSource),
		f.To != "" && !isEnd(f.To, c.To, c.Destination, c.SeenDestination),
		f.Protocol != "" && !strings.HasPrefix(strings.ToLower(c.Protocol), f.Protocol),
		f.Port != 0 && c.Destination.Port() != f.Port && c.SeenDestination.Port() != f.Port:
		return false
	}
	return true
}

// isMachine reports whether a machine is the one that is wanted; the namespace default
// may be left out.
func isMachine(want, machine string) bool { return want == machine || want == shortName(machine) }

func isEnd(want, machine string, at ...netip.AddrPort) bool {
	if a, err := netip.ParseAddr(want); err == nil {
		return slices.ContainsFunc(at, func(p netip.AddrPort) bool { return p.Addr() == a })
	}
	return isMachine(want, machine)
}

func (a *app) watchCmd() *cobra.Command {
	var o watchArgs
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Show each new connection of a lab that is up, and the rule that decided",
		Long: `Show each new connection of a lab that is up, with its verdict, the rule that decided,
and the open questions for which the first answer was assumed. Programs of the lab that end
by themselves are shown too (not with -o json). The lab keeps the latest connections
(winlab up --history): --last shows some of these, and exits unless --follow is given too.`,
		Example: `  winlab watch
  winlab watch --verdict dropped --verdict no-reply
  winlab watch --last 20 --follow --from pod/client --protocol tcp --port 80
  winlab watch --machine pod/client -o json`,
		Args:              exactly(),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	name := a.runningFlag(cmd)
	form := output(cmd, "text", "json")
	f, w := cmd.Flags(), &o.Filter
	f.StringArrayVar(&w.Verdicts, "verdict", nil, "only connections with this `verdict`; may be repeated")
	f.StringVar(&w.Machine, "machine", "", "only connections from or to this `machine`")
	f.StringVar(&w.From, "from", "", "only connections from this `machine` or address")
	f.StringVar(&w.To, "to", "", "only connections to this `machine` or address")
	f.StringVar(&w.Protocol, "protocol", "", "only this `protocol`: tcp, udp, icmp")
	f.Uint16Var(&w.Port, "port", 0, "only connections to this `port`, of the Service or of the server")
	f.IntVar(&o.Last, "last", 0, "show the last `N` connections that were kept")
	f.BoolVarP(&o.Follow, "follow", "f", false, "continue with new connections after --last (without --last it always does)")
	fixed(cmd, "verdict", verdicts()...)
	oneOf(cmd, "protocol", "--protocol", "tcp", "udp", "icmp")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		for _, v := range w.Verdicts {
			if !slices.Contains(verdicts(), v) {
				return usagef("--verdict %s: write one of %s", v, strings.Join(verdicts(), ", "))
			}
		}
		if o.Last < 0 {
			return usagef("--last %d: write how many", o.Last)
		}
		o.Follow = o.Follow || !cmd.Flags().Changed("last")
		o.Output, o.Colour = *form, a.colour()
		err := a.call(cmd.Context(), *name, verbWatch, o)
		if cmd.Context().Err() != nil {
			return nil // Ctrl-C is how one stops watching
		}
		return err
	}
	return cmd
}

// connections keeps the last connections of a lab that is up, and counts all.
type connections struct {
	mu    sync.Mutex
	max   int
	last  []live.Connection
	first uint64 // the number of last[0] among all
	added chan struct{}
	// byVerdict counts connections by verdict and reason; missed are those that came
	// too fast.
	byVerdict map[string]int
	missed    uint64
}

func newHistory(size int) *connections {
	return &connections{max: size, added: make(chan struct{}), byVerdict: map[string]int{}}
}

// keep follows a network until it is down.
func (h *connections) keep(ctx context.Context, n *live.Net) {
	events, missed, stop := n.Watch()
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return
		case c, ok := <-events:
			if !ok {
				return
			}
			h.add(c, missed())
		}
	}
}

func (h *connections) add(c live.Connection, missed uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = append(h.last, c)
	if over := len(h.last) - h.max; over > 0 {
		h.last = slices.Delete(h.last, 0, over)
		h.first += uint64(over)
	}
	key := string(c.Verdict)
	if c.Reason != "" && c.Reason != trace.OK {
		key += " " + string(c.Reason)
	}
	h.byVerdict[key]++
	h.missed = missed
	close(h.added)
	h.added = make(chan struct{})
}

// connectionsFrom returns the connections from a number on that are kept, the number of the next
// one, and what is closed when there is one.
func (h *connections) connectionsFrom(from uint64) (all []live.Connection, next uint64, lost uint64, more <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if from < h.first {
		lost, from = h.first-from, h.first
	}
	return slices.Clone(h.last[from-h.first:]), h.first + uint64(len(h.last)), lost, h.added
}

// summary counts in a line: "12 connections: 10 delivered, 2 dropped no-route".
func (h *connections) summary() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	total := 0
	var keys []string
	for k, n := range h.byVerdict {
		total += n
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int {
		if d := h.byVerdict[b] - h.byVerdict[a]; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	var parts []string
	for _, k := range keys {
		parts = append(parts, fmt.Sprintf("%d %s", h.byVerdict[k], k))
	}
	s := fmt.Sprintf("%d connections", total)
	if total == 1 {
		s = "1 connection"
	}
	if len(parts) > 0 {
		s += ": " + strings.Join(parts, ", ")
	}
	if h.missed > 0 {
		s += fmt.Sprintf(" (%d more came too fast to be seen)", h.missed)
	}
	return s
}

// watch shows connections that were kept, and those to come.
func (l *liveLab) watch(ctx context.Context, w io.Writer, o watchArgs) error {
	if l.history == nil {
		return errors.New("this lab keeps no connections: it was started with --history 0")
	}
	past, next, _, _ := l.history.connectionsFrom(0)
	past = slices.DeleteFunc(past, func(c live.Connection) bool { return !o.Filter.wants(&c) })
	past = past[len(past)-min(o.Last, len(past)):]
	for i := range past {
		if !o.show(w, &past[i]) {
			return nil // the reader has gone
		}
	}
	ended := endedPrograms{}
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for o.Follow {
		if !o.showEnded(w, ended.fresh(l.net.Programs())) {
			return nil
		}
		all, to, lost, more := l.history.connectionsFrom(next)
		next = to
		if lost > 0 && o.Output != "json" {
			fmt.Fprintf(w, "(%d connections were not shown: too many at once)\n", lost)
		}
		for i := range all {
			if o.Filter.wants(&all[i]) && !o.show(w, &all[i]) {
				return nil
			}
		}
		if o.summary && len(all) > 0 {
			fmt.Fprint(w, l.history.summary())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-l.down:
			return nil
		case <-more:
		case <-look.C:
		}
	}
	return nil
}

// endedPrograms are those that somebody has been told of.
type endedPrograms map[int]bool

// fresh are those of the programs that have ended by themselves and are new here.
func (e endedPrograms) fresh(all []live.Program) []live.Program {
	return slices.DeleteFunc(all, func(p live.Program) bool {
		if p.Ended == "" || e[p.PID] {
			return true
		}
		e[p.PID] = true
		return false
	})
}

// showEnded writes which programs have ended; false when the reader has gone. JSON has
// connections and nothing else.
func (o *watchArgs) showEnded(w io.Writer, all []live.Program) bool {
	for _, p := range all {
		if o.Output == "json" {
			continue
		}
		start := ""
		if strings.HasPrefix(p.Key, "kube-proxy/") {
			start = "; it does not follow changes until winlab restart " + p.Key
		}
		line := fmt.Sprintf("%s  %s on %s has ended by itself (%s): winlab logs %s%s", time.Now().Format("15:04:05.000"), p.Command,
			shortName(p.Machine), p.Ended, shortName(p.Key), start)
		if o.summary {
			line = "\r\033[K" + line
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return false
		}
	}
	return true
}

// show writes a connection; false when the reader has gone.
func (o *watchArgs) show(w io.Writer, c *live.Connection) bool {
	if o.Output == "json" {
		return writeLine(w, c) == nil
	}
	line := connectionLine(*c, o.Colour)
	if o.summary {
		line = "\r\033[K" + line // over the counts
	}
	_, err := fmt.Fprintln(w, line)
	return err == nil
}
