package vfp

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// questions are those of the tests: which of two rules wins, and whether a rule is there.
var (
	tieQuestion   = &evidence.Question{Param: "tie", Answers: []evidence.Answer{{Value: "allow"}, {Value: "block"}}}
	givenQuestion = &evidence.Question{Param: "given", Answers: []evidence.Answer{{Value: "there"}, {Value: "gone"}}}
)

// asker answers questions by name and remembers what it was asked.
type asker struct {
	answers map[string]string
	asked   []string
}

func (a *asker) env(rec *trace.Recorder) *Env {
	return &Env{Rec: rec, Ask: func(q *evidence.Question, about string) string {
		name := strings.Trim(q.Param+"/"+about, "/")
		if !slices.Contains(a.asked, name) {
			a.asked = append(a.asked, name)
		}
		return a.answers[name]
	}}
}

// TestTie: two rules of equal priority and different actions that both match are an open
// question of the group; nothing else asks it.
func TestTie(t *testing.T) {
	const web, other = "tcp 10.244.1.4:1000 > 10.0.0.1:80 syn", "tcp 10.244.1.4:1000 > 10.0.0.9:443 syn"
	for _, c := range []struct {
		name, rules, packet, answer string
		pass, asked                 bool
	}{
		{"both match, allow wins", "allow out 10 any; block out 10 any => acl-block", web, "allow", true, true},
		{"both match, block wins", "allow out 10 any; block out 10 any => acl-block", web, "block", false, true},
		{"in the other order, allow wins", "block out 10 any => acl-block; allow out 10 any", web, "allow", true, true},
		{"in the other order, block wins", "block out 10 any => acl-block; allow out 10 any", web, "block", false, true},
		{"a rule with the same action between them", "allow out 10 to 10.0.0.0/8; allow out 10 any; block out 10 any => acl-block", web, "block",
			false, true},
		{"a rule with the same action behind the other", "block out 10 any => acl-block; allow out 10 any; block out 10 tcp => acl-block", web,
			"allow", true, true},
		{"the block is for other packets", "allow out 10 any; block out 10 to 10.0.0.1 => acl-block", other, "block", true, false},
		{"the allow is for other packets", "allow out 10 to 10.0.0.1; block out 10 any => acl-block", other, "allow", false, false},
		{"the block is for other packets, and one more follows",
			"allow out 10 any; block out 10 to 10.0.0.1 => acl-block; block out 11 any => acl-block", other, "block", true, false},
		{"the block comes later", "allow out 10 any; block out 11 any => acl-block", web, "block", true, false},
		{"the block comes earlier", "block out 9 any => acl-block; allow out 10 any", web, "allow", false, false},
		{"only later priorities are open", "allow out 5 any; allow out 10 any; block out 10 any => acl-block", web, "block", true, false},
		{"only earlier priorities are open", "allow out 5 to 10.0.0.1; block out 5 to 10.0.0.1 => acl-block; allow out 10 any", other, "block",
			true, false},
		{"two that allow", "allow out 10 any; allow out 10 tcp", web, "block", true, false},
		{"one rule", "block out 10 any => acl-block", web, "allow", false, false},
	} {
		for _, recorded := range []bool{false, true} {
			l := acl(t, c.rules)
			for _, g := range l.Groups {
				g.Tie = tieQuestion
			}
			a := &asker{answers: map[string]string{"tie": c.answer}}
			var rec *trace.Recorder
			if recorded {
				rec = &trace.Recorder{}
			}
			if res := port(l).Process(parse(t, c.packet), Out, a.env(rec)); res.Pass != c.pass || (len(a.asked) > 0) != c.asked {
				t.Errorf("%s, recorded %v: pass %v, asked %q", c.name, recorded, res.Pass, a.asked)
			}
		}
	}
	// Without the question the earlier rule wins; without somebody to ask, the first answer.
	if res := port(acl(t, "block out 10 any => acl-block; allow out 10 any")).Process(parse(t, web), Out, &Env{}); res.Pass {
		t.Error("a group without the question: the later rule wins")
	}
	l := acl(t, "block out 10 any => acl-block; allow out 10 any")
	l.Groups[0].Tie = tieQuestion
	if res := port(l).Process(parse(t, web), Out, &Env{}); !res.Pass {
		t.Error("nobody to ask: not the first answer")
	}
	// A group whose rules change has other ties.
	pt := port(l)
	l.Groups[0].Rules = l.Groups[0].Rules[:1]
	pt.SetLayers([]*Layer{l})
	a := &asker{answers: map[string]string{"tie": "allow"}}
	if res := pt.Process(parse(t, web), Out, a.env(nil)); res.Pass || len(a.asked) > 0 {
		t.Errorf("the allow is gone: pass %v, asked %q", res.Pass, a.asked)
	}
}

// TestGiven: a rule that is there with one answer only is asked about by packets that it
// is for, and without it the next one decides.
func TestGiven(t *testing.T) {
	const web, other = "tcp 10.244.1.4:1000 > 10.0.0.1:80 syn", "tcp 10.244.1.4:1000 > 10.0.0.9:443 syn"
	for _, c := range []struct {
		name, packet, answer string
		pass, asked          bool
	}{
		{"the rule is there", web, "there", false, true},
		{"the rule is not there", web, "gone", true, true},
		{"a packet of another rule", other, "there", true, false},
	} {
		l := acl(t, "block out 10 to 10.0.0.1 => acl-block; allow out 20 any")
		l.Groups[0].Rules[0].Given = &Given{Question: givenQuestion, About: "win1", Answer: "there"}
		a := &asker{answers: map[string]string{"given/win1": c.answer}}
		if res := port(l).Process(parse(t, c.packet), Out, a.env(nil)); res.Pass != c.pass || (len(a.asked) > 0) != c.asked {
			t.Errorf("%s: pass %v, asked %q", c.name, res.Pass, a.asked)
		}
	}
	// All rules can be of that kind; then the layer's default decides.
	l := acl(t, "allow out 10 any")
	l.Block = true
	l.Groups[0].Rules[0].Given = &Given{Question: givenQuestion, Answer: "there"}
	for answer, want := range map[string]bool{"there": true, "gone": false} {
		if res := port(l).Process(parse(t, web), Out, (&asker{answers: map[string]string{"given": answer}}).env(nil)); res.Pass != want {
			t.Errorf("%s: pass %v", answer, res.Pass)
		}
	}
}

// TestFlowOfAGoneRule: the first packet of a connection whose rule was taken away asks what
// became of the flow; later ones do not.
func TestFlowOfAGoneRule(t *testing.T) {
	const more = "tcp 10.244.1.4:1000 > 10.0.0.1:80"
	for _, recorded := range []bool{false, true} {
		for answer, want := range map[string]string{flowForgotten: string(trace.ACLBlock), "lives": ""} {
			a := &asker{answers: map[string]string{questionOrphan.Param: answer}}
			var rec *trace.Recorder
			if recorded {
				rec = &trace.Recorder{}
			}
			pt := port(acl(t, "allow out 10 id old any; block out 20 any => acl-block"))
			send(t, pt, Out, more+" syn", a.env(rec))
			if len(a.asked) > 0 {
				t.Errorf("asked %q by a rule that is there", a.asked)
			}
			pt.SetLayers([]*Layer{acl(t, "block out 20 any => acl-block")})
			for i := range 3 {
				a.asked = nil
				if got := send(t, pt, Out, more, a.env(rec)); got != want {
					t.Errorf("%s, recorded %v, packet %d: %q", answer, recorded, i, got)
				}
				if asked := len(a.asked) > 0; asked != (i == 0) {
					t.Errorf("%s, packet %d asked %q", answer, i, a.asked)
				}
			}
			if recorded {
				n := 0
				for _, s := range rec.Steps() {
					if s.Action == trace.ActNote && strings.Contains(s.Text(), "rule that is removed") {
						n++
						if s.Rule != "old" {
							t.Errorf("the note is about %q", s.Rule)
						}
					}
				}
				if n != 1 {
					t.Errorf("%s: %d notes", answer, n)
				}
			}
		}
	}
}

// TestTakenTuple: a connection straight to a backend, from the port of one to its Service,
// asks whether it keeps its source port; nothing else does.
func TestTakenTuple(t *testing.T) {
	const service, back = "tcp 10.244.1.4:1000 > 10.96.0.10:80 syn", "tcp 10.244.2.4:8080 > 10.244.1.4:1000 syn-ack"
	type sent struct {
		at     int // seconds
		dir    Direction
		packet string
		want   string // "" for one that does not change
		asked  bool
	}
	first := []sent{{0, Out, service, "tcp 10.244.1.4:1000 > 10.244.2.4:8080", false},
		{0, In, back, "tcp 10.96.0.10:80 > 10.244.1.4:1000", false}}
	for _, c := range []struct {
		name, answer string
		steps        []sent
	}{
		{"shared", "shared", append(slices.Clone(first), sent{0, Out, "tcp 10.244.1.4:1000 > 10.244.2.4:8080 syn", "", true},
			sent{0, In, back, "tcp 10.96.0.10:80 > 10.244.1.4:1000", false})},
		{"own port", ownPort, append(slices.Clone(first), sent{0, Out, "tcp 10.244.1.4:1000 > 10.244.2.4:8080 syn",
			"tcp 10.244.1.4:1024 > 10.244.2.4:8080", true},
			sent{0, In, "tcp 10.244.2.4:8080 > 10.244.1.4:1024 syn-ack", "tcp 10.244.2.4:8080 > 10.244.1.4:1000", false},
			sent{0, Out, "tcp 10.244.1.4:1000 > 10.244.2.4:8080", "tcp 10.244.1.4:1024 > 10.244.2.4:8080", false},
			sent{0, In, back, "tcp 10.96.0.10:80 > 10.244.1.4:1000", false})}, // the first connection goes on
		{"a datagram", ownPort, []sent{{0, Out, "udp 10.244.1.4:1000 > 10.96.0.10:80", "udp 10.244.1.4:1000 > 10.244.2.4:8080", false},
			{0, Out, "udp 10.244.1.4:1000 > 10.244.2.4:8080", "udp 10.244.1.4:1024 > 10.244.2.4:8080", true},
			{0, In, "udp 10.244.2.4:8080 > 10.244.1.4:1024", "udp 10.244.2.4:8080 > 10.244.1.4:1000", false}}},
		{"another source port", ownPort, append(slices.Clone(first), sent{0, Out, "tcp 10.244.1.4:1001 > 10.244.2.4:8080 syn", "", false})},
		{"another backend", ownPort, append(slices.Clone(first), sent{0, Out, "tcp 10.244.1.4:1000 > 10.244.2.5:8080 syn", "", false})},
		{"the Service again", ownPort, append(slices.Clone(first), sent{0, Out, service, "tcp 10.244.1.4:1000 > 10.244.2.4:8080", false})},
		{"a segment in mid-connection", ownPort, append(slices.Clone(first), sent{0, Out, "tcp 10.244.1.4:1000 > 10.244.2.4:8080", "", false})},
		{"the first has been idle for too long", ownPort, append(slices.Clone(first),
			sent{240, Out, "tcp 10.244.1.4:1000 > 10.244.2.4:8080 syn", "", false})},
		{"a hairpin's packet on its way back", ownPort, []sent{{0, In, service, "tcp 192.168.1.11:50048 > 10.244.2.4:8080 hairpin", false},
			{0, Out, "tcp 192.168.1.11:50048 > 10.244.2.4:8080 syn", "", false}}},
		{"straight to the backend first", ownPort, []sent{{0, Out, "tcp 10.244.1.4:1000 > 10.244.2.4:8080 syn", "", false}, first[0]}},
	} {
		for _, recorded := range []bool{false, true} {
			pt := port(layer("LB", 200, []*Rule{lb("10.244.2.4:8080")}, nil))
			if c.name == "a hairpin's packet on its way back" {
				pt = port(layer("LB", 200, nil,
					[]*Rule{lbWith(LBNAT{Targets: targets("10.244.2.4:8080"), Hairpin: true,
						Pool: &Pool{Addr: addr("192.168.1.11"), Blocks: []uint16{50048}}})}))
			}
			for i, s := range c.steps {
				a := &asker{answers: map[string]string{questionTaken.Param: c.answer}}
				env := a.env(nil)
				if recorded {
					env = a.env(&trace.Recorder{})
				}
				env.Now = time.Duration(s.at) * time.Second
				before, p := parse(t, s.packet), parse(t, s.packet)
				want := s.want
				if want == "" {
					want = short(before)
				}
				got := outcome(before, p, pt.Process(p, s.dir, env))
				if asked := slices.Contains(a.asked, questionTaken.Param); got != want || asked != s.asked {
					t.Errorf("%s, packet %d, recorded %v: %s, asked %v; want %s, asked %v", c.name, i+1, recorded, got, asked, want, s.asked)
				}
			}
		}
	}
}

// TestSYNOnAFlow: a SYN with the 5-tuple of a flow that has carried a connection asks
// whether VFP looks at its rules again.
func TestSYNOnAFlow(t *testing.T) {
	const tuple = "tcp 10.244.1.4:1000 > 10.0.0.1:80"
	for _, c := range []struct {
		name   string
		before []string
		last   string
		asked  bool
	}{
		{"a SYN that is sent again", []string{tuple + " syn"}, tuple + " syn", false},
		{"a SYN after a connection", []string{tuple + " syn", tuple}, tuple + " syn", true},
		{"a connection that goes on", []string{tuple + " syn", tuple}, tuple, false},
		{"an answer to a SYN", []string{tuple + " syn", tuple}, tuple + " syn-ack", false},
		{"UDP has no SYN", []string{"udp 10.244.1.4:1000 > 10.0.0.1:53", "udp 10.244.1.4:1000 > 10.0.0.1:53"},
			"udp 10.244.1.4:1000 > 10.0.0.1:53", false},
	} {
		for answer, want := range map[string]string{"flow": "", synByRules: string(trace.ACLBlock)} {
			if !c.asked {
				want = ""
			}
			a := &asker{answers: map[string]string{questionSYN.Param: answer, questionOrphan.Param: "lives"}}
			pt := port(acl(t, "allow out 10 id old any; block out 20 any => acl-block"))
			for _, p := range c.before {
				send(t, pt, Out, p, a.env(nil))
			}
			pt.SetLayers([]*Layer{acl(t, "block out 20 any => acl-block")})
			if got := send(t, pt, Out, c.last, a.env(nil)); got != want {
				t.Errorf("%s, %s: %q", c.name, answer, got)
			}
			if got := slices.Contains(a.asked, questionSYN.Param); got != c.asked {
				t.Errorf("%s, %s: asked %v", c.name, answer, a.asked)
			}
			if answer == synByRules && c.asked { // and the old flow is no more
				a.asked = nil
				if got := send(t, pt, Out, tuple, a.env(nil)); got == "" || len(a.asked) > 0 {
					t.Errorf("%s: after the SYN %q, asked %v", c.name, got, a.asked)
				}
			}
		}
	}
}

// TestBadFrame: a frame that says that it is IP and is not is dropped, and the trace says
// where; another protocol passes.
func TestBadFrame(t *testing.T) {
	for ethertype, want := range map[uint16]bool{packet.EtherIPv4: false, packet.EtherIPv6: false, 0x0806: true, 0x88cc: true} {
		for _, recorded := range []bool{false, true} {
			frame := append(make([]byte, 12), byte(ethertype>>8), byte(ethertype), 0xff, 0xff)
			p, _ := packet.New(frame)
			if p == nil {
				t.Skip("the packet package refuses such a frame")
			}
			env := &Env{Place: "win1"}
			if recorded {
				env.Rec = &trace.Recorder{}
			}
			res := port(acl(t, "allow out 10 any")).Process(p, Out, env)
			if res.Pass != want || !want && res.Reason != trace.BadPacket {
				t.Errorf("ethertype %#x: %+v", ethertype, res)
			}
			if recorded && !want {
				s := lastStep(t, env.Rec)
				if s.Place != "win1" || s.Object != "endpoint client" || s.Port != "port" || s.Dir != "out" || s.Action != trace.ActDrop ||
					s.Reason != trace.BadPacket || s.Text() == "" {
					t.Errorf("%+v %s", s, s.Text())
				}
			}
		}
	}
}

// TestManyFlows: flows that are over make room when there are many, and the others stay.
func TestManyFlows(t *testing.T) {
	pt := port(policy(t, "layer A; allow out 1 id rule ttl 10 udp; allow out 2 id long ttl 10000 tcp")...)
	const long = "tcp 10.244.1.4:999 > 10.0.0.1:80 syn"
	send(t, pt, Out, long, &Env{})
	var now time.Duration
	for i := range 5 * firstSweep {
		now = time.Duration(i) * time.Second
		send(t, pt, Out, fmt.Sprintf("udp 10.244.1.%d:%d > 10.0.0.1:53", 1+i%200, 1+i), &Env{Now: now})
		if n := pt.layers[0].flows.n; n > 2*firstSweep+4 {
			t.Fatalf("%d flows after %d connections, of which all but ten are over", n, i+1)
		}
	}
	rec := &trace.Recorder{}
	send(t, pt, Out, strings.TrimSuffix(long, " syn"), &Env{Now: now, Rec: rec})
	if s := lastStep(t, rec); s.Text() != "flow" {
		t.Errorf("the connection that lasts: %s", s.Text())
	}
}
