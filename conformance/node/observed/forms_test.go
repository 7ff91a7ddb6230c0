package observed

import (
	"github.com/winlab-dev/winlab/sim/windows/dump"

	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

// TestListForm reads Get-HnsEndpoint as PowerShell prints it by default, with
// wrapped values, objects inside of objects, and the dots after four entries.
func TestListForm(t *testing.T) {
	n := readOneFile("x", `

ID                 : c9385412-bdef-49f5-88b0-c9d484ef6716
Name               : 4a625a2b_Calico
AdditionalParams   :
Resources          : @{AdditionalParams=; AllocationOrder=14; Allocators=System.Object[]; Health=; State=1}
State              : 3
VirtualNetwork     : 06560ccd-89f3-4c69-a1a1-e9e368201482
VirtualNetworkName : Calico
Policies           : {@{ExceptionList=System.Object[]; Type=OutBoundNAT}, @{DestinationPrefix=10.43.0.0/16; NeedEncap=True; Type=ROUTE},
                     @{PA=10.156.233.218; Type=PA}, @{Action=Allow; Direction=In; Id=allow; Type=ACL}...}
IPAddress          : 10.42.213.221
PrefixLength       : 26

ID                 : 1d0a5412-bdef-49f5-88b0-c9d484ef6717
Name               : Ethernet
VirtualNetworkName : Calico
IPAddress          : 10.42.7.3
IsRemoteEndpoint   : True
Policies           : {@{PA=10.156.233.219; Type=PA}}
`)
	if len(n.Endpoints) != 2 {
		t.Fatalf("endpoints: %+v", n.Endpoints)
	}
	e := n.Endpoints[0]
	if e.Address.String() != "10.42.213.221" || e.Network != "Calico" || e.Remote {
		t.Errorf("first: %+v", e)
	}
	if e.NAT || e.Exceptions != nil {
		t.Errorf("the list form does not show the exceptions, so nothing is known about them: %+v", e)
	}
	if e.Place.Line != 12 {
		t.Errorf("first is said to be on line %d", e.Place.Line)
	}
	if e = n.Endpoints[1]; !e.Remote || e.Address.String() != "10.42.7.3" {
		t.Errorf("second: %+v", e)
	}
}

// TestHCN reads version 2 of the schema.
func TestHCN(t *testing.T) {
	n := readOneFile("x",
		`{"ID":"A","Name":"azure","Type":"L2Bridge","Ipams":[{"Type":"Static","Subnets":[{"IpAddressPrefix":"10.240.0.0/16"}]}],"SchemaVersion":{"Major":2,"Minor":0},
"Policies":[{"Type":"NetAdapterName","Settings":{"NetworkAdapterName":"Ethernet 2"}}]}
{"ID":"B","Name":"web","HostComputeNetwork":"A","IpConfigurations":[{"IpAddress":"10.240.0.7","PrefixLength":16}],"Flags":0,
"Policies":[{"Type":"OutBoundNAT","Settings":{"Exceptions":["10.240.0.0/16","10.0.0.0/16"]}}]}
{"ID":"C","HostComputeNetwork":"A","IpConfigurations":[{"IpAddress":"10.240.0.9"}],"Flags":1}
{"ID":"D","HostComputeEndpoints":["B"],"FrontendVIPs":["10.0.0.1"],"PortMappings":[]}`)
	if len(n.Networks) != 1 || n.Networks[0].adapter != "Ethernet 2" || fmt.Sprint(n.Networks[0].Subnets) != "[10.240.0.0/16]" {
		t.Errorf("networks %+v", n.Networks)
	}
	if len(n.Endpoints) != 2 || n.Endpoints[0].Remote || !n.Endpoints[1].Remote ||
		fmt.Sprint(n.Endpoints[0].Exceptions) != "[10.240.0.0/16 10.0.0.0/16]" {
		t.Errorf("endpoints %+v", n.Endpoints)
	}
}

func TestHnsdiag(t *testing.T) {
	sections := readOneFile("x", `Networks:
Name             ID
nat              B5083512-BE1D-4326-B58F-56CA5154E8D5
vxlan0           705B6B4D-E2F2-421A-B31B-E3C5E8831944

Endpoints:
Name             ID                                   Virtual Network Name
Ethernet         11796e63-07b3-4199-91d5-9bc25108fb41 vxlan0

Namespaces:
ID                                   | Endpoint IDs

LoadBalancers:
ID                                   | Virtual IPs      | Direct IP IDs
326f84d7-35ec-4355-a60a-e82e2b05ec24 |  10.96.0.1       | ba06178e-11e9-4ba3-931d-7c2989b51dd7
`)
	if len(sections.Networks) != 2 || sections.Networks[1].Name != "vxlan0" || len(sections.Endpoints) != 1 ||
		sections.Endpoints[0].Network != "vxlan0" {
		t.Errorf("%+v %+v", sections.Networks, sections.Endpoints)
	}
	blocks := readOneFile("x", `Network : 705b6b4d-e2f2-421a-b31b-e3c5e8831944
    Name             : flannel.4096
    Type             : Overlay
    Subnet Address   : 10.244.1.0/24
    Gateway          : 10.244.1.1
Endpoint         : c9385412-bdef-49f5-88b0-c9d484ef6716
    Name             : 4a625a2b_flannel.4096
    IP Address       : 10.244.1.5
`)
	if len(blocks.Networks) != 1 || blocks.Networks[0].Type != "overlay" || len(blocks.Endpoints) != 1 ||
		blocks.Endpoints[0].Address.String() != "10.244.1.5" {
		t.Errorf("%+v %+v", blocks.Networks, blocks.Endpoints)
	}
}

// TestEmptyLists: a command that printed nothing is a fact.
func TestEmptyLists(t *testing.T) {
	n := readOneFile("x",
		"PS C:\\k> Get-HnsNetwork | ? Name -ieq \"cbr0\"\nPS C:\\k> Get-NetAdapter | ? Name -Like \"vEthernet (Ethernet*\"\n\nPS C:\\k> \n")
	for _, kind := range []string{ListNetworks, ListAdapters} {
		if p, ok := n.Listed(kind); !ok || p.Line == 0 {
			t.Errorf("%s: an empty list is not noted", kind)
		}
	}
	if _, ok := n.Listed(listEndpoints); ok {
		t.Error("endpoints were not asked for")
	}
}

func TestIpconfig(t *testing.T) {
	for name, text := range map[string]string{
		"English":  "Windows IP Configuration\n\n   Host Name . . . . . . . . . . . . : win1\n   Primary Dns Suffix  . . . . . . . : \n\nEthernet adapter vEthernet (Ethernet):\n\n   Physical Address. . . . . . . . . : 00-15-5D-01-0B-11\n   IPv4 Address. . . . . . . . . . . : 192.168.1.11(Preferred) \n   Subnet Mask . . . . . . . . . . . : 255.255.255.0\n   Default Gateway . . . . . . . . . : 192.168.1.1\n",
		"German":   "Windows-IP-Konfiguration\n\n   Hostname  . . . . . . . . . . . . : win1\n\nEthernet-Adapter vEthernet (Ethernet):\n\n   Physische Adresse . . . . . . . . : 00-15-5D-01-0B-11\n   IPv4-Adresse  . . . . . . . . . . : 192.168.1.11(Bevorzugt) \n   Subnetzmaske  . . . . . . . . . . : 255.255.255.0\n   Standardgateway . . . . . . . . . : 192.168.1.1\n",
		"Chinese":  "Windows IP 配置\n\n   主机名  . . . . . . . . . . . . . : win1\n\n以太网适配器 vEthernet (Ethernet):\n\n   物理地址. . . . . . . . . . . . . : 00-15-5D-01-0B-11\n   IPv4 地址 . . . . . . . . . . . . : 192.168.1.11(首选) \n   子网掩码  . . . . . . . . . . . . : 255.255.255.0\n   默认网关. . . . . . . . . . . . . : 192.168.1.1\n",
		"French":   "Configuration IP de Windows\n\n   Nom de l’hôte . . . . . . . . . . : win1\n\nCarte Ethernet vEthernet (Ethernet) :\n\n   Adresse physique . . . . . . . . . . . : 00-15-5D-01-0B-11\n   Adresse IPv4. . . . . . . . . . . . . .: 192.168.1.11(préféré) \n   Masque de sous-réseau. . . . . . . . . : 255.255.255.0\n   Passerelle par défaut. . . . . . . . . : 192.168.1.1\n",
		"Japanese": "Windows IP 構成\n\n   ホスト名. . . . . . . . . . . . . . . . .: win1\n\nイーサネット アダプター vEthernet (Ethernet):\n\n   物理アドレス. . . . . . . . . . . . . . .: 00-15-5D-01-0B-11\n   IPv4 アドレス . . . . . . . . . . . .: 192.168.1.11(優先) \n   サブネット マスク . . . . . . . . . . . .: 255.255.255.0\n   デフォルト ゲートウェイ . . . . . . .: 192.168.1.1\n",
	} {
		n := readOneFile("x", text)
		if len(n.Adapters) != 1 {
			t.Errorf("%s: %+v", name, n.Adapters)
			continue
		}
		a := n.Adapters[0]
		if n.HostName.Value != "win1" || a.Name != "vEthernet (Ethernet)" ||
			fmt.Sprint(a.Addresses, a.Gateways) != "[192.168.1.11/24] [192.168.1.1]" {
			t.Errorf("%s: host %q, %+v", name, n.HostName.Value, a)
		}
	}
}

// TestContainersAreNotTheNode: what a pod sees of itself is not the node's.
func TestContainersAreNotTheNode(t *testing.T) {
	pod := "Windows IP Configuration\n\n   Host Name . . . . . . . . . . . . : web-66bf9745b\n\nEthernet adapter vEthernet (cid-e5b10d05e6c1):\n\n   IPv4 Address. . . . . . . . . . . : 10.244.1.5(Preferred) \n   Subnet Mask . . . . . . . . . . . : 255.255.255.0\n"
	for name, text := range map[string]string{"by its adapter": pod, "by the command": "PS C:\\k> kubectl exec web -- ipconfig /all\n" +
		strings.ReplaceAll(pod, "cid-e5b10d05e6c1", "eth0"),
		"by the compartment": "==============================================================================\nNetwork Information for Compartment 3\n==============================================================================\n" + strings.ReplaceAll(pod, "cid-e5b10d05e6c1", "eth0")} {
		if n := readOneFile("x", text); len(n.Adapters) > 0 || n.HostName.Value != "" {
			t.Errorf("%s: %+v %+v", name, n.Adapters, n.HostName)
		}
	}
}

func TestTables(t *testing.T) {
	n := readOneFile("x", `
Handles  NPM(K)    PM(K)      WS(K)     CPU(s)     Id  SI ProcessName
-------  ------    -----      -----     ------     --  -- -----------
    346      25    49032      67980   7,920.91   2116   0 kubelet
 199197   10000 12345678  123456789 181,000.41 104400   0 kube-proxy

Image Name                     PID Session Name        Session#    Mem Usage
========================= ======== ================ =========== ============
System Idle Process              0 Services                   0          8 K
flanneld.exe                  3104 Services                   0     33,408 K

Status   Name               DisplayName
------   ----               -----------
Running  rancher-wins       Rancher Wins
Stopped  kubelet            kubelet
`)
	var got []string
	for _, p := range n.Processes {
		got = append(got, p.Name)
	}
	if strings.Join(got, ", ") != "kubelet, kube-proxy, system idle process, flanneld" {
		t.Errorf("processes %q", got)
	}
	if len(n.Services) != 2 || n.Services[0].Name != "rancher-wins" || n.Services[1].State != "stopped" {
		t.Errorf("services %+v", n.Services)
	}
}

func TestKubectl(t *testing.T) {
	n := ReadFS(folder(map[string]string{
		"nodes.txt":    "NAME     STATUS                        ROLES    AGE   VERSION    INTERNAL-IP    EXTERNAL-IP   OS-IMAGE                         KERNEL-VERSION    CONTAINER-RUNTIME\nlinux1   Ready                         master   12d   v1.20.15   192.168.1.10   <none>        Ubuntu 20.04.6 LTS               5.4.0-169         docker://19.3.14\nwin1     NotReady,SchedulingDisabled   <none>\nwin2     Ready                         <none>   12d   v1.20.15   192.168.1.12   <none>        Windows Server 2019 Datacenter   10.0.17763.1432   docker://19.3.14\nNode win2 cordoned\n",
		"describe.txt": "Name:               win3\nRoles:              <none>\nConditions:\n  Type             Status  LastHeartbeatTime                 LastTransitionTime                Reason                       Message\n  ----             ------  -----------------                 ------------------                ------                       -------\n  MemoryPressure   False   Thu, 19 Nov 2026 07:00:00 +0000   Thu, 19 Nov 2026 07:00:00 +0000   KubeletHasSufficientMemory   kubelet has sufficient memory available\n  Ready            False   Thu, 19 Nov 2026 07:00:00 +0000   Thu, 19 Nov 2026 07:00:00 +0000   KubeletNotReady              cni config uninitialized\nAddresses:\n  InternalIP:  192.168.1.13\nSystem Info:\n  Kernel Version:             10.0.20348.2762\n  Kubelet Version:            v1.30.4\nPodCIDR:                      10.244.3.0/24\n",
	}))
	if len(n.Machines) != 4 {
		t.Fatalf("%+v", n.Machines)
	}
	d := n.Machines[0]
	if d.Name != "win3" || d.Ready != "False" || !strings.Contains(d.Reason, "cni config") || d.Kernel != "10.0.20348.2762" ||
		fmt.Sprint(d.PodCIDRs, d.Addresses) != "[10.244.3.0/24] [192.168.1.13]" {
		t.Errorf("described: %+v", d)
	}
	if w := n.Machines[2]; w.Name != "win1" || w.Ready != "False" {
		t.Errorf("a short row: %+v", w)
	}
	if w := n.Machines[3]; w.Name != "win2" || w.OS != "windows" || w.Kernel != "10.0.17763.1432" || w.Ready != "True" {
		t.Errorf("a full row: %+v", w)
	}
}

// TestTrials: who asked what, and whether it was answered.
func TestTrials(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"ping without answer": {
			"PS C:\\> kubectl exec web -- ping 8.8.8.8\n\nPinging 8.8.8.8 with 32 bytes of data:\nRequest timed out.\n\nPing statistics for 8.8.8.8:\n    Packets: Sent = 4, Received = 0, Lost = 4 (100% loss),\n", "ping pod 8.8.8.8:0 false"},
		"ping of a name": {
			"C:\\>ping www.example.com\n\nPinging www.example.com [203.0.113.10] with 32 bytes of data:\nReply from 203.0.113.10: bytes=32 time=1ms TTL=57\n\nPing statistics for 203.0.113.10:\n    Packets: Sent = 1, Received = 1, Lost = 0 (0% loss),\n", "ping node 203.0.113.10:0 true"},
		"unreachable is not an answer": {
			"C:\\>ping 10.1.2.3\n\nPinging 10.1.2.3 with 32 bytes of data:\nReply from 192.168.1.1: Destination host unreachable.\n\nPing statistics for 10.1.2.3:\n    Packets: Sent = 1, Received = 1, Lost = 0 (0% loss),\n", "ping node 10.1.2.3:0 false"},
		"curl with a target": {
			"PS C:\\> curl.exe -m 5 http://10.96.0.10:53/\ncurl: (28) Connection timed out after 5004 milliseconds\n",
			"curl node 10.96.0.10:53 false"},
		"curl says where": {"curl: (7) Failed to connect to 192.168.1.11 port 30080: Timed out\n", "curl  192.168.1.11:30080 false"},
		"in a pod's shell": {
			"PS C:\\> kubectl exec -it web -- powershell\nPS C:\\> curl.exe https://203.0.113.10/\ncurl: (28) Connection timed out\nPS C:\\> exit\n",
			"curl pod 203.0.113.10:443 false"},
		"answered": {"PS C:\\> kubectl exec web -- curl.exe -sI http://10.96.0.20/\nHTTP/1.1 200 OK\n",
			"curl pod 10.96.0.20:80 true"},
		"Test-NetConnection": {
			"PS C:\\> Test-NetConnection 10.96.0.20 -Port 80\nWARNING: TCP connect to (10.96.0.20 : 80) failed\n\n\nComputerName           : 10.96.0.20\nRemoteAddress          : 10.96.0.20\nRemotePort             : 80\nInterfaceAlias         : Ethernet\nSourceAddress          : 192.168.1.11\nPingSucceeded          : False\nPingReplyDetails (RTT) : 0 ms\nTcpTestSucceeded       : False\n", "Test-NetConnection node 10.96.0.20:80 false"},
		"nslookup": {
			"PS C:\\> kubectl exec web -- nslookup kubernetes.default\nServer:  kube-dns.kube-system.svc.cluster.local\nAddress:  10.96.0.10\n\n*** kube-dns.kube-system.svc.cluster.local can't find kubernetes.default: Non-existent domain\n", "nslookup pod kubernetes.default:0 false"},
		"Resolve-DnsName": {
			"PS C:\\> kubectl exec web -- powershell Resolve-DnsName kubernetes.default\nResolve-DnsName : kubernetes.default : DNS name does not exist\n", "Resolve-DnsName pod kubernetes.default:0 false"},
		"a reset is not a trial": {"curl: (2) no URL specified\n", ""},
	} {
		n := readOneFile("x", tt.text)
		var got []string
		for _, x := range n.Trials {
			host := x.Host
			if x.Address.IsValid() {
				host = x.Address.String()
			}
			got = append(got, fmt.Sprintf("%s %s %s:%d %v", x.Tool, x.From, host, x.Port, x.OK))
		}
		if strings.Join(got, "; ") != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// TestMixedFile: scripts that gather logs write a table and JSON into one file.
func TestMixedFile(t *testing.T) {
	n := readOneFile("network.txt",
		"\n\nName          : cbr0\nType          : l2bridge\nId            : 6D9E1B24-0E0C-4B57-8A39-60E2A5C7F101\nAddressPrefix : 10.244.1.0/24\n\n\n"+network+"\ntrailing words\n")
	if len(n.Networks) != 2 || n.Networks[1].Place.Line != 13 {
		t.Errorf("%+v", n.Networks)
	}
}

// TestLoggedFlags: the flags in a log count where there is no command line.
func TestLoggedFlags(t *testing.T) {
	log := "I1118 07:01:20.410031    3724 flags.go:59] FLAG: --cluster-cidr=\"10.244.0.0/16\"\nI1118 07:01:20.410031    3724 flags.go:59] FLAG: --hostname-override=\"\"\nI1118 07:01:20.410031    3724 flags.go:59] FLAG: --proxy-mode=\"kernelspace\"\n"
	n := readOneFile("kube-proxy.log", log)
	if len(n.Subjects) != 1 || n.Subjects[0].On != "kube-proxy" || dump.Child(n.Subjects[0].Root, "--hostname-override") != nil ||
		dump.Str(n.Subjects[0].Root, "--cluster-cidr") != "10.244.0.0/16" {
		t.Errorf("%+v", n.Subjects)
	}
	n = ReadFS(
		folder(map[string]string{"kube-proxy.log": log,
			"p.txt": "CommandLine : C:\\k\\kube-proxy.exe --hostname-override=win1 --proxy-mode=kernelspace\n"}))
	if len(n.Subjects) != 1 || dump.Str(n.Subjects[0].Root, "--hostname-override") != "win1" {
		t.Errorf("a command line and a log: %+v", n.Subjects)
	}
}

// TestRealDumps reads the dumps of real nodes that the labs use.
func TestRealDumps(t *testing.T) {
	n, err := Read(t.Context(), "../../../fixtures/dumps")
	if err != nil {
		t.Fatal(err)
	}
	if len(n.Mistakes) > 0 {
		t.Error(n.Mistakes)
	}
	var names []string
	for _, x := range n.Networks {
		names = append(names, x.Name+" "+x.Type+" "+x.managementIP.String()+" "+fmt.Sprint(x.Subnets, x.Remote))
	}
	if got, want := strings.Join(names, "; "),
		"Calico overlay 10.1.0.5 [192.168.44.0/26] []; flannel.4096 overlay 192.168.79.40 [10.244.1.0/24] [10.244.0.0/24]"; got != want {
		t.Errorf("networks %s, want %s", got, want)
	}
	if len(n.Endpoints) != 1 || fmt.Sprint(n.Endpoints[0].Exceptions) != "[10.96.0.0/12 192.168.0.0/16]" ||
		n.Endpoints[0].Network != "Calico" {
		t.Errorf("endpoints %+v", n.Endpoints)
	}
}

// TestWrappedValues: Format-List wraps long values at a blank.
func TestWrappedValues(t *testing.T) {
	n := readOneFile("x", `
ActivityId             : 0481DD58-698B-4829-8FF7-02407876752E
Extensions             : {@{Id=E7C3B2F0-F3C5-48DF-AF2B-10FED6D72E7A; IsEnabled=False; Name=Microsoft Windows Filtering
                         Platform}, @{Id=E9B59CFA-2BE1-4B21-828F-B6FBDBDDC017; IsEnabled=False; Name=Microsoft Azure
                         VFP Switch Extension}}
ID                     : 777F0851-EF37-4D73-BAE3-8F3464294CCB
ManagementIP           : 10.0.0.4
Name                   : cbr0
NetworkAdapterName     : Ethernet 2
Subnets                : {@{AddressPrefix=10.244.3.0/24; GatewayAddress=10.244.3.1; Policies=System.Object[]}}
Type                   : L2Bridge
`)
	if len(n.Networks) != 1 || n.Networks[0].adapter != "Ethernet 2" || fmt.Sprint(n.Networks[0].Subnets) != "[10.244.3.0/24]" ||
		n.Networks[0].Place.Line != 8 {
		t.Errorf("%+v", n.Networks)
	}
}

// TestCutOff: what ConvertTo-Json cut off at its depth is named with the command that
// shows it, and so is a file that nothing is understood of.
func TestCutOff(t *testing.T) {
	n := ReadFS(
		fstest.MapFS{
			"endpoint.json": {
				Data: []byte(
					`[{"ID":"B1","IPAddress":"10.244.1.4","VirtualNetwork":"A1","State":3,"Policies":["@{Type=OutBoundNAT; ExceptionList=System.Object[]}"]}]`)}})
	if len(n.Cut) != 1 || !strings.Contains(n.Cut[0].Value, "-Depth 10") || n.Cut[0].Place.File != "endpoint.json" {
		t.Errorf("%+v", n.Cut)
	}
	if e := n.Endpoints[0]; e.Policies {
		t.Errorf("policies that are not shown count as shown: %+v", e)
	}
	n = ReadFS(
		fstest.MapFS{
			"policy.json": {
				Data: []byte(
					`[{"ID":"D1","References":["/endpoints/B1"],"Policies":["@{Type=ELB; VIPs=System.Object[]; Protocol=6; ExternalPort=80; InternalPort=80}"]}]`)}})
	if len(n.Mistakes)+len(n.Cut) == 0 {
		t.Error("a load balancer without its addresses is taken as whole")
	}
	for _, m := range n.Mistakes {
		if m.File != "policy.json" || m.Line != 1 || !strings.Contains(m.Message, "-Depth 10") {
			t.Errorf("%+v", m)
		}
	}
}

// TestHNSErrors: codes of HNS are found with the call and the place, once for a line, and
// codes of other programs are not.
func TestHNSErrors(t *testing.T) {
	log := strings.Join([]string{
		`E0412 08:11:02 1 proxier.go:1] err="hcnCreateLoadBalancer failed in Win32: The specified port already exists. (0x803b0013) {"ErrorCode":2151350291}" again (0x803B0013)`,
		`E0412 08:11:03 1 proxier.go:1] err="hcnCreateLoadBalancer failed in Win32: The specified port already exists. (0x803b0013)"`,
		`E0412 08:11:04 1 proxier.go:1] err="hcnOpenEndpoint failed in Win32: Element not found. (0x490)"`,
		`E0412 08:11:05 1 x.go:1] err="hcs::System failed in Win32: Element not found. (0x490)"`,
		`E0412 08:11:06 1 x.go:1] "exit" code=0x490`,
		strings.Repeat("x", 70<<10) + " 0x803b0001",
		`Invoke-HnsRequest : @{Error=An adapter was not found. ; ErrorCode=2151350278; Success=False}`,
		`Invoke-HnsRequest : @{Error=The parameter is incorrect. ; ErrorCode=2147942487; Success=False}`,
		`Invoke-HnsRequest : @{Output=; ErrorCode=0; Success=True}`,
		`E0402 14:16:04.3 5968 proxier.go:997] Remote endpoint creation failed: HNS failed with error : The switch-port was not found.`,
		`E0402 14:16:05.3 5968 proxier.go:997] HNS failed with error : Something that nobody has written down.`,
	}, "\n")
	n := ReadFS(fstest.MapFS{"kube-proxy.log": {Data: []byte(log)}})
	var got []string
	for _, e := range n.HNSErrors() {
		got = append(got, fmt.Sprintf("%s 0x%x %s %d line %d", e.Op, e.Code, e.Name, e.Count, e.Places[0].Line))
	}
	want := "hcnCreateLoadBalancer 0x803b0013 HCN_E_PORT_ALREADY_EXISTS 2 line 1; hcnOpenEndpoint 0x490 ERROR_NOT_FOUND 1 line 3; " +
		"Invoke-HnsRequest 0x803b0006 HCN_E_ADAPTER_NOT_FOUND 1 line 7; Invoke-HnsRequest 0x57 ERROR_INVALID_PARAMETER 1 line 8;  0x803b0007 HCN_E_PORT_NOT_FOUND 1 line 10;  0x0  1 line 11"
	if strings.Join(got, "; ") != want {
		t.Errorf("found %s\nwant  %s", strings.Join(got, "; "), want)
	}
	if len(n.Cut) != 1 || !strings.Contains(n.Cut[0].Value, "line 6 has 71691 characters") {
		t.Errorf("of a line that is too long it is not said: %+v", n.Cut)
	}
}
