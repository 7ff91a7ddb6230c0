package suite

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/sim/trace"
)

// How often something is asked: a load balancer has several backends, and a verdict
// other than delivered must be there twice.
const (
	balancedTries = 8
	tries         = 2
)

// seen is what a program saw of a flow.
type seen struct {
	verdict trace.Verdict
	// source is the address that the receiver says it saw, "" when it was not asked.
	source string
	// detail is what the program printed when it failed.
	detail string
}

// flow makes a flow of the ledger and says what came of it. The error says why it could
// not be made.
func (a *actors) flow(ctx context.Context, e *Env, f *claims.Flow, expect string) (seen, error) {
	try, err := a.sender(ctx, e, f)
	if err != nil {
		return seen{}, err
	}
	to, err := a.find(ctx, e, f.To, f.Family)
	if err != nil {
		return seen{}, err
	}
	var last seen
	ask := func(ctx context.Context) error {
		if last, err = try(ctx, to); err != nil {
			return err
		}
		if last.verdict != trace.Delivered {
			return fmt.Errorf("%s", last.verdict)
		}
		return nil
	}
	// What must be delivered may need a moment until all nodes have been programmed.
	if expect == string(trace.Delivered) {
		_ = eventually(ctx, e.Options.Settle, ask)
	} else {
		_ = ask(ctx)
	}
	if err != nil {
		return seen{}, err
	}
	n := tries
	if to.balanced {
		n = balancedTries
	}
	for range n - 1 {
		again, err := try(ctx, to)
		if err != nil {
			return seen{}, err
		}
		if again.verdict != last.verdict {
			return seen{verdict: trace.Varies, detail: fmt.Sprintf("one time %s, another time %s (%s)", last.verdict, again.verdict, last.detail+
				again.detail)}, nil
		}
	}
	return last, nil
}

// ask makes one attempt.
func (a *actors) ask(ctx context.Context, e *Env, from *actor, to place, f *claims.Flow) (seen, error) {
	if f.Protocol == "ping" {
		return a.ping(ctx, e, from, to.host)
	}
	if f.SeenAs != "" {
		return a.source(ctx, e, from, to)
	}
	protocol := f.Protocol
	if protocol == "" {
		protocol = "tcp"
	}
	o, err := e.exec(ctx, from.pod, from.container, from.agnhost("connect", "--timeout=5s", "--protocol="+protocol, to.String())...)
	if err != nil {
		return seen{}, err
	}
	return readConnect(o)
}

// agnhost is a command line of the test programs; in a container of its node they are
// not at the root.
func (x *actor) agnhost(args ...string) []string {
	if x.windows && x.host {
		return append([]string{hostAgnhost}, args...)
	}
	return append([]string{"/agnhost"}, args...)
}

// readConnect reads what `agnhost connect` says: nothing, or a line that begins with the
// kind of failure (test/images/agnhost/connect of Kubernetes). Windows' refusals of
// connections come as OTHER, because its error number is not one of POSIX.
func readConnect(o output) (seen, error) {
	if o.code == 0 {
		return seen{verdict: trace.Delivered}, nil
	}
	s := seen{detail: o.all()}
	kind, rest, _ := strings.Cut(strings.TrimSpace(o.stderr), ":")
	switch {
	case kind == "TIMEOUT", strings.Contains(rest, "did not properly respond after a period of time"):
		s.verdict = trace.Dropped
	case kind == "REFUSED", strings.Contains(rest, "actively refused"), strings.Contains(rest, "unreachable"),
		strings.Contains(rest, "no route to host"):
		s.verdict = trace.Rejected
	case kind == "DNS":
		s.verdict = trace.Unresolved
	default:
		return s, fmt.Errorf("agnhost connect ended with %d: %s", o.code, o.all())
	}
	return s, nil
}

// curl is a command line that asks a web server.
func (x *actor) curl(args ...string) []string {
	program := "curl"
	if x.windows {
		program = "curl.exe"
	}
	return append([]string{program, "-q", "-s", "-S", "--connect-timeout", "5", "--max-time", "10"}, args...)
}

// source asks the receiver which address it sees.
func (a *actors) source(ctx context.Context, e *Env, from *actor, to place) (seen, error) {
	o, err := e.exec(ctx, from.pod, from.container, from.curl("http://"+to.String()+"/clientip")...)
	if err != nil {
		return seen{}, err
	}
	s, err := readCurl(o)
	if err == nil && s.verdict == trace.Delivered {
		host, _, splitErr := net.SplitHostPort(strings.TrimSpace(o.stdout))
		if splitErr != nil {
			return s, errLacks{fmt.Sprintf("the receiver does not say which address it sees: it answers %q", o.stdout)}
		}
		s.source = host
	}
	return s, err
}

// readCurl reads curl's exit code (EXIT CODES of curl(1)).
func readCurl(o output) (seen, error) {
	s := seen{detail: o.all()}
	switch o.code {
	case 0:
		return seen{verdict: trace.Delivered}, nil
	case 6:
		s.verdict = trace.Unresolved
	case 7:
		s.verdict = trace.Rejected
	case 28:
		s.verdict = trace.Dropped
	default:
		return s, fmt.Errorf("curl ended with %d: %s", o.code, o.all())
	}
	return s, nil
}

func (a *actors) ping(ctx context.Context, e *Env, from *actor, host string) (seen, error) {
	command := []string{"ping", "-c", "2", "-W", "3", host}
	if from.windows {
		command = []string{"ping.exe", "-n", "2", "-w", "3000", host}
	}
	o, err := e.exec(ctx, from.pod, from.container, command...)
	if err != nil {
		return seen{}, err
	}
	return readPing(o, from.windows), nil
}

// readPing reads ping. On Windows its exit code is 0 also when a router says that the
// destination is unreachable, so the answers are counted: each has its TTL, or for IPv6
// its time.
func readPing(o output, windows bool) seen {
	text := o.all()
	switch {
	case strings.Contains(text, "could not find host"), strings.Contains(text, "bad address"),
		strings.Contains(text, "Name or service not known"), strings.Contains(text, "Name does not resolve"):
		return seen{verdict: trace.Unresolved, detail: text}
	case windows && (strings.Contains(text, "TTL=") || strings.Contains(text, "time=") || strings.Contains(text, "time<")), !windows &&
		o.code == 0:
		return seen{verdict: trace.Delivered}
	case strings.Contains(text, "unreachable"):
		return seen{verdict: trace.Rejected, detail: text}
	}
	return seen{verdict: trace.Dropped, detail: text}
}

// resolve asks for a name with a tool, as a program in the pod would.
func (a *actors) resolve(ctx context.Context, e *Env, r *claims.Resolve) (seen, error) {
	name, err := a.name(ctx, e, r.Name)
	if err != nil {
		return seen{}, err
	}
	if r.Tool == "nslookup" || r.Tool == "Resolve-DnsName" {
		return a.withTool(ctx, e, r.Tool, name)
	}
	from, err := a.actorFor(ctx, e, r.From)
	if err != nil {
		return seen{}, err
	}
	if r.Tool == "ping" {
		s, err := a.ping(ctx, e, from, name)
		if s.verdict != trace.Unresolved && err == nil {
			s.verdict = trace.Delivered // a name server has answered; whether the machine does is another question
		}
		return s, err
	}
	// The resolver of the system is asked by any program: Go's net package calls
	// getaddrinfo on Windows. A port on which nothing listens ends it soon.
	o, err := e.exec(ctx, from.pod, from.container, from.agnhost("connect", "--timeout=2s", net.JoinHostPort(name, "9"))...)
	if err != nil {
		return seen{}, err
	}
	if s, err := readConnect(o); err == nil && s.verdict == trace.Unresolved {
		return s, nil
	}
	return seen{verdict: trace.Delivered}, nil
}

// withTool asks with a tool that comes with Windows Server Core only.
func (a *actors) withTool(ctx context.Context, e *Env, tool, name string) (seen, error) {
	pod, err := a.serverCore(ctx, e)
	if err != nil {
		return seen{}, err
	}
	command := []string{"nslookup.exe", name}
	if tool == "Resolve-DnsName" {
		command = []string{"powershell.exe", "-NoProfile", "-Command", "Resolve-DnsName -ErrorAction Stop " + name}
	}
	o, err := e.exec(ctx, pod.pod, pod.container, command...)
	if err != nil {
		return seen{}, err
	}
	return readLookup(o, name), nil
}

// readLookup reads nslookup, whose exit code says nothing, and Resolve-DnsName.
func readLookup(o output, name string) seen {
	text := o.all()
	failed := o.code != 0 || slices.ContainsFunc([]string{"can't find", "Non-existent", "does not exist", "timed out", "No response"},
		func(s string) bool { return strings.Contains(text, s) })
	if failed || !strings.Contains(strings.ToLower(text), strings.ToLower(strings.Split(name, ".")[0])) {
		return seen{verdict: trace.Unresolved, detail: text}
	}
	return seen{verdict: trace.Delivered}
}

// serverCore is a pod with the tools of Windows Server Core beside the client.
func (a *actors) serverCore(ctx context.Context, e *Env) (*actor, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	const ref = "pod/server-core"
	if x, ok := a.pods[ref]; ok {
		return x, x.err
	}
	node, err := a.node("win1")
	if err != nil {
		return nil, err
	}
	image := serverCoreFor(buildOf(node))
	if image == "" {
		return nil, errLacks{"no image of Windows Server Core is known for build " + buildOf(node)}
	}
	x := &actor{windows: true, container: "main"}
	ns, err := a.namespace(ctx)
	if err != nil {
		return nil, err
	}
	pod := pinToNode(windowsPod("server-core"), node)
	pod.Namespace = ns
	pod.Spec.Containers[0].Image, pod.Spec.Containers[0].Args = image, nil
	pod.Spec.Containers[0].Command = []string{"cmd.exe", "/c", "ping -n 86400 127.0.0.1 >NUL"}
	if x.pod, x.err = a.client.CoreV1().Pods(ns).Create(ctx, pod, metav1.CreateOptions{}); x.err == nil {
		x.pod, x.err = e.await(ctx, x.pod, "ready", podReady)
	}
	if ctx.Err() == nil {
		a.pods[ref] = x
	}
	return x, x.err
}

// settle is how long a cluster has to program what must be delivered.
const settle = 60 * time.Second
