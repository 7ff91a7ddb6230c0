package schedule

import (
	"strings"
	"testing"
)

func TestImages(t *testing.T) {
	ltsc2019 := Platform{System: "windows", Arch: "amd64", Build: "10.0.17763"}
	ltsc2022 := Platform{System: "windows", Arch: "amd64", Build: "10.0.20348"}
	nginx := Platform{System: "linux"}
	win2022 := node("win2022", "windows", "10.0.20348")
	win2025 := node("win2025", "windows", "10.0.26100")
	abi := node("win2025", "windows", "10.0.26100", func(n *Node) { n.StableABI = true })
	for _, c := range []struct {
		name      string
		platforms []Platform
		isolation Isolation
		node      Node
		want      Answer
		why       string
	}{
		{"a Windows image on its build", []Platform{ltsc2019}, "", win2019, Yes, ""},
		{"the revision does not count", []Platform{{"windows", "amd64", "10.0.17763.5"}}, "", win2019, Yes, ""},
		{"on another build", []Platform{ltsc2019}, "", win1903, No, "made for Windows 10.0.17763"},
		{"on another build, with Hyper-V isolation", []Platform{ltsc2019}, HyperV, win1903, Yes, ""},
		{"a newer image, with Hyper-V isolation", []Platform{ltsc2022}, HyperV, win2019, No, "made for Windows 10.0.20348"},
		{"a Windows image on Linux", []Platform{ltsc2019}, "", linux, No, "made for windows/amd64; the node is linux/amd64"},
		{"a Linux image on Windows", []Platform{nginx}, "", win2019, No, "made for linux; the node is windows/amd64"},
		{"a Linux image with Hyper-V isolation", []Platform{nginx}, HyperV, win2019, No, "made for linux"},
		{"an image of many platforms", []Platform{nginx, ltsc2019, ltsc2022}, "", win2022, Yes, ""},
		{"an image of many platforms, none fits", []Platform{nginx, ltsc2022}, "", win2019, No, "made for Windows 10.0.20348"},
		{"another architecture", []Platform{{"linux", "arm64", ""}}, "", linux, No, "made for linux/arm64; the node is linux/amd64"},
		{"a Windows image of unknown build", []Platform{{"windows", "", ""}}, "", win2019, Unknown, "build is not known"},
		{"an image for every build", []Platform{{"windows", "", AnyBuild}}, "", win2019, Yes, ""},
		{"an unknown image", nil, "", win2019, Unknown, "not known"},
		{"the release before, as the documents ask", []Platform{ltsc2022}, "", win2025, No, "made for Windows 10.0.20348"},
		{"the release before, as the runtime matches", []Platform{ltsc2022}, "", abi, Yes, ""},
		{"two releases before", []Platform{ltsc2019}, "", abi, No, "made for Windows 10.0.17763"},
	} {
		r := Evaluate(36, Request{Pod: pod(), Isolation: c.isolation, Images: []Image{{Container: "c", Name: "i", Platforms: c.platforms}}},
			[]Node{c.node})
		v := r.Verdicts[0]
		if v.Runs != c.want || !strings.Contains(v.Why(), c.why) || (c.why == "") != (v.Why() == "") {
			t.Errorf("%s: %s, %q; want %s, %q", c.name, v.Runs, v.Why(), c.want, c.why)
		}
	}
}

func TestOneContainerIsEnoughToStopAPod(t *testing.T) {
	r := Evaluate(36, Request{Pod: pod(), Images: []Image{
		{Container: "app", Name: "iis", Platforms: []Platform{{"windows", "", "10.0.17763"}}},
		{Container: "sidecar", Name: "envoy", Platforms: []Platform{{"linux", "", ""}}},
	}}, []Node{linux, win2019})
	for _, v := range r.Verdicts {
		if v.Runs != No || len(v.problems) != 1 {
			t.Errorf("%+v", v)
		}
	}
}

// The examples of hcsshim's rule: osversion/platform_compat_windows.go.
func TestSameABI(t *testing.T) {
	for _, c := range []struct {
		container, host string
		want            bool
	}{
		{"10.0.17763", "10.0.17763", true},
		{"10.0.17763", "10.0.19041", false},
		{"10.0.20348", "10.0.20348", true},
		{"10.0.20348", "10.0.22621", true},
		{"10.0.20348", "10.0.26100", true},
		{"10.0.20348", "10.0.26200", false},
		{"10.0.26100", "10.0.26200", true},
		{"10.0.26100", "10.0.20348", false},
		{"6.3.20348", "10.0.20348", false},
		{"", "10.0.20348", false},
	} {
		if got := SameABI(c.container, c.host); got != c.want {
			t.Errorf("SameABI(%q, %q) = %v", c.container, c.host, got)
		}
	}
}
