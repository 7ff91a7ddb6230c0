// Package cni models what network plugins program on the nodes of a cluster.
//
// On a Windows node a plugin (and the agent or start script that goes with it)
// turns its configuration file into objects of HNS: a network, the host's
// endpoint, one endpoint for each pod. The package reads the configuration
// files in the format in which they lie on a node and makes the same calls to
// [hns.Service]. On a Linux node it says what the plugin sets up there.
//
// What the objects do to packets is none of its business: it must know no VFP
// rule, and it must know nothing of lab files.
//
// Real configuration files differ from node to node only in the node's own
// address, which deployment scripts write into them (Update-CNIConfig in
// microsoft/SDN Kubernetes/windows/start-kubelet.ps1). A file for this package
// says {{managementIP}} there, and the address is put in its place before the
// file is read. Nothing else is substituted.
package cni
