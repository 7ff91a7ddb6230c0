// Package fabric is what lies between machines when it is more than a cable:
// the virtual network of a cloud, whose host routes by address, checks sources
// and applies security rules. Plain routers are machines of package node.
//
// It knows frames, addresses and its own rules; it must not know nodes' inner
// life, HNS or Kubernetes.
package fabric
