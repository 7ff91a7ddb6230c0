// Package peers measures winlab beside the programs that people would use instead, in one run
// and in turn, so that a busy machine slows both: tcprewrite for replays, Open vSwitch's
// ofproto/trace for traces, and packets rewritten by hand in Go. What is compared is CPU time,
// user and system, of everything that works for an answer. What winlab does in this process, it
// does on one processor: with more, idle ones help the collector and count.
//
// It is a test that runs when it is asked for; make bench does.
package peers
