package labfile

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"
)

// TargetKind says what a target names.
type TargetKind string

// The kinds of targets.
const (
	PodTarget     TargetKind = "pod"
	ServiceTarget TargetKind = "svc"
	NodeTarget    TargetKind = "node"
	HostTarget    TargetKind = "host"
	NameTarget    TargetKind = "name"
	AddressTarget TargetKind = "addr"
	// LocalhostTarget is what another container of the sender's pod asks for.
	LocalhostTarget TargetKind = "localhost"
)

// Target is an endpoint of a flow as a user writes it.
type Target struct {
	Kind            TargetKind
	Namespace, Name string
	Addr            netip.Addr
	Port            uint16 // 0: not said
	text            string
}

func (t Target) String() string { return t.text }

// ParseTarget reads pod/[NS/]NAME[:PORT], svc/[NS/]NAME[:PORT], node/NAME[:PORT],
// host/NAME[:PORT], name/DNSNAME[:PORT], localhost:PORT (another container of
// the sender's pod asks for it), or an address with or without a port.
func ParseTarget(s string) (Target, error) {
	t := Target{text: s}
	kind, rest, ok := strings.Cut(s, "/")
	if !ok {
		err := t.parseAddress(s)
		return t, err
	}
	t.Kind = TargetKind(kind)
	switch t.Kind {
	case PodTarget, ServiceTarget, NodeTarget, HostTarget, NameTarget:
	case "service":
		t.Kind = ServiceTarget
	default:
		return t, fmt.Errorf("%q: there is no kind %q; write pod/, svc/, node/, host/ or name/", s, kind)
	}
	if i := strings.LastIndexByte(rest, ':'); i >= 0 {
		var err error
		if t.Port, err = parsePort(s, rest[i+1:]); err != nil {
			return t, err
		}
		rest = rest[:i]
	}
	namespaced := t.Kind == PodTarget || t.Kind == ServiceTarget
	if namespaced {
		t.Namespace = "default"
		if ns, name, ok := strings.Cut(rest, "/"); ok {
			t.Namespace, rest = ns, name
		}
	}
	t.Name = rest
	if t.Name == "" || strings.Contains(t.Name, "/") || namespaced && t.Namespace == "" {
		return t, fmt.Errorf("%q: a name is missing or there is a slash too many", s)
	}
	return t, nil
}

// parseAddress reads a target that is not named: localhost:PORT or an address.
func (t *Target) parseAddress(s string) error {
	if port, ok := strings.CutPrefix(s, "localhost:"); ok {
		n, err := parsePort(s, port)
		if err != nil {
			return err
		}
		t.Kind, t.Addr, t.Port = LocalhostTarget, netip.AddrFrom4([4]byte{127, 0, 0, 1}), n
		return nil
	}
	if ap, err := netip.ParseAddrPort(s); err == nil {
		t.Kind, t.Addr, t.Port = AddressTarget, ap.Addr(), ap.Port()
		return nil
	}
	a, err := netip.ParseAddr(strings.Trim(s, "[]"))
	if err != nil {
		return fmt.Errorf(
			"%q is not an endpoint of a flow; write pod/NAME, svc/NAME:PORT, node/NAME:PORT, host/NAME:PORT, name/DNSNAME:PORT or an address", s)
	}
	t.Kind, t.Addr = AddressTarget, a
	return nil
}

// parsePort reads the port of a target.
func parsePort(target, text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q: %q is not a port; write a number from 1 to 65535", target, text)
	}
	return uint16(n), nil
}

// ParseListen reads "tcp/80".
func ParseListen(s string) (ListenPort, error) {
	proto, port, ok := strings.Cut(strings.ToLower(s), "/")
	n, err := strconv.ParseUint(port, 10, 16)
	if !ok || err != nil || n == 0 {
		return ListenPort{}, fmt.Errorf("%q is not a listening port; write tcp/80 or udp/53", s)
	}
	pr, ok := protocols[proto]
	if !ok {
		return ListenPort{}, fmt.Errorf("%q: there is no protocol %q; write tcp/80 or udp/53", s, proto)
	}
	return ListenPort{pr, uint16(n)}, nil
}

var protocols = map[string]packet.Proto{"tcp": packet.TCP, "udp": packet.UDP}

// ParseProtocol reads tcp, udp or icmp; empty is any.
func ParseProtocol(s string) (packet.Proto, error) {
	switch s {
	case "":
		return 0, nil
	case "icmp":
		return packet.ICMP, nil
	}
	if p, ok := protocols[s]; ok {
		return p, nil
	}
	return 0, fmt.Errorf("there is no protocol %q; write tcp, udp or icmp", s)
}

// ParseHostPort reads "tcp/8080:80".
func ParseHostPort(s string) (kube.HostPort, error) {
	proto, ports, ok := strings.Cut(strings.ToLower(s), "/")
	h, c, ok2 := strings.Cut(ports, ":")
	pr, ok3 := protocols[proto]
	hp, err1 := strconv.ParseUint(h, 10, 16)
	cp, err2 := strconv.ParseUint(c, 10, 16)
	if !ok || !ok2 || !ok3 || err1 != nil || err2 != nil || hp == 0 || cp == 0 {
		return kube.HostPort{}, fmt.Errorf("%q is not a host port; write tcp/8080:80 (host port : container port)", s)
	}
	return kube.HostPort{Proto: pr, HostPort: uint16(hp), Container: uint16(cp)}, nil
}

// ParsePorts reads the ports of a security rule: "80", "8000-8080" or nothing
// for all, which is 0 to 0.
func ParsePorts(s string) (lo, hi uint16, err error) {
	if s == "" {
		return 0, 0, nil
	}
	first, last, ranged := strings.Cut(s, "-")
	if !ranged {
		last = first
	}
	l, err1 := strconv.ParseUint(first, 10, 16)
	h, err2 := strconv.ParseUint(last, 10, 16)
	if err1 != nil || err2 != nil || l == 0 || l > h {
		return 0, 0, fmt.Errorf("%q is not a port or a range of ports; write 80 or 8000-8080", s)
	}
	return uint16(l), uint16(h), nil
}
