// Package capture reads packet captures (pcap and pcapng) and writes pcapng
// with a comment for each packet and a named interface for each hop.
//
// github.com/gopacket/gopacket/pcapgo reads and writes the file formats; see
// docs/decisions/libraries.md. This package adds what a replay needs: one
// reader for both formats, the number and the place of the packet in every
// error, and a message that says which part of a damaged file was skipped.
//
// It hands out bytes. What they mean is for package packet; this package must
// not decode them and must not know about the simulator.
package capture
