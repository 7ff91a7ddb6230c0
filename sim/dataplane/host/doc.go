// Package host is the IP stack of one machine or one container compartment:
// interfaces, addresses, routes, forwarding, programs that listen, sockets that
// wait for an answer, and the address translation that a host does itself
// (Linux netfilter, WinNAT).
//
// A stack sends frames through [Link]s and does not know what is behind them:
// a wire, a virtual switch or a tunnel. It must not know HNS, VFP rules,
// Services or pods.
package host
