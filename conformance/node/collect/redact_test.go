package collect

import (
	"strings"
	"testing"
)

func TestRedact(t *testing.T) {
	for _, c := range []struct {
		in, out string
		n       int
	}{
		{`kubelet.exe --bootstrap-kubeconfig=C:\k\bootstrap-config --token=abcdef.0123456789abcdef -v=4`,
			`kubelet.exe --bootstrap-kubeconfig=C:\k\bootstrap-config --token=REDACTED -v=4`, 1},
		{`kubeadm join --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash sha256:0123`,
			`kubeadm join --token REDACTED --discovery-token-ca-cert-hash REDACTED`, 2},
		{`rancher.exe --server https://x --password hunter2 --ip 10.0.0.1`, `rancher.exe --server https://x --password REDACTED --ip 10.0.0.1`,
			1},
		{`  "aadClientSecret": "a \"b\" c", "location": "westeurope"`, `  "aadClientSecret": "REDACTED", "location": "westeurope"`, 1},
		{`AZURE_STORAGE_CONNECTION_STRING=DefaultEndpointsProtocol=https;AccountKey=abc==`,
			`AZURE_STORAGE_CONNECTION_STRING=REDACTED;AccountKey=REDACTED`, 2},
		{`https://x.blob.core.windows.net/c?sv=1&sig=abc%3D&se=2`, `https://x.blob.core.windows.net/c?sv=1&sig=REDACTED&se=2`, 1},
		{`HTTP_PROXY=http://user:pass@proxy:3128`, `HTTP_PROXY=http://REDACTED@proxy:3128`, 1},
		{`Authorization: Bearer eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJr.c2ln`, `Authorization: Bearer REDACTED`, 1},
		{`token eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJr.c2ln found`, `token REDACTED found`, 1},
		{"key: |\n-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nnext", "key: |\nREDACTED\nnext", 1},
		{"cut -----BEGIN PRIVATE KEY-----\nabc", "cut REDACTED", 1},
		{`client-key-data: LS0tLS1CRUdJTg==`, `client-key-data: REDACTED`, 1},
		// What is not a secret stays: it decides, or says where to look.
		{`--authentication-token-webhook=true --tls-private-key-file=C:\k\k.pem --cluster-cidr=10.244.0.0/16`, "", 0},
		{`--source-vip=10.244.1.2 --feature-gates=WinDSR=true --network-name=cbr0`, "", 0},
		{`I1122 06:45:21.073167 3112 hns.go:400] "Created Hns loadbalancer policy resource" loadBalancer={"HNSID":"8A7A5C5F-0b1e"}`, "", 0},
		{`"automountServiceAccountToken": false, "sandbox_image": "mcr.microsoft.com/oss/kubernetes/pause:3.9"`, "", 0},
		{`10.0.17763.1432 c9bce1d3-7d28-4a5c-95c0-1c9a8d4b0c11 00-15-5D-01-02-03`, "", 0},
	} {
		out, n := Redact(c.in)
		want := c.out
		if c.n == 0 {
			want = c.in
		}
		if out != want || n != c.n {
			t.Errorf("%s\ngot  %s (%d)\nwant %s (%d)", c.in, out, n, want, c.n)
		}
		if again, _ := Redact(out); again != out {
			t.Errorf("a second time: %s\nbecomes %s", out, again)
		}
	}
}

func TestVariables(t *testing.T) {
	got, n := Variables([]string{`=C:=C:\k`, "COMPUTERNAME=win1", "MY_PASSWORD=x", "HARMLESS=1", "https_proxy=http://u:p@h:1",
		"KUBE_NETWORK=cbr0"})
	want := "COMPUTERNAME=win1\r\nMY_PASSWORD=REDACTED\r\nHARMLESS=REDACTED\r\nhttps_proxy=http://REDACTED@h:1\r\nKUBE_NETWORK=cbr0\r\n"
	if got != want || n != 3 {
		t.Errorf("%d %q", n, got)
	}
}

// FuzzRedact: a password behind its flag, in JSON or in a URL does not come out, whatever is
// around it.
func FuzzRedact(f *testing.F) {
	f.Add("kubelet.exe ", " -v=4")
	f.Add(`{"a": "`, "\n")
	f.Fuzz(func(t *testing.T, before, after string) {
		const secret = "Xq7zLongSecretValue9"
		if strings.Contains(before+after, secret) {
			t.Skip()
		}
		for _, form := range []string{"\n--password=%s\n", "\nTOKEN=%s\n", "\n--token %s\n", "\nhttp://u:%s@h/\n", "\nBearer %s\n",
			"\n\"clientSecret\": \"%s\"\n"} {
			if out, n := Redact(before + strings.ReplaceAll(form, "%s", secret) + after); strings.Contains(out, secret) || n == 0 {
				t.Errorf("%q: %q (%d)", form, out, n)
			}
		}
	})
}
