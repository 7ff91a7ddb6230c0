package cluster

import (
	"testing"
	"time"
)

// TestPause: pauses are those of the service managers.
func TestPause(t *testing.T) {
	for _, c := range []struct {
		of   backOff
		want []time.Duration
	}{
		{services, []time.Duration{10 * time.Second, 10 * time.Second, 10 * time.Second}},
		{staticPods, []time.Duration{0, 10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second,
			5 * time.Minute, 5 * time.Minute}},
	} {
		for before, want := range c.want {
			if got := c.of.pause(before); got != want {
				t.Errorf("%+v: after %d ends %v, want %v", c.of, before, got, want)
			}
		}
	}
	if got := staticPods.pause(1 << 20); got != 5*time.Minute {
		t.Errorf("after many ends %v", got)
	}
}
