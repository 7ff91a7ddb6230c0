package node

import "github.com/winlab-dev/winlab/sim/dataplane/packet"

// connectionReset is the reset that a peer gets when its connection has ended.
type connectionReset struct{ connection packet.Tuple }

func (e connectionReset) Text() string {
	return "ACL policies were applied: the flows of the layer are forgotten, the peer of " + e.connection.String() + " gets a reset"
}

// noNetwork is a packet of a container that has no network.
type noNetwork struct{}

func (noNetwork) Text() string {
	return "containers of this build have no network: every call ends with General failure"
}

// lostEndpoint is a packet of a container whose endpoint a restart of HNS has lost.
type lostEndpoint struct{}

func (lostEndpoint) Text() string {
	return "the endpoint of the pod is gone since the restart of HNS"
}

// noPort is a packet of a compartment whose endpoint has no port on a switch.
type noPort struct{}

func (noPort) Text() string {
	return "the pod has no switch port: its HNS endpoint is gone or not attached"
}

// noCompartment is a packet for a port without a compartment.
type noCompartment struct{}

func (noCompartment) Text() string { return "there is no compartment behind the port" }
