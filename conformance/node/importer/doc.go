// Package importer makes a lab from a bundle, which was collected from a cluster.
//
// Windows nodes become nodes with exactly the HNS objects of their files (hnsDump). Objects of
// Kubernetes become pods, Services and versions. A comment at every value of the lab names the
// place that it was read from, or what it was concluded from. What is missing is listed with what
// it leaves open and the command that settles it. A node whose HNS cannot be read completely is
// not imported in part: it would be another node.
//
// The package must not decide what happens to a packet, and it derives nothing about HNS.
package importer
