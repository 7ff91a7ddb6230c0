package netns

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
)

// bound lists the sockets of the present network namespace that wait.
func bound() ([]Bound, error) {
	var all []Bound
	for _, network := range []string{"tcp", "tcp6", "udp", "udp6"} {
		f, err := os.Open("/proc/thread-self/net/" + network)
		if err != nil {
			return nil, err
		}
		s := bufio.NewScanner(f)
		for s.Scan() {
			if b, ok := boundOf(strings.TrimSuffix(network, "6"), s.Text()); ok && !slices.Contains(all, b) {
				all = append(all, b)
			}
		}
		_ = f.Close()
		if err := s.Err(); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name(), err)
		}
	}
	return all, nil
}

// boundOf reads a line of /proc/net/tcp or /proc/net/udp (proc(5)): "0:
// 0100007F:1F90 00000000:0000 0A ...": number, local and remote address, state. A
// socket listens in state 10 (TCP_LISTEN); one of UDP that is not connected is in 7.
func boundOf(network, line string) (Bound, bool) {
	f := strings.Fields(line)
	if len(f) < 4 || f[3] != "0A" && f[3] != "07" || (f[3] == "0A") != (network == "tcp") {
		return Bound{}, false
	}
	local, ok := procAddr(f[1])
	return Bound{network, local}, ok
}

// procAddr reads an address whose 32-bit words are in the order of the machine's
// bytes. winlab runs on machines with the lowest byte first only.
func procAddr(s string) (netip.AddrPort, bool) {
	text, port, _ := strings.Cut(s, ":")
	n, err := strconv.ParseUint(port, 16, 16)
	b, err2 := hex.DecodeString(text)
	if err != nil || err2 != nil {
		return netip.AddrPort{}, false
	}
	for i := 0; i+4 <= len(b); i += 4 {
		slices.Reverse(b[i : i+4])
	}
	a, ok := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(a.Unmap(), uint16(n)), ok
}
