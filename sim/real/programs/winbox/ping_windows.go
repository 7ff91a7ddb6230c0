package main

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"syscall"
	"time"
	"unsafe"
)

// The statuses of an echo (ipexport.h) and what ping prints of them.
var echoProblems = map[uint32]struct {
	text    string
	replied bool
}{
	11002: {"Destination net unreachable.", true},
	11003: {"Destination host unreachable.", true},
	11004: {"Destination protocol unreachable.", true},
	11005: {"Destination port unreachable.", true},
	11009: {"Packet needs to be fragmented but DF set.", false},
	11010: {"Request timed out.", false},
	11013: {"TTL expired in transit.", true},
	11050: {"General failure.", false},
}

// sendEcho sends one echo request by IcmpSendEcho of iphlpapi.dll and waits for the answer.
func sendEcho(to netip.Addr, size, ttl int, wait time.Duration) (echo, error) {
	dll := syscall.NewLazyDLL("iphlpapi.dll")
	h, _, err := dll.NewProc("IcmpCreateFile").Call()
	if syscall.Handle(h) == syscall.InvalidHandle {
		return echo{}, fmt.Errorf("IcmpCreateFile: %w", err)
	}
	defer func() { _, _, _ = dll.NewProc("IcmpCloseHandle").Call(h) }()
	data := make([]byte, max(size, 1))
	for i := range data {
		data[i] = "abcdefghijklmnopqrstuvw"[i%23] // as the real one fills it
	}
	a4 := to.As4()
	// IP_OPTION_INFORMATION: TTL, TOS, flags, size of options, pointer to them.
	options := [16]byte{byte(ttl)}
	// An ICMP_ECHO_REPLY has 40 bytes; behind it are the data and 8 bytes of an error.
	reply := make([]byte, 40+len(data)+8+64)
	n, _, callErr := dll.NewProc("IcmpSendEcho").Call(h, uintptr(binary.LittleEndian.Uint32(a4[:])), uintptr(unsafe.Pointer(&data[0])),
		uintptr(size),
		uintptr(unsafe.Pointer(&options[0])), uintptr(unsafe.Pointer(&reply[0])), uintptr(len(reply)), uintptr(wait.Milliseconds()))
	status := binary.LittleEndian.Uint32(reply[4:])
	if n == 0 {
		status = 11010
		if code, ok := callErr.(syscall.Errno); ok && code != 0 {
			status = uint32(code)
		}
	}
	e := echo{from: netip.AddrFrom4([4]byte(reply[:4])), time: time.Duration(binary.LittleEndian.Uint32(reply[8:])) * time.Millisecond,
		bytes: int(binary.LittleEndian.Uint16(reply[12:])), ttl: int(reply[24])}
	if status != 0 {
		p, ok := echoProblems[status]
		if !ok {
			p.text = fmt.Sprintf("PING: transmit failed. Error code %d.", status)
		}
		e.problem, e.replied = p.text, p.replied && n > 0
	}
	return e, nil
}
