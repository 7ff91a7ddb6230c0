package agree

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/trace"
)

// seen is what a program saw of a flow.
type seen struct {
	verdict trace.Verdict // delivered, rejected, or dropped for nothing
	// machine, server and client are what a responder said: who it is, at which
	// address it was reached, and the source that it saw. They are not set where
	// another program answered.
	machine        string
	server, client netip.AddrPort
	// lost is why the network let a packet go no further, "" where it does not say.
	lost trace.Reason
	why  string
	// unsent says that the kernel sent nothing: it knows no way.
	unsent bool
	// note says more, for a reader.
	note string
}

func (s *seen) String() string {
	var b strings.Builder
	switch s.verdict {
	case trace.Delivered:
		b.WriteString("delivered")
		if s.machine != "" {
			fmt.Fprintf(&b, " by %s at %s, which saw %s", s.machine, s.server, s.client.Addr())
		}
	case trace.Rejected:
		b.WriteString("rejected")
	default:
		b.WriteString("nothing came back")
	}
	if s.lost != "" {
		fmt.Fprintf(&b, " (%s: %s)", s.lost, s.why)
	}
	if s.note != "" {
		b.WriteString(" (" + s.note + ")")
	}
	return b.String()
}

// Ways are the paths of a trace that a live network can take: it has the first answer
// to each question that no source decides.
func Ways(t *trace.Trace) []*trace.Path {
	var all []*trace.Path
	for i := range t.Paths {
		p := &t.Paths[i]
		if !slices.ContainsFunc(p.Choices, func(c trace.Choice) bool { return c.Param != "" && c.Pick != 0 }) {
			all = append(all, p)
		}
	}
	return all
}

// Visible is a verdict as a program can tell it.
func Visible(v trace.Verdict) trace.Verdict {
	if v == trace.Delivered || v == trace.Rejected {
		return v
	}
	return trace.Dropped
}

// answers counts the ways on which a program gets an answer or a refusal.
func answers(paths []*trace.Path) (n int) {
	for _, p := range paths {
		if Visible(p.Verdict) != trace.Dropped {
			n++
		}
	}
	return n
}

// differsFrom says why what was seen is not one of a trace's paths, "" when it is one.
func differsFrom(c *lab.Cluster, paths []*trace.Path, s *seen) string {
	var says []string
	for _, p := range paths {
		if Visible(p.Verdict) == s.verdict && matches(c, p, s) {
			return ""
		}
		if say := describe(p); !slices.Contains(says, say) {
			says = append(says, say)
		}
	}
	return fmt.Sprintf("the trace says %s; with real sockets: %s", strings.Join(says, ", or "), s)
}

func describe(p *trace.Path) string {
	say := string(p.Verdict)
	if p.Reason != "" && p.Reason != trace.OK {
		say += " (" + string(p.Reason) + ")"
	}
	if p.Seen != nil {
		say += fmt.Sprintf(", %s at %s saw %s", p.Seen.Where, p.Seen.Dst, p.Seen.Src)
	}
	return say
}

// matches reports whether the responder that answered is the one of a path, and whether
// what was lost was lost for its reason.
func matches(c *lab.Cluster, p *trace.Path, s *seen) bool {
	if s.verdict != trace.Delivered {
		return s.lost == "" || s.lost == p.Reason || s.lost == lastReason(p)
	}
	if s.machine == "" || p.Seen == nil {
		return true
	}
	to, err := netip.ParseAddrPort(p.Seen.Dst)
	if a, err2 := netip.ParseAddr(p.Seen.Dst); err2 == nil { // an echo request
		to, err = netip.AddrPortFrom(a, 0), nil
	}
	if err != nil || s.client.Addr().String() != p.Seen.Src || s.server.Port() != to.Port() {
		return false
	}
	if !s.server.Addr().IsUnspecified() && s.server.Addr() != to.Addr() {
		return false
	}
	return owns(c, s.machine, to.Addr())
}

// lastReason is why the last packet of a path went no further. The reason of the path
// itself can be a cause that lies further back: no-route is the end of a packet that
// nothing has translated.
func lastReason(p *trace.Path) trace.Reason {
	for i := range slices.Backward(p.Steps) {
		if r := p.Steps[i].Reason; r != "" && r != trace.OK {
			return r
		}
	}
	return ""
}

// owns reports whether a machine, named as in a lab, has an address.
func owns(c *lab.Cluster, machine string, a netip.Addr) bool {
	for _, k := range []cluster.Kind{cluster.PodKind, cluster.NodeKind, cluster.HostKind} {
		for _, m := range c.Machines(k) {
			if m.Ref.String() == machine {
				return m.Stack().Owns(a)
			}
		}
	}
	return false
}

func loopback(addr string) bool {
	a, err := netip.ParseAddr(addr)
	return err == nil && a.IsLoopback()
}
