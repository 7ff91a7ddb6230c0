package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// Server is the API server of one cluster. It is safe for concurrent use.
type Server struct {
	store  *store
	log    *log.Logger
	listen net.Listener
	http   *http.Server
	end    context.CancelFunc
	served chan error

	mu   sync.Mutex
	sent map[string]time.Time
}

// Start listens on a free port of 127.0.0.1 until ctx ends or the server is closed.
// Errors are logged to l, which may be nil. The caller must Close the server.
func Start(ctx context.Context, l *log.Logger) (*Server, error) {
	if l == nil {
		l = log.New(io.Discard, "", 0)
	}
	var config net.ListenConfig
	listen, err := config.Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("API server: %w", err)
	}
	ctx, end := context.WithCancel(ctx)
	s := &Server{store: newStore(), log: l, listen: listen, end: end, served: make(chan error, 1), sent: map[string]time.Time{}}
	s.http = &http.Server{Handler: http.HandlerFunc(s.serve), ErrorLog: l, ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	context.AfterFunc(ctx, func() { _ = s.http.Close() }) // Close reports what goes wrong with it
	go func() {
		err := s.http.Serve(listen)
		if errors.Is(err, http.ErrServerClosed) {
			err = nil
		}
		s.served <- err
	}()
	return s, nil
}

// url is where it listens, "http://127.0.0.1:40123".
func (s *Server) url() string { return "http://" + s.listen.Addr().String() }

// Close ends all watches and stops listening.
func (s *Server) Close() error {
	s.end()
	return errors.Join(s.http.Close(), <-s.served)
}

// Apply adds objects, or replaces those with the same name.
func (s *Server) Apply(objects ...runtime.Object) error {
	for _, o := range objects {
		if _, err := s.store.put(o); err != nil {
			return fmt.Errorf("API server: %w", err)
		}
	}
	return nil
}

// remove deletes objects by kind, namespace and name.
func (s *Server) remove(objects ...runtime.Object) error {
	for _, o := range objects {
		found, err := s.store.remove(o)
		switch {
		case err != nil:
			return fmt.Errorf("API server: %w", err)
		case !found:
			_, m, _ := described(o)
			return fmt.Errorf("API server: there is no %T %s/%s", o, m.GetNamespace(), m.GetName())
		}
	}
	return nil
}

// Sent returns when a client was last given all objects of a resource, by list or
// by the beginning of a watch, or a change of one; the zero time when that was never. The resource is
// "services", or "endpointslices.discovery.k8s.io" with its group.
func (s *Server) Sent(resource string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent[resource]
}

func (s *Server) markSent(r *resource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent[r.name()] = time.Now()
}

// ServeOn serves on another listener, too, until the server is closed.
func (s *Server) ServeOn(l net.Listener) {
	go func() {
		if err := s.http.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
			s.log.Printf("API server: %v", err)
		}
	}()
}

// Kubeconfig is a client configuration for the server. It has no credentials: the
// server asks for none.
func (s *Server) Kubeconfig() []byte { return KubeconfigFor(s.url()) }

// KubeconfigFor is Kubeconfig for an address at which the server serves,
// "http://127.0.0.1:40123".
func KubeconfigFor(url string) []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: lab, cluster: {server: %q}}]
contexts: [{name: lab, context: {cluster: lab, user: node}}]
current-context: lab
users: [{name: node, user: {}}]
`, url)
}
