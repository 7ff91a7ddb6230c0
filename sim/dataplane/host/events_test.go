package host

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
)

// The words of every event: they are in reports and in goldens of others.
func TestEventsInWords(t *testing.T) {
	pod, backend := netip.MustParseAddr("10.244.1.4"), netip.MustParseAddrPort("10.244.2.5:80")
	dev := tunnelEvent{"flannel.1", packet.VXLAN, 4096}
	tuple := packet.Tuple{Src: pod, Dst: backend.Addr(), SrcPort: 40000, DstPort: 80, Proto: packet.TCP}
	for want, e := range map[string]trace.Detail{
		"forwarded by no route to 10.244.1.4, out of ":            routed{"forwarded", Hop{dst: pod}},
		"no route to 10.244.1.4":                                  noWay{Hop{dst: pod}},
		"10.244.1.4 is its own address: handled inside the stack": ownAddress{pod},
		"10.244.1.4 is not its address and forwarding is off":     forwardingOff{pod},
		"10.244.1.4 came in on eth0, but the route back to it leaves by another link: the strict reverse path filter drops it": wrongLink{pod,
			"eth0"},
		"boom": malformed{errors.New("boom")},
		"TCP 10.244.1.4:40000 > 10.244.2.5:80 SYN":                                                    message{tuple, packet.SYN},
		"the reply is here: TCP 10.244.1.4:40000 > 10.244.2.5:80 ACK":                                 replied{message{tuple, packet.ACK}},
		"web on TCP port 80, from 10.244.1.4":                                                         taken{"web", packet.TCP, 80, pod},
		"data on the connection from 10.244.1.4":                                                      dataReceived{pod},
		"echo request from 10.244.1.4":                                                                echoRequested{pod},
		"proxy takes the connection and opens its own to 10.244.2.5:80 (backend 2 of 3)":              proxied{"proxy", backend, 1, 3},
		"the backend answered: proxy answers the client":                                              backendAnswered{"proxy"},
		"nothing listens on UDP port 53":                                                              closedPort{packet.UDP, 53},
		"no program of the host listens on UDP port 53, and the virtual switch never sees the packet": notSwitched{packet.UDP, 53},
		"no socket waits for TCP 10.244.1.4:40000 > 10.244.2.5:80":                                    noSocket{tuple},
		"a SYN-ACK from 10.244.2.5:80, to which no socket here has sent":                              strangerSYNACK{backend},
		"a datagram from 10.244.2.5:80, to which the socket on port 40000 has not sent":               strangerDatagram{backend, 40000},
		"an ICMP error about TCP 10.244.1.4:40000 > 10.244.2.5:80, which no socket here sent":         strangerError{tuple},
		"no program takes protocol GRE":                                                               noProgram{packet.GRE},
		"backend 1 of 2":                                                                              backendChosen{0, 2, false},
		"backend 2 of 2, marked for source translation":                                               backendChosen{1, 2, true},
		"connection known: translated as before":                                                      knownConnection{},
		"reply of a known connection: translation undone":                                             knownConnection{reply: true},
		"VXLAN to 10.244.1.4, VNI 4096, UDP 8472 by flannel.1":                                        encapsulated{dev, pod, 8472},
		"VXLAN from 10.244.1.4, VNI 4096, by flannel.1":                                               decapsulated{dev, pod},
		"no peer of flannel.1 has 10.244.1.4":                                                         noPeer{"flannel.1", pod},
		"VNI 7, but flannel.1 has 4096":                                                               wrongVNI{dev, 7},
		"a VXLAN packet (VNI 7) to UDP port 8472, and no tunnel device here has that port": notDecapsulated{packet.VXLAN, 7, 8472,
			false},
		"a VXLAN packet (VNI 7) to UDP port 8472, and the virtual switch did not open it": notDecapsulated{packet.VXLAN, 7, 8472,
			true},
	} {
		if got := e.Text(); got != want {
			t.Errorf("%T: %q, want %q", e, got, want)
		}
	}
}
