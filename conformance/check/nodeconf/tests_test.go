package nodeconf

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/conformance/check/subject"
	"github.com/winlab-dev/winlab/conformance/claims"
)

// try asks every test about every subject, in several settings.
func try(subjects []*subject.Subject) {
	for _, target := range []claims.Target{{}, {Kubernetes: "1.14", Network: "overlay"}, {Kubernetes: "1.36", Network: "l2bridge"}} {
		c := subject.NewContext(target, subjects, nil)
		for _, s := range subjects {
			for _, t := range Tests() {
				if slices.Contains(t.On, s.On) {
					t.Find(c, s, map[string]string{"flag": "--v", "range": "cluster"})
				}
			}
		}
	}
}

// find runs one test on a file and returns what it says, with lines.
func find(t *testing.T, name, file, text string, target claims.Target, args map[string]string) []string {
	t.Helper()
	subjects, ok, mistakes := Read(file, []byte(text))
	if !ok || mistakes != nil {
		t.Fatalf("%v %v", ok, mistakes)
	}
	c := subject.NewContext(target, subjects, nil)
	var got []string
	asked := false
	for _, s := range subjects {
		for _, test := range Tests() {
			if test.Name != name || !slices.Contains(test.On, s.On) {
				continue
			}
			asked = true
			for _, h := range test.Find(c, s, args) {
				line := s.Root.Line
				if h.At != nil {
					line = h.At.Line
				}
				for v := range h.Vars {
					if !slices.Contains(test.Vars, v) {
						t.Errorf("%s fills %q in and does not declare it", name, v)
					}
				}
				var vars []string
				for _, v := range test.Vars {
					vars = append(vars, h.Vars[v])
				}
				got = append(got, strings.TrimSpace(fmt.Sprintf("%d %s", line, strings.Join(vars, " "))))
			}
		}
	}
	if !asked {
		t.Fatalf("nothing in the text is for %s:\n%s", name, show(subjects))
	}
	return got
}

const overlayLine = "kube-proxy.exe --proxy-mode=kernelspace --network-name=vxlan0 "

func TestTests(t *testing.T) {
	overlay := claims.Target{Kubernetes: "1.14", Network: "overlay"}
	k := func(v string) claims.Target { return claims.Target{Kubernetes: v} }
	list := func(entries, more string) string {
		return `{"cniVersion": "0.2.0", "name": "a", "type": "win-bridge", ` + more +
			`"policies": [{"name": "EndpointPolicy", "value": {"Type": "OutBoundNAT", "ExceptionList": [` + entries + `]}}]}`
	}
	here := func(text string) string { return "$c = @'\n" + text + "\n'@\n" }
	cases := []struct {
		test, file, text string
		target           claims.Target
		args             map[string]string
		want             []string
	}{
		{"glued-flags", "a.txt", "kube-proxy.exe --hostname-override=$(hostname)--kubeconfig=c:\\k\\config", k("1.20"), nil,
			[]string{`1 --hostname-override=$(hostname)--kubeconfig=c:\k\config --hostname-override=$(hostname) --kubeconfig=c:\k\config`}},
		{"glued-flags", "a.txt", "kube-proxy.exe --hostname-override=a--b --kubeconfig=c", k("1.20"), nil, nil},
		{"unknown-flag", "a.cmd", "kube-proxy.exe --hostname-overide=a --v=4 --log_dir=x", k("1.20"), nil,
			[]string{"1 --hostname-overide ; did you mean --hostname-override?"}},
		{"flag-of-other-version", "a.cmd", "kubelet.exe --network-plugin=cni --v=4", k("1.24"), nil,
			[]string{"1 --network-plugin 1.23 is the last version with it"}},
		{"flag-of-other-version", "a.cmd", "kubelet.exe --network-plugin=cni --v=4", k("1.23"), nil, nil},
		{"flag-of-other-version", "a.cmd", "kube-proxy.exe --root-hnsendpoint-name=x", k("1.20"), nil,
			[]string{"1 --root-hnsendpoint-name it came with 1.24"}},
		{"flag-of-other-version", "a.cmd", "kubelet.exe --require-kubeconfig=true", k("1.20"), nil,
			[]string{"1 --require-kubeconfig it was gone before 1.14"}},
		{"missing-flag", "a.cmd", "kube-proxy.exe --v=4", k("1.20"), map[string]string{"flag": "--hostname-override"},
			[]string{"1 --hostname-override"}},
		{"missing-flag", "a.ps1", "kube-proxy.exe --v=4 $more", k("1.20"), map[string]string{"flag": "--hostname-override"}, nil},
		{"missing-flag", "a.cmd", "kube-proxy.exe --config=a", k("1.20"),
			map[string]string{"flag": "--hostname-override", "config": "hostnameOverride"}, nil},
		{"service-without-flag", "a.cmd", `sc.exe create kubelet binPath= "C:\k\kubelet.exe --v=4"`, k("1.20"), nil, []string{"1 kubelet"}},
		{"service-without-flag", "a.cmd", `sc.exe create kubelet binPath= "C:\k\kubelet.exe --windows-service --v=4"`, k("1.20"), nil, nil},
		{"single-quotes", "a.cmd", `sc.exe create kubelet binPath= "C:\k\kubelet.exe --hostname-override 'minion'"`, k("1.20"), nil,
			[]string{"1 --hostname-override 'minion'"}},
		{"missing-setting", "a.cmd", "nssm install kube-proxy kube-proxy.exe --v=4", k("1.20"),
			map[string]string{"component": "kube-proxy", "nssm": "DependOnService"}, []string{"1 kube-proxy DependOnService"}},
		{"gate-unknown", "a.cmd", "kube-proxy.exe --feature-gates=WinDSR=false,IPv6DualStack=true", k("1.34"), nil,
			[]string{"1 IPv6DualStack 1.24 is the last version with it", "1 WinDSR from 1.34 on it cannot be turned off"}},
		{"gate-unknown", "a.cmd", "kube-proxy.exe --feature-gates=WinDSR=true", k("1.34"), nil, nil},
		{"dsr-without-gate", "a.cmd", "kube-proxy.exe --enable-dsr=true", k("1.32"), nil, []string{"1"}},
		{"dsr-without-gate", "a.cmd", "kube-proxy.exe --enable-dsr=true", k("1.33"), nil, nil},
		{"dsr-without-gate", "a.cmd", "kube-proxy.exe --enable-dsr=true --feature-gates=WinDSR=true", k("1.20"), nil, nil},
		{"gate-without-dsr", "a.cmd", "kube-proxy.exe --feature-gates=WinDSR=true", k("1.20"), nil, []string{"1"}},
		{"overlay-without-gate", "a.cmd", overlayLine + "--source-vip=10.244.1.2", overlay, nil, []string{"1"}},
		{"overlay-without-gate", "a.cmd", overlayLine + "--source-vip=10.244.1.2", claims.Target{Kubernetes: "1.20", Network: "overlay"}, nil,
			nil},
		{"overlay-without-gate", "a.cmd", overlayLine + "--source-vip=10.244.1.2", claims.Target{Kubernetes: "1.14", Network: "l2bridge"}, nil,
			nil},
		{"overlay-without-source-vip", "a.cmd", overlayLine, overlay, nil, []string{"1"}},
		{"overlay-without-source-vip", "a.ps1", "if ($m -eq \"l2bridge\") {\nkube-proxy.exe --v=4\n} else {\nkube-proxy.exe --v=5\n}", overlay,
			nil, []string{"4"}},
		{"source-vip-outside", "a.ps1", here("FLANNEL_SUBNET=10.244.3.1/24") + "kube-proxy.exe --source-vip=10.244.7.2", k("1.20"), nil,
			[]string{"4 10.244.7.2 10.244.3.0/24 a.ps1"}},
		{"version-with-check", "a.conf", `{"cniVersion": "0.4.0", "name": "a", "type": "flannel", "delegate": {"type": "win-overlay"}}`,
			k("1.20"), nil, []string{"1 0.4.0 win-overlay"}},
		{"version-with-check", "a.conf", `{"cniVersion": "0.3.1", "name": "a", "type": "win-bridge"}`, k("1.20"), nil, nil},
		{"refused-by-plugin", "a.conf", `{"cniVersion": "0.2.0", "type": "win-bridge"}`, k("1.20"), nil,
			[]string{"1 the configuration has no name; the HNS network is found by it"}},
		// A placeholder was forgotten in a file of its own; elsewhere somebody fills it in.
		{"refused-by-plugin", "a.conf", list(`"<service cidr>"`, ""), k("1.20"), nil,
			[]string{`1 ExceptionList holds "<service cidr>", which is not a prefix such as 10.244.0.0/16`}},
		{"refused-by-plugin", "a.conf.template", list(`"<service cidr>"`, ""), k("1.20"), nil, nil},
		{"refused-by-plugin", "a.ps1", here(list(`"<service cidr>"`, "")), k("1.20"), nil, nil},
		{"refused-by-plugin", "a.conf", list(`"$service"`, ""), k("1.20"), nil, nil},
		// A variable hides no mistake of another line.
		{"refused-by-plugin", "a.conf", list(`"$service",`+"\n"+`"10.96.0.0/33"`, ""), k("1.20"), nil,
			[]string{`2 ExceptionList holds "10.96.0.0/33", which is not a prefix such as 10.244.0.0/16`}},
		{"ignored-by-plugin", "a.conf", `{"cniVersion": "0.2.0", "name": "a", "type": "win-bridge", "policys": []}`, k("1.20"), nil,
			[]string{`1 win-bridge ignores "policys"`}},
		{"ignored-by-plugin", "a.conf", "{\"cniVersion\": \"0.2.0\",\n\"name\": \"a\", \"type\": \"nat\",\n \"name\": \"b\"}", k("1.20"), nil,
			[]string{`3 "name" is here twice; the first is on line 2, and the last one counts`}},
		{"exceptions-lack", "a.conf", list(`"10.96.0.0/12"`, `"ipam": {"subnet": "10.244.1.0/24"}, `), k("1.20"),
			map[string]string{"range": "cluster"}, []string{"1 10.244.1.0/24 cni ipam.subnet"}},
		{"exceptions-lack", "a.conf", list(`"10.96.0.0/12", "10.244.0.0/16"`, `"ipam": {"subnet": "10.244.1.0/24"}, `), k("1.20"),
			map[string]string{"range": "cluster"}, nil},
		{"exceptions-lack", "a.conf", list(`"10.244.0.0/16"`, `"dns": {"nameservers": ["10.96.0.10"]}, `), k("1.20"),
			map[string]string{"range": "service"}, []string{"1 10.96.0.10 cni dns.nameservers"}},
		{"exceptions-lack", "a.conf", list(`"$svc"`, `"dns": {"nameservers": ["10.96.0.10"]}, `), k("1.20"),
			map[string]string{"range": "service"}, nil},
		{"exceptions-lack", "a.ps1", here(list(`"10.244.0.0/16"`, "")) + "flanneld.exe --iface=10.127.130.35 --v=1", k("1.20"),
			map[string]string{"range": "management", "network": "l2bridge"}, []string{"2 10.127.130.35 flanneld --iface"}},
		{"exceptions-hold-outside", "a.conf", list(`"0.0.0.0/0", "8.8.8.0/24", "10.0.0.0/8"`, ""), k("1.20"), nil, []string{"1 8.8.8.0/24"}},
		{"exceptions-hold-outside", "a.conf", list(`"0.0.0.0/0", "8.8.8.0/24"`, ""), k("1.20"), map[string]string{"everything": "true"},
			[]string{"1 0.0.0.0/0"}},
		{"dns-outside-services", "a.cmd", "kubelet.exe --cluster-dns=10.244.0.10 --v=4\nkube-proxy.exe --cluster-cidr=10.244.0.0/16", k("1.20"),
			nil, []string{"1 10.244.0.10 inside the pods' network 10.244.0.0/16 kube-proxy --cluster-cidr"}},
		{"subnet-outside", "subnet.env", "FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=10.245.3.1/24", k("1.14"), nil,
			[]string{"2 10.245.3.1/24 10.244.0.0/16"}},
		{"not-a-prefix", "subnet.env", "FLANNEL_SUBNET=10.244.3.1", k("1.14"), nil, []string{"1 10.244.3.1 FLANNEL_SUBNET"}},
		{"cluster-range-differs", "a.ps1", here(`{"Network": "10.244.0.0/16", "Backend": {"Type": "vxlan"}}`) +
			"kube-proxy.exe --cluster-cidr=10.200.0.0/16", k("1.20"), nil, []string{"4 10.200.0.0/16 10.244.0.0/16 net-conf Network"}},
		{"hostname-differs", "a.cmd", "kubelet.exe --hostname-override=win1\nkube-proxy.exe --hostname-override=win2", k("1.20"), nil,
			[]string{"2 win2 win1"}},
		{"network-name-differs", "a.ps1", here(`{"cniVersion": "0.2.0", "name": "vxlan0", "type": "win-overlay"}`) +
			"kube-proxy.exe --network-name=cbr0", k("1.20"), nil, []string{"4 cbr0 vxlan0 CNI configuration vxlan0"}},
		{"network-name-differs", "a.ps1", here(`{"cniVersion": "0.2.0", "name": "l2bridge", "type": "win-bridge"}`) +
			"if ($mode -eq 'overlay')\n{\nkube-proxy.exe --network-name=vxlan0\n}", k("1.20"), nil, nil},
		{"mode-differs", "a.ps1", here(`{"Network": "10.244.0.0/16", "Backend": {"Type": "vxlan"}}`) +
			`.\register-svc.ps1 -ManagementIP 10.127.130.35`, k("1.20"), nil, []string{"4 l2bridge vxlan"}},
		{"default-differs", "a.ps1", here(`{"Network": "10.200.0.0/16", "Backend": {"Type": "host-gw"}}`) +
			`.\register-svc.ps1 -ManagementIP 10.127.130.35`, k("1.20"), nil,
			[]string{"4 -ClusterCIDR 10.244.0.0/16 10.200.0.0/16 net-conf Network"}},
		{"default-differs", "a.ps1", `.\start.ps1 -ManagementIP 10.127.130.35 -ServiceCIDR 10.100.0.0/16`, k("1.20"), nil,
			[]string{"1 -KubeDnsServiceIP 10.96.0.10 10.100.0.0/16 service-manager -ServiceCIDR"}},
		{"backend-differs", "a.ps1", here(`{"Network": "10.244.0.0/16", "Backend": {"Type": "vxlan"}}`) +
			here(`{"cniVersion": "0.2.0", "name": "a", "type": "flannel", "delegate": {"type": "win-bridge"}}`) + "flanneld.exe --iface=1.2.3.4",
			k("1.20"), nil, []string{"7 vxlan win-bridge"}},
	}
	for _, c := range cases {
		got := find(t, c.test, c.file, c.text, c.target, c.args)
		for i := range got {
			got[i], _, _ = strings.Cut(got[i], "; it reads ") // all fields of the plugin
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s on %q in %v:\n got %q\nwant %q", c.test, c.text, c.target, got, c.want)
		}
	}
}

// TestGoodFixtures: nothing is reported in the samples without a mistake.
func TestGoodFixtures(t *testing.T) {
	for folder, target := range map[string]claims.Target{
		"l2bridge": {Kubernetes: "1.14", Network: "l2bridge"}, "overlay": {Kubernetes: "1.20", Network: "overlay"},
	} {
		var all []*subject.Subject
		files, err := filepath.Glob(filepath.Join(fixtures, folder, "*"))
		if err != nil || len(files) < 4 {
			t.Fatal("no fixtures", err)
		}
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			subjects, ok, mistakes := Read(f, data)
			if !ok || mistakes != nil {
				t.Errorf("%s: %v %v", f, ok, mistakes)
			}
			all = append(all, subjects...)
		}
		c := subject.NewContext(target, all, nil)
		for _, s := range all {
			for _, test := range Tests() {
				if !slices.Contains(test.On, s.On) || strings.HasPrefix(test.Name, "reserved") || test.Name == "priority-not-raised" {
					continue
				}
				for _, args := range []map[string]string{{}, {"range": "cluster"}, {"range": "service"}, {"range": "management", "network": "l2bridge"},
					{"everything": "true"}, {"flag": "--kubeconfig --kubeconfig-file"}} {
					if test.Name == "missing-flag" && args["flag"] == "" {
						continue
					}
					for _, h := range test.Find(c, s, args) {
						t.Errorf("%s: %s on %s: %v", folder, test.Name, s.Name, h.Vars)
					}
				}
			}
		}
	}
}

// TestContainerArguments: a command line that a manifest has, entry by entry.
func TestContainerArguments(t *testing.T) {
	var doc yaml.Node
	text := "- powershell\n- -c\n- $env:CONTAINER_SANDBOX_MOUNT_POINT/kube-proxy.exe\n- --proxy-mode=kernelspace\n- --v\n- '4'\n- --hostname-override=$(NODE)--kubeconfig=/x\n"
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	s := Arguments("ds.yaml", doc.Content[0].Content)
	if s == nil {
		t.Fatal("not seen")
	}
	if got, want := show([]*subject.Subject{s}),
		"kube-proxy \"kube-proxy\" 3:3\n  --proxy-mode: 4:3 kernelspace\n  --v: 5:3 4\n  --kubeconfig: 7:3 /x\n  --hostname-override: 7:3 $(NODE)\n"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	c := subject.NewContext(claims.Target{}, []*subject.Subject{s}, nil)
	if hits := missingFlag(c, s, map[string]string{"flag": "--network-name $KUBE_NETWORK"}); hits != nil {
		t.Error("a container's environment is not seen")
	}
	if s := Arguments("ds.yaml", []*yaml.Node{{Kind: yaml.ScalarNode, Value: "/usr/local/bin/kube-proxy"}}); s != nil {
		t.Error("kube-proxy for Linux")
	}
}

// TestLinuxIsLeftAlone: configurations of Linux nodes.
func TestLinuxIsLeftAlone(t *testing.T) {
	subjects, ok, _ := Read("10-flannel.conflist", []byte(`{"cniVersion": "0.3.1", "name": "cbr0", "plugins": [
		{"type": "flannel", "delegate": {"hairpinMode": true, "isDefaultGateway": true}}]}`))
	if !ok || len(subjects) > 0 {
		t.Errorf("flannel's sample for Linux: %v\n%s", ok, show(subjects))
	}
	subjects, ok,
		_ = Read("10-calico.conflist",
		[]byte(`{"cniVersion": "0.3.1", "name": "k8s", "plugins": [{"type": "calico"}, {"type": "portmap"}, {"type": "bandwidth"}]}`))
	if !ok || len(subjects) != 1 || subjects[0].Value.(*CNI).Type != "portmap" {
		t.Errorf("a list with plugins for Linux: %v\n%s", ok, show(subjects))
	}
}

// TestTestsAreDocumented: a name occurs once for a subject, and every test has a
// sentence that describes it.
func TestTestsAreDocumented(t *testing.T) {
	seen := map[string]bool{}
	for _, test := range Tests() {
		if test.Doc == "" || len(test.On) == 0 || test.Find == nil {
			t.Errorf("%s: %+v", test.Name, test)
		}
		for _, on := range test.On {
			if !slices.Contains(claims.Subjects, on) || seen[on+test.Name] {
				t.Errorf("%s on %s", test.Name, on)
			}
			seen[on+test.Name] = true
		}
	}
}
