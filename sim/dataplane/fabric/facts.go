package fabric

import "github.com/winlab-dev/winlab/sim/trace/evidence"

var (
	factHost = evidence.New("fabric.azure-host", evidence.Stated,
		"On an Azure virtual network every packet goes to the virtualisation host, which routes it by its address; the MAC address that machines see for all others is 12-34-56-78-9a-bc.",
		"Azure documentation, Virtual network traffic routing", "Kubernetes documentation, Intro to Windows support, l2tunnel")
	factHostsPort = evidence.New("fabric.azure-udp-65330", evidence.Stated,
		"UDP port 65330 is reserved for the Azure host: an answer to that port never reaches the machine that asked from it.",
		"Azure documentation, Virtual network FAQ", "Azure/AgentBaker PR 1784", "Azure/AKS#2988")
	factFragments = evidence.New("fabric.azure-fragments", evidence.Stated,
		"The stack of an Azure virtual network cuts packets of more than 1400 bytes into fragments, where the lab says that MTU of the segment.",
		"Azure documentation, TCP/IP performance tuning for Azure VMs (Azure and VM MTU)", "kubernetes-sigs/cluster-api-provider-azure#1335")
	factSpoof = evidence.New("fabric.azure-source-check", evidence.Stated,
		"A NIC without IP forwarding may only send from, and only gets packets for, the addresses assigned to it.",
		"Azure documentation, Enable or disable IP forwarding for a network interface")
	factRules = evidence.New("fabric.azure-security-rules", evidence.Stated,
		"Security rules are evaluated in order and the first match decides; replies of an allowed flow pass.",
		"Azure documentation, Network security groups")
	factUDR = evidence.New("fabric.azure-udr", evidence.Stated,
		"A user-defined route sends packets for its prefix to the next hop, which needs IP forwarding.",
		"Azure documentation, Virtual network traffic routing", "MicrosoftDocs Kubernetes on Windows, common problems (flannel host-gw on Azure)")
	// FactEdgeNAT is what edge routers of labs follow.
	FactEdgeNAT = evidence.New("fabric.edge-nat", evidence.Inferred,
		"At the edge of a cloud network only the primary addresses of machines are translated to public ones, for TCP and UDP.")
	factLink = evidence.New("fabric.link", evidence.Stated,
		"A link that is cut carries no frames in either direction; one with loss loses that share of frames, each independently.", "the lab",
		"tc-netem(8)")
	factFilter = evidence.New("fabric.filter", evidence.Stated,
		"A packet that the rules of a network's own switches drop reaches no machine; the first rule that matches decides, for each packet separately.", "the lab")
)
