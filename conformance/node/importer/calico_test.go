package importer_test

import (
	"strings"
	"testing"
)

// TestImportCalico: the mode follows from what each way to install Calico leaves, blocks of addresses
// are ranges of pods, and where pools are others than the model has them nodes say so.
func TestImportCalico(t *testing.T) {
	kube := strings.Replace(strings.Replace(objects, "20348.2582", "20348.2762", 1), `"podCIDR": "10.244.1.0/24"`, `"podCIDR": "10.9.9.0/24"`,
		1)
	configMap := func(name, data string) string {
		return "-- cluster/c.json --\n" + `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "calico-system", "name": "` +
			name + `"}, "data": {` + data + "}}\n"
	}
	block := "-- cluster/blocks.json --\n" + `{"apiVersion": "v1", "kind": "List", "items": [
 {"apiVersion": "crd.projectcalico.org/v1", "kind": "BlockAffinity", "metadata": {"name": "a"}, "spec": {"state": "confirmed", "node": "win1", "cidr": "10.244.1.0/26", "deleted": "false"}},
 {"apiVersion": "crd.projectcalico.org/v1", "kind": "BlockAffinity", "metadata": {"name": "b"}, "spec": {"state": "confirmed", "node": "win1", "cidr": "10.244.7.0/26", "deleted": "true"}},
 {"apiVersion": "crd.projectcalico.org/v1", "kind": "BlockAffinity", "metadata": {"name": "c"}, "spec": {"state": "confirmed", "node": "other", "cidr": "10.244.8.0/26", "deleted": false}},
 {"apiVersion": "crd.projectcalico.org/v1", "kind": "IPPool", "metadata": {"name": "p"}, "spec": {"cidr": "10.244.0.0/16", "natOutgoing": POOL, "vxlanMode": "Always", "ipipMode": "Never"}}]}
`
	for name, c := range map[string]struct{ files, pool, plugin, conf, lab string }{
		"manifest": {configMap("calico-windows-config", `"CALICO_NETWORKING_BACKEND": "windows-bgp", "K8S_SERVICE_CIDR": "10.96.0.0/12"`),
			"true", "calico", `"mode": "windows-bgp"`, "podCIDR: 10.244.1.0/26 # "},
		"operator": {"-- cluster/i.json --\n" +
			`{"apiVersion": "operator.tigera.io/v1", "kind": "Installation", "metadata": {"name": "default"}, "spec": {"cni": {"type": "Calico"}, "calicoNetwork": {"bgp": "Disabled"}, "serviceCIDRs": ["10.43.0.0/16"]}}` + "\n", "true", "calico", `"10.43.0.0/16"`, ""},
		"its conf": {configMap("cni-config-windows",
			`"config": "{\"name\": \"Calico\", \"cniVersion\": \"0.3.1\", \"plugins\": [{\"type\": \"calico\", \"name\": \"Calico\", \"mode\": \"vxlan\", \"windows_use_single_network\": true, \"windows_loopback_DSR\": \"__DSR_SUPPORT__\"}]}"`), "true", "calico", `"windows_loopback_DSR": true`, ""},
		"Linux": {configMap("calico-config", `"calico_backend": "vxlan"`), "true", "calico", `"mode": "vxlan"`, ""},
		"natOutgoing": {configMap("calico-config", `"calico_backend": "bird"`), "false", "calico", `"mode": "windows-bgp"`,
			"the IP pool 10.244.0.0/16 of Calico has natOutgoing off, and the model has it on"},
		"policies":     {configMap("calico-windows-config", `"CALICO_NETWORKING_BACKEND": "none"`), "true", "win-bridge", "", ""},
		"nonsense":     {configMap("calico-windows-config", `"CALICO_NETWORKING_BACKEND": "ipip"`), "true", "win-bridge", "", ""},
		"not Calico's": {configMap("amazon-vpc-cni", `"enable-windows-ipam": "false"`), "true", "win-bridge", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, c1, err := imported(t, kube+c.files+strings.Replace(block, "POOL", c.pool, 1))
			if err != nil {
				t.Fatalf("%v\n%s", err, r.Lab)
			}
			if c1.Plan.Network.Plugin != c.plugin || !strings.Contains(string(r.Extra["cni.conf"]), c.conf) ||
				!strings.Contains(string(r.Lab), c.lab) {
				t.Errorf("%s: %s\n%s\n%s\n%v", name, c1.Plan.Network.Plugin, r.Extra["cni.conf"], r.Lab, r.LeftOut)
			}
		})
	}
}

// TestImportAntreaModes: what antrea-agent.conf says counts, and where winlab has no model of it, or Linux
// nodes have another mode, Antrea's model is not used.
func TestImportAntreaModes(t *testing.T) {
	kube := strings.Replace(objects, "20348.2582", "20348.2762", 1)
	of := func(windows, linux string) string {
		text := kube
		for name, conf := range map[string]string{"antrea-windows-config": windows, "antrea-config": linux} {
			if conf != "" {
				text += "-- cluster/" + name + ".json --\n" +
					`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "kube-system", "name": "` + name +
					`"}, "data": {"antrea-agent.conf": "` + conf + `\n"}}` + "\n"
			}
		}
		return text
	}
	for _, c := range []struct{ windows, linux, plugin, says string }{
		{"trafficEncapMode: noEncap", "trafficEncapMode: noEncap", "antrea", ""},
		{"trafficEncapMode: noEncap", "", "antrea", ""},
		{"trafficEncapMode: noEncap", "trafficEncapMode: encap", "win-bridge", "Linux nodes have the mode encap with geneve"},
		{"tunnelType: vxlan", "tunnelType: geneve", "win-bridge", "winlab models one for all"},
		{"tunnelType: stt", "", "win-bridge", `tunnelType is "stt"; winlab models geneve and vxlan`},
		{"featureGates: {AntreaProxy: false}", "", "win-bridge", "the feature AntreaProxy is off"},
		{"featureGates: {Egress: true}", "", "win-bridge", "the feature Egress is on, with which antrea-agent does not start on Windows"},
		{"featureGates: {Egress: false, Traceflow: true}", "", "antrea", ""},
		{"antreaProxy: {proxyAll: true}", "antreaProxy: {proxyAll: true}", "antrea",
			"AntreaProxy serves connections of Linux nodes themselves there"},
	} {
		r, l, err := imported(t, of(c.windows, c.linux))
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		text := strings.Join(r.LeftOut, "\n") + string(r.Lab)
		if l.Plan.Network.Plugin != c.plugin || !strings.Contains(text, c.says) {
			t.Errorf("%+v: %s\n%s", c, l.Plan.Network.Plugin, text)
		}
	}
}

// TestImportOwnAddress: what scripts write of a node's own address into its configuration is another
// one's there.
func TestImportOwnAddress(t *testing.T) {
	conf := `-- win1/cni.conf --
{"cniVersion": "0.3.0", "name": "cbr0", "type": "win-bridge", "policies": [{"Name": "EndpointPolicy", "Value": {"Type": "ROUTE", "DestinationPrefix": "192.168.1.11/32", "NeedEncap": true}},
 {"Name": "EndpointPolicy", "Value": {"Type": "OutBoundNAT", "ExceptionList": ["192.168.1.110/32", "192.168.1.0/24"]}}]}
`
	kube := strings.Replace(objects, "20348.2582", "20348.2762", 1)
	other := strings.Replace(kube, `"items": [`, `"items": [
 {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "win2"}, "spec": {"podCIDR": "10.244.2.0/24"}, "status": {"addresses": [{"type": "InternalIP", "address": "192.168.1.12"}], "nodeInfo": {"operatingSystem": "windows", "kernelVersion": "10.0.20348.2762"}}},`, 1)
	r, _, err := imported(t, conf+node+other)
	if got := string(r.Extra["cni.conf"]); err != nil || !strings.Contains(got, `"{{managementIP}}/32"`) ||
		!strings.Contains(got, `["192.168.1.110/32", "192.168.1.0/24"]`) {
		t.Errorf("%v %s\n%s", err, got, r.Lab)
	}
	if r, _, err = imported(t, conf+node+kube); err != nil || r.Extra["cni.conf"] != nil {
		t.Errorf("no other node has it: %v %s", err, r.Extra["cni.conf"])
	}
}
