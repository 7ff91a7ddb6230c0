package suite

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// A cluster in which something has just failed is asked again: an API server, a kubelet or
// a runtime that starts again is away for some seconds, and says nothing about a claim.
const (
	// patience is how long it may be away.
	patience  = time.Minute
	askAgain  = time.Second
	cannotRun = "code = Unavailable" // of gRPC: what a kubelet says of a runtime that is away
)

// isUnreachable reports whether an error says that a part of the cluster could not be reached, so that
// what was asked for has not begun.
func isUnreachable(err error) bool {
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return true
	}
	text := err.Error()
	// Of the API server, whose kubelet is away (apiserver pkg/util/proxy), and of the kubelet.
	return strings.Contains(text, "error dialing backend") || strings.Contains(text, cannotRun) && strings.Contains(text, "while dialing")
}

// patiently tries until what is tried is not away any more.
func patiently(ctx context.Context, try func() error) error {
	for end := time.Now().Add(patience); ; {
		err := try()
		if err == nil || !isUnreachable(err) || time.Now().After(end) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(askAgain):
		}
	}
}

// patient is a client's configuration whose requests are made again while the API server
// cannot be reached.
func patient(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(t http.RoundTripper) http.RoundTripper { return patientTransport{t} })
	return config
}

type patientTransport struct{ next http.RoundTripper }

// RoundTrip asks again with a new body. A request whose body cannot be made again is sent once.
func (t patientTransport) RoundTrip(q *http.Request) (answer *http.Response, err error) {
	first := true
	err = patiently(q.Context(), func() error {
		if !first && q.Body != nil && q.Body != http.NoBody {
			if q.GetBody == nil {
				return err
			}
			body, e := q.GetBody()
			if e != nil {
				return e
			}
			q = q.Clone(q.Context())
			q.Body = body
		}
		first = false
		answer, err = t.next.RoundTrip(q)
		return err
	})
	return answer, err
}
