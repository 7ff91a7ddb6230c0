package trace

import (
	"fmt"
	"slices"
	"strings"
)

// Verdict is the outcome of a flow. The set is closed and the ids are stable.
type Verdict string

// The verdicts.
const (
	Delivered  Verdict = "delivered"
	Dropped    Verdict = "dropped"
	Rejected   Verdict = "rejected"
	NoReply    Verdict = "no-reply"
	Looped     Verdict = "looped"
	Unresolved Verdict = "unresolved"
	Unknown    Verdict = "unknown"
	Varies     Verdict = "varies"
)

// Meaning is what a verdict says.
type Meaning struct {
	ID    Verdict
	Means string
}

// Verdicts lists every verdict with its meaning, best first; a test compares it with the
// constants.
var Verdicts = []Meaning{
	{Delivered, "The request reached a program that listens, and its reply reached the sender."},
	{Varies,
		"The outcome depends on which backend a load balancer picks, or on a question that no source decides; every pick and every answer is shown with its own verdict."},
	{NoReply, "The request reached its destination or left the modelled network, but no reply reached the sender."},
	{Rejected, "A machine refused the request with a TCP reset or an ICMP error."},
	{Dropped, "The request was silently dropped before it reached its destination."},
	{Looped, "The packet kept returning to a place where it had been until its hop limit was used up."},
	{Unresolved, "The name could not be turned into an address, so no packet was sent."},
	{Unknown, "The model does not know what happens on this path; the last step names what is missing."},
}

// Valid reports whether v is one of the verdicts.
func (v Verdict) Valid() bool {
	return slices.ContainsFunc(Verdicts, func(m Meaning) bool { return m.ID == v })
}

// ParseVerdict returns the verdict with that id, or an error that lists them all.
func ParseVerdict(s string) (Verdict, error) {
	v := Verdict(strings.ToLower(s))
	if v.Valid() {
		return v, nil
	}
	var ids []string
	for _, d := range Verdicts {
		ids = append(ids, string(d.ID))
	}
	return "", fmt.Errorf("no verdict %q; write one of %s", s, strings.Join(ids, ", "))
}
