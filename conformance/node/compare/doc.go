// Package compare holds what a node says that it did against what the model does with the same
// state: listings of its rules, and packets that were seen on it. It makes the lab of a bundle,
// sends the flows that captures show through it, and compares the forms in which a packet was
// seen on a node with those that the model gives it there, in their order. Every way that the
// model leaves open is compared, so a capture can decide a question that no source does.
//
// It reads only forms of which a public example is known. What vfpctrl /process-tuples prints is
// not among them; its arguments are, so the model answers for them, and a person compares.
//
// It must not know what a device does with a packet, nor what is in an object of HNS.
package compare
