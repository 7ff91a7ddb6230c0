package dump

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/internal/utf"
)

// TestPacketLog: what pktmon printed for people who posted it.
func TestPacketLog(t *testing.T) {
	for name, want := range map[string]string{
		"windows-containers-439": `281474976710694/1 component 74 rx icmp 10.127.130.131:0 > 10.127.130.9:0 00-15-5D-3A-AA-31 > 00-15-5D-C9-8C-10 echo 1 759 at 2024-04-02 10:26:54.059109900
281474976710694/1 component 6 rx icmp 10.127.130.131:0 > 10.127.130.9:0 00-15-5D-3A-AA-31 > 00-15-5D-C9-8C-10 echo 1 759 at 2024-04-02 10:26:54.060414900
component 135   00-15-5D-3A-AA-31 []
component 134 VmsMiniport vmswitch.sys, cbr0_ep 00-15-5D-C5-E2-88 []
component 106 11 tcpip.sys, TCP/IPv4 - L3/L4  [172.26.45.95]
unread 0
`,
		"learn-discarded": `8444249301423149/1 component 49 rx dropped "INET: transport endpoint was not found" 0xE000460A udp 192.168.5.88:50005 > 192.168.5.68:50005  >  at 2025-03-27 16:10:34.934020500
unread 0
`,
		"red-teaming-real-time": `562949953421500/1 component 78 tcp 192.168.0.62:65066 > 172.217.2.115:443 40-EC-99-B9-17-25 > F0-B4-D2-5A-D3-E2 S 1995496356 0 at 23:02:26.539704700
562949953421500/1 component 31 tcp 192.168.0.62:65066 > 172.217.2.115:443 40-EC-99-B9-17-25 > F0-B4-D2-5A-D3-E2 S 1995496356 0 at 23:02:26.539709400
unread 0
`,
		"net-monitor-tests": `1970324836974593/1 component 74 rx tcp 10.0.0.146:56890 > 10.0.0.5:8009 3C-58-C2-BD-75-5E > 3C-9B-D6-E9-AB-E8 P. 4207539416 3453818831 at 13:11:24.300880600
unread 0
`,
	} {
		data, err := os.ReadFile(filepath.Join("testdata/pktmon", name+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range []string{string(data), strings.ReplaceAll(string(data), "\n", "\r\n"), string(utf.Encode16(string(data)))} {
			text, ok := Decode([]byte(form))
			if !ok || !IsPacketLog(text) || !OnlyPackets(Split("x", text)) {
				t.Errorf("%s is not a packet log", name)
			}
			if got := packetLogText(ReadPacketLog(Split("x", text))); got != want {
				t.Errorf("%s reads as\n%swant\n%s", name, got, want)
			}
		}
	}
}

// TestDropReason: a reason may have a comma in it.
func TestDropReason(t *testing.T) {
	l := ReadPacketLog(Split("x",
		"Drop: PktGroupId 1, PktNumber 1, Appearance 0, Direction Rx , Type IP , Component 49, Filter 1, DropReason a, b , DropLocation 0xE000460A, OriginalSize 40, LoggedSize 40\n\tDrop: ip: 10.0.0.1.1 > 10.0.0.2.2: UDP, length 3"))
	if len(l.Sightings) != 1 || l.Sightings[0].DropReason != "a, b" || l.Sightings[0].DropCode != "0xE000460A" {
		t.Errorf("%+v", l)
	}
}

func packetLogText(l *PacketLog) string {
	var b strings.Builder
	for _, s := range l.Sightings {
		fmt.Fprintf(&b, "%d/%d component %d ", s.Group, s.Number, s.Component)
		if s.Rx {
			b.WriteString("rx ")
		}
		if s.Dropped {
			fmt.Fprintf(&b, "dropped %q %s ", s.DropReason, s.DropCode)
		}
		h := s.Header
		fmt.Fprintf(&b, "%s %s > %s %s > %s", h.Protocol, h.Src, h.Dst, h.SrcMAC, h.DstMAC)
		switch {
		case h.Protocol == "tcp":
			fmt.Fprintf(&b, " %s %d %d", h.Flags, h.Seq, h.Ack)
		case h.Echo:
			fmt.Fprintf(&b, " echo %d %d", h.ID, h.EchoSeq)
		}
		fmt.Fprintf(&b, " at %s\n", s.Time)
	}
	for _, c := range l.Components {
		fmt.Fprintf(&b, "component %d %s %s %s %v\n", c.ID, c.Type, c.Name, c.MAC, c.Addresses)
	}
	fmt.Fprintf(&b, "unread %d\n", l.Unread)
	return b.String()
}

// FuzzPacketLog: whatever the text, what was read is whole.
func FuzzPacketLog(f *testing.F) {
	files, err := filepath.Glob("testdata/pktmon/*.txt")
	if err != nil || len(files) == 0 {
		f.Fatal(err, files)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	f.Add("PktGroupId 1, Component 2, DropReason a, b , DropLocation 0xE\n\tip: fe80::1.546 > ff02::1:2.547: dhcp6")
	f.Fuzz(func(t *testing.T, s string) {
		for _, x := range ReadPacketLog(Split("x", s)).Sightings {
			if h := x.Header; !h.Src.Addr().IsValid() || !h.Dst.Addr().IsValid() || h.Protocol == "" || x.Component <= 0 || x.Place.Line == 0 {
				t.Errorf("%+v", x)
			}
		}
	})
}
