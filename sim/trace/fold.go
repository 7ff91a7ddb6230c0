package trace

// Turn is a stretch of steps that repeats: Steps[From:From+Len] happens Times times in
// a row.
type Turn struct{ From, Len, Times int }

// minTurns is how often steps must repeat to count as a loop: a reply that goes back through a
// machine that the request passed is not a loop.
const minTurns = 3

// FindTurn finds the first stretch of steps that repeats at least three times in a row,
// as a packet that goes round in circles leaves it. Numbers, packets and remaining hops
// of the steps may differ. ok is false for none.
func FindTurn(steps []Step) (t Turn, ok bool) {
	for from := range steps {
		for n := 1; from+minTurns*n <= len(steps); n++ {
			times := 1
			for from+(times+1)*n <= len(steps) && sameTurn(steps[from:from+n], steps[from+times*n:from+(times+1)*n]) {
				times++
			}
			if times >= minTurns {
				return Turn{from, n, times}, true
			}
		}
	}
	return Turn{}, false
}

// sameTurn reports whether two stretches say the same of the same places.
func sameTurn(a, b []Step) bool {
	for i := range a {
		x, y := &a[i], &b[i]
		if x.Leg != y.Leg || x.Place != y.Place || x.Object != y.Object || x.Port != y.Port || x.Dir != y.Dir || x.Layer != y.Layer ||
			x.Rule != y.Rule || x.Action != y.Action || x.Reason != y.Reason || x.Text() != y.Text() {
			return false
		}
	}
	return true
}
