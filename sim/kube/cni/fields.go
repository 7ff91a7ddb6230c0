package cni

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"
)

// What is made of the fields of a configuration file. A plugin does not read a field
// that is in no table. One that it reads either counts here, or says nothing about
// packets, or has a warning: it may matter, and nothing here follows from it.

// fieldUse is what is made of a field.
type fieldUse struct {
	// counts: a case of sim/lab/testdata/effects shows what it does.
	counts bool
	// warn says that a reader who wrote the field must be told why nothing follows, and ignored that
	// the plugin itself does not use it, so that nothing follows on a node either.
	warn, ignored bool
	why           string
}

// fieldTable is what is made of the fields of one object, by their names.
type fieldTable map[string]fieldUse

// fieldsThatCount makes the rows of fields that count, silentFields those of fields that say nothing about
// packets.
func fieldsThatCount(names ...string) fieldTable          { return rows(fieldUse{counts: true}, names) }
func silentFields(why string, names ...string) fieldTable { return rows(fieldUse{why: why}, names) }

// fieldsWithWarning makes rows of fields that winlab's model does not follow, ignoredFields of fields
// that the plugin reads or takes, and does not use.
func fieldsWithWarning(why string, names ...string) fieldTable {
	return rows(fieldUse{warn: true, why: why}, names)
}

func ignoredFields(why string, names ...string) fieldTable {
	return rows(fieldUse{warn: true, ignored: true, why: why}, names)
}

func rows(u fieldUse, names []string) fieldTable {
	t := fieldTable{}
	for _, n := range names {
		t[n] = u
	}
	return t
}

func tableOf(parts ...fieldTable) fieldTable {
	t := fieldTable{}
	for _, p := range parts {
		maps.Copy(t, p)
	}
	return t
}

// names are the fields of a table, sorted.
func (t fieldTable) names() []string { return slices.Sorted(maps.Keys(t)) }

// look finds a field as Go's encoding/json does, without regard to case.
func (t fieldTable) look(name string) (fieldUse, bool) {
	if u, ok := t[name]; ok {
		return u, true
	}
	for n, u := range t {
		if strings.EqualFold(n, name) {
			return u, true
		}
	}
	return fieldUse{}, false
}

const (
	ofRuntime  = "the runtime sets it when it calls the plugin"
	oneAdapter = "a lab's node has one network adapter"
	ownFiles   = "where the plugin keeps its files"
	podRange   = "the pod range of a node is its podCIDR"
	sixOnly    = "the model of flannel does not give pods IPv6 addresses"
	writes     = "flannel writes its own value over it (flannel-io/cni-plugin flannel_windows.go)"
	// addressPlugin warns of every other type.
	checkedType = "the model gives addresses as this type does; another type gets a warning"
	noEffect    = "what it does to packets is not simulated"
	readsNot    = "flanneld on Windows does not read it for this backend (flannel-io/flannel pkg/backend)"
)

// windowsFields are those that win-bridge, win-overlay and nat have in common.
func windowsFields() fieldTable {
	return tableOf(
		fieldsThatCount("name", "type", "dns", "policies", "apiVersion", "capabilities", "AdditionalArgs"),
		silentFields("the protocol between runtime and plugin", "cniVersion"), silentFields(ofRuntime, "runtimeConfig", "prevResult"),
		silentFields(oneAdapter, "master"),
		fieldsWithWarning("what plugins get as CNI arguments is not simulated", "args"),
	)
}

// fieldTables, made when somebody first asks, are the objects of configuration files: the
// plugin, and below it the field. "flannel/win-bridge" is the delegate of flannel.
var fieldTables = sync.OnceValue(func() map[string]fieldTable {
	return map[string]fieldTable{
		"conflist": tableOf(fieldsThatCount("name", "plugins"), silentFields("the protocol between runtime and plugin", "cniVersion",
			"cniVersions", "disableCheck", "disableGC"), silentFields(oneAdapter, "adapterName")),

		"win-bridge": tableOf(windowsFields(), fieldsThatCount("ipam", "loopbackDSR", "ipMasqNetwork", "HcnPolicyArgs")),
		// Of the delegate flannel refuses name and ipam (flannel.go), and capabilities have a
		// warning of their own (confread.go).
		"flannel/win-bridge": tableOf(windowsFields(), fieldsThatCount("loopbackDSR"),
			silentFields("flannel's win-bridge ignores it; there is a warning", "HcnPolicyArgs"),
			ignoredFields(writes, "ipMasq", "ipMasqNetwork"), delegateFields()),
		"win-bridge.ipam": hostLocalFields(),

		"win-overlay": tableOf(windowsFields(), fieldsThatCount("ipam", "loopbackDSR", "ipMasq", "endpointMacPrefix")),
		"flannel/win-overlay": tableOf(windowsFields(), fieldsThatCount("loopbackDSR", "endpointMacPrefix"),
			ignoredFields(writes, "ipMasq", "ipMasqNetwork"), delegateFields()),
		"win-overlay.ipam": hostLocalFields(),

		"nat": tableOf(windowsFields(), fieldsThatCount("ipam"),
			fieldsWithWarning("what the nat plugin does with it is not simulated", "loopbackDSR", "ipMasq", "optionalFlags")),
		"nat.ipam": tableOf(fieldsThatCount("subnet", "routes"), silentFields(checkedType, "type"),
			fieldsWithWarning("the model of nat uses subnet and the GW of the first route", "environment", "ranges", "rangeStart", "rangeEnd",
				"gateway", "resolvConf"),
			silentFields(ownFiles, "dataDir")),

		"azure-vnet": tableOf(
			fieldsThatCount("name", "type", "mode", "dns", "windowsSettings", "AdditionalArgs", "capabilities", "ipv6Mode", "executionMode"),
			silentFields("its fields have their own reasons", "ipam"),
			silentFields("the protocol between runtime and plugin", "cniVersion"), silentFields(ofRuntime, "runtimeConfig"),
			silentFields(oneAdapter, "master", "adapterName"),
			silentFields("the name of a bridge on Linux nodes", "bridge"), silentFields("logs", "logLevel", "logTarget"),
			silentFields("a lock of Linux nodes", "disableIPTableLock"),
			silentFields("how the plugin reaches the IPAM program", "cnsurl"),
			fieldsWithWarning("when endpoints of deleted pods are removed is not simulated: they are removed at once", "disableAsyncDelete"),
			fieldsWithWarning(noEffect, "infraVnetAddressSpace", "serviceCidrs", "vnetCidrs", "podNamespaceForDualNetwork", "ipsToRouteViaHost",
				"multiTenancy",
				"enableSnatOnHost", "enableExactMatchForPodName", "disableHairpinOnHostInterface", "wireServerIP")),
		"azure-vnet.windowsSettings": tableOf(fieldsThatCount("enableLoopbackDSR"),
			silentFields("how long the plugin waits for HNS", "hnsTimeoutDurationInSeconds")),
		"azure-vnet.ipam": tableOf(fieldsThatCount("mode"), silentFields(checkedType, "type"),
			fieldsWithWarning("pods get the addresses that follow the node's own", "environment", "subnet", "ipAddress", "queryInterval",
				"addressSpace", "poolId", "routes")),

		"sdnbridge": tableOf(fieldsThatCount("name", "type", "dns", "capabilities", "optionalFlags", "AdditionalArgs"),
			silentFields("its fields have their own reasons", "ipam"), silentFields("the protocol between runtime and plugin", "cniVersion"),
			silentFields(ofRuntime, "runtimeConfig"), silentFields(oneAdapter, "master"),
			fieldsWithWarning("the gateway of pods is the node's endpoint", "additionalRoutes")),
		"sdnbridge.optionalFlags": tableOf(fieldsThatCount("enableDualStack", "localRoutedPortMapping", "allowAclPortMapping", "loopbackDSR"),
			fieldsWithWarning("the gateway of pods is the node's endpoint", "forceBridgeGateway", "gatewayFromAdditionalRoutes")),
		"sdnbridge.ipam": tableOf(silentFields(checkedType, "type"), fieldsWithWarning(podRange, "subnet", "ranges", "rangeStart", "rangeEnd"),
			fieldsWithWarning("the gateway of pods is the node's endpoint", "routes", "gateway", "environment"),
			fieldsWithWarning("the pod's name servers are those of dns", "resolvConf"), silentFields(ownFiles, "dataDir")),

		"antrea": tableOf(fieldsThatCount("type", "capabilities"),
			silentFields("the network has one name, whatever the configuration says", "name"),
			silentFields("its fields have their own reasons", "ipam"),
			silentFields("the protocol between runtime and plugin", "cniVersion"), silentFields(ofRuntime, "runtimeConfig", "prevResult"),
			silentFields("it is for Linux nodes", "mtu"),
			fieldsWithWarning("the pod's name servers are those that the kubelet asks for", "dns")),
		"antrea.ipam": tableOf(silentFields(checkedType, "type"), fieldsWithWarning(podRange, "subnet", "ranges", "rangeStart", "rangeEnd",
			"ippools"),
			fieldsWithWarning("the gateway of pods is that of the node's range", "routes", "gateway", "environment"),
			fieldsWithWarning("the pod's name servers are those that the kubelet asks for", "resolvConf"), silentFields(ownFiles, "dataDir")),
		"calico": tableOf(fieldsThatCount("name", "type", "mode", "dns", "policies", "capabilities", "vxlan_mac_prefix", "vxlan_vni",
			"windows_use_single_network", "windows_loopback_DSR",
			"windows_disable_default_deny_all_policy"),
			silentFields("the protocol between runtime and plugin", "cniVersion"), silentFields(ofRuntime, "runtimeConfig", "prevResult"),
			silentFields("its fields have their own reasons", "ipam"),
			silentFields("how the plugin reaches the API server or etcd", "datastore_type", "etcd_endpoints", "etcd_discovery_srv", "etcd_scheme",
				"etcd_key_file", "etcd_cert_file", "etcd_ca_cert_file", "kubernetes", "qps", "burst"),
			silentFields("the node's name", "nodename", "nodename_file", "nodename_file_optional"),
			silentFields("logs", "log_level", "log_file_path", "log_file_max_size", "log_file_max_age", "log_file_max_count"),
			silentFields(ownFiles, "ipam_lock_file"), silentFields("policies are always those of Kubernetes", "policy"),
			silentFields("it is for Linux nodes", "mtu", "num_queues", "device_type", "container_settings", "include_default_routes",
				"dataplane_options"),
			fieldsWithWarning("when a pod's network is removed is not simulated: it is removed at once", "windows_pod_deletion_timestamp_timeout"),
			fieldsWithWarning("pods start when their network is there", "readiness_gates", "policy_setup_timeout_seconds", "endpoint_status_dir"),
			fieldsWithWarning("the requests that it allows are not simulated", "feature_control", "args")),
		"calico.ipam": tableOf(silentFields("both give addresses of the node's block, which is its podCIDR here", "type", "subnet", "name"),
			fieldsWithWarning(podRange, "assign_ipv4", "assign_ipv6", "ipv4_pools", "ipv6_pools", "ranges")),

		"vpc-bridge": tableOf(fieldsThatCount("name", "type", "capabilities", "dns", "eniMACAddress", "eniIPAddresses", "vpcCIDRs",
			"gatewayIPAddress", "serviceCIDR"),
			silentFields("the protocol between runtime and plugin", "cniVersion", "disableCheck"),
			silentFields(ofRuntime, "runtimeConfig", "prevResult"), silentFields(oneAdapter, "eniName"),
			silentFields(
				"on Windows the plugin reads it but does not use it (aws/amazon-vpc-cni-plugins plugins/vpc-bridge/network/bridge_windows.go)",
				"bridgeType", "interfaceType", "tapUserID"),
			fieldsWithWarning("pods get the addresses that follow the node's own, as a cluster gives them", "ipAddresses"),
			fieldsWithWarning("on Windows the plugin refuses any network namespace but the node's", "bridgeNetNSPath"),
			ignoredFields("the plugin reads it but does not use it", "ipam")),

		"flannel": tableOf(fieldsThatCount("name", "type", "delegate", "capabilities"),
			silentFields("the protocol between runtime and plugin", "cniVersion"),
			silentFields(ownFiles, "subnetFile", "dataDir"), silentFields(ofRuntime, "runtimeConfig"),
			ignoredFields("flannel on Windows writes ipam itself (flannel-io/cni-plugin flannel_windows.go)", "ipam")),
		"net-conf.json": tableOf(fieldsThatCount("Network", "Backend"),
			fieldsWithWarning(podRange+", as with flanneld's --kube-subnet-mgr", "SubnetMin", "SubnetMax", "SubnetLen"),
			silentFields("which program Linux nodes use to write the same rules", "EnableNFTables"),
			fieldsWithWarning("the model of flannel supports only IPv4", "EnableIPv4"),
			fieldsWithWarning(sixOnly, "EnableIPv6", "IPv6Network", "IPv6SubnetMin", "IPv6SubnetMax", "IPv6SubnetLen")),
		"net-conf.json.host-gw": tableOf(fieldsThatCount("Name", "Type", "DNSServerList"),
			ignoredFields(readsNot, "VNI", "Port", "DirectRouting", "GBP", "MacPrefix", "Learning", "MTU", "Mac")),
		"net-conf.json.vxlan": tableOf(fieldsThatCount("Name", "Type", "VNI", "Port", "DirectRouting", "GBP", "MTU"),
			ignoredFields("flanneld on Windows checks its form but does not use it (flannel-io/flannel pkg/backend/vxlan/vxlan_windows.go)",
				"MacPrefix"), ignoredFields(readsNot, "DNSServerList"),
			fieldsWithWarning("it is for the tunnel device of Linux nodes, which gets its peers from flanneld here", "Learning"),
			fieldsWithWarning("it is for Linux nodes; the MAC address of their tunnel device is vtepMAC", "Mac")),

		"dns": fieldsThatCount("nameservers", "domain", "search", "options"),
	}
})

// delegateFields are those that do not count in a delegate.
func delegateFields() fieldTable {
	return tableOf(silentFields("flannel refuses it", "name"), silentFields("the runtime reads it beside type flannel; there is a warning",
		"capabilities"))
}

// hostLocalFields are what ipam has for win-bridge and win-overlay.
func hostLocalFields() fieldTable {
	return tableOf(fieldsThatCount("subnet"), silentFields(checkedType, "type"),
		fieldsWithWarning(podRange, "ranges", "rangeStart", "rangeEnd"),
		fieldsWithWarning("the gateway of pods is the one that the plugin sets", "routes", "gateway", "environment"),
		fieldsWithWarning("the pod's name servers are those of dns", "resolvConf"), silentFields(ownFiles, "dataDir"))
}

// fields warns of what nothing follows from: fields that the plugin does not read,
// so that a misspelt one is not missed, and those that its model does not follow.
func (r *reader) fields(what, part string, n *yaml.Node) {
	t := fieldTables()[part]
	r.known[n] = func(name string) bool {
		_, ok := t.look(name)
		return ok
	}
	for _, f := range fieldsOf(n) {
		u, ok := t.look(f.key.Value)
		switch {
		case !ok:
			r.warnf(f.key, "%s ignores %q; it reads %s", what, f.key.Value, strings.Join(t.names(), ", "))
		case u.ignored && !isNull(f.val):
			r.warnf(f.key, "%s of %s has no effect: %s", f.key.Value, what, u.why)
		case u.warn && !isNull(f.val):
			r.noEffectf(f.key, "%s of %s has no effect: %s", f.key.Value, what, u.why)
		}
	}
}

// addressPlugin warns of an ipam type other than those that the model follows.
func (r *reader) addressPlugin(ipam *yaml.Node, follows ...string) {
	if f := r.get(ipam, "type"); f != nil && isText(f.val) && !slices.Contains(append(follows, ""), f.val.Value) {
		r.noEffectf(f.val, "pods do not get the addresses that ipam %q would give: the model assigns them as %s does", f.val.Value, follows[0])
	}
}

// Fields are the fields of configuration files that count, sorted:
// "azure-vnet.mode".
func Fields() []string {
	var all []string
	for part, t := range fieldTables() {
		for name, u := range t {
			if u.counts {
				all = append(all, part+"."+name)
			}
		}
	}
	slices.Sort(all)
	return all
}
