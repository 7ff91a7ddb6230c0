package live

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/live/netns"
	"github.com/winlab-dev/winlab/sim/real/wine/winetest"
)

// TestWindowsPrograms: what suites and documents start in Windows containers (test/e2e/windows
// of Kubernetes 1.37, the troubleshooting pages), with the codes and texts of Windows.
func TestWindowsPrograms(t *testing.T) {
	winetest.Need(t)
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command to build the programs with")
	}
	n := up(t, "l2bridge-flannel-host-gw.yaml", Options{})
	for _, c := range []struct {
		args []string
		env  []string
		want string // is in what it prints
		code int
	}{
		{args: []string{"whoami.exe"}, want: "user manager\\containeradministrator\n"},
		{args: []string{"whoami.exe"}, env: []string{"USERNAME=ContainerUser"}, want: "user manager\\containeruser\n"},
		{args: []string{"cmd.exe", "/S", "/C", "echo %username%"}, env: []string{"USERNAME=ContainerUser"}, want: "ContainerUser"},
		{args: []string{"cmd.exe", "/c", "echo %USERPROFILE%"}, env: []string{"USERNAME=ContainerUser"}, want: `C:\users\ContainerUser`},
		{args: []string{"cmd.exe", "/c", `dir C:\windows`}, want: "system32"},
		{args: []string{"hostname.exe"}, want: "client\n"},
		{args: []string{"curl.exe", "-s", "http://win-webserver"}, want: "win-webserver"},
		{args: []string{"cmd.exe", "/c",
			"curl.exe -4 win-webserver.default.svc.cluster.local --connect-timeout 10 --fail -s -o NUL -w %{http_code}"}, want: "200"},
		{args: []string{"curl.exe", "-k", "https://kubernetezzzzzzzz:443"}, want: "curl: (6) Could not resolve host: kubernetezzzzzzzz\n",
			code: 6},
		{args: []string{"curl.exe", "-m", "1", "http://10.96.0.50:81"}, want: "curl: (28) ", code: 28},
		{args: []string{"powershell.exe", "-Command", "Resolve-DnsName win-webserver | findstr 10.96"}, want: "10.96.0.50"},
		{args: []string{"powershell.exe", "-Command", "(Invoke-WebRequest -UseBasicParsing http://win-webserver).StatusCode"}, want: "200\n"},
		{args: []string{"powershell.exe", "-Command", "sleep -Milliseconds 10; exit 3"}, code: 3},
		{args: []string{"cmd.exe", "/c", "powershell -Command Write-Host Hello"}, want: "Hello\n"},
		{args: []string{"nslookup.exe", "win-webserver.default.svc.cluster.local"}, want: "Address:  10.96.0.50\n"},
		{args: []string{"ipconfig.exe"}, want: "10.244."},
		{args: []string{"cmd.exe", "/c", "echo one two| findstr two"}, want: "one two\n"},
		{args: []string{"cmd.exe", "/c", `dir C:\windows`}, want: "system32"},
		{args: []string{"cmd.exe", "/c", "ver"}, want: "10.0.17763"},
	} {
		stdio, text := outputs(t)
		p, err := n.Start(t.Context(), "pod/client", netns.Command{Args: c.args, Env: c.env}, stdio)
		if err != nil {
			t.Fatal(err)
		}
		e, err := p.Wait(t.Context())
		if got := text(); err != nil || e.Code != c.code || !strings.Contains(got, c.want) {
			t.Errorf("%q: code %d, error %v, %q, want %d and %q", c.args, e.Code, err, got, c.code, c.want)
		}
	}
}
