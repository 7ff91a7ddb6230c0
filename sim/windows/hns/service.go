package hns

import (
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode"

	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// Options describe the node that a Service runs on.
type Options struct {
	// Node is the node's name. Together with Seed it determines the ids.
	Node string
	Seed string
	// ManagementIP is the node's address, given to networks that name none.
	ManagementIP netip.Addr
	// ManagementIP6 is the node's IPv6 address, the zero Addr for none.
	ManagementIP6 netip.Addr
	// HostMAC is the MAC address of the node's adapter, "00-15-5D-01-02-03",
	// derived from the node's name when empty.
	HostMAC string
	// PortRangeFirst and PortRangeLast change the dynamic port range (netsh int
	// ipv4 set dynamicportrange); zero keeps the build's.
	PortRangeFirst, PortRangeLast uint16
	// ExcludedPorts are the node's excluded port ranges (netsh int ipv4 add
	// excludedportrange).
	ExcludedPorts []PortBlock
	// MaxBackends changes the build's limit of backends per load balancer.
	MaxBackends int
	// SharePortPools lets load balancers with the same SourceVIP share a port
	// block, where the build can (PortPoolSharing). How HNS chooses who shares
	// is not published, so it is off unless asked for.
	SharePortPools bool
	// Pinned are answers to questions that no source decides, by parameter.
	Pinned map[string]string
}

// Service is the HNS of one node. It is not safe for concurrent use.
type Service struct {
	build *builds.Build
	opts  Options

	networks      table[Network]
	endpoints     table[Endpoint]
	namespaces    table[Namespace]
	loadBalancers table[LoadBalancer]
	routes        table[Route]

	later func() // see Later

	pool        *portPool
	sharedPools map[string]PortBlock // by SourceVIP
	listeners   []*func(Change)
	counter     uint64
	disputed    []Disputed
	restarts    int
	outlived    map[string]bool // the endpoints at the last restart
	compartment uint32
	// hostNamespace is the id of the first namespace of the node itself; "" until somebody asks.
	hostNamespace string
	frontends     map[frontendKey]string // load balancer id
	hostPorts     map[uint16]int         // how many of these are of the node's own address, by port
	macs          map[string]uint64      // next MAC by network id
	// managementMACs are never changed in place: a Snapshot shares them.
	managementMACs []string

	stale  map[string]*Endpoint // deleted endpoints that rules still name
	unseen map[string]bool      // ids of backends that a dump does not hold

	// Endpoints by address and the MAC addresses in use: a node may hold a remote
	// endpoint for every container of a large cluster.
	byAddress map[netip.Addr][]string
	byName    map[string][]string // by folded; what has no name is not in it
	usedMACs  map[string]int
	freeOf    map[string]*freeAddresses // by network id
}

// NewService returns the HNS of a node with no objects.
func NewService(b *builds.Build, opts Options) *Service {
	first, last := b.Limits.PortRangeFirst, b.Limits.PortRangeLast
	if opts.PortRangeFirst != 0 {
		first = opts.PortRangeFirst
	}
	if opts.PortRangeLast != 0 {
		last = opts.PortRangeLast
	}
	s := &Service{
		build: b, opts: opts,
		pool:        newPortPool(first, last, b.Limits.PortBlockSize, opts.ExcludedPorts),
		sharedPools: map[string]PortBlock{},
		frontends:   map[frontendKey]string{},
		hostPorts:   map[uint16]int{},
		macs:        map[string]uint64{},
		byAddress:   map[netip.Addr][]string{},
		byName:      map[string][]string{},
		usedMACs:    map[string]int{},
		freeOf:      map[string]*freeAddresses{},
		compartment: 1,
	}
	s.networks.of, s.endpoints.of, s.namespaces.of, s.loadBalancers.of, s.routes.of = s, s, s, s, s
	if s.opts.HostMAC == "" {
		h := sha1.Sum([]byte("mac/" + opts.Seed + "/" + opts.Node))
		s.opts.HostMAC = fmt.Sprintf("00-15-5D-%02X-%02X-%02X", h[0], h[1], h[2])
	}
	return s
}

// Build returns the Windows build of the node.
func (s *Service) Build() *builds.Build { return s.build }

// Node returns the node's name.
func (s *Service) Node() string { return s.opts.Node }

// ManagementIP returns the node's address.
func (s *Service) ManagementIP() netip.Addr { return s.opts.ManagementIP }

// ManagementIP6 returns the node's IPv6 address, the zero Addr for none.
func (s *Service) ManagementIP6() netip.Addr { return s.opts.ManagementIP6 }

// HostMAC returns the MAC address of the node's adapter, "00-15-5D-01-02-03".
func (s *Service) HostMAC() string { return s.opts.HostMAC }

// Options returns what the service was made with, HostMAC filled in.
func (s *Service) Options() Options { return s.opts }

// newID makes the next id: a GUID that depends on the node, the seed, the kind
// and the number of ids made before, so that two runs give the same.
func (s *Service) newID(kind Kind) string {
	s.counter++
	h := sha1.New()
	fmt.Fprintf(h, "%s/%s/%s/", s.opts.Seed, s.opts.Node, kind)
	_ = binary.Write(h, binary.BigEndian, s.counter)
	b := h.Sum(nil)
	b[6] = b[6]&0x0f | 0x50 // version 5, as RFC 9562 has it for SHA-1
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

// normID brings an id to the form the tables use. HCN v2 prints lower case,
// HNS v1 upper case; both take either, with or without braces.
func normID(id string) string {
	if isNormID(id) {
		return id
	}
	return strings.ToLower(strings.Trim(strings.TrimSpace(id), "{}"))
}

func isNormID(id string) bool {
	for i := range len(id) {
		if c := id[i]; c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

// Network returns a network by id, or nil.
func (s *Service) Network(id string) *Network { return s.networks.get(id) }

// NetworkByName returns the network with that name, without regard to case, or nil.
func (s *Service) NetworkByName(name string) *Network {
	return first(s.networks.list(func(n *Network) bool { return strings.EqualFold(n.Name, name) }))
}

// Endpoint returns an endpoint by id, or nil.
func (s *Service) Endpoint(id string) *Endpoint { return s.endpoints.get(id) }

// EndpointByName returns the first endpoint with that name, without regard to
// case, or nil.
func (s *Service) EndpointByName(name string) *Endpoint {
	s.Settle()
	if name == "" {
		return first(s.endpoints.list(func(e *Endpoint) bool { return e.Name == "" }))
	}
	if ids := s.byName[folded(name)]; len(ids) > 0 {
		return s.endpoints.get(ids[0])
	}
	return nil
}

// EndpointsByAddress returns all endpoints with the address. HNS allows a local
// and a remote one with the same.
func (s *Service) EndpointsByAddress(a netip.Addr) []*Endpoint {
	s.Settle()
	var all []*Endpoint
	for _, id := range s.byAddress[a] {
		all = append(all, s.endpoints.get(id))
	}
	return all
}

// AttachedAt is the endpoint of a network that has an address and a port, nil for none.
func (s *Service) AttachedAt(network string, a netip.Addr) *Endpoint {
	s.Settle()
	for _, id := range s.byAddress[a] {
		if e := s.endpoints.get(id); e.Attached() && strings.EqualFold(e.HostComputeNetwork, network) {
			return e
		}
	}
	return nil
}

// folded is the same for texts that differ only in case, as [strings.EqualFold] has it.
func folded(s string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, s)
}

// addEndpoint and removeEndpoint keep the indexes; an endpoint's name and addresses never
// change while it lives.
func (s *Service) addEndpoint(e *Endpoint) {
	s.endpoints.put(e.ID, e)
	for _, a := range e.Addresses() {
		s.byAddress[a] = append(s.byAddress[a], normID(e.ID))
	}
	if e.Name != "" { // kube-proxy's have none
		name := folded(e.Name)
		s.byName[name] = append(s.byName[name], normID(e.ID))
	}
	s.usedMACs[e.MacAddress]++
}

func (s *Service) removeEndpoint(e *Endpoint) {
	s.endpoints.remove(e.ID)
	for _, a := range e.Addresses() {
		without(s.byAddress, a, normID(e.ID))
		s.giveBack(normID(e.HostComputeNetwork), a)
	}
	if e.Name != "" {
		without(s.byName, folded(e.Name), normID(e.ID))
	}
	if s.usedMACs[e.MacAddress]--; s.usedMACs[e.MacAddress] <= 0 {
		delete(s.usedMACs, e.MacAddress)
	}
}

// without takes an id out of an index.
func without[K comparable](index map[K][]string, key K, id string) {
	ids := slices.DeleteFunc(index[key], func(other string) bool { return other == id })
	if index[key] = ids; len(ids) == 0 {
		delete(index, key)
	}
}

// Namespace returns a namespace by id, or nil.
func (s *Service) Namespace(id string) *Namespace { return s.namespaces.get(id) }

// LoadBalancer returns a load balancer by id, or nil.
func (s *Service) LoadBalancer(id string) *LoadBalancer { return s.loadBalancers.get(id) }

// Route returns a route by id, or nil.
func (s *Service) Route(id string) *Route { return s.routes.get(id) }

// ListNetworks returns the networks that keep says yes to (nil keeps all), in
// the order of creation.
func (s *Service) ListNetworks(keep func(*Network) bool) []*Network { return s.networks.list(keep) }

// ListEndpoints is ListNetworks for endpoints.
func (s *Service) ListEndpoints(keep func(*Endpoint) bool) []*Endpoint {
	return s.endpoints.list(keep)
}

// EndpointsOf returns the endpoints of a network in the order of creation.
func (s *Service) EndpointsOf(networkID string) []*Endpoint {
	id := normID(networkID)
	return s.endpoints.list(func(e *Endpoint) bool { return normID(e.HostComputeNetwork) == id })
}

// ListNamespaces is ListNetworks for namespaces.
func (s *Service) ListNamespaces(keep func(*Namespace) bool) []*Namespace {
	return s.namespaces.list(keep)
}

// ListLoadBalancers is ListNetworks for load balancers.
func (s *Service) ListLoadBalancers(keep func(*LoadBalancer) bool) []*LoadBalancer {
	return s.loadBalancers.list(keep)
}

// LoadBalancersAt returns the load balancers whose first port mapping has a protocol and
// external port and, where vip is not "", of which one serves that address: at most one.
func (s *Service) LoadBalancersAt(vip string, protocol uint32, port uint16) []*LoadBalancer {
	at := func(lb *LoadBalancer) bool {
		return len(lb.PortMappings) > 0 && lb.PortMappings[0].Protocol == protocol && lb.PortMappings[0].ExternalPort == port
	}
	if vip == "" {
		return s.loadBalancers.list(at)
	}
	s.Settle()
	for _, f := range frontendKeys(&LoadBalancer{FrontendVIPs: []string{vip},
		PortMappings: []LBPortMapping{{Protocol: protocol, ExternalPort: port}}}) {
		if lb := s.loadBalancers.get(s.frontends[f]); lb != nil && at(lb) {
			return []*LoadBalancer{lb}
		}
	}
	return nil
}

// ListRoutes is ListNetworks for routes.
func (s *Service) ListRoutes(keep func(*Route) bool) []*Route { return s.routes.list(keep) }

// Restart restarts the service. All objects come back, load balancers included: HNS
// keeps them and makes them again (hns.restart-keeps-load-balancers). What is lost is
// what VFP held: flows and NAT bindings, and with the bug hns-restart-loses-decap the
// decapsulation rules. The compiler sees that by the Change and the counter restarts.
// Backends that no longer exist are not made again.
func (s *Service) Restart() {
	s.Settle()
	s.restarts++
	s.stale, s.unseen = nil, nil
	s.outlived = map[string]bool{}
	for _, e := range s.endpoints.list(nil) {
		s.outlived[e.ID] = !e.Remote()
	}
	s.changed(Change{Kind: KindService, What: Restarted})
}

// OutlivedRestart reports whether an endpoint is from before a restart of the service:
// one of a container, which sources do not always have after it.
func (s *Service) OutlivedRestart(id string) bool {
	if len(s.outlived) == 0 { // for every packet of a container
		return false
	}
	e := s.endpoints.get(id)
	return e != nil && s.outlived[e.ID]
}

// Boot starts the service with its machine: as after a restart VFP holds nothing, and
// what a bug of an earlier restart has lost is there again.
func (s *Service) Boot() {
	s.Settle()
	s.restarts = 0
	s.stale, s.unseen, s.outlived = nil, nil, nil
	s.changed(Change{Kind: KindService, What: Restarted})
}
