//go:build !linux

package control

import (
	"context"
	"errors"
	"os"
)

var errOther = errors.New("networks run on Linux only")

// Server takes calls; there is none on this system.
type Server struct{}

// Listen returns an error.
func Listen(string, Handler) (*Server, error) { return nil, errOther }

// Close does nothing.
func (s *Server) Close() {}

// Remote is an error of the network's side.
type Remote struct{ Text string }

func (e *Remote) Error() string { return e.Text }

// Do returns an error.
func Do(context.Context, string, string, any, [3]*os.File, <-chan os.Signal) (int, error) {
	return 2, errOther
}

// Names lists nothing.
func Names() ([]string, error) { return nil, nil }
