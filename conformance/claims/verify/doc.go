// Package verify checks the claims of the support matrix by replaying labs in
// the simulator, and by all that needs no lab: rules on their examples,
// placements, a kubelet's resources, folders taken from nodes. No cluster, no
// privileges, milliseconds per check.
//
// It joins claims (data), labs (clusters) and results (a document). It must not
// render reports and must not decide what is true: the verdict is the
// simulator's, the expectation the claim's.
package verify
