// Package cni models what network plugins program on the nodes of a cluster.
//
// On a Windows node a plugin (and the agent or start script that goes with it)
// turns its configuration file into objects of HNS: a network, the host's
// endpoint, one endpoint for each pod. The package reads the configuration
// files in the format that they have on a node and makes the same calls to
// [hns.Service]. On a Linux node it says what the plugin sets up there.
//
// It must not know what the objects do to packets (VFP rules), nor lab files.
//
// Real configuration files differ from node to node only in the node's own
// address, which deployment scripts write into them (Update-CNIConfig in
// microsoft/SDN Kubernetes/windows/start-kubelet.ps1). A file for this package
// says {{managementIP}} there, and the address is put in its place before the
// file is read; {{managementIPv6}} is its IPv6 address. Nothing else is substituted.
//
// # The plugins
//
//	antrea       antrea.go; what its agent is told is antreaagent.go
//	azure-vnet   azurevnet.go
//	calico       calico.go; its agent for policies is calicopolicy.go
//	flannel      flannel.go, with win-bridge (host-gw) or win-overlay (vxlan) as its delegate
//	nat          nat.go
//	sdnbridge    sdnbridge.go
//	vpc-bridge   vpcbridge.go
//	win-bridge   winbridge.go
//	win-overlay  winoverlay.go
//
// # To add a plugin
//
//  1. Read its source. Each thing that it does becomes a fact in facts.go that cites it.
//  2. Write NAME.go: the reader of its fields (azureConf is an example of one with its
//     own form, natConf of one that reads what all Windows plugins read), its constructor,
//     and a type that embeds *base and has the rest of [Plugin].
//  3. Prepare makes the network, Add leases an address, collects policies and calls
//     base.add. base has Del, Warnings and addresses for a prefix of each node.
//  4. Add a constant and a row to registry.go, and a line to the list above.
//  5. Put its configuration as it is on a node into fixtures/cni, and a case into plugins
//     in cni_test.go; go test -update writes the HNS calls to testdata. Read them.
//  6. Name it in sim/lab/labfile (Plugins) and conformance/check/nodeconf (pluginNetworks). A test
//     here says what is missing.
//
// # To add a field
//
//  1. Name it in the plugin's table in fields.go, and read it in the plugin's reader
//     (winBridgeConf). A field that no table has is not read, and the plugin warns that it
//     ignores it. windowsFields and windowsConf are for win-bridge, win-overlay and nat.
//  2. Keep its value in [Conf], as a typed value. The fact that says what the plugin does
//     with it is in facts.go.
//  3. Apply it in a method of policySet (endpointpolicy.go) whose comment cites the fact, and
//     call that method in Add of each plugin that has the field. The order of calls is the
//     order of the endpoint's policies.
//  4. Add rows to TestConfPolicies (configuration in, policies out) and, where one plugin
//     reads the field and another does not, to TestIgnoredFields.
//  5. When it decides whether a packet arrives, add a flow to sim/lab: changed in
//     hnsstate_test.go changes a design lab, write puts a configuration file beside it.
package cni
