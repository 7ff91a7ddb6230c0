package lab

import (
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/text"
)

// Where a rule that blocks hides another cause, both are named: in the summary, in the
// text and in the JSON. A rule that is the only cause stands alone.
func TestTwoCauses(t *testing.T) {
	t.Parallel()
	const block = `{node: win1, addPolicy: {kind: endpoint, pod: client, type: ACL, settings: {Id: closed, Action: Block, Direction: Out, Protocols: "6", RuleType: Switch, Priority: 100}}}`
	for _, c := range []struct {
		name, spec, to string
		reason         trace.Reason
		causes         []string // "" for none
	}{
		{"an ACL before a load balancer that is missing", "  hns: [" + block + ", {node: win1, delete: {kind: loadBalancer}}]\n",
			"svc/win-webserver:80", trace.ACLBlock,
			[]string{"An ACL blocked the packet", "No load balancer for this address and port"}},
		{"an ACL before a closed port", "  hns: [" + block + "]\n", "pod/peer:81", trace.ACLBlock,
			[]string{"An ACL blocked the packet", "othing listens on the port"}},
		{"an ACL before a rule of the network before a closed port", "  hns: [" + block +
			"]\n  fabric: {segments: [{name: nodes, rules: [{name: shut, action: deny, to: 10.244.2.0/24}]}]}\n", "pod/peer:81", trace.ACLBlock,
			[]string{"An ACL blocked the packet", "A policy of the network", "othing listens on the port"}},
		{"an ACL and nothing else", "  hns: [" + block + "]\n", "pod/peer:80", trace.ACLBlock, nil},
		{"no ACL", "  hns: [{node: win1, delete: {kind: loadBalancer}}]\n", "svc/win-webserver:80", trace.NoLoadBalancer, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tr, err := built(t, changed(t, hostGW, "  params: {windows-firewall: answers}\n"+c.spec)).Trace(t.Context(),
				Request{From: "pod/client", To: c.to})
			if err != nil {
				t.Fatal(err)
			}
			if tr.Reason != c.reason || !tr.Fails() || len(tr.Causes) != 0 && len(tr.Paths) == 1 && len(tr.Paths[0].Causes) != len(c.causes) {
				t.Errorf("%s %s: %s", tr.Verdict, tr.Reason, tr.Summary)
			}
			if len(tr.Causes) != len(c.causes) {
				t.Fatalf("causes %q, want %q", tr.Causes, c.causes)
			}
			var b strings.Builder
			if err := text.Render(&b, tr, text.Options{}); err != nil {
				t.Fatal(err)
			}
			data, err := tr.MarshalIndent()
			if err != nil {
				t.Fatal(err)
			}
			printed := strings.Join(strings.Fields(b.String()), " ")
			for i, want := range c.causes {
				if !strings.Contains(tr.Causes[i], want) {
					t.Errorf("cause %d is %q, want %q", i+1, tr.Causes[i], want)
				}
				for where, said := range map[string]string{"the summary": tr.Summary, "the text": printed, "the JSON": string(data)} {
					if !strings.Contains(said, want) {
						t.Errorf("%s does not say %q", where, want)
					}
				}
			}
		})
	}
}

// Ways that fail for different reasons are all named.
func TestCausesOfSeveralBackends(t *testing.T) {
	t.Parallel()
	c := built(t,
		changed(t, hostGW,
			"  nodes: [{name: win1, faults: []}]\n  fabric: {segments: [{name: nodes, rules: [{name: shut, action: deny, to: 10.244.2.0/24}]}]}\n  hns: [{node: win1, addPolicy: {kind: endpoint, pod: win-webserver-0, type: ACL, settings: {Action: Block, Direction: In, Protocols: \"6\", RuleType: Switch, Priority: 100}}}]\n"))
	tr, err := c.Trace(t.Context(), Request{From: "pod/client", To: "svc/win-webserver:80"})
	if err != nil {
		t.Fatal(err)
	}
	if len(tr.Causes) != 2 || !strings.Contains(tr.Summary, "An ACL blocked the packet") ||
		!strings.Contains(tr.Summary, "A policy of the network") {
		t.Errorf("%s %s: %q\n%s", tr.Verdict, tr.Reason, tr.Causes, tr.Summary)
	}
}
