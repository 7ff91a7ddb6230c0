package vfp

import (
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
)

// However a port came to have flows, a Reset of its switch forgets them: a packet came
// before the port was plugged in or after, or a layer sent one itself.
func TestResetForgetsWhoeverWasUsed(t *testing.T) {
	const rules = "layer FW; allow out 1 id all any stateful; allow in 1 id in any; layer BELOW; allow out 1 id low any"
	syn := func() *packet.Packet { return parse(t, "tcp 10.244.1.4:1 > 10.244.2.2:80 syn") }
	for name, use := range map[string]func(s *Switch, pt *Port){
		"a packet":        func(s *Switch, pt *Port) { s.AddPort(pt); pt.Process(syn(), Out, &Env{}) },
		"before plugging": func(s *Switch, pt *Port) { pt.Process(syn(), Out, &Env{}); s.AddPort(pt) },
		"a layer sends":   func(s *Switch, pt *Port) { s.AddPort(pt); s.Inject(pt, "FW", syn(), &Env{}) },
		"used again":      func(s *Switch, pt *Port) { s.AddPort(pt); s.Reset(); pt.Process(syn(), Out, &Env{}) },
	} {
		s := NewSwitch("sw", "external")
		pt := port(policy(t, rules)...)
		use(s, pt)
		if !pt.used {
			t.Fatalf("%s: the port was not used", name)
		}
		s.Reset()
		if pt.used || pt.unified.n != 0 || len(pt.Connections("FW")) != 0 {
			t.Errorf("%s: after Reset the port has %d unified flows and connections %v", name, pt.unified.n, pt.Connections("FW"))
		}
	}
}
