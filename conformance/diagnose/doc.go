// Package diagnose says what is wrong in a bundle: what the doctor finds in the files of each
// node, where Kubernetes and a node's HNS differ, and which packets between pods and to
// Services die in the lab that the bundle makes, with the place. Doctor and importer know
// nothing of each other; here they meet.
//
// It must know no HNS object and no rule: the importer compares, the doctor looks for
// causes, and the lab says what becomes of packets.
package diagnose
