// Package ovs is the data plane of Open vSwitch programmed by OVN: the logical
// switches, routers, load balancers, ACLs and address translation that
// ovn-northd compiles into logical flows, and the Geneve tunnels between the
// machines.
//
// Antrea's pipeline, one flat list of tables on each machine, is in the files antrea*.go
// and shares nothing with OVN but the table of connections.
//
// OVN serves two designs: the ovn-kubernetes network of Kubernetes 1.14-1.20
// (HNS transparent network with the OVS extension) and the OVN cluster of the
// Kubernetes 1.5 guide. Steps carry OVN's own names: the table is the layer, the
// logical datapath the group, the match the rule. The package must not know VFP,
// HNS, Kubernetes or lab files: a pod is a compartment here, a Service a load
// balancer.
package ovs
