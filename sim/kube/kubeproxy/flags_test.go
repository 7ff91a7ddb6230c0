package kubeproxy

import (
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
		{"all mistakes at once", "kernelspace", []string{"--enable-dsrtrue", "--sourcevip=1.2.3.4", "-source-vip=1.2.3.4", "--source-vip=x", "enable", "--nonsense=1", "--config=a.yaml"}, v20, "",
			[]string{`"true" is glued to the flag --enable-dsr; write --enable-dsr=true`, "no flag --sourcevip; write --source-vip=", "write --source-vip=1.2.3.4", `"x" is not an address`, `"enable" is not a flag`, "--nonsense", "does not read kube-proxy's configuration file"}},
		{"two flags in one", "kernelspace", []string{"--enable-dsr=true--source-vip=10.244.1.3", "--network-name=cbr0 --v=4"}, v20, "",
			[]string{`write "--enable-dsr=true" and "--source-vip=10.244.1.3"`, `write "--network-name=cbr0" and "--v=4"`}},
		{"gates", "kernelspace", []string{"--feature-gates=WinDSR,WinOverlay=maybe,ProxyTerminatingEndpoints=true"}, v20, "",
			[]string{"WinDSR=true", "WinOverlay=true", "has no gate ProxyTerminatingEndpoints"}},
		{"locked gate", "kernelspace", []string{"--feature-gates=WinDSR=false"}, v36, "", []string{"always on"}},
		{"too early", "kernelspace", []string{"--forward-healthcheck-vip=true"}, v20, "", []string{"it came with 1.24"}},
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
