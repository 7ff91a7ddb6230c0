package kubeproxy

import (
	"strconv"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/kube"
)

func TestParseFlags(t *testing.T) {
	v20, v36 := kube.Minor(20), kube.Minor(36)
	for _, c := range []struct {
		name  string
		mode  Mode
		flags []string
		v     kube.Version
		want  string   // of String
		errs  []string // all of them must be reported
	}{
		{"nothing", "", nil, v20, "kernelspace", nil},
		{"DSR with its gate", "kernelspace", []string{"--enable-dsr=true", "--feature-gates=WinDSR=true"}, v20, "kernelspace, DSR", nil},
		{"value in the next item", "kernelspace", []string{"--source-vip", "10.244.1.3"}, v20, "kernelspace, source VIP 10.244.1.3", nil},
		{"value after a space", "kernelspace", []string{"--source-vip 10.244.1.3"}, v20, "kernelspace, source VIP 10.244.1.3", nil},
		{"DSR needs no gate any more", "kernelspace", []string{"--enable-dsr"}, v36, "kernelspace, DSR", nil},
		{"harmless flags", "kernelspace", []string{"--v=6", "--kubeconfig=c:/k/config", "--cluster-cidr=10.244.0.0/16"}, v20, "kernelspace", nil},
		{"DSR without its gate", "kernelspace", []string{"--enable-dsr=true"}, v20, "", []string{"add --feature-gates=WinDSR=true"}},
		{"all mistakes at once", "kernelspace", []string{"--enable-dsrtrue", "--sourcevip=1.2.3.4", "-source-vip=1.2.3.4", "--source-vip=x",
			"enable", "--nonsense=1", "--config=a.yaml"}, v20, "",
			[]string{`"true" is attached to the flag --enable-dsr; write --enable-dsr=true`, "no flag --sourcevip; write --source-vip=",
				"write --source-vip=1.2.3.4", `"x" is not an address`, `"enable" is not a flag`, "--nonsense",
				"does not read kube-proxy's configuration file"}},
		{"two flags in one", "kernelspace", []string{"--enable-dsr=true--source-vip=10.244.1.3", "--network-name=cbr0 --v=4"}, v20, "",
			[]string{`write "--enable-dsr=true" and "--source-vip=10.244.1.3"`, `write "--network-name=cbr0" and "--v=4"`}},
		{"gates", "kernelspace", []string{"--feature-gates=WinDSR,WinOverlay=maybe,ProxyTerminatingEndpoints=true"}, v20, "",
			[]string{"WinDSR=true", "WinOverlay=true", "does not have the gate ProxyTerminatingEndpoints"}},
		{"no gates in a list of gates", "kernelspace", []string{"--feature-gates=WinDSR=true, ,,WinOverlay=true,", "--enable-dsr"}, v20,
			"kernelspace, DSR", nil},
		{"lists of gates add up", "kernelspace", []string{"--feature-gates=WinOverlay=false", "--feature-gates=WinDSR=true", "--enable-dsr"}, v20,
			"kernelspace, DSR", nil},
		{"a gate of other parts, and one that is always on", "kernelspace",
			[]string{"--feature-gates=WinDSR=true,TopologyAwareHints=true", "--enable-dsr"}, v36, "kernelspace, DSR", nil},
		{"each mistake in a list of gates", "kernelspace", []string{"--feature-gates=WinDSR,ProxyTerminatingEndpoints=true,WinOverlay=x"}, v20,
			"", []string{`"WinDSR": write the gate as WinDSR=true`, "does not have the gate ProxyTerminatingEndpoints",
				`"WinOverlay=x": write the gate as WinOverlay=true`}},
		{"health checks", "kernelspace", []string{"--forward-healthcheck-vip", "--root-hnsendpoint-name=x",
			"--healthz-bind-address=0.0.0.0:10300"}, v36, "kernelspace, health check VIP", nil},
		{"no port", "kernelspace", []string{"--healthz-bind-address=0.0.0.0:0", "--hostname-override= "}, v36, "",
			[]string{"is not an address and port", "the name is empty"}},
		{"no value", "kernelspace", []string{"--source-vip", "--network-name"}, v36, "",
			[]string{"--source-vip: the value is missing; write --source-vip=10.244.1.3", "--network-name: the value is missing"}},
		{"a flag without an example", "kernelspace", []string{"--kubeconfig"}, v36, "", []string{"write --kubeconfig=VALUE"}},
		{"the same twice", "kernelspace", []string{"--network-name=a", "--network-name=a"}, v36, "kernelspace", nil},
		{"the mode that it has", "kernelspace", []string{"--proxy-mode=kernelspace"}, v36, "kernelspace", nil},
		{"no mode", "none", nil, v36, "none", nil},
		{"the mode of Linux nodes", "iptables", nil, v36, "iptables", nil},
		{"the last userspace mode", "userspace", nil, kube.Minor(25), "userspace", nil},
		{"the userspace mode needs no gate for DSR", "userspace", []string{"--enable-dsr"}, v20, "userspace, DSR", nil},
		{"a version that was not read", "kernelspace", nil, kube.Minor(13), "", []string{"1.14 to 1.37"}},
		{"neither true nor false", "kernelspace", []string{"--enable-dsr=yes"}, v36, "", []string{`"yes" is neither true nor false`}},
		{"one dash", "kernelspace", []string{"-v=4", "-enable-dsr"}, v36, "", []string{"flags begin with two dashes; write --enable-dsr"}},
		{"nothing but dashes", "kernelspace", []string{"--", "-"}, v36, "", []string{`"--" is not a flag`, `"-" is not a flag`}},
		{"no such flag", "kernelspace", []string{"--nonsense=1", "--x"}, v36, "",
			[]string{
				"no flag --nonsense, or winlab does not know it; it knows --enable-dsr, --feature-gates, --source-vip, --network-name, --hostname-override, --forward-healthcheck-vip, --root-hnsendpoint-name, --healthz-bind-address, --proxy-mode", "no flag --x"}},
		{"a flag that looks like another", "kernelspace", []string{"--vx=1", "--logtostderrtrue"}, v36, "",
			[]string{"no flag --vx, or winlab", "no flag --logtostderrtrue, or winlab"}},
		{"locked gate", "kernelspace", []string{"--feature-gates=WinDSR=false"}, v36, "", []string{"always on"}},
		{"too early", "kernelspace", []string{"--forward-healthcheck-vip=true"}, v20, "", []string{"1.24 introduced it"}},
		{"twice", "kernelspace", []string{"--network-name=a", "--network-name=b"}, v20, "", []string{"given twice"}},
		{"mode", "ipvs", nil, v20, "", []string{"write one of kernelspace, userspace, none"}},
		{"mode flag", "kernelspace", []string{"--proxy-mode=userspace"}, v20, "", []string{"the mode is kernelspace"}},
		{"userspace is gone", "userspace", nil, v36, "", []string{"1.25 was the last"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ParseFlags(c.mode, c.flags, c.v)
			if (err != nil) != (len(c.errs) > 0) {
				t.Fatalf("error %v", err)
			}
			for _, want := range c.errs {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not say %q:\n%v", want, err)
				}
			}
			if err == nil && got.String() != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func FuzzParseFlags(f *testing.F) {
	f.Add("--enable-dsr=true\n--feature-gates=WinDSR=true", uint8(20))
	f.Add("--source-vip\n10.244.1.3\n-v=4\n--", uint8(36))
	f.Fuzz(func(t *testing.T, text string, minor uint8) {
		c, err := ParseFlags(ModeKernelspace, strings.Split(text, "\n"), kube.Minor(int(minor)))
		if err == nil && c.Mode != ModeKernelspace {
			t.Errorf("mode %q", c.Mode)
		}
	})
}

// What the flags set, where no text of the configuration shows it.
func TestFlagsAreKept(t *testing.T) {
	c, err := ParseFlags("", []string{"--hostname-override= WIN1 ", "--healthz-bind-address=[::1]:10300", "--root-hnsendpoint-name=x",
		"--network-name=n", "--feature-gates=WinOverlay=false,A=true"}, kube.Minor(30))
	if err != nil {
		t.Fatal(err)
	}
	if c.hostnameOverride != "win1" || c.healthzPort != 10300 || c.rootHnsEndpointName != "x" || c.NetworkName != "n" ||
		c.featureGates["WinOverlay"] || !c.featureGates["A"] || c.forwardHealthCheckVIP {
		t.Errorf("%+v", c)
	}
	if c, err := ParseFlags("", nil, kube.Minor(30)); err != nil || c.rootHnsEndpointName != "cbr0" || c.healthzPort != 0 {
		t.Errorf("%+v, %v", c, err)
	}
}

// In which version each flag came. The userspace mode takes flags in versions before 1.14, too.
func TestFlagsByVersion(t *testing.T) {
	for since, names := range map[int]string{
		14: "enable-dsr feature-gates source-vip network-name hostname-override healthz-bind-address proxy-mode bind-address cluster-cidr kubeconfig config-sync-period iptables-min-sync-period iptables-sync-period metrics-bind-address masquerade-all profiling v logtostderr alsologtostderr log-dir log-file windows-service",
		24: "forward-healthcheck-vip root-hnsendpoint-name",
	} {
		for name := range strings.FieldsSeq(names) {
			value := map[string]string{"source-vip": "10.244.1.3", "healthz-bind-address": "0.0.0.0:10256", "proxy-mode": "userspace",
				"feature-gates": "A=true"}[name]
			if value == "" {
				value = "true"
			}
			for _, minor := range []int{since - 1, since} {
				_, err := ParseFlags(ModeUserspace, []string{"--" + name + "=" + value}, kube.Minor(minor))
				if early := minor < since; early != (err != nil) || early &&
					!strings.Contains(err.Error(), "does not have this flag; 1."+strconv.Itoa(since)) {
					t.Errorf("--%s in 1.%d: %v", name, minor, err)
				}
			}
		}
	}
	// Those that may stand without a value.
	for name := range strings.FieldsSeq(
		"enable-dsr forward-healthcheck-vip masquerade-all profiling logtostderr alsologtostderr windows-service") {
		if _, err := ParseFlags(ModeUserspace, []string{"--" + name, "--v=4"}, kube.Minor(24)); err != nil {
			t.Errorf("--%s: %v", name, err)
		}
	}
}
