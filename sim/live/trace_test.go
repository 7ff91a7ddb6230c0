package live

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/kube/dns"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/trace"
)

// state is everything that is reachable from a value, field by field, by the address
// of what holds it. Maps are compared by their content.
type state map[string]string

// scratch are fields that belong to the packet under way and mean nothing after it, and
// those that say who has something to forget or where something is found.
var scratch = map[reflect.Type][]string{
	reflect.TypeFor[vfp.Port]():        {"spare", "passage", "used", "happened", "near", "bound"},
	reflect.TypeFor[cluster.Cluster](): {"index", "used"},
	reflect.TypeFor[dns.Cluster]():     {"Upstream"},
	reflect.TypeFor[vfp.Env]():         nil, // all
	reflect.TypeFor[wire.Simulation](): nil,
	reflect.TypeFor[host.Stack]():      {"Outside", "used", "touched", "in"},
	reflect.TypeFor[host.Used]():       nil,
	reflect.TypeFor[vfp.Switch]():      {"used"},
	reflect.TypeFor[wire.Segment]():    {"known", "named", "said"}, // who answers, of one epoch; its name in words
	reflect.TypeFor[lab.Cluster]():     {"steps"},                  // of the last trace, for room for the next one's
}

// searched are fields of types without a name outside of their package that count and prepare
// searches: of rules, which stay as they are.
var searched = map[string][]string{"vfp.index": {"tried", "scans", "near"}, "vfp.space": {"tables"}, "hns.portPool": {"full"}}

// still are packages whose values do not change while a cluster runs: what was read and
// planned, rules, facts; and the lock on which programs wait.
var still = []string{"sim/lab/labfile", "sim/lab/plan", "sim/trace", "sim/windows/builds", "k8s.io", "sim/kube/cni", "internal/strict",
	"sync"}

func stateOf(all ...any) state {
	s := state{}
	for _, v := range all {
		s.walk("", reflect.ValueOf(v), map[uintptr]bool{})
	}
	return s
}

func (s state) walk(at string, v reflect.Value, seen map[uintptr]bool) {
	switch v.Kind() {
	case reflect.Pointer:
		p := v.Pointer()
		if p != 0 && v.Type() == reflect.TypeFor[*vfp.Port]() {
			// Connections are told of packets that follow unified flows when somebody asks.
			(*vfp.Port)(v.UnsafePointer()).Connections("")
		}
		s[at] = fmt.Sprintf("%x", p)
		if p != 0 && !seen[p] {
			seen[p] = true
			s.walk(fmt.Sprintf("%s@%x", v.Type().Elem(), p), v.Elem(), seen)
		}
	case reflect.Interface:
		if !v.IsNil() {
			s.walk(at+"("+v.Elem().Type().String()+")", v.Elem(), seen)
		}
	case reflect.Struct:
		if strings.HasPrefix(v.Type().String(), "vfp.table[") {
			s.table(at, v, seen)
			return
		}
		s.fields(at, v, seen)
	case reflect.Slice, reflect.Array:
		if k := v.Type().Elem().Kind(); k == reflect.Uint32 || k == reflect.Uint8 {
			all := ""
			for i := range v.Len() {
				if x := v.Index(i).Uint(); x != 0 {
					all += fmt.Sprint(i, "=", x, " ")
				}
			}
			s[at] = all
			return
		}
		s[at+" len"] = fmt.Sprint(v.Len())
		for i := range v.Len() {
			s.walk(fmt.Sprintf("%s[%d]", at, i), v.Index(i), seen)
		}
	case reflect.Map:
		for r := v.MapRange(); r.Next(); {
			s.walk(at+"["+keyOf(r.Key())+"]", r.Value(), seen)
		}
	case reflect.String:
		s[at] = v.String()
	case reflect.Bool:
		s[at] = fmt.Sprint(v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		s[at] = fmt.Sprint(v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		s[at] = fmt.Sprint(v.Uint())
	case reflect.Func, reflect.Chan:
		s[at] = fmt.Sprint(v.IsNil())
	}
}

// table walks the values of a table of flows, as those of a map: its empty places are room.
func (s state) table(at string, v reflect.Value, seen map[uintptr]bool) {
	places := v.FieldByName("places")
	for i := range places.Len() {
		if x := places.Index(i).FieldByName("v"); !x.IsNil() {
			s.walk(fmt.Sprintf("%s[%x]", at, x.Pointer()), x, seen)
		}
	}
}

// fields walks those of a struct that outlive a packet.
func (s state) fields(at string, v reflect.Value, seen map[uintptr]bool) {
	if slices.ContainsFunc(still, func(p string) bool { return strings.Contains(v.Type().PkgPath(), p) }) {
		return
	}
	skip, scratched := scratch[v.Type()]
	if names, ok := searched[v.Type().String()]; ok {
		skip, scratched = names, true
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if scratched && (skip == nil || slices.Contains(skip, f.Name)) || f.Name == "envOf" {
			continue
		}
		s.walk(at+"."+f.Name, v.Field(i), seen)
	}
}

// keyOf is a key of a map, its pointers as addresses.
func keyOf(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Pointer:
		return fmt.Sprintf("%x", v.Pointer())
	case reflect.Struct:
		all := ""
		for i := range v.NumField() {
			all += keyOf(v.Field(i)) + " "
		}
		return all
	case reflect.Interface:
		return keyOf(v.Elem())
	case reflect.Array:
		all := ""
		for i := range v.Len() {
			all += keyOf(v.Index(i)) + " "
		}
		return all
	}
	return fmt.Sprint(v)
}

// differs lists what is not the same in another state.
func (s state) differs(o state) []string {
	var all []string
	for k, v := range s {
		if w, ok := o[k]; !ok || v != w {
			all = append(all, fmt.Sprintf("%s: %q, then %q", k, v, w))
		}
	}
	for k, w := range o {
		if _, ok := s[k]; !ok {
			all = append(all, fmt.Sprintf("%s: not there, then %q", k, w))
		}
	}
	slices.Sort(all)
	return all
}

// undisturbed traces a request and complains if anything of the network has changed.
func undisturbed(t *testing.T, n *Net, r lab.Request) *trace.Trace {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, x := range n.c.Nodes {
		_, _ = x.State() // makes the rules that are made when somebody needs them
	}
	stateOf(n.c, n.stats, n.watch.pending, n.turns) // asks all ports
	before := stateOf(n.c, n.stats, n.watch.pending, n.turns)
	tr, err := n.trace(t.Context(), r)
	after := stateOf(n.c, n.stats, n.watch.pending, n.turns)
	if err != nil {
		t.Fatalf("%s to %s: %v", r.From, r.To, err)
	}
	if d := before.differs(after); len(d) > 0 {
		t.Errorf("the trace of %s to %s changed %d things of %d:\n%s", r.From, r.To, len(d), len(before), strings.Join(d[:min(len(d), 10)], "\n"))
	}
	return tr
}

// After a trace of any flow the network is what it was, and the connection with that
// tuple does what the trace said: who answers, and which source, with its port, the
// server sees.
func TestATraceOfWhatRuns(t *testing.T) {
	for _, name := range []string{"l2bridge-flannel-host-gw", "overlay-flannel-vxlan", "nat-winnat", "l2tunnel-azure-cni",
		"transparent-ovn-kubernetes"} {
		t.Run(name, func(t *testing.T) {
			n := up(t, name+".yaml", Options{})
			var held []net.Conn
			defer func() {
				for _, c := range held {
					c.Close()
				}
			}()
			ended := map[trace.Verdict]int{}
			for i, fl := range []string{"pod/client svc/win-webserver:80", "pod/client host/internet:443", "pod/client svc/win-webserver:81",
				"pod/client node/win1:30080",
				"node/win1 svc/win-webserver:80", "pod/linux-client svc/win-webserver:80", "host/lan node/win1:30080",
				"pod/client pod/linux-client:9999", "pod/client svc/win-webserver:80"} {
				from, to, _ := strings.Cut(fl, " ")
				r := lab.Request{From: from, To: to, SrcPort: uint16(21000 + i)}
				tr := undisturbed(t, n, r)
				ended[tr.Verdict]++
				if c := connectAs(t, n, r, tr); c != nil {
					held = append(held, c)
					undisturbed(t, n, r) // meets the flows of the connection
				}
				undisturbed(t, n, lab.Request{From: from, To: strings.TrimSuffix(to, ":80"), Protocol: "ping"})
			}
			t.Logf("traces by verdict: %v; %d values of state", ended, len(stateOf(n.c)))
			if ended[trace.Delivered] == 0 {
				t.Error("nothing was delivered")
			}
		})
	}
}

// connectAs connects as a trace says, and returns a connection that stands.
func connectAs(t *testing.T, n *Net, r lab.Request, tr *trace.Trace) net.Conn {
	t.Helper()
	if tr.Flow.Dst == "" || len(tr.Open) > 0 || tr.Verdict == trace.Unknown {
		return nil
	}
	to := netip.AddrPortFrom(netip.MustParseAddr(tr.Flow.Dst), tr.Flow.DstPort)
	if to.Addr() == netip.MustParseAddr(tr.Flow.Src) || to.Addr().IsLoopback() {
		return nil // Linux keeps what a pod sends to itself
	}
	c, err := n.DialFrom(t.Context(), r.From, "tcp", r.SrcPort, to, 300*time.Millisecond)
	got := trace.NoReply
	switch {
	case err == nil:
		got = trace.Delivered
	case errors.Is(err, syscall.ECONNREFUSED) || strings.Contains(err.Error(), "refused"):
		got = trace.Rejected
	}
	if got != trace.Delivered {
		if !slices.ContainsFunc(tr.Paths, func(p trace.Path) bool {
			return (p.Verdict == trace.Rejected) == (got == trace.Rejected) && p.Verdict != trace.Delivered
		}) && len(tr.Paths) > 0 {
			t.Errorf("%s to %s: the trace says %s (%s), the connection: %v", r.From, r.To, tr.Verdict, tr.Reason, err)
		}
		return nil
	}
	_ = c.SetDeadline(time.Now().Add(2 * time.Second))
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: web\r\n\r\n")
	text := ""
	for s := bufio.NewScanner(c); s.Scan(); {
		text += s.Text() + "\n"
		if strings.HasPrefix(s.Text(), "client ") {
			break
		}
	}
	server, client := field(text, "server "), field(text, "client ")
	for _, p := range tr.Paths {
		if p.Verdict == trace.Delivered && p.Seen != nil && p.Seen.Dst == server &&
			slices.ContainsFunc(p.Steps, func(s trace.Step) bool { return strings.Contains(s.Packet.String(), client+" > "+server) }) {
			return c
		}
	}
	t.Errorf("%s to %s: answered by %s, which saw %s; no path of the trace has that:\n%s", r.From, r.To, server, client, seenOn(tr))
	return c
}

func field(text, name string) string {
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(line, name); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

func seenOn(tr *trace.Trace) string {
	var b strings.Builder
	for _, p := range tr.Paths {
		fmt.Fprintf(&b, "%s %s %+v", p.Verdict, p.Reason, p.Seen)
		for _, s := range p.Steps {
			fmt.Fprintf(&b, "\n    %s %s", s.Place, s.Packet)
		}
		b.WriteString("\n")
	}
	return b.String()
}
