//go:build !linux

package netns

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Device is a TAP device; there is none on this system.
type Device struct{}

// Serve returns an error.
func (d *Device) Serve(sync.Locker, []byte, func([]byte, Offload)) error { return errOther }

// Write returns an error.
func (d *Device) Write([]byte, Offload) error { return errOther }

// Close does nothing.
func (d *Device) Close() error { return nil }

// Host is the helper process; there is none on this system.
type Host struct{}

// Options choose how the helper is started.
type Options struct{ KeepUser bool }

var errOther = fmt.Errorf("%w: they need Linux, this is %s", ErrUnsupported, runtime.GOOS)

// Start returns an error that wraps [ErrUnsupported].
func Start(Options) (*Host, error) { return nil, errOther }

// Done never ends: there is no helper.
func (h *Host) Done() <-chan struct{} { return nil }

// PID is 0: there is no helper.
func (h *Host) PID() int { return 0 }

// Close does nothing.
func (h *Host) Close() {}

// Add returns an error.
func (h *Host) Add(context.Context, Spec) (*Device, error) { return nil, errOther }

// Set returns an error.
func (h *Host) Set(context.Context, string, Addresses) error { return errOther }

// Remove returns an error.
func (h *Host) Remove(context.Context, string) error { return errOther }

// Bound returns an error.
func (h *Host) Bound(context.Context, string) ([]Bound, error) { return nil, errOther }

// Listen returns an error.
func (h *Host) Listen(context.Context, string, netip.AddrPort) (net.Listener, error) {
	return nil, errOther
}

// ListenPacket returns an error.
func (h *Host) ListenPacket(context.Context, string, netip.AddrPort) (net.PacketConn, error) {
	return nil, errOther
}

// Dial returns an error.
func (h *Host) Dial(context.Context, string, string, netip.AddrPort, time.Duration) (net.Conn, error) {
	return nil, errOther
}

// DialFrom returns an error.
func (h *Host) DialFrom(context.Context, string, string, uint16, netip.AddrPort, time.Duration) (net.Conn, error) {
	return nil, errOther
}

// Ping returns an error.
func (h *Host) Ping(context.Context, string, netip.Addr, Echo, time.Duration) (time.Duration, error) {
	return 0, errOther
}

// SetDontFragment returns an error.
func SetDontFragment(net.Conn, bool) error { return errOther }

// Process is a program in a namespace; there is none on this system.
type Process struct{ PID int }

// Start returns an error.
func (h *Host) Start(context.Context, string, Command, [3]*os.File) (*Process, error) {
	return nil, errOther
}

// StartContainer returns an error.
func (h *Host) StartContainer(context.Context, string, Container, Command, [3]*os.File) (*Process, error) {
	return nil, errOther
}

// ExecContainer returns an error.
func (h *Host) ExecContainer(context.Context, string, string, Command, [3]*os.File) (*Process, error) {
	return nil, errOther
}

// RemoveContainer returns an error.
func (h *Host) RemoveContainer(context.Context, string, string) error { return errOther }

// Usage returns an error.
func (h *Host) Usage(context.Context, string, string) (Usage, error) { return Usage{}, errOther }

// Wait returns an error.
func (p *Process) Wait(context.Context) (Exit, error) { return Exit{}, errOther }

// Memory returns an error.
func (p *Process) Memory(context.Context) (uint64, error) { return 0, errOther }

// Signal returns an error.
func (p *Process) Signal(syscall.Signal) error { return errOther }
