package live

import (
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/winlab-dev/winlab/sim/trace"
)

// tool runs a tool on a machine as tool.exe does, without Wine.
func tool(t *testing.T, n *Net, machine string, words ...string) (out, errs string, code int) {
	t.Helper()
	s, err := n.find(machine)
	if err != nil {
		t.Fatal(err)
	}
	var p printed
	n.tool(s, words, &p)
	return p.out.String(), p.err.String(), p.code
}

// The tools ask what the model's tools ask, with real datagrams, and print the same
// answers in the form of Windows.
func TestTools(t *testing.T) {
	n := up(t, "l2bridge-flannel-host-gw.yaml", Options{})
	const server = "Server:  kube-dns.kube-system.svc.cluster.local\r\nAddress:  10.96.0.10\r\n\r\n"
	const head = "\r\nName                                           Type   TTL   Section    IPAddress\r\n" +
		"----                                           ----   ---   -------    ---------\r\n"
	for _, c := range []struct {
		words     string
		out, errs string
		code      int
	}{
		{`C:\windows\system32\nslookup.exe win-webserver.default.svc.cluster.local`, server +
			"Name:    win-webserver.default.svc.cluster.local\r\nAddress:  10.96.0.50\r\n\r\n", "", 0},
		// The first answer to nslookup-interface-suffixes: it reads no suffix of the interface.
		{"nslookup win-webserver", server, "*** kube-dns.kube-system.svc.cluster.local can't find win-webserver: Non-existent domain\r\n", 1},
		{"nslookup www.example.com 10.96.0.10", server + "Name:    www.example.com\r\nAddress:  203.0.113.10\r\n\r\n",
			"Non-authoritative answer:\r\n", 0},
		{"nslookup a b c", "", "winlab: nslookup takes NAME [SERVER-ADDRESS] here\r\n", 1},
		{"nslookup www.example.com dns", "", "*** Can't find server address for 'dns': \r\n", 1},
		{"resolve-dnsname -Name win-webserver", head +
			"win-webserver.default.svc.cluster.local        A      30    Answer     10.96.0.50\r\n\r\n", "", 0},
		{"resolve-dnsname -ErrorAction Stop nosuch", "", "Resolve-DnsName : nosuch : DNS name does not exist\r\n", 1},
		{"resolve-dnsname nosuch", "", "Resolve-DnsName : nosuch : DNS name does not exist\r\n", 1},
		{"resolve-dnsname nosuch -Type", "", "Resolve-DnsName : winlab: -Type is not known here\r\n", 1},
		{"getaddrinfo win-webserver", "10.96.0.50\r\n", "", 0},
		// The suffixes of the interface are not in the global list.
		{"resolver", "server 10.96.0.10\r\n", "", 0},
		{"getaddrinfo a b", "", "winlab: getaddrinfo takes a name\r\n", 1},
		{"powershell.exe -Command Get-Foo", "", "winlab: powershell.exe is built with Go, which this machine does not have\r\n", 1},
		{"other", "", "other: winlab has no such program\r\n", 1},
	} {
		out, errs, code := tool(t, n, "pod/client", strings.Fields(c.words)...)
		if out != c.out || errs != c.errs || code != c.code {
			t.Errorf("%s: code %d, printed\n%q\n%q\nwant %d\n%q\n%q", c.words, code, out, errs, c.code, c.out, c.errs)
		}
	}
	ipconfig, _, code := tool(t, n, "pod/client", "ipconfig", "/all")
	for _, want := range []string{"\r\nWindows IP Configuration\r\n\r\n   Host Name . . . . . . . . . . . . : client\r\n",
		"   IPv4 Address. . . . . . . . . . . : 10.244.1.4(Preferred)\r\n   Subnet Mask . . . . . . . . . . . : 255.255.255.0\r\n   Default Gateway . . . . . . . . . : 10.244.1.",
		"   DNS Servers . . . . . . . . . . . : 10.96.0.10\r\n", "   Connection-specific DNS Suffix  . : ",
		"   DHCP Enabled. . . . . . . . . . . : No\r\n"} {
		if code != 0 || !strings.Contains(ipconfig, want) {
			t.Errorf("no %q in %s", want, ipconfig)
		}
	}
	// Nobody answers there.
	out, errs, code := tool(t, n, "pod/client", "nslookup", "www.example.com", "10.244.1.3")
	if code != 1 || !strings.HasPrefix(errs, "DNS request timed out.\r\n    timeout was 2 seconds.\r\n") ||
		!strings.HasPrefix(out, "Server:  UnKnown\r\nAddress:  10.244.1.3") || !strings.HasSuffix(errs, "*** Request to UnKnown timed-out\r\n") &&
		!strings.Contains(errs, "can't find") {
		t.Errorf("an invalid server: code %d\n%q\n%q", code, out, errs)
	}
	// The same names, asked by the model.
	for _, name := range []string{"win-webserver", "win-webserver.default.svc.cluster.local", "www.example.com", "nosuch", "peer"} {
		look, err := n.c.Resolve(t.Context(), "pod/client", name, "")
		if err != nil {
			t.Fatal(err)
		}
		out, errs, _ := tool(t, n, "pod/client", "resolve-dnsname", name)
		for _, a := range look.Answers {
			if !strings.Contains(out, "     "+a+"\r\n") {
				t.Errorf("%s: the model has %s, the tool printed\n%s%s", name, a, out, errs)
			}
		}
		if (look.Verdict == trace.Delivered) != (errs == "") {
			t.Errorf("%s: the model says %s, the tool\n%s%s", name, look.Verdict, out, errs)
		}
	}
}

func TestWhatResolveDnsNamePrints(t *testing.T) {
	var p printed
	var records []dns.RR
	for _, text := range []string{"www.a. 5 IN CNAME b.", "b. 7 IN A 10.0.0.1", "b. 7 IN AAAA fd00::1", "b. 7 IN A 10.0.0.1"} {
		r, err := dns.NewRR(text)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
	}
	resolved(&p, records)
	const want = "\r\nName                           Type   TTL   Section    NameHost\r\n" +
		"----                           ----   ---   -------    --------\r\n" +
		"www.a                          CNAME  5     Answer     b\r\n" +
		"\r\nName       : b\r\nQueryType  : AAAA\r\nTTL        : 7\r\nSection    : Answer\r\nIP6Address : fd00::1\r\n\r\n" +
		"\r\nName       : b\r\nQueryType  : A\r\nTTL        : 7\r\nSection    : Answer\r\nIP4Address : 10.0.0.1\r\n\r\n\r\n"
	if got := p.out.String(); got != want {
		t.Errorf("%q\nwant\n%q", got, want)
	}
	p = printed{}
	resolved(&p, records[1:])
	if rows := strings.Split(p.out.String(), "\r\n"); len(rows) != 7 || !strings.Contains(rows[3], "AAAA   7     Answer     fd00::1") ||
		!strings.Contains(rows[4], "A      7     Answer     10.0.0.1") {
		t.Errorf("%q", rows)
	}
	if name, addrs := answered(records); name != "b" || len(addrs) != 2 || addrs[0] != "fd00::1" || !aliased(records) {
		t.Errorf("nslookup: %s %v", name, addrs)
	}
}
