//go:build linux

package peers

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// cost is what a work took.
type cost struct {
	cpu   time.Duration
	units int // how many of the work's units were done
	// peak is the most memory that a process of its own had, in bytes; 0 when it is not one.
	peak int64
}

func (c cost) perUnit() float64 { return float64(c.cpu) / float64(max(c.units, 1)) }

// work is one line of the table.
type work struct {
	name, unit string
	// winlab and peer do it once.
	winlab, peer func(context.Context) (cost, error)
	peerName     string
	// budget is the smallest ratio of the peer's cost to winlab's that is allowed, goal the one
	// to reach. Where winlab does what the peer does not, atMost turns it round: the largest
	// ratio of winlab's cost to the peer's.
	budget, goal float64
	atMost       bool
	// within is the goal where it is a time of winlab's own for one unit, on a quiet machine. goal
	// is not used then.
	within time.Duration
	// peak is the memory that is allowed, in bytes; 0 means any. What the system says of
	// a short program is rather what this one has: it is begun as a copy.
	peak int64
	// large is set for what takes minutes, and is asked for with -envelope.
	large bool
	// not says what the peer or winlab does not do.
	not string
}

var (
	rounds   = flag.Int("rounds", 0, "how often each pair is measured; the median counts. 0 measures nothing")
	packets  = flag.Int("packets", 1_000_000, "packets of the capture")
	winlab   = flag.String("winlab", "bin/winlab", "the winlab to measure as a program, below the repository")
	envelope = flag.Bool("envelope", false, "also the size for which Kubernetes is tested: minutes, and gigabytes")
	only     = flag.String("only", "", "only works whose name contains this")
)

// TestPeers prints a table, and fails when a figure is over its budget. A peer that is not
// installed is left out, and said.
func TestPeers(t *testing.T) {
	if *rounds == 0 {
		t.Skip("measures only with -args -rounds 3, as make bench does")
	}
	t.Chdir("../../../..")
	over, err := measure(t.Context(), *winlab, *packets, *rounds, *only, *envelope)
	if err != nil {
		t.Fatal(err)
	}
	if over > 0 {
		t.Errorf("%d over budget", over)
	}
}

func measure(ctx context.Context, winlab string, packets, rounds int, only string, envelope bool) (over int, err error) {
	b, err := newBench(ctx, winlab, packets)
	if err != nil {
		return 0, err
	}
	defer b.close()
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "work\twinlab\tpeer\t\tratio\tbudget\tgoal\t\twhat is not done")
	for _, w := range b.works(ctx) {
		if !strings.Contains(w.name, only) || w.large && !envelope {
			continue
		}
		if w.peer == nil {
			fmt.Fprintf(os.Stderr, "left out: %s: %s is not installed\n", w.name, w.peerName)
			continue
		}
		var ours, theirs []cost
		for range rounds {
			for _, side := range []struct {
				do   func(context.Context) (cost, error)
				into *[]cost
			}{{w.winlab, &ours}, {w.peer, &theirs}} {
				c, err := side.do(ctx)
				if err != nil {
					return 0, fmt.Errorf("%s: %w", w.name, err)
				}
				*side.into = append(*side.into, c)
			}
		}
		a, p := median(ours), median(theirs)
		line, fails := w.judge(a, p)
		if fails {
			over++
		}
		fmt.Fprintln(out, line)
	}
	if err := out.Flush(); err != nil {
		return 0, err
	}
	fmt.Printf("\nCPU time of each unit, the median of %d; %d over budget\n", rounds, over)
	return over, nil
}

// judge is the line of a work, and whether it is over its budget.
func (w *work) judge(a, p cost) (line string, over bool) {
	ratio := p.perUnit() / a.perUnit()
	reached := ratio >= w.goal
	over = ratio < w.budget
	sign := "≥"
	if w.atMost {
		ratio = 1 / ratio
		reached, over, sign = ratio <= w.goal, ratio > w.budget, "≤"
	}
	goal := fmt.Sprintf("%s %.3g×", sign, w.goal)
	if w.within > 0 {
		goal, reached = "≤ "+span(float64(w.within)), a.perUnit() <= float64(w.within)
	}
	note := "short of the goal"
	if reached {
		note = "reached"
	}
	ours := fmt.Sprintf("%s %s", span(a.perUnit()), w.unit)
	if w.peak > 0 {
		ours += fmt.Sprintf(", %d MB", a.peak>>20)
	}
	if w.peak > 0 && a.peak > w.peak {
		over = true
		note = fmt.Sprintf("more than %d MB", w.peak>>20)
	}
	if over {
		note = "OVER BUDGET, " + note
	}
	return fmt.Sprintf("%s\t%s\t%s\t%s\t%.2f×\t%s %.3g×\t%s\t%s\t%s", w.name, ours, span(p.perUnit()), w.peerName, ratio, sign, w.budget, goal,
		note, w.not), over
}

// median is the run with the median of CPU time.
func median(all []cost) cost {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b cost) int { return int(a.cpu - b.cpu) })
	return all[len(all)/2]
}

// span writes nanoseconds with three figures.
func span(ns float64) string {
	switch {
	case ns < 1e3:
		return fmt.Sprintf("%.3g ns", ns)
	case ns < 1e6:
		return fmt.Sprintf("%.3g µs", ns/1e3)
	case ns < 1e9:
		return fmt.Sprintf("%.3g ms", ns/1e6)
	}
	return fmt.Sprintf("%.3g s", ns/1e9)
}
