package claims

import (
	"testing"

	"github.com/winlab-dev/winlab/sim/trace"
)

func TestNotDelivered(t *testing.T) {
	for v, want := range map[trace.Verdict]bool{
		trace.Dropped: true, trace.Rejected: true, trace.NoReply: true, trace.Looped: true, trace.Unresolved: true,
		trace.Delivered: false, trace.Varies: false, trace.Unknown: false, "nonsense": false,
	} {
		if got := Meets(notDelivered, v); got != want {
			t.Errorf("%s meets not-delivered: got %v, want %v", v, got, want)
		}
	}
	if Meets("no-reply", trace.Dropped) || !Meets("no-reply", trace.NoReply) || !Meets("", trace.Unknown) {
		t.Error("a verdict must meet itself only, and every verdict meets no expectation")
	}
}

func TestDocumented(t *testing.T) {
	flow := &Flow{From: "pod/client", To: "pod/peer:80"}
	works := Check{Flow: flow, Expect: "delivered", Basis: "stated"}
	fails := Check{Flow: flow, Expect: notDelivered, Basis: "stated"}
	implied := Check{Flow: flow, Expect: "delivered", Basis: "implied"}
	disputed := Check{Flow: flow, Expect: "delivered", Basis: "stated", Disputed: &Dispute{By: 1, Against: 2, Model: FollowsBy}}
	given := Check{Flow: flow, Expect: "delivered", Basis: "stated", Condition: "routes exist"}
	observes := Check{Flow: flow}
	for _, c := range []struct {
		name        string
		claim       Claim
		checks      []Check
		says, basis string
	}{
		{"no checks", Claim{}, nil, saysSilent, ""},
		{"observes", Claim{}, []Check{observes}, saysSilent, ""},
		{"works", Claim{}, []Check{works, observes}, saysWorks, "stated"},
		{"the weaker basis", Claim{}, []Check{works, implied, works}, saysWorks, "implied"},
		{"fails", Claim{}, []Check{fails}, saysFails, "stated"},
		{"some work, some fail", Claim{}, []Check{works, fails}, saysConditional, "stated"},
		{"a condition", Claim{}, []Check{given}, saysConditional, "stated"},
		{"a condition without a verdict", Claim{}, []Check{{Flow: flow, Condition: "it depends"}}, saysConditional, ""},
		{"a disputed check", Claim{}, []Check{works, disputed}, saysDisputed, "stated"},
		{"a disputed status says nothing about a check", Claim{Support: []Support{{Status: saysDisputed}}}, []Check{works}, saysWorks, "stated"},
		{"a frame", Claim{}, []Check{{Wire: &Wire{Flow: *flow, At: "none"}, Basis: "implied"}}, saysWorks, "implied"},
	} {
		if says, basis := c.claim.Documented(c.checks); says != c.says || basis != c.basis {
			t.Errorf("%s: got %q, %q; want %q, %q", c.name, says, basis, c.says, c.basis)
		}
	}
}
