package replay

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/winlab-dev/winlab/internal/capture"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Summary counts what became of the packets of a capture.
type Summary struct {
	// Packets is the number of packets that were read, Frames that of the
	// frames that crossed a hop.
	Packets int `json:"packets"`
	Frames  int `json:"frames"`
	// Outcomes are the packets by verdict, reason and place, the most frequent first.
	Outcomes []Count `json:"fates"`
	// Hops are the hops that packets crossed, in the order of the first
	// crossing. Each is an interface of the output.
	Hops []string `json:"hops"`
	// Readdressed counts packets whose MAC addresses were not those of the lab
	// and were replaced by those that their sender has there.
	Readdressed int `json:"readdressed,omitempty"`
	// CutShort counts packets of which the capture holds only a part, Malformed
	// those whose headers cannot be parsed. Neither was played.
	CutShort  int `json:"cutShort,omitempty"`
	Malformed int `json:"malformed,omitempty"`
	// Assumed lists the nodes that were not observed, with what is assumed about them; see
	// [flow.Cluster.Assumptions].
	Assumed []string `json:"assumed,omitempty"`
	// Skipped says what was left out, in words.
	Skipped []string `json:"skipped,omitempty"`

	firstBad string
}

// Count is a number of packets with the same outcome.
type Count struct {
	Verdict trace.Verdict `json:"verdict"`
	Reason  trace.Reason  `json:"reason,omitempty"`
	Where   string        `json:"where,omitempty"`
	Packets int           `json:"packets"`

	comment capture.Comment
}

func newSummary() *Summary { return &Summary{Outcomes: []Count{}, Hops: []string{}} }

// finish sorts the counts and says in words what was skipped.
func (p *player) finish() {
	s := p.sum
	for _, c := range p.counts {
		s.Outcomes = append(s.Outcomes, *c)
	}
	slices.SortFunc(s.Outcomes, func(a, b Count) int {
		return cmp.Or(cmp.Compare(b.Packets, a.Packets), cmp.Compare(a.Verdict, b.Verdict), cmp.Compare(a.Reason, b.Reason),
			cmp.Compare(a.Where, b.Where))
	})
	if s.CutShort > 0 {
		s.Skipped = append(s.Skipped,
			fmt.Sprintf("%d packets were not played: the capture has only part of them (capture with a snap length of 0)", s.CutShort))
	}
	if s.Malformed > 0 {
		s.Skipped = append(s.Skipped, fmt.Sprintf("%d packets were not played: their headers are malformed (first: %s)", s.Malformed, s.firstBad))
	}
}
