// Package packet holds Ethernet frames as values: it parses them, edits them in
// place, wraps them in tunnels and keeps every checksum right.
//
// The simulator moves real bytes, so that what it says about a packet can be
// checked in a capture. A [Packet] owns one frame and the [Headers] parsed from
// it. Loading, reading and editing allocate nothing once the buffer has grown,
// because a rule engine does them for every packet of a replay.
//
// Checksums change incrementally (RFC 1624): a checksum that was wrong when the
// frame arrived is wrong by the same amount afterwards, as on a real switch that
// does not look at payloads.
//
// The package must not know ports, rules, networks, Windows or Kubernetes.
package packet
