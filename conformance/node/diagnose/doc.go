// Package diagnose says what is wrong in a bundle: what the doctor finds in the files of each
// node, where Kubernetes and a node's HNS differ, and which packets between pods and to
// Services are lost in the bundle's lab, with the place. It joins doctor and importer, which
// do not know each other.
//
// It must know no rule: the importer compares with Kubernetes, the doctor looks for causes, and
// the lab says what becomes of packets, and what a plugin makes of its configuration. Of HNS it
// knows the policies of endpoints that are compared with that.
package diagnose
