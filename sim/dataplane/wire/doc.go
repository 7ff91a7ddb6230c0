// Package wire carries frames between machines: network interfaces, layer-2
// segments, and the state of a running simulation that all machines share, from
// the clock and the event queue to the record of what happened.
//
// It knows frames and MAC addresses. It must not know routing, virtual
// switches or anything of Kubernetes: those are devices plugged into it.
package wire
