package agree

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/winlab-dev/winlab/sim/kube/dns"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/build"
	"github.com/winlab-dev/winlab/sim/lab/spec"
	"github.com/winlab-dev/winlab/sim/trace"
)

// waitForSome is how long a resolver waits for a server where the trace says that
// some query gets no answer. A server waits two seconds for another one.
const waitForSome = 3 * time.Second

// lookup resolves a name as the sender's resolver does, with queries to real sockets,
// and compares what came with the look-up of the trace: verdict, addresses, and the
// answer to each query.
func (m *maker) lookup(ctx context.Context, f *Flow, want *trace.Lookup) (trace.Verdict, string, string) {
	var cl dns.Client
	err := m.n.Do(func(c *lab.Cluster) error {
		machine := find(c, f.From)
		if machine == nil {
			return fmt.Errorf("there is no %s", f.From)
		}
		cl = c.Resolver(machine)
		return nil
	})
	if err != nil {
		return "", "", "no live look-up: " + err.Error()
	}
	wait := waitForAnswer
	if slices.ContainsFunc(want.Queries, func(q trace.Query) bool { return q.RCode == "" }) {
		wait = waitForSome
	}
	got, _ := cl.Resolve(dns.Tool(want.Tool), want.Name, func(server netip.Addr, query []byte) dns.Reply {
		c, err := m.n.Dial(ctx, f.From, "udp", netip.AddrPortFrom(server, dnsPort), wait)
		if err != nil {
			return dns.Reply{}
		}
		defer func() { _ = c.Close() }()
		answer, err := ask(c, query, wait)
		if err != nil {
			return dns.Reply{}
		}
		return dns.Reply{Answer: answer}
	})
	says, said := saysOf(want), saysOf(&got)
	if says != said {
		return got.Verdict, said, "the trace's look-up says " + says + "; with real sockets: " + said
	}
	return got.Verdict, said, ""
}

// saysOf puts a look-up into a line: what came of it and which queries it took.
func saysOf(l *trace.Lookup) string {
	var b strings.Builder
	b.WriteString(string(l.Verdict))
	for _, a := range slices.Sorted(slices.Values(l.Answers)) {
		b.WriteString(" " + a)
	}
	var asked []string
	for _, q := range l.Queries {
		if q.From == "" { // the resolver's own
			code := q.RCode
			if code == "" {
				code = "no answer"
			}
			asked = append(asked, fmt.Sprintf("%s %s at %s: %s", q.Name, q.Type, q.Server, code))
		}
	}
	return b.String() + " (" + strings.Join(asked, ", ") + ")"
}

// find finds a machine by the name that a flow gives its sender.
func find(c *lab.Cluster, name string) *build.Machine {
	t, err := spec.ParseTarget(name)
	if err != nil {
		return nil
	}
	want := name
	if t.Kind == spec.PodTarget {
		want = "pod/" + t.Namespace + "/" + t.Name
	}
	for _, k := range []build.Kind{build.PodKind, build.NodeKind, build.HostKind} {
		for _, m := range c.Machines(k) {
			if m.Ref.String() == want {
				return m
			}
		}
	}
	return nil
}
