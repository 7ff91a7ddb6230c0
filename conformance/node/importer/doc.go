// Package importer makes a lab of a bundle: of what somebody took from a cluster.
//
// Windows nodes become nodes whose HNS is what their files say (hnsDump), as it is. Objects of
// Kubernetes become pods, Services and versions. Every value of the lab has the place that it
// was read at, as a comment; what does not stand anywhere and was concluded says from what, and
// what is missing says what that leaves open and which command settles it. A node whose HNS
// cannot be read whole is not imported in part: it would be another node.
//
// The package must not decide what happens to a packet, and it derives nothing about HNS.
package importer
