package hns

import (
	"fmt"
	"net"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
)

// nextMAC takes the next free address of the network's pool.
func (s *Service) nextMAC(n *Network) string {
	for _, r := range n.MacPool.Ranges {
		first, err1 := net.ParseMAC(r.StartMacAddress)
		last, err2 := net.ParseMAC(r.EndMacAddress)
		if err1 != nil || err2 != nil || len(first) != 6 || len(last) != 6 {
			continue
		}
		for v := max(macNumber(first), s.macs[n.ID]); v <= macNumber(last); v++ {
			if s.usedMACs[formatMAC(v)] == 0 {
				s.macs[n.ID] = v + 1
				return formatMAC(v)
			}
		}
	}
	return ""
}

func macNumber(hw net.HardwareAddr) uint64 {
	var v uint64
	for _, b := range hw {
		v = v<<8 | uint64(b)
	}
	return v
}

func formatMAC(v uint64) string {
	return fmt.Sprintf("%02X-%02X-%02X-%02X-%02X-%02X", byte(v>>40), byte(v>>32), byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
}

// canonicalMAC writes a MAC address as HNS prints it, or returns it unchanged
// when it is malformed.
func canonicalMAC(s string) string {
	hw, err := net.ParseMAC(s)
	if err != nil || len(hw) != 6 {
		return s
	}
	return formatMAC(macNumber(hw))
}

// mac parses an endpoint's MAC address; the zero MAC when it has none.
func mac(text string) packet.MAC {
	m, _ := packet.ParseMAC(text)
	return m
}
