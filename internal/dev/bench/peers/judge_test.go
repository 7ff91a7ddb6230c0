//go:build linux

package peers

import (
	"strings"
	"testing"
	"time"
)

// TestJudge: both kinds of budget can be exceeded, and memory.
func TestJudge(t *testing.T) {
	at := func(d time.Duration, mb int64) cost { return cost{cpu: d, units: 1, peak: mb << 20} }
	for _, c := range []struct {
		name       string
		w          work
		ours, peer cost
		over       bool
		says       string
	}{
		{"twice as fast as the peer", work{budget: 1, goal: 2}, at(time.Second, 0), at(2*time.Second, 0), false, "reached"},
		{"as fast", work{budget: 1, goal: 2}, at(time.Second, 0), at(time.Second, 0), false, "short of the goal"},
		{"slower than allowed", work{budget: 1, goal: 2}, at(3*time.Second, 0), at(2*time.Second, 0), true, "OVER BUDGET"},
		{"three times what the peer costs", work{budget: 4, goal: 2, atMost: true}, at(3*time.Second, 0), at(time.Second, 0), false, "3.00×"},
		{"five times", work{budget: 4, goal: 2, atMost: true}, at(5*time.Second, 0), at(time.Second, 0), true, "OVER BUDGET"},
		{"in time", work{budget: 4, within: time.Second, atMost: true}, at(time.Second, 0), at(time.Second, 0), false, "reached"},
		{"too long, and no ratio helps", work{budget: 0.1, within: time.Second}, at(2*time.Second, 0), at(time.Hour, 0), false,
			"short of the goal"},
		{"too much memory", work{budget: 4, goal: 2, atMost: true, peak: 100 << 20}, at(time.Second, 101), at(time.Second, 1), true,
			"more than 100 MB"},
	} {
		line, over := c.w.judge(c.ours, c.peer)
		if over != c.over || !strings.Contains(line, c.says) {
			t.Errorf("%s: over is %v in %q, want %v and %q", c.name, over, line, c.over, c.says)
		}
	}
	if m := median([]cost{at(3, 0), at(1, 0), at(2, 0)}); m.cpu != 2 {
		t.Errorf("the median is %v", m.cpu)
	}
}
