package cli

import "testing"

// A heap grows up to room and not further, or by what is usual, whichever is more.
func TestGrowth(t *testing.T) {
	for _, c := range []struct {
		live uint64
		want int
	}{{0, 800}, {1 << 20, 800}, {8 << 20, 700}, {16 << 20, 300}, {32 << 20, 100}, {100 << 20, 100}, {8 << 30, 100}} {
		if got := growth(c.live, 100); got != c.want {
			t.Errorf("%d bytes live: %d %%, want %d", c.live, got, c.want)
		}
	}
}
