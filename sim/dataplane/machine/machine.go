// Package machine puts machines together out of interfaces and IP stacks: the
// plain Linux machine with its bridge, and the compartments that are on any
// machine. Machines of other kinds (a Windows node, an OVN chassis) have their
// own packages and implement [Machine], too.
//
// It knows stacks, links and segments. It must not know Windows, Kubernetes or
// lab files: a pod is a compartment here, a router is a machine that forwards.
package machine

import (
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
)

// Machine is whatever has an IP stack of its own and takes part in a
// simulation: a node, a router, a host, a compartment on one of them. Its stack
// says what it is called in traces.
type Machine interface {
	// Stack is where its programs send and listen.
	Stack() *host.Stack
	// Reset forgets flows, sockets and translations, not the configuration.
	Reset()
}

// Compartment is a network namespace on a machine: what programs inside it see.
type Compartment struct {
	// Address is its first IPv4 address, else its first address.
	Address netip.Addr
	stack   *host.Stack
}

// NewCompartment returns a compartment around a stack. A stack that is the
// machine's own makes a compartment that shares it.
func NewCompartment(stack *host.Stack, addr netip.Addr) *Compartment {
	return &Compartment{Address: addr, stack: stack}
}

// Stack is the compartment's own IP stack.
func (c *Compartment) Stack() *host.Stack { return c.stack }

// Reset forgets sockets and translations.
func (c *Compartment) Reset() { c.stack.Reset() }
