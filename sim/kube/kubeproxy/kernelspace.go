package kubeproxy

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// Kernelspace is kube-proxy in kernelspace mode on one Windows node. It is not
// safe for concurrent use.
type Kernelspace struct {
	cfg      Config
	node     *kube.Node
	hns      *hns.Service
	b        behaviour
	network  *hns.Network
	families []*proxier
	// modify: the build changes load balancers in place.
	modify bool
	// subnets are the remote subnets of a network, by prefix and by node.
	subnets remoteSubnets
}

// remoteSubnets find the remote subnet of an address; of several the last, by its place
// in the list.
type remoteSubnets struct {
	of       *hns.Network
	policies int
	lengths  []int
	prefixes map[netip.Prefix]remoteSubnet
	nodes    map[netip.Addr]remoteSubnet
}

type remoteSubnet struct {
	provider netip.Addr
	place    int
}

// NewKernelspace starts kube-proxy on a node whose networks exist. Like the real one it
// deletes every load balancer of the node (kubeproxy.start-deletes-load-balancers). All
// reasons why it would not start are reported at once.
func NewKernelspace(c Config, n *kube.Node, s *hns.Service) (*Kernelspace, error) {
	if c.Mode != ModeKernelspace {
		return nil, fmt.Errorf("kube-proxy on %s: mode %s is not kernelspace", n.Name, c.Mode)
	}
	b, err := behaviourOf(n.Version)
	if err != nil {
		return nil, fmt.Errorf("kube-proxy on %s: %w", n.Name, err)
	}
	k := &Kernelspace{cfg: c, node: n, hns: s, b: b, modify: b.modify.has(s.Build().HNSVersion)}
	if err := k.start(); err != nil {
		return nil, fmt.Errorf("kube-proxy on %s: %w", n.Name, err)
	}
	return k, nil
}

// start looks the network up, deletes load balancers and makes a proxier for each
// address family.
func (k *Kernelspace) start() (err error) {
	if k.network, err = k.findNetwork(); err != nil {
		return errors.Join(err, k.checkDSR())
	}
	if err := errors.Join(k.checkDSR(), k.checkOverlay()); err != nil {
		return err
	}
	for _, lb := range k.hns.ListLoadBalancers(nil) {
		if err := k.hns.DeleteLoadBalancer(lb.ID); err != nil {
			return err
		}
	}
	k.families = []*proxier{newProxier(k, false, k.node.Address)}
	if k.dualStack() {
		k.families = append(k.families, newProxier(k, true, k.node.Address6))
	}
	if k.b.sourceVIPAtStart {
		return k.sourceVIP(&Report{})
	}
	return nil
}

// checkDSR says why kube-proxy does not start with --enable-dsr (kubeproxy.gates).
func (k *Kernelspace) checkDSR() error {
	if !k.cfg.EnableDSR {
		return nil
	}
	var errs []error
	if !k.cfg.enabled(gateWinDSR, k.node.Version) {
		errs = append(errs, errors.New("WinDSR feature gate not enabled: add --feature-gates=WinDSR=true, or leave --enable-dsr out"))
	}
	if build := k.hns.Build(); !build.Has(builds.DSR) {
		errs = append(errs, fmt.Errorf("%s cannot do DSR: leave --enable-dsr out", build))
	}
	return errors.Join(errs...)
}

// ErrNoSourceVIP says that kube-proxy on an overlay network has no --source-vip.
var ErrNoSourceVIP = errors.New("source-vip flag not set")

// checkOverlay says why kube-proxy does not start on an overlay network
// (kubeproxy.gates, factSourceVIPNeeded, kubeproxy.dual-stack).
func (k *Kernelspace) checkOverlay() error {
	if !k.network.Is(hns.Overlay) {
		return nil
	}
	var errs []error
	if !k.cfg.enabled(gateWinOverlay, k.node.Version) {
		errs = append(errs, fmt.Errorf("WinOverlay feature gate not enabled: network %s is an overlay; add --feature-gates=WinOverlay=true",
			k.network.Name))
	}
	if build := k.hns.Build(); !build.Has(builds.RemoteSubnet) {
		errs = append(errs, fmt.Errorf("%s has no remote subnets, which an overlay network needs", build))
	}
	if k.dualStack() {
		errs = append(errs,
			errors.New(
				"could not find host mac address for 0.0.0.0: with the gate IPv6DualStack this kube-proxy takes --bind-address for the node's address; leave the gate out on an overlay network"))
	}
	if !k.cfg.SourceVIP.IsValid() {
		errs = append(errs, fmt.Errorf("%w: network %s is an overlay; add --source-vip= with an unused address of this node's pod subnet",
			ErrNoSourceVIP, k.network.Name))
	}
	return errors.Join(errs...)
}

// dualStack follows kubeproxy.dual-stack.
func (k *Kernelspace) dualStack() bool {
	switch k.b.dualStack {
	case dualStackByGate:
		return k.cfg.enabled(gateIPv6DualStack, k.node.Version)
	case dualStackByBuild:
		return k.cfg.enabled(gateIPv6DualStack, k.node.Version) && !k.network.Is(hns.Overlay) && k.hns.Build().Has(builds.IPv6DualStack)
	}
	return false
}

// findNetwork returns the network by name, or the only one that can carry the
// containers of a cluster.
func (k *Kernelspace) findNetwork() (*hns.Network, error) {
	if name := k.cfg.NetworkName; name != "" {
		if n := k.hns.NetworkByName(name); n != nil {
			return n, nil
		}
		return nil, fmt.Errorf("there is no HNS network %q (--network-name); there are %s", name, k.networkNames(nil))
	}
	fit := func(n *hns.Network) bool { return n.Is(hns.L2Bridge, hns.L2Tunnel, hns.Overlay, hns.Transparent) }
	all := k.hns.ListNetworks(fit)
	switch len(all) {
	case 1:
		return all[0], nil
	case 0:
		return nil, fmt.Errorf("no HNS network that carries containers of a cluster; there are %s", k.networkNames(nil))
	}
	return nil, fmt.Errorf("several HNS networks (%s): choose one with --network-name", k.networkNames(fit))
}

func (k *Kernelspace) networkNames(keep func(*hns.Network) bool) string {
	var names []string
	for _, n := range k.hns.ListNetworks(keep) {
		names = append(names, n.Name)
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// hostname is the name by which kube-proxy knows its own endpoints. It is in lower
// case (pkg/util/node GetHostname), as the names of Nodes are, and compared letter
// for letter (pkg/proxy/endpointslicecache.go isLocal).
func (k *Kernelspace) hostname() string {
	if k.cfg.hostnameOverride != "" {
		return k.cfg.hostnameOverride
	}
	return strings.ToLower(k.node.Name)
}

// healthzPort is the port that health checks go to without one of the Service.
func (k *Kernelspace) healthzPort() uint16 {
	if k.cfg.healthzPort != 0 {
		return k.cfg.healthzPort
	}
	return defaultHealthzPort
}

// Sync brings HNS in line with the Services, as one pass of kube-proxy does.
// What HNS refuses is in the report and does not stop the sync; the error is
// for what stops it: the network is gone, or the source VIP cannot be made.
// Services and their endpoints are compared with the last call's by value.
func (k *Kernelspace) Sync(services []*kube.Service) (Report, error) {
	r := Report{version: k.node.Version}
	for _, svc := range services {
		r.services = append(r.services, svc.Key())
	}
	if done, err := k.refreshNetwork(&r); done {
		return r, err
	}
	if !k.b.sourceVIPAtStart {
		if err := k.sourceVIP(&r); err != nil {
			return r, err
		}
	}
	for _, svc := range services {
		if why := whySkipped(k.node.Version, svc); why != "" {
			r.add(skippedEntry(k.node.Version, svc, why))
		}
	}
	for _, p := range k.families {
		p.sync(services, &r)
	}
	return r, nil
}

// refreshNetwork follows factNetworkChanged. done ends the sync.
func (k *Kernelspace) refreshNetwork(r *Report) (done bool, err error) {
	n := k.hns.NetworkByName(k.network.Name)
	if n != nil && (n.ID == k.network.ID || !k.b.watchesNetwork) {
		k.network = n
		return false, nil
	}
	for _, p := range k.families {
		p.cleanupAll(r)
	}
	if n == nil {
		return true, fmt.Errorf("kube-proxy on %s: the HNS network %s is gone", k.node.Name, k.network.Name)
	}
	r.add(Entry{role: roleNetwork, object: n.Name, id: n.ID, what: skipped,
		why: "the network has a new id: kube-proxy forgets everything and programs it at the next sync", fact: factNetworkChanged})
	k.network = n
	return true, nil
}

// sourceVIP makes the local endpoint with the source VIP (factSourceVIPNeeded).
func (k *Kernelspace) sourceVIP(r *Report) error {
	if !k.network.Is(hns.Overlay) {
		return nil
	}
	for _, e := range k.hns.EndpointsOf(k.network.ID) {
		for _, a := range e.Addresses() {
			if a == k.cfg.SourceVIP {
				return nil
			}
		}
	}
	e, err := k.hns.CreateEndpoint(hns.Endpoint{
		HostComputeNetwork: k.network.ID, MacAddress: k.hns.HostMAC(), SchemaVersion: hns.SchemaVersion{Major: 2},
		IpConfigurations: []hns.IpConfig{{IpAddress: k.cfg.SourceVIP.String()}},
	})
	if err != nil {
		r.add(Entry{role: roleSourceVIP, object: k.cfg.SourceVIP.String(), what: failed, err: err, fact: factSourceVIPNeeded})
		return fmt.Errorf("kube-proxy on %s: Source Vip endpoint creation failed: %w", k.node.Name, err)
	}
	r.add(Entry{role: roleSourceVIP, object: k.cfg.SourceVIP.String(), id: e.ID, what: created, fact: factSourceVIPNeeded})
	return nil
}

// remoteSubnetPA returns the provider address of the remote subnet that holds
// an address, or the address itself when it is a node's; the zero Addr when
// neither. The last policy that fits wins (findRemoteSubnetProviderAddress).
func (k *Kernelspace) remoteSubnetPA(a netip.Addr) netip.Addr {
	s := k.remoteSubnets()
	found := s.nodes[a]
	for _, bits := range s.lengths {
		if p, err := a.Prefix(bits); err == nil {
			if r := s.prefixes[p]; r.place > found.place {
				found = r
			}
		}
	}
	return found.provider
}

// remoteSubnets is the index of the network's. HNS makes a new network of one whose
// policies change.
func (k *Kernelspace) remoteSubnets() *remoteSubnets {
	s := &k.subnets
	if s.of == k.network && s.policies == len(k.network.Policies) {
		return s
	}
	*s = remoteSubnets{of: k.network, policies: len(k.network.Policies), prefixes: map[netip.Prefix]remoteSubnet{},
		nodes: map[netip.Addr]remoteSubnet{}}
	place := 0
	for r := range k.network.RemoteSubnets() {
		place++
		s.prefixes[r.Prefix], s.nodes[r.Provider] = remoteSubnet{r.Provider, place}, remoteSubnet{r.Provider, place}
		if !slices.Contains(s.lengths, r.Prefix.Bits()) {
			s.lengths = append(s.lengths, r.Prefix.Bits())
		}
	}
	return s
}

// Distinct reports whether all load balancers that it asks for have a frontend of their
// own, given that no two ports of the Services want the same one.
func (k *Kernelspace) Distinct(services []*kube.Service) bool {
	if !k.cfg.forwardHealthCheckVIP && (len(k.families) < 2 || k.b.vipsByFamily) {
		return true
	}
	// The ports of a Service share its health check, and before 1.35 both families serve
	// all external addresses.
	return !slices.ContainsFunc(services, func(s *kube.Service) bool { return len(s.ExternalIPs)+len(s.IngressIPs) > 0 })
}

// DeletesPods reports whether following a change can delete endpoints of the node's own
// pods (kubeproxy.stale-remote-endpoints).
func (k *Kernelspace) DeletesPods() bool { return k.b.deletesLocal }
