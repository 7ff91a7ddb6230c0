package nodeconf

import (
	"encoding/binary"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/winlab-dev/winlab/internal/strict"
)

func utf16le(s string) []byte {
	out := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(s)) {
		out = binary.LittleEndian.AppendUint16(out, u)
	}
	return out
}

const netConf = "{\r\n\t\"Network\": \"10.244.0.0/16\",\r\n\t\"Backend\": {\"type\": \"vxlan\"}\r\n}\r\n"

func TestMistakesOfFiles(t *testing.T) {
	cases := []struct {
		name, file string
		data       []byte
		on         string // of the first subject, "" for none
		says       []string
	}{
		{"tabs and CRLF are fine", "net-conf.json", []byte(netConf), "net-conf", nil},
		{"UTF-16 as Out-File writes it", "net-conf.json", utf16le(netConf), "net-conf",
			[]string{"net-conf.json:1:1: the file is written with UTF-16, which the JSON parsers of a node's programs refuse"}},
		{"a byte order mark in JSON", "net-conf.json", []byte("\ufeff" + netConf), "net-conf", []string{"a byte order mark"}},
		{"a byte order mark in PowerShell", "a.ps1", []byte("\ufeffkube-proxy.exe --v=4"), "kube-proxy", nil},
		{"a byte order mark in subnet.env", "subnet.env", []byte("\ufeffFLANNEL_NETWORK=10.244.0.0/16"), "subnet-env",
			[]string{"flannel's plugin cannot read"}},
		{"comments", "cni.conf", []byte("{\n\"cniVersion\": \"0.2.0\", // why\n\"name\": \"a\", \"type\": \"nat\"}"), "cni",
			[]string{"cni.conf:2:24: JSON has no comments"}},
		{"a path with single backslashes", "cni.conf", []byte(`{"cniVersion": "0.2.0", "name": "a", "type": "nat", "dataDir": "C:\k\cni"}`),
			"cni", []string{`\k is not an escape`}},
		{"a key twice", "kubelet.json", []byte("{\"apiVersion\": \"kubelet.config.k8s.io/v1beta1\",\n\"kind\": \"KubeletConfiguration\",\n \"kind\": \"KubeletConfiguration\"}"),
			"kubelet-config", []string{`kubelet.json:3:2: "kind" is here twice; the first is on line 2, and the last one counts`}},
		{"an object without end", "cni.conf", []byte("{\"cniVersion\": \"0.2.0\", \"name\": \"a\""), "",
			[]string{"cni.conf:1:36: not JSON: what begins on line 1 has no end }"}},
		{"a comma missing", "cni.conf", []byte("{\"cniVersion\": \"0.2.0\"\n\"name\": \"a\"}"), "",
			[]string{"cni.conf:2:1: not JSON: a comma or } should be here"}},
		{"a word without quotes", "net-conf.json", []byte(`{"Network": 10.244.0.0/16, "Backend": {}}`), "",
			[]string{`net-conf.json:1:13: not JSON: "10.244.0.0/16" is not a value`}},
		{"an empty file", "cni.conflist", nil, "", []string{"the file is empty"}},
		{"not a line of the form", "subnet.env", []byte("FLANNEL_NETWORK=10.244.0.0/16\nhello"), "subnet-env",
			[]string{`subnet.env:2:1: "hello" is not a line of the form KEY=VALUE`}},
		{"a key of subnet.env twice", "subnet.env", []byte("FLANNEL_MTU=1500\nFLANNEL_MTU=1450"), "subnet-env",
			[]string{"subnet.env:2:1: FLANNEL_MTU is here twice"}},
		{"nested without end", "cni.conf", []byte(`{"cniVersion": ` + strings.Repeat("[", 200)), "", []string{"nested more than 100 levels deep"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			subjects, ok, mistakes := Read(c.file, c.data)
			if !ok {
				t.Fatal("not recognised")
			}
			on := ""
			if len(subjects) > 0 {
				on = subjects[0].On
			}
			if on != c.on {
				t.Errorf("subject %q, want %q", on, c.on)
			}
			if len(mistakes) != len(c.says) {
				t.Fatalf("mistakes %v, want %q", mistakes, c.says)
			}
			for i, want := range c.says {
				if !strings.Contains(mistakes[i].String(), want) {
					t.Errorf("mistake %q, want %q", mistakes[i], want)
				}
			}
		})
	}
}

func TestNotOurs(t *testing.T) {
	for _, c := range []struct{ name, file, text string }{
		{"a manifest", "pod.yaml", "apiVersion: v1\nkind: Pod\n"},
		{"a manifest in JSON", "pod.json", `{"apiVersion": "v1", "kind": "Pod"}`},
		{"other JSON", "package.json", `{"name": "a", "version": "1"}`},
		{"what an IPAM plugin answers", "sourceVip.json", `{"cniVersion": "0.2.0", "ip4": {"ip": "10.244.1.2/24"}}`},
		{"what an IPAM plugin is asked", "sourceVipRequest.json", `{"cniVersion": "0.2.0", "name": "vxlan0", "ipam": {"type": "host-local"}}`},
		{"a configuration of something else", "nginx.conf", "server { listen 80; }"},
		{"a kubeconfig", "config", "apiVersion: v1\nkind: Config\n"},
		{"a component's configuration among manifests", "all.yaml",
			"apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n---\napiVersion: v1\nkind: Pod\n"},
		{"a binary", "kubelet.exe.txt", "MZ\x00\x00"},
	} {
		if subjects, ok, mistakes := Read(c.file, []byte(c.text)); ok || subjects != nil || mistakes != nil {
			t.Errorf("%s: recognised with %d subjects, %v", c.name, len(subjects), mistakes)
		}
	}
}

// TestCommandLines reads command lines as people write them.
func TestCommandLines(t *testing.T) {
	cases := []struct {
		name, file, text, on string
		want                 map[string]string
		incomplete           bool
	}{
		{"direct", "a.cmd", `C:\k\kube-proxy.exe --hostname-override=win1 --v 4 --enable-dsr --profiling`, "kube-proxy",
			map[string]string{"--hostname-override": "win1", "--v": "4", "--enable-dsr": "true", "--profiling": "true"}, false},
		{"continued with backticks", "a.ps1",
			"& C:\\k\\kubelet.exe --v=4 `\n  --node-ip=$(Get-MgmtIpAddress -Name \"a b\") `\r\n  --resolv-conf=\"\"", "kubelet",
			map[string]string{"--v": "4", "--node-ip": `$(Get-MgmtIpAddress -Name "a b")`, "--resolv-conf": ""}, false},
		{"continued with carets", "a.bat", "kube-proxy.exe --v=4 ^\r\n  --proxy-mode=kernelspace", "kube-proxy",
			map[string]string{"--proxy-mode": "kernelspace"}, false},
		{"an array", "a.ps1", "$o = @(\n '--v=4'\n \"--hostname-override=$(hostname)\" # the name\n)\nkube-proxy.exe $o", "kube-proxy",
			map[string]string{"--v": "4", "--hostname-override": "$(hostname)"}, false},
		{"an array that comes from elsewhere", "a.ps1", "kube-proxy.exe --v=4 $more", "kube-proxy", map[string]string{"--v": "4"}, true},
		{"an array that a condition extends", "a.ps1", "$o = @('--v=4')\nif ($dsr)\n{\n  $o += '--enable-dsr'\n}\nkube-proxy.exe $o",
			"kube-proxy",
			map[string]string{"--v": "4", "--enable-dsr": ""}, true},
		{"the value of a flag is a variable", "a.ps1", "flanneld.exe --iface $ip --ip-masq=1", "flanneld", map[string]string{"--iface": "$ip"},
			false},
		{"a variable with one value", "a.ps1", "$name = 'win7'\nkube-proxy.exe --hostname-override=$Name", "kube-proxy",
			map[string]string{"--hostname-override": "win7"}, false},
		{"Start-Process", "a.ps1", `Start-Process -FilePath c:\k\kubelet.exe -PassThru -ArgumentList "--v=4","--resolv-conf=a" -NoNewWindow`,
			"kubelet",
			map[string]string{"--v": "4", "--resolv-conf": "a"}, false},
		{"Invoke-Expression", "a.ps1", `Invoke-Expression "c:\k\kubelet.exe --v=4 --node-ip=1.2.3.4"`, "kubelet",
			map[string]string{"--node-ip": "1.2.3.4"}, false},
		{"a path with spaces", "a.cmd", `"C:\Program Files\k\kube-proxy.exe" --v=4`, "kube-proxy", map[string]string{"--v": "4"}, false},
		{"a placeholder with a space", "a.txt", `kube-proxy.exe --log-dir=<log directory> --v=4`, "kube-proxy",
			map[string]string{"--log-dir": "<log directory>", "--v": "4"}, false},
		{"two flags glued", "a.ps1", `kube-proxy.exe --hostname-override=$(hostname)--kubeconfig=c:\k\config`, "kube-proxy",
			map[string]string{"--hostname-override": "$(hostname)", "--kubeconfig": `c:\k\config`}, false},
		{"gates in quotes", "a.ps1", `kube-proxy.exe --feature-gates="WinOverlay=true,WinDSR=true" --v=4`, "kube-proxy",
			map[string]string{"--feature-gates": "WinOverlay=true,WinDSR=true"}, false},
		{"New-Service", "a.ps1", `New-Service -Name kubelet -BinaryPathName "C:\k\kubelet.exe --windows-service --v=4" -DependsOn containerd`,
			"kubelet", map[string]string{"--windows-service": "true"}, false},
		{"variables of the environment", "a.cmd", "set KUBE_NETWORK=cbr0\r\nkube-proxy.exe --v=4", "kube-proxy",
			map[string]string{"$KUBE_NETWORK": "cbr0"}, false},
		{"variables in PowerShell", "a.ps1", "$env:NODE_NAME = \"win1\"\nflanneld.exe --iface=1.2.3.4", "flanneld",
			map[string]string{"$NODE_NAME": "win1"}, false},
		{"nssm with a name in a variable", "a.ps1", "$svc = 'kp'\n.\\nssm.exe install $svc C:\\k\\kube-proxy.exe --v=2", "kube-proxy",
			map[string]string{"--v": "2"}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			subjects, ok, mistakes := Read(c.file, []byte(c.text))
			if !ok || mistakes != nil {
				t.Fatal(ok, mistakes)
			}
			for _, s := range subjects {
				if s.On != c.on {
					continue
				}
				for flag, want := range c.want {
					n := strict.Child(s.Root, flag)
					if want == "" && n == nil && c.incomplete {
						continue
					}
					if n == nil || n.Value != want {
						t.Errorf("%s is %+v, want %q\n%s", flag, n, want, show(subjects))
					}
				}
				if got := s.Value.(*commandLine).incomplete; got != c.incomplete {
					t.Errorf("incomplete is %v\n%s", got, show(subjects))
				}
				return
			}
			t.Errorf("no %s in\n%s", c.on, show(subjects))
		})
	}
}

func TestNoCommandLine(t *testing.T) {
	for _, c := range []struct{ file, text string }{
		{"a.ps1", "Get-Process kubelet"},
		{"a.ps1", "taskkill /im kubelet.exe /f"},
		{"a.ps1", "c:\\k\\kubelet.exe --version"},
		{"a.ps1", "Write-Host \"run kubelet.exe --v=4\""},
		{"a.ps1", "# kubelet.exe --v=4"},
		{"a.cmd", "rem kubelet.exe --v=4"},
		{"a.ps1", "<#\nkubelet.exe --v=4\n#>"},
		{"a.sh", "kubelet --v=4"},
		{"kubelet.service", "[Service]\nExecStart=/usr/bin/kubelet \\\n  --v=4"},
		{"a.txt", "The kubelet is a program."},
	} {
		if subjects, ok, mistakes := Read(c.file, []byte(c.text)); !ok || len(subjects) > 0 || mistakes != nil {
			t.Errorf("%q in %s: %v %v\n%s", c.text, c.file, ok, mistakes, show(subjects))
		}
	}
}

// TestLargeFiles: inputs that grow faster than they look. A reader that is
// not bounded does not come back from them.
func TestLargeFiles(t *testing.T) {
	most := func(s string) string { return strings.Repeat(s, maxSize/len(s)) }
	for name, c := range map[string]struct{ file, text string }{
		"one line of JSON": {"a.conf", `{"cniVersion":"0.2.0","name":"a","type":"win-bridge","policies":[` +
			strings.TrimSuffix(strings.Repeat(`{"name":"x"},`, maxSize/20), ",") + "]}"},
		"keys that no plugin reads":   {"a.conf", `{"cniVersion":"0.2.0","type":"nat"` + strings.Repeat(`,"x":0`, maxSize/10) + "}"},
		"parentheses without end":     {"a.ps1", most("$(")},
		"here-strings without end":    {"a.ps1", most("@\"\n")},
		"apostrophes":                 {"a.txt", most("' ")},
		"braces":                      {"a.ps1", most("if {")},
		"many commands and variables": {"a.cmd", most("kubelet.exe --v=1\r\nset A=B\r\n")},
		"lists of lists": {"a.ps1", "$a = @()\n$b = @(" + strings.Repeat("$a ", 4000) + ")\n$c = @(" + strings.Repeat("$b ", 4000) +
			")\n$d = @(" + strings.Repeat("$c ", 4000) + ")\nkubelet.exe --v=1 $d\n"},
		"a text in quotes":    {"a.ps1", `iex "kubelet.exe ` + strings.Repeat("--a`\"b`\" ", maxSize/20) + `"`},
		"lines of subnet.env": {"subnet.env", most("FLANNEL_MTU=1\n")},
	} {
		if _, ok, mistakes := Read(c.file, []byte(c.text)); !ok {
			t.Errorf("%s: not recognised, %d mistakes", name, len(mistakes))
		}
	}
	if _, ok, mistakes := Read("a.ps1", []byte(most("# \n")+"    ")); !ok || len(mistakes) != 1 {
		t.Errorf("a file above the limit: %v %v", ok, mistakes)
	}
}

func FuzzRead(f *testing.F) {
	for _, text := range []string{
		netConf, "\ufeff" + netConf, string(utf16le(netConf)), "FLANNEL_NETWORK=1\n",
		"kube-proxy.exe --a=$(b --c --kubeconfig=d `\n @(\"x\", 'y') @\"\n{\"cniVersion\":\"\",\"type\":\"nat\"}\n\"@",
		"sc.exe create kubelet binPath= \"C:\\k\\kubelet.exe --x=\\\"a b\\\"\"",
		"nssm install kubelet kubelet.exe\nnssm set kubelet AppParameters --a=b--v=4",
		"if ($a -eq \"overlay\")\n{\n$o += @('--v')\n}\nelse {kubelet.exe $o}",
		"apiVersion: kubelet.config.k8s.io/v1\nkind: KubeletConfiguration\n",
		`{"plugins":[{"type":"flannel","delegate":{"Policies":[{"Value":{"Type":"OutBoundNAT","ExceptionList":["0.0.0.0/0"]}}]}}],"cniVersion":"0.4.0","name":"x"}`,
	} {
		for _, name := range []string{"a.ps1", "a.cmd", "a.txt", "a.conf", "a.yaml"} {
			f.Add(name, []byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		subjects, ok, mistakes := Read(name, data)
		if !ok && (subjects != nil || mistakes != nil) {
			t.Error("what is not recognised has neither subjects nor mistakes")
		}
		for _, s := range subjects {
			if s.Root == nil || s.Root.Line < 1 || s.Root.Column < 1 {
				t.Errorf("%s without a place", s.On)
			}
		}
		for _, m := range mistakes {
			if m.Message == "" || m.File != name {
				t.Errorf("mistake %+v", m)
			}
		}
		try(subjects)
		if docs, err := documents(string(data)); err == nil {
			for _, d := range docs {
				s, _ := Embedded(name, data, d)
				try(s)
			}
		}
	})
}
