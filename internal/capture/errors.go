package capture

import "fmt"

// FormatError says that the input is no capture that this package reads.
type FormatError struct {
	// What was found, and what to do about it.
	What string
}

// Error returns the message with "not a readable capture" in front.
func (e *FormatError) Error() string { return "not a readable capture: " + e.What }

// PacketError says which packet could not be read. Reading cannot go on behind
// it, because nothing tells where the next packet begins.
type PacketError struct {
	// Packet counts from 1. Offset is the byte of the file behind the packet
	// before it.
	Packet int
	Offset int64
	Err    error
}

// Error returns "packet 17 at byte 1234: ...".
func (e *PacketError) Error() string {
	return fmt.Sprintf("packet %d at byte %d: %v", e.Packet, e.Offset, e.Err)
}

// Unwrap returns the cause.
func (e *PacketError) Unwrap() error { return e.Err }

// TruncatedError says that the file ends inside a packet. All packets before it
// were returned.
type TruncatedError struct {
	// Packets is the number of whole packets.
	Packets int
	// Offset is the byte at which the last whole packet ends, Skipped the
	// number of bytes after it.
	Offset, Skipped int64
}

// Error says how many packets are whole and what was skipped.
func (e *TruncatedError) Error() string {
	return fmt.Sprintf("the capture is cut off: packet %d at byte %d is not complete, or its length is wrong; %d whole packets were read, the last %d bytes were skipped",
		e.Packets+1, e.Offset, e.Packets, e.Skipped)
}
