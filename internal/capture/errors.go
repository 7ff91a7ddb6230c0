package capture

import "fmt"

// FormatError says that the input is not a capture that this package reads.
type FormatError struct {
	// what was found, and what to do about it.
	what string
}

// Error returns the message with "not a readable capture" in front.
func (e *FormatError) Error() string { return "not a readable capture: " + e.what }

// PacketError says which packet could not be read. Reading cannot go on after
// it, because nothing says where the next packet begins.
type PacketError struct {
	// packet counts from 1. offset is the byte of the file at which the packet
	// before it ends.
	packet int
	offset int64
	err    error
}

// Error returns "packet 17 at byte 1234: ...".
func (e *PacketError) Error() string {
	return fmt.Sprintf("packet %d at byte %d: %v", e.packet, e.offset, e.err)
}

// Unwrap returns the cause.
func (e *PacketError) Unwrap() error { return e.err }

// TruncatedError says that the file ends inside a packet. All packets before it
// were returned.
type TruncatedError struct {
	// packets is the number of whole packets.
	packets int
	// offset is the byte at which the last whole packet ends, skipped the
	// number of bytes after it.
	offset, skipped int64
}

// Error says how many packets are whole and what was skipped.
func (e *TruncatedError) Error() string {
	return fmt.Sprintf(
		"the capture is cut off: packet %d at byte %d is not complete, or its length is wrong; %d whole packets were read, the last %d bytes were skipped",
		e.packets+1, e.offset, e.packets, e.skipped)
}
