// Package live makes a built cluster run: each pod, node and host of a lab is a
// network namespace of Linux, and whatever its programs send goes through the
// cluster's simulated stacks, switches and segments, the same that a trace goes
// through.
//
//	c, err := lab.Build(ctx, f, lab.Options{})
//	n, err := live.Up(ctx, c, live.Options{})
//	defer n.Close()
//	conn, err := n.Dial(ctx, "pod/client", "tcp", addr, time.Second)
//
// The TCP/IP stack of the programs is that of Linux. What is simulated is the way
// between: the routes and translations of a node, its virtual switch, the segments.
// Addresses of a node belong to its namespace, and all that its programs send,
// also to the node's own addresses, meets the simulated stack of the node.
//
// Frames are handled one after another, under one lock. The package must not decide
// what happens to one: that is the simulation's.
package live
