package labfile

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// flowsText says of each flow when it is judged, what it asks for and what is
// expected of it.
func flowsText(s *Spec) []string {
	var all []string
	for _, f := range s.AllFlows() {
		all = append(all, strings.TrimSpace(strings.Join([]string{f.At, f.Name, f.From, f.To, f.Protocol, f.Expect, f.Reason, f.SeenAs}, " ")))
	}
	return all
}

const withFlows = right + `  steps:
    - name: later
      wait: 5m
      flows:
        - {name: again, from: pod/client, to: "host/lan:80", expect: delivered}
  flows:
    - {name: office, from: pod/client, to: "host/lan:80", expect: delivered, reason: ok, seenAs: node/win1}
    - {from: pod/client, to: host/lan, protocol: ping, expect: dropped}
    - {from: node/win1, to: "host/lan:80", at: later, expect: delivered}
`

// A variant's flows are the lab's, and what it expects of one of them replaces all
// that the lab expects of it.
func TestVariantsInheritFlows(t *testing.T) {
	for _, c := range []struct {
		name, variant string
		want          []string
	}{
		{"nothing of its own", "", []string{
			" office pod/client host/lan:80  delivered ok node/win1", "  pod/client host/lan ping dropped",
			"later  node/win1 host/lan:80  delivered", "later again pod/client host/lan:80  delivered"}},
		{"another expectation by name", "flows: [{name: office, expect: dropped}]", []string{
			" office pod/client host/lan:80  dropped", "  pod/client host/lan ping dropped",
			"later  node/win1 host/lan:80  delivered", "later again pod/client host/lan:80  delivered"}},
		{"another expectation by the same ends", "flows: [{from: pod/client, to: host/lan, protocol: ping, expect: delivered}]", []string{
			" office pod/client host/lan:80  delivered ok node/win1", "  pod/client host/lan ping delivered",
			"later  node/win1 host/lan:80  delivered", "later again pod/client host/lan:80  delivered"}},
		{"a flow more", "flows: [{from: node/win1, to: \"host/lan:81\", expect: rejected}]", []string{
			" office pod/client host/lan:80  delivered ok node/win1", "  pod/client host/lan ping dropped", "  node/win1 host/lan:81  rejected",
			"later  node/win1 host/lan:80  delivered", "later again pod/client host/lan:80  delivered"}},
		{"a step that changes and one that follows",
			"steps: [{name: later, flows: [{name: again, expect: dropped}]}, {name: last, flows: [{from: pod/client, to: \"host/lan:82\", expect: rejected}]}]", []string{
				" office pod/client host/lan:80  delivered ok node/win1", "  pod/client host/lan ping dropped",
				"later  node/win1 host/lan:80  delivered", "later again pod/client host/lan:80  dropped", "last  pod/client host/lan:82  rejected"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := Parse("x.yaml", []byte(withFlows+"  variants:\n    - name: v\n      "+c.variant+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			v, err := f.Variant("v")
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, w := range c.want {
				want = append(want, strings.TrimSpace(w))
			}
			if diff := cmp.Diff(want, flowsText(&v.Lab.Spec)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if got := v.Lab.Spec.Steps[0].Wait; got != "5m" {
				t.Errorf("the lab's step lost its wait: %q", got)
			}
			if n := len(flowsText(&f.Lab.Spec)); n != 4 {
				t.Errorf("the lab itself has %d flows after its variant was read", n)
			}
		})
	}
}

// Each lab has one mistake about steps; the message says what to write.
func TestMistakesInSteps(t *testing.T) {
	for _, c := range []struct{ name, steps, want string }{
		{"no name", "[{wait: 5m}]", `a step needs a name of its own`},
		{"two of one name", "[{name: a}, {name: a}]", `x.yaml:13:22: a step needs a name of its own; "a" is empty or taken`},
		{"the reserved name", "[{name: start}]", "start is the time before the first step"},
		{"wait", "[{name: a, wait: soon}]", `"soon" is not a time; write it as 300s or 5m`},
		{"a wait back", "[{name: a, wait: -5m}]", `"-5m" is not a time`},
		{"what to restart", "[{name: a, restart: [hns]}]", `"hns" does not name a program of a node; write hns/NODE`},
		{"an unknown program", "[{name: a, restart: [hsn/win1]}]", `there is no program "hsn"; did you mean "hns"?`},
		{"an unknown node", "[{name: a, restart: [hns/win9]}]", `there is no node "win9"`},
		{"stopping a node", "[{name: a, stop: [node/win1]}]", `there is no program "node"`},
		{"a deleted node", "[{name: a, delete: [node/win1]}]", "node/win1 cannot be deleted; write pod/NAME or svc/NAME"},
		{"a deleted stranger", "[{name: a, delete: [pod/clint]}]", "there is no pod default/clint in this lab"},
		{"a file that is not there", "[{name: a, apply: [no.yaml]}]", "no.yaml: there is no such file"},
		{"an object without a kind", "[{name: a, objects: [{metadata: {name: x}}]}]",
			"an object is written as in a manifest, with apiVersion and kind"},
		{"a late pod", "[{name: a, pods: [{name: x, node: win1, late: true}]}]", "late is for the pods of the lab"},
		{"a pod on no node", "[{name: a, pods: [{name: x, node: win7}]}]", `there is no node "win7"`},
		{"a pod twice", "[{name: a, pods: [{name: x}, {name: x}]}]", "a name of its own in a step"},
		{"a call", "[{name: a, hns: [{node: win1}]}]", "an HNS call must have exactly one of"},
		{"a flow's own time", "[{name: a, flows: [{from: pod/client, to: host/lan, at: a}]}]", "leave at out"},
		{"a flow before its connection", "[{name: a, flows: [{connection: c}]}]", "no flow before this one opens the connection c"},
		{"a connection opened twice",
			"[{name: a, flows: [{connection: c, from: pod/client, to: \"host/lan:80\"}, {connection: c, from: pod/client, to: \"host/lan:80\"}]}]",
			"the connection c is already open"},
		{"the first segment", "[{name: a, flows: [{connection: c, from: pod/client, to: \"host/lan:80\", send: fin}]}]",
			"the first flow of the connection c opens it"},
		{"a segment", "[{name: a, flows: [{connection: c, from: pod/client, to: \"host/lan:80\"}, {connection: c, send: fnord}]}]",
			`there is no segment to send "fnord"`},
		{"a size", "[{name: a, flows: [{from: pod/client, to: host/lan, protocol: ping, size: 70000}]}]",
			"size 70000: write 1 to 58000 bytes of payload"},
		{"a size of a look-up", "[{name: a, flows: [{from: pod/client, to: host/lan, resolve: nslookup, size: 70}]}]",
			"a flow with a size is one packet"},
		{"DF without a size", "[{name: a, flows: [{from: pod/client, to: host/lan, protocol: ping, dontFragment: true}]}]",
			"dontFragment is for a ping or a datagram with a size"},
		{"send without a connection", "[{name: a, flows: [{from: pod/client, to: \"host/lan:80\", send: fin}]}]",
			"send and by are for a flow of a connection"},
		{"a link without a kind", "[{name: a, links: [{of: nodes}]}]", `"nodes" is not a link; write segment/NAME`},
		{"a link of a pod", "[{name: a, links: [{of: pod/client}]}]", `"pod/client" is not a link`},
		{"a link of a stranger", "[{name: a, links: [{of: node/win11}]}]", `there is no node win11 in this lab; did you mean "win1"?`},
		{"a cable elsewhere", "[{name: a, links: [{of: node/win1@uplink}]}]", "node win1 is not on segment uplink"},
		{"a link twice", "[{name: a, links: [{of: node/win1}, {of: node/win1, down: true}]}]", "node/win1 is listed twice"},
		{"a delay", "[{name: a, links: [{of: node/win1, delay: 20}]}]", `"20" is not the delay of a link; write it as 20ms`},
		{"a delay of hours", "[{name: a, links: [{of: node/win1, delay: 2h}]}]", "at most 1m0s"},
		{"jitter", "[{name: a, links: [{of: node/win1, delay: 1ms, jitter: 2ms}]}]", "jitter 2ms is more than the delay 1ms"},
		{"loss", "[{name: a, links: [{of: node/win1, loss: 0.1}]}]", `"0.1" is not a share of frames; write it as 5% or 0.1%`},
		{"more than all", "[{name: a, links: [{of: node/win1, loss: 101%}]}]", `"101%" is not a share`},
		{"no number", "[{name: a, links: [{of: node/win1, loss: NaN%}]}]", `"NaN%" is not a share`},
		{"a rate", "[{name: a, links: [{of: node/win1, rate: 10MB}]}]", `"10MB" is not the rate of a link; write it as 10mbit`},
		{"a rate of nothing", "[{name: a, links: [{of: node/win1, rate: 0bit}]}]", `at least 1kbit`},
		{"down and slow", "[{name: a, links: [{of: node/win1, down: true, delay: 1ms}]}]", "a link that is down cannot have delay"},
		{"an unknown field", "[{name: a, wiat: 5m}]", `has no field "wiat"; did you mean "wait"?`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("x.yaml", []byte(right+"  steps: "+c.steps+"\n"))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v\nwant %s", err, c.want)
			} else if !strings.HasPrefix(err.Error(), "x.yaml:13:") {
				t.Errorf("no place: %v", err)
			}
		})
	}
	_, err := Parse("x.yaml", []byte(right+"  steps: [{name: later}]\n  flows: [{from: pod/client, to: host/lan, at: latr}]\n"))
	if err == nil || !strings.Contains(err.Error(), `x.yaml:14:48: there is no step "latr"; did you mean "later"?`) {
		t.Errorf("a flow at no step: %v", err)
	}
}
