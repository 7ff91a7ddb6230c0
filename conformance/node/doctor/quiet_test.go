package doctor

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/conformance/node/observed"
)

// examine looks at a few files and returns the causes that were found.
func examine(t *testing.T, target claims.Target, files map[string]string) (causes []string, not []string) {
	t.Helper()
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	d := Examine(observed.ReadFS(fsys), target, ledger(t))
	for _, f := range d.Findings {
		causes = append(causes, f.CauseID)
	}
	for _, m := range d.Mistakes {
		t.Errorf("mistake %s:%d: %s", m.File, m.Line, m.Message)
	}
	slices.Sort(causes)
	return slices.Compact(causes), d.NotExamined
}

const (
	subnetEnv = "FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=10.244.1.1/24\nFLANNEL_MTU=1500\nFLANNEL_IPMASQ=true\n"
	ipconfig  = "Windows IP Configuration\n\n   Host Name . . . . . . . . . . . . : win1\n\nEthernet adapter vEthernet (Ethernet):\n\n   IPv4 Address. . . . . . . . . . . : 192.168.1.11(Preferred) \n   Subnet Mask . . . . . . . . . . . : 255.255.255.0\n   Default Gateway . . . . . . . . . : 192.168.1.1\n"
	nodesTxt  = "NAME   STATUS   ROLES    AGE   VERSION    INTERNAL-IP    EXTERNAL-IP   OS-IMAGE                         KERNEL-VERSION    CONTAINER-RUNTIME\nwin1   Ready    <none>   3d    v1.20.15   192.168.1.11   <none>        Windows Server 2019 Datacenter   10.0.17763.1432   docker://19.3.14\n"
	kubeProxy = "ProcessId   : 3424\nName        : kube-proxy.exe\nCommandLine : C:\\k\\kube-proxy.exe --proxy-mode=kernelspace --hostname-override=win1 --network-name=cbr0\n"
	tasks     = "Image Name                     PID Session Name        Session#    Mem Usage\n========================= ======== ================ =========== ============\nsvchost.exe                    748 Services                   0     14,960 K\nkubelet.exe                   3412 Services                   0     92,740 K\n"
	l2Conf    = `{"cniVersion": "0.2.0", "name": "cbr0", "type": "flannel", "delegate": {"type": "win-bridge", "policies": [{"name": "EndpointPolicy", "value": {"Type": "OutBoundNAT", "ExceptionList": ["10.244.0.0/16", "10.96.0.0/12", "192.168.1.0/24"]}}, {"name": "EndpointPolicy", "value": {"Type": "ROUTE", "DestinationPrefix": "10.96.0.0/12", "NeedEncap": true}}]}}`
)

// TestNoFalseAlarm: folders that only look as if they had a cause.
func TestNoFalseAlarm(t *testing.T) {
	for name, tt := range map[string]struct {
		target claims.Target
		files  map[string]string
	}{
		"an empty folder": {files: map[string]string{}},
		"a list of the processes that somebody asked for": {files: map[string]string{
			"p.txt": "PS C:\\k> Get-Process kubelet\n\nHandles  NPM(K)    PM(K)      WS(K)     CPU(s)     Id  SI ProcessName\n-------  ------    -----      -----     ------     --  -- -----------\n    346      25    49032      67980   7,920.91   2116   0 kubelet\n"}},
		"no kube-proxy by design": {target: claims.Target{Proxy: "none"}, files: map[string]string{"t.txt": tasks}},
		"antrea does kube-proxy's work": {files: map[string]string{"t.txt": tasks +
			"antrea-agent.exe              3500 Services                   0     92,740 K\n"}},
		"a service list of two": {files: map[string]string{
			"s.txt": "Status   Name               DisplayName\n------   ----               -----------\nRunning  rke2               rke2\nRunning  rancher-wins       Rancher Wins\n", "t.txt": tasks + "kube-proxy.exe                3500 Services                   0     92,740 K\n"}},
		"a failed ping to another pod": {files: map[string]string{"subnet.env": subnetEnv,
			"x.txt": "PS C:\\> kubectl exec web -- ping 10.244.2.5\nPinging 10.244.2.5 with 32 bytes of data:\nRequest timed out.\nPing statistics for 10.244.2.5:\n    Packets: Sent = 4, Received = 0, Lost = 4 (100% loss),\n"}},
		"a ping from the node": {files: map[string]string{"subnet.env": subnetEnv,
			"x.txt": "PS C:\\> ping 203.0.113.10\nPinging 203.0.113.10 with 32 bytes of data:\nRequest timed out.\nPing statistics for 203.0.113.10:\n    Packets: Sent = 4, Received = 0, Lost = 4 (100% loss),\n"}},
		"a trial of an unknown origin": {files: map[string]string{"ipconfig.txt": ipconfig, "cni.conf": l2Conf,
			"subnet.env": subnetEnv,
			"x.txt":      "curl: (7) Failed to connect to 192.168.1.11 port 30080: Timed out\ncurl: (7) Failed to connect to 10.96.0.20 port 80: Timed out\n"}},
		"the node asks another node's NodePort": {files: map[string]string{"ipconfig.txt": ipconfig,
			"x.txt": "PS C:\\> curl.exe http://192.168.1.12:30080/\ncurl: (28) Connection timed out\n"}},
		"another port of the node": {files: map[string]string{"ipconfig.txt": ipconfig,
			"x.txt": "PS C:\\> curl.exe http://192.168.1.11:8080/\ncurl: (7) Failed to connect to 192.168.1.11 port 8080: Connection refused\n"}},
		"a range of the site in the list, nothing tried": {files: map[string]string{"ipconfig.txt": ipconfig, "subnet.env": subnetEnv,
			"cni.conf": strings.Replace(l2Conf, `"192.168.1.0/24"`, `"192.168.1.0/24", "172.16.0.0/12"`, 1)}},
		"a failed trial to what is not in the list": {files: map[string]string{"ipconfig.txt": ipconfig, "subnet.env": subnetEnv,
			"cni.conf": l2Conf, "x.txt": "PS C:\\> kubectl exec web -- curl.exe http://203.0.113.10/\ncurl: (28) Connection timed out\n"}},
		"an overlay without the nodes' network": {files: map[string]string{"ipconfig.txt": ipconfig, "subnet.env": subnetEnv,
			"cni.conf": strings.NewReplacer(`, "192.168.1.0/24"`, "", "win-bridge", "win-overlay", "cbr0", "vxlan0").Replace(l2Conf)}},
		"a range that holds the wanted one": {files: map[string]string{"ipconfig.txt": ipconfig, "subnet.env": subnetEnv,
			"cni.conf": strings.Replace(l2Conf, `"10.244.0.0/16", "10.96.0.0/12"`, `"10.0.0.0/8"`, 1)}},
		"flannel adds the cluster's range for win-bridge": {files: map[string]string{"subnet.env": subnetEnv,
			"cni.conf": strings.Replace(l2Conf, `"10.244.0.0/16", `, "", 1)}},
		"the Services' range of another configuration": {files: map[string]string{"subnet.env": subnetEnv, "a.conf": l2Conf,
			"b.conf": `{"cniVersion": "0.2.0", "name": "vxlan0", "type": "flannel", "delegate": {"type": "win-overlay", "policies": [{"name": "EndpointPolicy", "value": {"Type": "OutBoundNAT", "ExceptionList": ["10.244.0.0/16", "10.0.0.0/24"]}}]}}`}},
		"the name in another case": {files: map[string]string{"nodes.txt": nodesTxt,
			"p.txt": strings.Replace(kubeProxy, "=win1", "=WIN1", 1)}},
		"a name that is filled in later": {files: map[string]string{"nodes.txt": nodesTxt,
			"start-kubeproxy.ps1": "c:\\k\\kube-proxy.exe --hostname-override=$(hostname) --proxy-mode=kernelspace\n"}},
		"a script without the name, and a process with it": {files: map[string]string{"nodes.txt": nodesTxt, "p.txt": kubeProxy,
			"old.ps1": "c:\\k\\kube-proxy.exe --proxy-mode=kernelspace --kubeconfig=c:\\k\\config\n"}},
		"the source VIP of this subnet": {files: map[string]string{"subnet.env": subnetEnv,
			"SourceVip.json": `{"cniVersion":"0.2.0","ip4":{"ip":"10.244.1.2/24"},"dns":{}}`}},
		"waiting that ended": {files: map[string]string{"start.txt": "Waiting for the Network to be created\n",
			"n.txt": "Networks:\nName             ID\ncbr0             B5083512-BE1D-4326-B58F-56CA5154E8D5\n"}},
		"subnet.env that came later": {files: map[string]string{
			"kubelet.log": "E1118 07:03:40.918264 3412 x.go:1] open /run/flannel/subnet.env: The system cannot find the path specified.\n",
			"subnet.env":  subnetEnv}},
		"networks that Select shows": {files: map[string]string{
			"n.txt": "\nName Type    \n---- ----    \ncbr0 L2Bridge\nnat  nat     \n"}},
		"a host of 2025 with an image of 2022": {files: map[string]string{"nodes.txt": strings.Replace(nodesTxt, "10.0.17763.1432",
			"10.0.26100.1742", 1), "config.toml": "  sandbox_image = \"registry.example.com/pause:ltsc2022\"\n"}},
		"a pause image of which nothing is known": {files: map[string]string{"nodes.txt": nodesTxt,
			"config.toml": "  sandbox_image = \"registry.example.com/pause:1.19.2004\"\n"}},
		"a name outside that does not resolve": {files: map[string]string{
			"x.txt": "PS C:\\> kubectl exec web -- powershell Resolve-DnsName www.example.com\nResolve-DnsName : www.example.com : DNS name does not exist\n"}},
		"a dotted name that the node asked": {files: map[string]string{
			"x.txt": "PS C:\\> Resolve-DnsName kubernetes.default\nResolve-DnsName : kubernetes.default : DNS name does not exist\n"}},
		"no proxy at all": {files: map[string]string{
			"set.txt": "COMPUTERNAME=WIN1\nOS=Windows_NT\nwindir=C:\\Windows\n", "w.txt": "    Direct access (no proxy server).\n"}},
		"a hypervisor's list with another machine's adapter": {files: map[string]string{"ipconfig.txt": ipconfig,
			"v.txt": "VMName Name            MacAddressSpoofing\n------ ----            ------------------\nwin1   Network Adapter                 On\ndb1    Network Adapter                Off\n"}},
		"a NIC whose name only begins as asked": {files: map[string]string{"ipconfig.txt": strings.Replace(ipconfig,
			"vEthernet (Ethernet)", "vEthernet (Ethernet0 2)", 1), "start.txt": "PS C:\\k> .\\start.ps1 -ManagementIP 192.168.1.11\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			if causes, _ := examine(t, tt.target, tt.files); len(causes) > 0 {
				t.Errorf("found %q", causes)
			}
		})
	}
}

// TestOtherSymptoms: causes in other forms than those of the folders.
func TestOtherSymptoms(t *testing.T) {
	for name, tt := range map[string]struct {
		target claims.Target
		files  map[string]string
		want   string
	}{
		"everything is an exception": {files: map[string]string{"cni.conf": strings.Replace(l2Conf, `"192.168.1.0/24"`,
			`"192.168.1.0/24", "0.0.0.0/0"`, 1)}, want: "exception-covers-destination"},
		"the cluster's range is missing": {files: map[string]string{"subnet.env": subnetEnv,
			"cni.conf": strings.NewReplacer(`"10.244.0.0/16", `, "", "win-bridge", "win-overlay").Replace(l2Conf)}, want: "exception-misses-range"},
		"a configuration file without the name": {files: map[string]string{"p.txt": strings.Replace(kubeProxy, "--hostname-override=win1",
			"--config=c:\\k\\kube-proxy.yaml", 1),
			"kube-proxy.yaml": "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: kernelspace\n"},
			want: "hostname-override-missing"},
		"a configuration file with another name": {files: map[string]string{"nodes.txt": nodesTxt,
			"p.txt":           strings.Replace(kubeProxy, "--hostname-override=win1", "--config=c:\\k\\kube-proxy.yaml", 1),
			"kube-proxy.yaml": "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: kernelspace\nhostnameOverride: win7\n"}, want: "hostname-override-other"},
		"another node's subnet in HNS": {files: map[string]string{"subnet.env": subnetEnv,
			"n.json": `{"ID":"A","Name":"flannel.4096","Type":"Overlay","Subnets":[{"AddressPrefix":"10.244.1.0/24"}],"Policies":[{"Type":"RemoteSubnetRoute","DestinationPrefix":"10.244.1.0/24"}]}`}, want: "subnet-env-duplicate"},
		"only Windows knows a proxy": {files: map[string]string{"set.txt": "COMPUTERNAME=WIN1\nOS=Windows_NT\nwindir=C:\\Windows\n",
			"w.txt": "    Proxy Server(s) :  proxy.example.com:80\n"}, want: "proxy-variables"},
		"old Kubernetes cannot use wincat": {target: claims.Target{Kubernetes: "1.14"},
			files: map[string]string{"x.txt": "E1118 portforward.go:400] unable to do port forwarding: wincat not found\n"}, want: "wincat-missing"},
		"a pause image of Kubernetes before 2022": {files: map[string]string{"nodes.txt": strings.Replace(nodesTxt, "10.0.17763.1432",
			"10.0.20348.2762", 1), "config.toml": "  sandbox_image = \"registry.k8s.io/pause:3.5\"\n"}, want: "pause-image-build"},
		"a name with the namespace and svc": {files: map[string]string{
			"x.txt": "PS C:\\> kubectl exec web -- nslookup web.default.svc\n*** UnKnown can't find web.default.svc: Non-existent domain\n"},
			want: "dns-dotted-name"},
	} {
		t.Run(name, func(t *testing.T) {
			if causes, _ := examine(t, tt.target, tt.files); strings.Join(causes, ", ") != tt.want {
				t.Errorf("found %q, want %s", causes, tt.want)
			}
		})
	}
}

// TestNotExamined: what is missing in the folder is reported, with the command that
// takes it; a file that a command line names is asked for.
func TestNotExamined(t *testing.T) {
	_, not := examine(t, claims.Target{}, nil)
	all := strings.Join(not, "\n")
	for _, want := range []string{"tasklist", "kubectl get nodes -o yaml", "Get-Service", "Get-VMNetworkAdapter", "ExceptionList",
		"Win32_Process", "Get-HnsNetwork | ConvertTo-Json", "ipconfig /all", "cmd /c set", "config.toml"} {
		if !strings.Contains(all, want) {
			t.Errorf("an empty folder is not asked for %s:\n%s", want, all)
		}
	}
	for _, never := range []string{"NodePort", "wincat"} {
		if strings.Contains(all, never) {
			t.Errorf("%s needs a symptom and must not be asked for:\n%s", never, all)
		}
	}
	_,
		not = examine(t, claims.Target{}, map[string]string{"p.txt": strings.Replace(kubeProxy, "--hostname-override=win1",
		"--config=c:\\k\\kube-proxy.yaml", 1)})
	if all = strings.Join(not, "\n"); !strings.Contains(all, `--config=c:\k\kube-proxy.yaml; take that file too`) {
		t.Errorf("the configuration file is not asked for:\n%s", all)
	}
}

// TestVersionsHaveTheirItems: an item that an edition does not have is not
// looked for there.
func TestVersionsHaveTheirItems(t *testing.T) {
	files := map[string]string{"t.txt": tasks, "nodes.txt": strings.Replace(nodesTxt, "Ready ", "NotReady", 1)}
	files["nodes.txt"] = strings.Replace(nodesTxt, "Ready    <none>", "NotReady <none>", 1)
	for minor, want := range map[string]bool{"1.14": true, "1.20": true, "1.30": false} {
		causes, _ := examine(t, claims.Target{Kubernetes: minor}, files)
		if got := slices.Contains(causes, "process-missing"); got != want {
			t.Errorf("Kubernetes %s: process-missing is found: %v, want %v", minor, got, want)
		}
	}
}

// TestManyPlaces: a hundred endpoints with one fault are one finding.
func TestManyPlaces(t *testing.T) {
	var eps []string
	for i := range 100 {
		eps = append(eps,
			fmt.Sprintf(
				`{"ID":"E%d","VirtualNetworkName":"cbr0","IPAddress":"10.244.1.%d","Policies":[{"Type":"OutBoundNAT","ExceptionList":["10.244.0.0/16"]}]}`, i, 10+i))
	}
	d := Examine(observed.ReadFS(fstest.MapFS{"cni.conf": {Data: []byte(l2Conf)},
		"e.json": {Data: []byte("[" + strings.Join(eps, ",\n") + "]")}}), claims.Target{}, ledger(t))
	if len(d.Findings) != 1 || len(d.Findings[0].Evidence) != maxEvidence+1 ||
		!strings.Contains(d.Findings[0].Evidence[maxEvidence], "93 more places") {
		t.Errorf("%d findings: %+v", len(d.Findings), d.Findings)
	}
}

// FuzzExamine: whatever a file says, nothing panics, and every finding has
// evidence in a file.
func FuzzExamine(f *testing.F) {
	for _, s := range []string{subnetEnv, ipconfig, nodesTxt, kubeProxy, tasks, l2Conf} {
		f.Add("x.txt", s)
	}
	f.Add("SourceVip.json", `{"cniVersion":"0.2.0","ip4":{"ip":"10.244.9.2/24"},"dns":{}}`)
	f.Add("t.txt",
		"PS C:\\> kubectl exec web -- ping 8.8.8.8\nPinging 8.8.8.8 with 32 bytes of data:\nPing statistics for 8.8.8.8:\n Packets: Sent = 4, Received = 0, Lost = 4")
	l := ledger(f)
	f.Fuzz(func(t *testing.T, name, text string) {
		if !fs.ValidPath(name) || name == "." || strings.Contains(name, "/") || len(text) > 1<<16 {
			return
		}
		fsys := fstest.MapFS{"subnet.env": {Data: []byte(subnetEnv)}, "ipconfig.txt": {Data: []byte(ipconfig)},
			"p.txt": {Data: []byte(kubeProxy)}, "cni.conf": {Data: []byte(l2Conf)}}
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
		n := observed.ReadFS(fsys)
		for _, finding := range Examine(n, claims.Target{}, l).Findings {
			if fsys[finding.File] == nil || len(finding.Evidence) == 0 || finding.CauseID == "" {
				t.Errorf("%+v", finding)
			}
		}
		BugReport(n, claims.Target{})
	})
}
