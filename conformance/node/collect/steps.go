package collect

// The files and folders of a node that are taken. They are where the scripts of
// microsoft/SDN Kubernetes/windows (C:\k), kubernetes-sigs/sig-windows-tools hostprocess and
// kubeadm, Azure/AgentBaker staging/cse/windows, projectcalico/calico node/windows-packaging,
// aws/amazon-vpc-cni-plugins and rancher/rke2 put them. Never among them: kubeconfigs,
// azure.json, keys.
var (
	configFiles = []string{
		`C:\k\cni\config\*.conf*`, `C:\etc\cni\net.d\*.conf*`, `C:\k\azurecni\netconf\*.conf*`, `C:\opt\cni\conf\*.conf*`,
		`C:\Program Files\containerd\cni\conf\*.conf*`,
		`C:\ProgramData\Amazon\EKS\cni\config\*.conf*`, `C:\ProgramData\docker\*cni*.conf*`,
		`C:\var\lib\rancher\rke2\agent\etc\cni\net.d\*.conf*`, `C:\CalicoWindows\cni.conf*`,
		`C:\run\flannel\subnet.env`, `C:\etc\kube-flannel\net-conf.json`, `C:\k\net-conf.json`, `C:\k\SourceVip.json`,
		`C:\k\SourceVipRequest.json`, `C:\k\sourceVip.json`,
		`C:\k\azure-vnet.json`, `C:\k\azure-vnet-ipam.json`, `C:\k\kubeclusterconfig.json`, `C:\k\kube-proxy.conf`,
		`C:\var\lib\kube-proxy\config.conf`, `C:\var\lib\kubelet\config.yaml`, `C:\k\config.yaml`,
		`C:\Program Files\containerd\config.toml`, `C:\CalicoWindows\config.ps1`, `C:\CalicoWindows\cni.conf.template`,
		`C:\var\lib\kubelet\kubeadm-flags.env`,
		`C:\var\lib\cni\networks\*\*`, `C:\k\cni\networks\*\*`,
	}
	logFiles = []string{
		`C:\k\*.log`, `C:\var\log\kubelet\*`, `C:\var\log\kube-proxy\*`, `C:\var\log\kubeproxy\*`, `C:\var\log\flanneld\*`,
		`C:\var\log\pods\kube-system_kube-proxy-*\*\*.log`, `C:\var\log\pods\kube-flannel_*\*\*.log`,
		`C:\var\log\pods\calico-system_*\*\*.log`, `C:\CalicoWindows\logs\*.log`, `C:\k\azurecns\*.log`, `C:\k\cri\*.log`,
		`C:\ProgramData\Amazon\EKS\logs\*.log`, `C:\var\log\antrea\*`, `C:\ProgramData\containerd\root\panic.log`,
	}
)

const netsh = "netsh int "

// Steps are what is read on a Windows node, in that order.
func Steps() []Step {
	steps := []Step{
		{Name: "host", What: "the computer's name, and the build of Windows with its revision",
			How: []string{`HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion: CurrentBuildNumber, UBR, ProductName, EditionID, DisplayVersion`,
				"GetComputerNameEx"}},
		{Name: "hns-v1", What: "objects of HNS v1: networks, endpoints, policy lists",
			How: []string{"vmcompute.dll HNSCall GET /globals/version, /networks/, /endpoints/, /policylists/"}},
		{Name: "hns-v2", What: "objects of HCN v2: networks, endpoints, namespaces, load balancers, routes",
			How: []string{"computenetwork.dll HcnEnumerate*, HcnOpen*, HcnQuery*Properties, HcnClose*"}},
		{Name: "host-network", What: "adapters, addresses, interfaces with their forwarding, routes and neighbours of the host",
			How: []string{"iphlpapi.dll GetAdaptersAddresses, GetUnicastIpAddressTable, GetIpInterfaceTable, GetIpForwardTable2, GetIpNetTable2"}},
		{Name: "ports", What: "reserved and dynamic ports", How: []string{netsh + "ipv4|ipv6 show excludedportrange tcp|udp", netsh +
			"ipv4|ipv6 show dynamicport tcp|udp"}},
		{Name: "nat", What: "WinNAT", How: []string{"powershell.exe Get-NetNat"}},
		{Name: "vfp", What: "ports of the virtual switch, their rules and counters",
			How: []string{"vfpctrl.exe /list-vmswitch-port", "vfpctrl.exe /port GUID /list-rule, /get-rule-counter, /get-port-state"}},
		{Name: "services", What: "services of Kubernetes and of the network with their command lines",
			How: []string{`HKLM\SYSTEM\CurrentControlSet\Services\NAME: ImagePath, Start, Parameters`, "QueryServiceStatus"}},
		{Name: "processes", What: "processes of Kubernetes and of the network: command lines, and the versions that their programs carry",
			How: []string{"CreateToolhelp32Snapshot, NtQueryInformationProcess", "the build information in the programs' files"}},
		{Name: "variables", What: "names of the environment's variables, and values of those about the network",
			How: []string{"the environment of this program"}},
		{Name: "configuration", What: "configuration and state of network plugins, kubelet, kube-proxy and the container runtime",
			How: configFiles},
		{Name: "logs", What: "the ends of their logs", How: logFiles},
	}
	for i := range steps {
		steps[i].run = run(steps[i].Name)
	}
	return steps
}
