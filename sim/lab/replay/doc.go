// Package replay plays a capture into a lab: every packet goes in at a port, and
// what comes out at every hop that it crosses is written as a pcapng file with
// one interface for each hop.
//
// Programs in the lab do not answer, so a capture may hold both directions of a
// conversation, each packet going in at the port of its own sender. Bytes that
// leave are those that the simulated data plane made. The package joins
// captures and labs; it must not know rules, switches or plugins.
package replay
