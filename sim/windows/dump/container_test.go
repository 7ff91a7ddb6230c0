package dump

import "testing"

// TestIPConfigOfAContainer: what ipconfig prints in a container is not the node's.
func TestIPConfigOfAContainer(t *testing.T) {
	for name, node := range map[string]bool{
		"vEthernet (d804a0f1ccc4bceb0754f85022a8a16fb9db520b948689f7a4d9ba4b26c44082_flannel.4096)": false,
		"vEthernet (0b1b0eb5-eth0)":                         false,
		"vEthernet (cid-69c0f0e20c3fa8664ea297a0)":          false,
		"vEthernet (Ethernet 2)":                            true,
		"vEthernet (cbr0_ep)":                               true,
		"vEthernet (vpcbr06684cbed472)":                     true,
		"vEthernet (9fcd829dc8aee649e5d3a0c5800e_l2bridge)": false,
	} {
		text := "Windows IP Configuration\n\n   Host Name . . . . . . . . . . . . : a\n\nEthernet adapter " + name +
			":\n\n   IPv4 Address. . . . . . . . . . . : 10.244.1.7(Preferred)\n   Subnet Mask . . . . . . . . . . . : 255.255.255.0\n"
		if _, _, ok := IPConfig(Split("a.txt", text)); ok != node {
			t.Errorf("%s is of the node: %v", name, ok)
		}
	}
}
