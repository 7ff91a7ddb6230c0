// Package growth measures how the work of winlab grows with a cluster: in statements that ran,
// which no other work on the machine changes, and not in time. A list that is searched for each
// node, Service or pod shows there also where it allocates nothing.
//
// It is a test. It knows the sizes of labs, and nothing of what is done with them;
// internal/dev/bench/growth/work does that, built with Go's counters of coverage.
package growth
