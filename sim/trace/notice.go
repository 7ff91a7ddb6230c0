package trace

import "slices"

// Notice says that something which was read (a field, an object, a flag, a quirk,
// a part of a version) has no effect on what is simulated. Nothing is accepted in
// silence: what is read either counts or has a notice. Where a flow could depend on
// it, the flow meets the place itself and its verdict is [Unknown]; the notice is
// for all the others, whose reader must be able to judge.
type Notice struct {
	// What names it as its author would: "NetworkPolicy default/deny-all".
	What string `json:"what"`
	// Why says in a sentence why it has no effect, and what would follow from it.
	Why string `json:"why"`
	// At is where it is written; nil where it is in no file.
	At *Origin `json:"at,omitempty"`
}

// Place is where the thing is written, "fixtures/x.yaml:12", or "".
func (n Notice) Place() string {
	if n.At == nil {
		return ""
	}
	return n.At.Place()
}

// AddNotice appends a notice unless the list has it.
func AddNotice(list []Notice, n Notice) []Notice {
	if slices.ContainsFunc(list, func(m Notice) bool { return m.What == n.What && m.Why == n.Why && m.Place() == n.Place() }) {
		return list
	}
	return append(list, n)
}
