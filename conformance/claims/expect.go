package claims

import (
	"slices"

	"github.com/winlab-dev/winlab/sim/trace"
)

// notDelivered is a pseudo-verdict for Expect: the documents say that it does
// not work, but not how it fails. Every verdict meets it but delivered, varies
// and unknown.
const notDelivered = "not-delivered"

// expects lists what Expect may be.
func expects() []string {
	ids := []string{notDelivered}
	for _, v := range trace.Verdicts {
		ids = append(ids, string(v.ID))
	}
	return ids
}

// Meets reports whether a verdict is what Expect asks for. An empty Expect
// asks for nothing and is met by every verdict.
func Meets(expect string, got trace.Verdict) bool {
	switch expect {
	case "":
		return true
	case notDelivered:
		return got.Valid() && !slices.Contains([]trace.Verdict{trace.Delivered, trace.Varies, trace.Unknown}, got)
	}
	return string(got) == expect
}

// MeetsTrace is Meets for a whole trace: a flow that fails in every way that is
// possible is not delivered, also when it is open how it fails.
func MeetsTrace(expect string, t *trace.Trace) bool {
	return Meets(expect, t.Verdict) || expect == notDelivered && t.Fails()
}

// What the documents say in a cell, as [result.Cell] has it.
const (
	saysWorks       = "works"
	saysFails       = "fails"
	saysConditional = "conditional"
	saysDisputed    = "disputed"
	saysSilent      = "silent"
)

// Documented sums up what the documents say where these checks of the claim
// apply, with the weaker basis among the checks that expect something. It is
// silent when no check expects anything, and conditional when some flows work
// and others do not.
func (c *Claim) Documented(checks []Check) (says, basis string) {
	works, fails, disputed, conditional := false, false, false, false
	for _, k := range checks {
		conditional = conditional || k.Condition != ""
		if !k.Asks() {
			continue
		}
		disputed = disputed || k.Disputed != nil
		if basis == "" || k.Basis == "implied" {
			basis = k.Basis
		}
		if k.Expect == "" || k.Expect == string(trace.Delivered) {
			works = true
		} else {
			fails = true
		}
	}
	switch {
	case disputed:
		return saysDisputed, basis
	case conditional, works && fails:
		return saysConditional, basis
	case works:
		return saysWorks, basis
	case fails:
		return saysFails, basis
	}
	return saysSilent, ""
}

// Asks reports whether the check asks for something: a verdict, a source
// address, a frame or an HNS value. Otherwise it only observes. Static checks
// and specs always ask.
func (k Check) Asks() bool {
	return k.Expect != "" || k.Static() || k.Cluster != "" ||
		k.Flow != nil && k.Flow.SeenAs != "" ||
		k.Wire != nil ||
		k.HNS != nil && k.HNS.Want != ""
}
