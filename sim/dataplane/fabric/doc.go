// Package fabric is the network between machines where it is more than a cable:
// the virtual network of a cloud, which routes by address, checks sources and
// applies security rules, and switches that drop packets by an access list.
// Plain routers are machines of package machine.
//
// It knows frames, addresses and its own rules. It must not know what is inside
// a machine, HNS or Kubernetes.
package fabric
