package nodeconf

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// The spellings of the plugins' documentation, by place.
var (
	// pluginKeys has every field that sim/kube/cni reads (TestFieldsAreSpelled there), and more.
	pluginKeys = []string{
		"cniVersion", "name", "type", "ipam", "dns", "policies", "apiVersion", "runtimeConfig", "loopbackDSR", "capabilities",
		"AdditionalArgs", "master", "prevResult", "args", "optionalFlags", "ipMasq", "ipMasqNetwork", "endpointMacPrefix",
		"delegate", "subnetFile", "dataDir", "plugins", "disableCheck", "mode", "adapterName", "windowsSettings", "bridge", "HcnPolicyArgs",
		"logLevel", "logTarget", "infraVnetAddressSpace", "ipv6Mode", "serviceCidrs", "vnetCidrs", "podNamespaceForDualNetwork",
		"ipsToRouteViaHost", "multiTenancy", "enableSnatOnHost", "enableExactMatchForPodName", "disableHairpinOnHostInterface",
		"disableIPTableLock", "disableAsyncDelete", "cnsurl", "executionMode", "wireServerIP", "additionalRoutes",
		"vxlan_mac_prefix", "vxlan_vni", "windows_use_single_network", "windows_loopback_DSR", "windows_disable_default_deny_all_policy",
		"windows_pod_deletion_timestamp_timeout",
		"datastore_type", "etcd_endpoints", "etcd_discovery_srv", "etcd_scheme", "etcd_key_file", "etcd_cert_file", "etcd_ca_cert_file",
		"kubernetes", "qps", "burst",
		"nodename", "nodename_file", "nodename_file_optional", "log_level", "log_file_path", "log_file_max_size", "log_file_max_age",
		"log_file_max_count", "ipam_lock_file", "policy",
		"mtu", "num_queues", "device_type", "container_settings", "include_default_routes", "dataplane_options", "readiness_gates",
		"policy_setup_timeout_seconds", "endpoint_status_dir", "feature_control",
		"eniName", "eniMACAddress", "eniIPAddresses", "vpcCIDRs", "bridgeType", "bridgeNetNSPath", "ipAddresses", "gatewayIPAddress",
		"interfaceType", "tapUserID", "serviceCIDR",
	}
	dnsKeys    = []string{"nameservers", "domain", "search", "options"}
	ipamKeys   = []string{"type", "subnet", "routes", "ranges", "dataDir", "environment"}
	routeKeys  = []string{"GW", "dst"}
	policyKeys = []string{"name", "value"}
	valueKeys  = []string{
		"Type", "ExceptionList", "Exceptions", "Destinations", "Settings", "DestinationPrefix", "NextHop", "NeedEncap", "VIP", "VirtualIP",
		"Protocol", "InternalPort", "ExternalPort",
	}
	netConfKeys = []string{
		"Network", "SubnetMin", "SubnetMax", "SubnetLen", "Backend", "EnableIPv4", "EnableIPv6", "IPv6Network", "IPv6SubnetMin",
		"IPv6SubnetMax", "IPv6SubnetLen", "EnableNFTables",
	}
	backendKeys = []string{"Name", "Type", "VNI", "Port", "DirectRouting", "GBP", "MacPrefix", "DNSServerList", "Learning", "MTU", "Mac"}
)

// pluginTree is the configuration of one plugin with the keys spelt as the
// documentation has them.
func pluginTree(n *yaml.Node) *yaml.Node {
	return below(n, map[string]func(*yaml.Node) *yaml.Node{
		"delegate": func(d *yaml.Node) *yaml.Node {
			d = spelled(d, pluginKeys)
			return below(d, map[string]func(*yaml.Node) *yaml.Node{"dns": dnsTree, "ipam": ipamTree, "policies": policyTree,
				"AdditionalArgs": policyTree})
		},
		"dns": dnsTree, "ipam": ipamTree, "policies": policyTree, "AdditionalArgs": policyTree,
	})
}

func dnsTree(n *yaml.Node) *yaml.Node { return spelled(n, dnsKeys) }

func ipamTree(n *yaml.Node) *yaml.Node {
	return below(spelled(n, ipamKeys), map[string]func(*yaml.Node) *yaml.Node{
		"routes": func(l *yaml.Node) *yaml.Node {
			return mapSequence(l, func(r *yaml.Node) *yaml.Node { return spelled(r, routeKeys) })
		},
	})
}

func policyTree(l *yaml.Node) *yaml.Node {
	return mapSequence(l, func(p *yaml.Node) *yaml.Node {
		return below(spelled(p, policyKeys), map[string]func(*yaml.Node) *yaml.Node{
			"value": func(v *yaml.Node) *yaml.Node {
				return below(spelled(v, valueKeys), map[string]func(*yaml.Node) *yaml.Node{
					"Settings": func(v *yaml.Node) *yaml.Node { return spelled(v, valueKeys) },
				})
			},
		})
	})
}

// spelled copies a map with its keys spelt as in names: Go's decoder, which all
// these programs use, does not distinguish "Policies" from "policies".
func spelled(n *yaml.Node, names []string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return n
	}
	out := *n
	out.Content = slices.Clone(n.Content)
	for i := 0; i < len(out.Content); i += 2 {
		key := *out.Content[i]
		if j := slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, key.Value) }); j >= 0 {
			key.Value = names[j]
			out.Content[i] = &key
		}
	}
	return &out
}

// below replaces values of a map that spelled has copied.
func below(n *yaml.Node, change map[string]func(*yaml.Node) *yaml.Node) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return n
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if f := change[n.Content[i].Value]; f != nil {
			n.Content[i+1] = f(n.Content[i+1])
		}
	}
	return n
}

func mapSequence(n *yaml.Node, f func(*yaml.Node) *yaml.Node) *yaml.Node {
	if n == nil || n.Kind != yaml.SequenceNode {
		return n
	}
	out := *n
	out.Content = slices.Clone(n.Content)
	for i := range out.Content {
		out.Content[i] = f(out.Content[i])
	}
	return &out
}
