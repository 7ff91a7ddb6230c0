package support

import (
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/sim/trace"
)

// documents is what the documents say in a place.
type documents struct {
	state   State // Nowhere: they are silent; Unknown: they contradict each other
	carried bool
	// contested is set where another source contradicts a part of what they ask for.
	contested bool
	statuses  []string
	notes     []string
}

// stateOf is what a documented status says of the feature.
func stateOf(status string) State {
	switch status {
	case "stable", "beta":
		return Works
	case "alpha":
		return Conditions
	case "unsupported":
		return DoesNot
	case result.Disputed:
		return Unknown
	}
	return Nowhere
}

// documented sums up the statuses that hold in a place, and the conditions of the checks.
func (c *claim) documented(p place) documents {
	var d documents
	best := outside
	for i := range c.support {
		best = max(best, c.support[i].fitAt(p))
	}
	if best == outside {
		return d
	}
	d.carried = best == carried
	disputed, undisputed := c.disputes(p, &d)
	d.contested = disputed > 0
	states, restricted := c.statuses(p, best, &d)
	switch {
	case len(states) == 0:
		return d
	case slices.Contains(states, Unknown), disputed > 0 && undisputed == 0:
		d.state = Unknown
		return d
	case len(states) > 1, restricted && states[0] == Works:
		d.state = Conditions
	default:
		d.state = states[0]
	}
	for i := range c.asks {
		if k := c.Asks[i].Condition; k != "" && c.asks[i].fitAt(p) != outside {
			addNew(&d.notes, k)
			if d.state == Works {
				d.state = Conditions
			}
		}
	}
	return d
}

// disputes counts the checks of the feature itself in a place, with a dispute and without
// one, and notes the positions.
func (c *claim) disputes(p place, d *documents) (disputed, undisputed int) {
	for i := range c.asks {
		a := &c.Asks[i]
		if c.asks[i].fitAt(p) == outside || a.Expect == "" || c.polarity[a.What] != 1 {
			continue
		}
		if a.Dispute == nil {
			undisputed++
			continue
		}
		disputed++
		for _, n := range []int{a.Dispute.By, a.Dispute.Against} {
			if n >= 1 && n <= len(c.Sources) && c.Sources[n-1].Says != "" {
				addNew(&d.notes, c.Sources[n-1].Doc+": "+c.Sources[n-1].Position())
			}
		}
	}
	return disputed, undisputed
}

// statuses reads the statuses that hold in a place as well as any: their states, and whether
// one is for something beside the place only.
func (c *claim) statuses(p place, best fit, d *documents) (states []State, restricted bool) {
	for i := range c.support {
		s := &c.support[i]
		if s.fitAt(p) != best {
			continue
		}
		h := c.History[i]
		words := s.restricts()
		restricted = restricted || words != ""
		addNew(&d.statuses, h.Status)
		if h.Says != "" || words != "" {
			addNew(&d.notes, note(words, h.Status, h.Says))
		}
		if state := stateOf(h.Status); state != Nowhere && !slices.Contains(states, state) {
			states = append(states, state)
		}
	}
	if slices.Contains(d.statuses, "alpha") {
		addNew(&d.notes, "documented as alpha")
	} else if slices.Contains(d.statuses, "beta") {
		addNew(&d.notes, "documented as beta")
	}
	return states, restricted
}

// note is a reservation of a status: "containerd >=1.6: unsupported".
func note(words, status, says string) string {
	switch {
	case words == "":
		return says
	case says == "":
		return words + ": " + status
	}
	return words + ": " + status + ", " + says
}

func addNew(list *[]string, s string) {
	if s != "" && !slices.Contains(*list, s) {
		*list = append(*list, s)
	}
}

// polarities finds out, for each thing that the claim's checks try, whether it is the
// feature itself. A flow that must be delivered where the status is stable, and must not be
// where it is unsupported, is it (1): what becomes of the flow is the answer. A flow that
// must fail where the feature works is not (-1): a packet that a policy must drop, or one
// that shows the opposite. Where no status says so, a claim that asks for verdicts is taken
// by its word that delivery is what is wanted, unless another of its flows is -1. What is
// only ever looked at says nothing of the feature (0).
func (c *claim) polarities() {
	c.polarity = map[string]int{}
	against, asked := false, map[string]bool{}
	for i := range c.asks {
		a := c.Asks[i]
		wants, ok := wanted(a.Expect)
		if !ok {
			continue
		}
		asked[a.What] = true
		for j := range c.support {
			says := stateOf(c.History[j].Status)
			if says != Works && says != Conditions && says != DoesNot || !c.asks[i].meets(&c.support[j]) {
				continue
			}
			if (says == DoesNot) == wants {
				c.polarity[a.What] = -1
				against = true
			} else if c.polarity[a.What] == 0 {
				c.polarity[a.What] = 1
			}
		}
	}
	if against {
		return
	}
	c.assumed = len(c.polarity) == 0
	for what := range asked {
		c.polarity[what] = 1
	}
}

// wanted is whether a check asks for delivery; false for what is not about delivery.
func wanted(expect string) (delivered, ok bool) {
	if expect == string(trace.Delivered) {
		return true, true
	}
	failing, _ := fails(expect)
	return false, failing || expect == "not-delivered"
}

// fails is whether a verdict is one of the ways to fail.
func fails(verdict string) (failed, ok bool) {
	v := trace.Verdict(strings.TrimSpace(verdict))
	if !v.Valid() {
		return false, false
	}
	switch v {
	case trace.Delivered, trace.Varies, trace.Unknown:
		return false, v == trace.Delivered
	}
	return true, true
}
