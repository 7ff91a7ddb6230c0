package cni

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// A configuration with a token is read once for the addresses of a node, and says those addresses.
func TestForNode(t *testing.T) {
	conf, err := ParseConf("a.conf", []byte(`{"name": "n", "type": "win-bridge", "cniVersion": "0.2.0", "policies": [
		{"name": "EndpointPolicy", "value": {"Type": "OutBoundNAT", "ExceptionList": ["{{managementIP}}/32"]}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	node := func(a string) *kube.Node { return &kube.Node{Name: a, Address: netip.MustParseAddr(a)} }
	one, err := conf.forNode(node("10.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	again, _ := conf.forNode(node("10.0.0.1"))
	other, _ := conf.forNode(node("10.0.0.2"))
	if one != again {
		t.Error("the file was read twice for one node")
	}
	for c, want := range map[*Conf]string{one: "10.0.0.1/32", other: "10.0.0.2/32"} {
		for v := range hns.EachSettings[hns.OutBoundNATSettings]([]hns.Policy{c.policies[0].Policy}) {
			if !slices.Equal(v.Exceptions, []string{want}) {
				t.Errorf("%v, want %s", v.Exceptions, want)
			}
		}
	}
	plain, err := ParseConf("b.conf", []byte(`{"name": "n", "type": "win-bridge", "cniVersion": "0.2.0"}`))
	if err != nil {
		t.Fatal(err)
	}
	if same, _ := plain.forNode(node("10.0.0.1")); same != plain {
		t.Error("a file without a token was read again")
	}
}
