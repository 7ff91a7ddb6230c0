package agree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/winlab-dev/winlab/sim/kube/dns"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/live/netns"
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
	program, err := m.getent(ctx, f, want)
	if err != nil {
		return "", "", "no live look-up: " + err.Error()
	}
	if program != nil && !slices.Equal(program, answersOf(want)) {
		return got.Verdict, said, fmt.Sprintf("the trace's look-up says %v; getent in the sender's network: %v", answersOf(want), program)
	}
	return got.Verdict, said, ""
}

// getent lets a program of a Linux machine resolve the name, through glibc and the
// machine's resolv.conf, and returns the addresses. It is nil where there is no such
// program, where the look-up is one of Windows, and where a query gets no answer: glibc
// then waits ten seconds for each server.
func (m *maker) getent(ctx context.Context, f *Flow, want *trace.Lookup) ([]string, error) {
	path, err := exec.LookPath("getent")
	if err != nil || dns.Tool(want.Tool) != dns.Linux || slices.ContainsFunc(want.Queries, func(q trace.Query) bool { return q.RCode == "" }) {
		return nil, nil
	}
	linux := false
	_ = m.n.Do(func(c *lab.Cluster) error {
		x := find(c, f.From)
		linux = x != nil && !x.Stack().Windows
		return nil
	})
	if !linux {
		return nil, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	none, err := os.Open(os.DevNull)
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	p, err := m.n.Start(ctx, f.From, netns.Command{Args: []string{path, "ahosts", want.Name}}, [3]*os.File{none, w, w})
	_ = w.Close()
	_ = none.Close()
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(r, 1<<16))
	_, err2 := p.Wait(ctx)
	all := []string{}
	for line := range strings.Lines(string(text)) {
		if a, _, _ := strings.Cut(line, " "); a != "" && !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	slices.Sort(all)
	return all, errors.Join(err, err2)
}

// answersOf are the addresses that a look-up has found, each once.
func answersOf(l *trace.Lookup) []string {
	all := slices.Clone(l.Answers)
	slices.Sort(all)
	return slices.Compact(all)
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

// machine is the name of a flow's sender as the network has it.
func (m *maker) machine(name string) (full string) {
	_ = m.n.Do(func(c *lab.Cluster) error {
		if x := find(c, name); x != nil {
			full = x.Ref.String()
		}
		return nil
	})
	return full
}

// find finds a machine by the name that a flow gives its sender.
func find(c *lab.Cluster, name string) *cluster.Machine {
	t, err := labfile.ParseTarget(name)
	if err != nil {
		return nil
	}
	want := name
	if t.Kind == labfile.PodTarget {
		want = "pod/" + t.Namespace + "/" + t.Name
	}
	for _, k := range []cluster.Kind{cluster.PodKind, cluster.NodeKind, cluster.HostKind} {
		for _, m := range c.Machines(k) {
			if m.Ref.String() == want {
				return m
			}
		}
	}
	return nil
}
