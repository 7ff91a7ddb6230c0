package host

import (
	"bytes"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
)

// What becomes of fragments is unknown where they would be put together, and not before:
// a machine passes them on, and a real stack behind it gets them.
func TestFragments(t *testing.T) {
	for _, text := range []string{"udp 10.0.1.7:1000 > 10.0.1.2:53", "tcp 10.0.1.7:1000 > 10.0.1.2:80 S", "ping 10.0.1.7 > 10.0.1.2",
		"udp 10.0.1.7:1000 > 10.0.1.2:9"} {
		for name, field := range map[string][2]byte{"first": {0x20, 0}, "middle": {0x20, 1}, "last": {0, 1}} {
			for _, sink := range []bool{false, true} {
				s := stackOf(t, []string{"eth0 10.0.1.2/24"}, nil)
				s.Listen(&Listener{Proto: packet.UDP, Port: 53})
				s.Listen(&Listener{Proto: packet.TCP, Port: 80})
				s.Links[0].Send = func(_ *wire.Simulation, p *packet.Packet) {
					t.Errorf("%s, %s fragment: answered with %s", text, name, p)
				}
				frame := bytes.Clone(packetOf(t, s.Links[0], text).Bytes())
				copy(frame[20:], field[:])
				p, err := packet.New(frame)
				if err != nil {
					t.Fatal(err)
				}
				taken := false
				sim := &wire.Simulation{Rec: &trace.Recorder{}}
				if sink {
					sim.Sink = func(string, string, *packet.Packet) bool { taken = true; return true }
				}
				s.Input(sim, s.Links[0], p)
				if err := sim.Run(); err != nil {
					t.Fatal(err)
				}
				if taken != sink || (sim.Unknown == "") != sink || sim.Rec.Seen() != nil {
					t.Errorf("%s, %s fragment: taken %v, unknown %q, seen %+v", text, name, taken, sim.Unknown, sim.Rec.Seen())
				}
				if st := sim.Rec.Steps(); !sink && (len(st) != 1 || st[0].Action != trace.ActUnknown || st[0].Reason != trace.ModelHole ||
					st[0].Evidence != "host.reassembly") {
					t.Errorf("%s, %s fragment: steps %+v", text, name, st)
				}
			}
		}
	}
}
