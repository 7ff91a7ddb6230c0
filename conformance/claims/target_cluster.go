package claims

import (
	"slices"

	"github.com/winlab-dev/winlab/sim/trace"
)

// Documented is what the documents ask for on a cluster, of one thing that is tried.
type Documented struct {
	// Applies is false where no check, or for a spec no status, is for the cluster.
	Applies bool
	// Expect is a verdict for packets and names, "works" or "fails" for a spec; ""
	// when the documents are silent or do not agree with each other.
	Expect string
	Basis  string
	Status string
	// Disputed is set when sources contradict each other, Dispute when they do about what
	// is expected.
	Disputed bool
	Dispute  *Dispute
	// CarriedOver is set where the version is newer than the documents that were
	// read: what they say is taken to hold still.
	CarriedOver bool
	// Open says why nothing is expected although a document says something: it
	// depends on what is not known of the cluster.
	Open string
}

// The answers of a spec, and what is asked of it.
const (
	Works = saysWorks
	Fails = saysFails
)

// DocumentedOn returns what is documented for a check, given as what it tries (String,
// and for a flow the source that must be seen), where all the targets are: those of
// the nodes of one cluster.
func (c *Claim) DocumentedOn(what, seenAs string, targets []Target) Documented {
	d, first := Documented{}, true
	for _, t := range targets {
		for _, k := range c.Checks {
			carried := false
			switch {
			case k.Lab != "": // a cluster does not have what that lab has
				continue
			case k.String() != what, k.Flow != nil && k.Flow.SeenAs != seenAs:
				continue
			case k.Holds(t):
			case k.Applies(t):
				carried = true
			default:
				continue
			}
			d.Applies, d.CarriedOver = true, d.CarriedOver || carried
			d.Disputed = d.Disputed || k.Disputed != nil
			expect, basis := k.Expect, k.Basis
			if k.Cluster != "" {
				expect = c.worksOn(t, &d)
			}
			if expect == "" {
				basis = ""
			}
			if !first && expect != d.Expect {
				d.Expect, d.Basis, d.Dispute, d.Open = "", "", nil,
					"what the documents expect depends on something that is not known of this cluster, or is not the same on all its nodes; see winlab claims show "+c.ID
				return d
			}
			d.Expect, d.Basis, first = expect, basis, false
			if k.Disputed != nil && expect != "" {
				d.Dispute = k.Disputed
			}
		}
	}
	if s, _, ok := c.statusOn(targets); ok && d.Status == "" {
		d.Status = s
	}
	if d.CarriedOver && d.Basis != "" {
		d.Basis = "implied"
	}
	return d
}

// worksOn is what is asked of a spec in a target, by the documented status.
func (c *Claim) worksOn(t Target, d *Documented) string {
	status, carried, ok := c.statusOn([]Target{t})
	d.Status, d.CarriedOver = status, d.CarriedOver || carried
	switch {
	case !ok, status == "undocumented":
		return ""
	case status == "disputed":
		d.Disputed = true
		return ""
	case status == "unsupported":
		return Fails
	}
	return Works
}

// statusOn is the documented status in targets that have one in common.
func (c *Claim) statusOn(targets []Target) (status string, carried, ok bool) {
	for _, t := range targets {
		for _, s := range c.Support {
			switch {
			case s.Holds(t):
			case s.Applies(t):
				carried = true
			default:
				continue
			}
			if ok && s.Status != status {
				return "", false, false
			}
			status, ok = s.Status, true
		}
	}
	return status, carried, ok
}

// MeetsSeen is Meets for what a program on a cluster can tell: it does not know whether
// the request or the reply was lost, or how often it went round.
func MeetsSeen(expect string, got trace.Verdict) bool {
	if got == trace.Dropped && slices.Contains([]string{string(trace.NoReply), string(trace.Dropped), string(trace.Looped)}, expect) {
		return true
	}
	return Meets(expect, got)
}

// OldestKubernetes is the first version that one of the ranges has, "1.14"; "" when
// one of them has no beginning.
func OldestKubernetes(all []Where) string {
	return oldest(all, func(w Where) string { return w.Kubernetes })
}

// OldestBuild is the first build of Windows that one of the ranges has,
// "10.0.17763.1432"; "" when one of them has no beginning.
func OldestBuild(all []Where) string {
	return oldest(all, func(w Where) string { return w.Build })
}

func oldest(all []Where, of func(Where) string) string {
	var oldest string
	var low Version
	for i, w := range all {
		v := lowest(of(w))
		if len(v) == 0 {
			return ""
		}
		if i == 0 || slices.Compare(v, low) < 0 {
			low, oldest = v, v.String()
		}
	}
	return oldest
}
