package cni

import (
	"fmt"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/internal/strict"
)

// partFiles are a file for each part of fieldTables; %s is where a field of it stands.
var partFiles = map[string]string{
	"conflist":                   `{"name": "x", "plugins": [{"type": "win-bridge"}], %s}`,
	"win-bridge":                 `{"name": "x", "type": "win-bridge", %s}`,
	"flannel/win-bridge":         `{"name": "x", "type": "flannel", "delegate": {"type": "win-bridge", %s}}`,
	"win-bridge.ipam":            `{"name": "x", "type": "win-bridge", "ipam": {%s}}`,
	"win-overlay":                `{"name": "x", "type": "win-overlay", %s}`,
	"flannel/win-overlay":        `{"name": "x", "type": "flannel", "delegate": {"type": "win-overlay", %s}}`,
	"win-overlay.ipam":           `{"name": "x", "type": "win-overlay", "ipam": {%s}}`,
	"nat":                        `{"name": "x", "type": "nat", %s}`,
	"nat.ipam":                   `{"name": "x", "type": "nat", "ipam": {%s}}`,
	"azure-vnet":                 `{"name": "x", "type": "azure-vnet", %s}`,
	"sdnbridge":                  `{"name": "x", "type": "sdnbridge", %s}`,
	"antrea":                     `{"name": "x", "type": "antrea", %s}`,
	"antrea.ipam":                `{"name": "x", "type": "antrea", "ipam": {%s}}`,
	"calico":                     `{"name": "x", "type": "calico", %s}`,
	"calico.ipam":                `{"name": "x", "type": "calico", "ipam": {%s}}`,
	"vpc-bridge":                 `{"name": "x", "type": "vpc-bridge", "eniName": "eth1", %s}`,
	"sdnbridge.optionalFlags":    `{"name": "x", "type": "sdnbridge", "optionalFlags": {%s}}`,
	"sdnbridge.ipam":             `{"name": "x", "type": "sdnbridge", "optionalFlags": {"enableDualStack": true}, "ipam": {%s}}`,
	"azure-vnet.windowsSettings": `{"name": "x", "type": "azure-vnet", "windowsSettings": {%s}}`,
	"azure-vnet.ipam":            `{"name": "x", "type": "azure-vnet", "ipam": {%s}}`,
	"flannel":                    `{"name": "x", "type": "flannel", %s}`,
	"dns":                        `{"name": "x", "type": "win-bridge", "dns": {%s}}`,
	"net-conf.json":              `{"Network": "10.244.0.0/16", "Backend": {"Type": "vxlan"}, %s}`,
	"net-conf.json.host-gw":      `{"Network": "10.244.0.0/16", "Backend": {"Type": "host-gw", %s}}`,
	"net-conf.json.vxlan":        `{"Network": "10.244.0.0/16", "Backend": {"Type": "vxlan", %s}}`,
}

// A field that counts or says nothing about packets has no warning, one of which nothing
// follows has one, and so has one that the plugin does not read.
func TestFieldsAreWarnedOf(t *testing.T) {
	warnings := func(file, part string) (strict.Mistakes, error) {
		if strings.HasPrefix(part, "net-conf.json") {
			c, err := ParseNetConf("x.json", []byte(file))
			if err != nil {
				return nil, err
			}
			return c.Remarks.Warnings(), nil
		}
		c, err := ParseConf("x.conf", []byte(file))
		if err != nil {
			return nil, err
		}
		return c.Remarks.Warnings(), nil
	}
	for part, table := range fieldTables() {
		file := partFiles[part]
		if file == "" {
			t.Errorf("no file for %s", part)
			continue
		}
		for name, u := range table {
			if !u.counts && u.why == "" {
				t.Errorf("%s.%s: say why it does not count", part, name)
			}
			if u.counts || name == "name" { // sim/lab/testdata/effects has a case; flannel refuses the name of a delegate
				continue
			}
			var got strict.Mistakes
			var err error
			for _, value := range []string{`"1"`, `1`, `true`, `[]`, `"10.0.0.0/8"`, `"L2"`, `"tap"`, `{}`} { // the first that the reader takes
				if got, err = warnings(fmt.Sprintf(file, fmt.Sprintf("%q: %s", name, value)), part); err == nil {
					break
				}
			}
			if err != nil {
				t.Errorf("%s.%s: %v", part, name, err)
			}
			if all := got.Error(); u.warn != strings.Contains(all, name+" of ") &&
				!(name == "type" && strings.Contains(all, "as azure-vnet-ipam does")) {
				t.Errorf("%s.%s: warn %v, warnings %q", part, name, u.warn, got)
			}
		}
		got, err := warnings(fmt.Sprintf(file, `"misspelt": 1`), part)
		if all := got.Error(); err != nil || !strings.Contains(all, `ignores "misspelt"`) {
			t.Errorf("%s: warnings %q, %v", part, got, err)
		}
	}
}

// The addresses of another ipam are not those that the model gives, and a capability
// that nobody models is said.
func TestOtherAddressesAndCapabilities(t *testing.T) {
	for file, want := range map[string]string{
		`{"name": "x", "type": "win-bridge", "ipam": {"type": "dhcp"}}`:             `ipam "dhcp" would give: the model assigns them as host-local does`,
		`{"name": "x", "type": "win-bridge", "ipam": {"type": "host-local"}}`:       "",
		`{"name": "x", "type": "azure-vnet", "ipam": {"type": "azure-cns"}}`:        `as azure-vnet-ipam does`,
		`{"name": "x", "type": "azure-vnet", "ipam": {"type": "azure-vnet-ipam"}}`:  "",
		`{"name": "x", "type": "win-bridge", "capabilities": {"bandwidth": true}}`:  "the capability bandwidth",
		`{"name": "x", "type": "win-bridge", "capabilities": {"bandwidth": false}}`: "",
	} {
		c, err := ParseConf("x.conf", []byte(file))
		if err != nil {
			t.Fatal(err)
		}
		if all := c.Remarks.Warnings().Error(); want == "" && all != "" || !strings.Contains(all, want) {
			t.Errorf("%s: %q, want %q", file, all, want)
		}
	}
}
