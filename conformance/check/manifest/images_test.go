package manifest

import (
	"strings"
	"testing"
)

func TestImageOf(t *testing.T) {
	for _, c := range []struct {
		image, os, build, release string
		multi                     bool
	}{
		// Windows' own images.
		{"mcr.microsoft.com/windows/servercore:ltsc2019", "windows", "10.0.17763", "2019", false},
		{"mcr.microsoft.com/windows/servercore:ltsc2022-amd64", "windows", "10.0.20348", "2022", false},
		{"mcr.microsoft.com/windows/servercore:ltsc2025", "windows", "10.0.26100", "2025", false},
		{"mcr.microsoft.com/windows/nanoserver:1809", "windows", "10.0.17763", "1809", false},
		{"mcr.microsoft.com/windows/nanoserver:1809-KB4493509", "windows", "10.0.17763", "1809", false},
		{"mcr.microsoft.com/windows/nanoserver:10.0.17763.437", "windows", "10.0.17763", "2019", false},
		{"mcr.microsoft.com/windows/nanoserver:10.0.25398.230", "windows", "10.0.25398", "", false},
		{"mcr.microsoft.com/windows/server:ltsc2022", "windows", "10.0.20348", "2022", false},
		{"mcr.microsoft.com/windows:20H2", "windows", "10.0.19042", "20H2", false},
		{"mcr.microsoft.com/windows/servercore/iis:windowsservercore-ltsc2019", "windows", "10.0.17763", "2019", false},
		{"mcr.microsoft.com/windows/servercore/iis", "windows", "", "", false},
		{"mcr.microsoft.com/windows/servercore@sha256:0123456789abcdef", "windows", "", "", false},
		// The old places.
		{"microsoft/iis", "windows", "", "", false},
		{"microsoft/iis:windowsservercore-10.0.14393.1715", "windows", "10.0.14393", "2016", false},
		{"microsoft/windowsservercore:1709", "windows", "10.0.16299", "1709", false},
		{"microsoft/nanoserver:sac2016", "windows", "10.0.14393", "2016", false},
		{"docker.io/microsoft/iis:nanoserver", "windows", "", "", false},
		// .NET.
		{"mcr.microsoft.com/dotnet/framework/aspnet:4.8-20191008-windowsservercore-ltsc2019", "windows", "10.0.17763", "2019", false},
		{"mcr.microsoft.com/dotnet/framework/aspnet:4.8", "windows", "", "", true},
		{"mcr.microsoft.com/dotnet/aspnet:8.0-nanoserver-1809", "windows", "10.0.17763", "1809", false},
		{"mcr.microsoft.com/dotnet/sdk:6.0-windowsservercore-ltsc2022", "windows", "10.0.20348", "2022", false},
		{"mcr.microsoft.com/dotnet/aspnet:8.0", "linux", "", "", false},
		{"mcr.microsoft.com/dotnet/aspnet:10.0", "linux", "", "", false},
		{"mcr.microsoft.com/dotnet/aspnet:7.0", "", "", "", true},
		{"mcr.microsoft.com/dotnet/core/aspnet:3.1", "", "", "", true},
		{"mcr.microsoft.com/dotnet/aspnet:7.0-alpine", "linux", "", "", false},
		{"mcr.microsoft.com/dotnet/samples:aspnetapp", "", "", "", false},
		// Images of others that name their base.
		{"golang:1.22-windowsservercore-ltsc2022", "windows", "10.0.20348", "2022", false},
		{"golang:1.22-nanoserver", "windows", "", "", false},
		{"example.com:5000/team/app:v3-ltsc2022", "windows", "10.0.20348", "2022", false},
		{"example.com/app:1.0-windows-1809", "windows", "10.0.17763", "1809", false},
		{"example.com/app:1.0-windows-amd64-20H2", "windows", "10.0.19042", "20H2", false},
		{"example.com/app:1.0-windows", "windows", "", "", true},
		// pause.
		{"mcr.microsoft.com/oss/kubernetes/pause:3.6", "", "", "", true},
		{"mcr.microsoft.com/oss/kubernetes/pause:1.4.1", "windows", "", "", true},
		{"mcr.microsoft.com/k8s/core/pause:1.0.0", "windows", "", "", true},
		{"registry.k8s.io/pause:3.10.2", "", "", "", true},
		{"k8s.gcr.io/pause:3.4.1", "", "", "", true},
		{"k8s.gcr.io/pause:3.1", "linux", "", "", false},
		{"gcr.io/google_containers/pause-amd64:3.0", "linux", "", "", false},
		{"apprenda/pause", "windows", "", "", false},
		// Linux.
		{"nginx", "linux", "", "", false},
		{"nginx:1.27-alpine", "linux", "", "", false},
		{"docker.io/library/redis:7", "linux", "", "", false},
		{"registry.k8s.io/kube-apiserver:v1.36.0", "linux", "", "", false},
		{"registry.k8s.io/e2e-test-images/agnhost:2.53", "", "", "", true},
		// What nothing says stays unknown.
		{"example.com/nginx:1.27", "", "", "", false},
		{"example.com/app:1809", "", "", "", false},
		{"example.com/app:2019", "", "", "", false},
		{"example.com/app:windowsill", "", "", "", false},
		{"example.com/app:multsc2019", "", "", "", false},
		{"golang:1.22", "", "", "", false},
		{"nginx@sha256:0123", "linux", "", "", false},
		{"mcr.microsoft.com/powershell:latest", "", "", "", false},
		{"", "", "", "", false},
		{"::@/", "", "", "", false},
	} {
		got := ImageOf(c.image)
		if got.OS != c.os || got.Build != c.build || got.release != c.release || got.MultiArch != c.multi {
			t.Errorf("%s: got %+v, want os %q build %q release %q multi %v", c.image, got, c.os, c.build, c.release, c.multi)
		}
		if known := got.OS != "" || got.MultiArch; known != (got.why != "") {
			t.Errorf("%s: %+v: what is known has a reason, and only that", c.image, got)
		}
	}
}

func TestImageFactsSayWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"- {repos: [a], os: windows}":                    "entry 1 needs repos, os and why",
		"- {repos: [a], os: mac, why: b}":                "entry 1 needs repos, os and why",
		"- {repos: [a], os: linux, why: b, tags: '('}":   "missing closing )",
		"- {repos: [a], os: linux, why: b, colour: red}": "colour",
	} {
		if _, err := readImageFacts([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func FuzzImageOf(f *testing.F) {
	for _, s := range []string{"nginx", "a:b@c", "mcr.microsoft.com/windows/servercore:ltsc2019", "localhost:5000/x", ":", "@", "//"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		i := ImageOf(s)
		if i.OS == "" && i.Build != "" {
			t.Errorf("%q has a build and no system: %+v", s, i)
		}
	})
}
