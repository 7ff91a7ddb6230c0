// Package compare compares what a node did, by listings of its rules and by packets that were seen
// on it, with what the model does with the same state. It makes the lab of a bundle, sends the
// flows of captures through it, and compares the forms in which a packet was seen on a node with
// the model's forms there, in their order. It compares every path that the model leaves open, so a
// capture can decide a question that no source decides.
//
// It reads only forms of which a public example is known. What vfpctrl /process-tuples prints is
// not among them; its arguments are, so the model answers for them, and a person compares.
//
// It must not know what a device does with a packet, nor what is in an object of HNS.
package compare
