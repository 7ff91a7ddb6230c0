// Package host is the IP stack of one machine or one container compartment:
// interfaces, addresses, routes, forwarding, programs that listen, sockets that
// wait for an answer, tunnel devices ([VTEP]), and the address translation that a
// host does itself ([NAT]: Linux netfilter, WinNAT).
//
// A packet from a program goes through output and route, a frame from a link
// through [Stack.Input] and either local or forward.
//
// A stack sends frames through [Link]s and does not know what is behind them:
// a wire, a virtual switch or a tunnel. It must not know HNS, VFP rules,
// Services or pods.
package host
