package known

// The closed sets of an entry's fields. Whoever needs a word that is missing adds it here.
var (
	// Components are what can have the bug, or what must be there for it.
	Components = []string{
		"windows", "hns", "hcsshim", "containerd", "docker", "kubelet", "kube-proxy", "kubernetes", "kubeadm", "flannel",
		"win-bridge", "win-overlay", "windows-container-networking", "cni-plugins", "sig-windows-tools", "calico", "antrea", "cilium",
		"azure-cni", "azure-cns",
		"azure-npm", "aks", "aks-engine", "capz", "eks-vpc-cni", "vpc-bridge", "eks", "gke", "rke2", "k3s", "rancher", "wmco",
		"ovn-kubernetes", "coredns", "node-local-dns", "csi", "csi-proxy", "metrics-server", "windows-exporter", "host-process",
		"cri-dockerd", "pause", "kube-router", "istio", "image-builder", "tanzu", "vmware", "ingress",
	}
	// Networks are types of HNS networks.
	Networks = []string{"nat", "l2bridge", "l2tunnel", "overlay", "transparent", "internal"}
	// Environments are clouds, distributions and ways to run containers.
	Environments = []string{
		"aks", "aks-engine", "aks-hci", "eks", "gke", "rke", "rke2", "k3s", "openshift", "capz", "capi", "kubeadm", "rancher", "tanzu",
		"vsphere", "hyper-v", "azure", "aws", "gcp", "docker", "swarm", "docker-desktop", "service-fabric", "nomad", "microk8s",
	}
	// Voices are who speaks in a source.
	Voices = []string{"reporter", "maintainer", "fix", "docs", "release-notes"}
	// Certainties say how sure the issue is: a fix was merged or released; a maintainer or
	// vendor says that it is there; only reporters say so.
	Certainties = []string{"fixed", "acknowledged", "reported"}

	// FlowEnds are what a flow can begin at or go to.
	FlowEnds = []string{
		"pod", "node", "outside", "service", "linux-pod", "linux-node", "host-process", "control-plane",
		"nodeport", "loadbalancer", "hostport", "name", "metadata", "any",
	}
	// FlowWheres say on which node the other end is.
	FlowWheres = []string{"same-node", "other-node", "any"}
	// FlowProtocols are transport protocols.
	FlowProtocols = []string{"tcp", "udp", "icmp", "sctp", "any"}
	// FlowFamilies are address families.
	FlowFamilies = []string{"ipv4", "ipv6", "any"}
	// FlowOutcomes are what becomes of the flow.
	FlowOutcomes = []string{
		"dropped", "refused", "slow", "wrong-source", "wrong-backend", "unresolved", "intermittent", "unexpected-delivery",
	}
)
