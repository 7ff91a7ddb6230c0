package suite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Dialer opens connections as a program of some machine does; [net.Dialer] is one of this
// machine.
type Dialer interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// lan is the ledger's machine outside of the cluster, in the network of its nodes. No pod
// can be one: it has an address of the cluster.
const lan = "host/lan"

// connectTimeout is how long a connection from outside may take to open; agnhost in pods
// has the same.
const connectTimeout = 5 * time.Second

// sender returns how the sender of a flow makes one attempt. The error says why it cannot.
func (a *actors) sender(ctx context.Context, e *Env, f *claims.Flow) (func(context.Context, place) (seen, error), error) {
	if !strings.HasPrefix(f.From, "host/") {
		from, err := a.actorFor(ctx, e, f.From)
		return func(ctx context.Context, to place) (seen, error) { return a.ask(ctx, e, from, to, f) }, err
	}
	d := e.Options.Outside
	switch {
	case f.From != lan:
		return nil, errLacks{"nothing on a cluster can be " + f.From}
	case d == nil:
		return nil, errLacks{"no machine outside the cluster is known that could be " + lan + "; where this one is, say so with --outside-here"}
	case f.Protocol != "" && f.Protocol != "tcp":
		return nil, errLacks{"from outside the suite makes TCP connections only, and no " + f.Protocol}
	}
	if f.SeenAs != "" {
		return func(ctx context.Context, to place) (seen, error) { return sourceFrom(ctx, d, to) }, nil
	}
	return func(ctx context.Context, to place) (seen, error) { return connectFrom(ctx, d, to) }, nil
}

// connectFrom opens a connection and closes it, as `agnhost connect` does.
func connectFrom(ctx context.Context, d Dialer, to place) (seen, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	c, err := d.DialContext(ctx, "tcp", to.String())
	if err != nil {
		return readDial(err)
	}
	return seen{verdict: trace.Delivered}, c.Close()
}

// readDial reads why a connection was not opened. Errors of a machine of a simulated
// cluster come from another process and are texts.
func readDial(err error) (seen, error) {
	is := func(all ...error) bool {
		for _, e := range all {
			if errors.Is(err, e) || strings.HasSuffix(err.Error(), e.Error()) {
				return true
			}
		}
		return false
	}
	s := seen{detail: err.Error()}
	var name *net.DNSError
	var slow net.Error
	switch {
	case errors.As(err, &name):
		s.verdict = trace.Unresolved
	case is(syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ENETUNREACH, syscall.EHOSTUNREACH):
		s.verdict = trace.Rejected
	case is(os.ErrDeadlineExceeded, context.DeadlineExceeded, syscall.ETIMEDOUT), errors.As(err, &slow) && slow.Timeout():
		s.verdict = trace.Dropped
	default:
		return s, fmt.Errorf("a connection from outside: %w", err)
	}
	return s, nil
}

// sourceFrom asks the receiver which address it sees.
func sourceFrom(ctx context.Context, d Dialer, to place) (seen, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*connectTimeout)
	defer cancel()
	code, body, err := getFrom(ctx, d, "http://"+to.String()+"/clientip")
	if err != nil {
		return readDial(err)
	}
	host, _, err := net.SplitHostPort(strings.TrimSpace(body))
	if err != nil || code != http.StatusOK {
		return seen{}, errLacks{fmt.Sprintf("the receiver does not say which address it sees: it answers %q", body)}
	}
	return seen{verdict: trace.Delivered, source: host}, nil
}

// loadBalancer is the address at which the web server's Service of type LoadBalancer is
// found from outside.
func (a *actors) loadBalancer(ctx context.Context, e *Env, port, family string) (place, error) {
	if _, err := a.web(ctx, e); err != nil {
		return place{}, err
	}
	const name = "win-webserver-lb"
	if _, err := a.webService(ctx, name, v1.ServiceTypeLoadBalancer); err != nil {
		return place{}, err
	}
	s, err := e.ingress(ctx, a.ns, name)
	if err != nil {
		return place{}, errLacks{err.Error()}
	}
	var all []string
	for _, i := range s.Status.LoadBalancer.Ingress {
		if i.IP == "" && i.Hostname != "" { // of whatever family its name has
			return place{host: i.Hostname, port: port, balanced: true}, nil
		}
		all = append(all, i.IP)
	}
	ip, err := address(all, family)
	return place{host: ip, port: port, balanced: true}, err
}

// ingress waits until a Service has an address of a load balancer.
func (e *Env) ingress(ctx context.Context, namespace, name string) (s *v1.Service, err error) {
	err = eventually(ctx, e.Options.Settle, func(ctx context.Context) (err error) {
		s, err = e.ClientSet.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil && len(s.Status.LoadBalancer.Ingress) == 0 {
			err = fmt.Errorf("nothing has given the Service %s an address of a load balancer within %s", name, e.Options.Settle)
		}
		return err
	})
	return s, err
}

// getFrom asks a web server once.
func getFrom(ctx context.Context, d Dialer, url string) (code int, body string, err error) {
	client := &http.Client{Transport: &http.Transport{DialContext: d.DialContext, DisableKeepAlives: true}}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	r, err := client.Do(q)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = r.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(r.Body, 1<<16))
	return r.StatusCode, string(text), err
}
