package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// bed is a system whose names are 127.0.0.1, but for "nosuch".
func bed(t *testing.T, in string) (s *system, out, errs *bytes.Buffer) {
	t.Helper()
	out, errs = &bytes.Buffer{}, &bytes.Buffer{}
	return &system{in: strings.NewReader(in), out: out, err: errs, dir: t.TempDir(), environ: []string{"COLOR=red", "PATH=/nowhere"},
		addresses: func(_ context.Context, name string) ([]netip.Addr, error) {
			if name == "nosuch" {
				return nil, errors.New("no such host")
			}
			return []netip.Addr{netip.IPv6Loopback(), netip.MustParseAddr("127.0.0.1")}, nil
		}}, out, errs
}

// TestScripts: the forms of Kubernetes' suites. {dir} is the working folder.
func TestScripts(t *testing.T) {
	for _, c := range []struct {
		args []string
		in   string
		out  string
		errs string // is in the error output
		code int
	}{
		{[]string{"-x", "-c", "echo hi"}, "", "hi\n", "+ echo hi", 0},
		{[]string{"-c", "for i in `seq 1 3`; do echo $i; done"}, "", "1\n2\n3\n", "", 0},
		{[]string{"-c", "for i in $(seq 0 2); do echo; false || true; done; exit 4"}, "", "\n\n\n", "", 4},
		{[]string{"-c", `check="$(echo a)" && test -n "$check" && echo OK > one; cat one; echo $COLOR`}, "", "OK\nred\n", "", 0},
		{[]string{"-c", `test -n "$(grep 'dns-querier-1' hosts)" && echo found`}, "", "", "can't open 'hosts': No such file or directory", 1},
		{[]string{"-c", "echo '10.0.0.1 a.b' > hosts; grep -c 'a\\.b' hosts; grep -E 'x|10' hosts; grep -v 10 hosts"}, "", "1\n10.0.0.1 a.b\n",
			"", 1},
		{[]string{"-c", "! ss -ant46 'sport = :80' | tail -n +2 | grep LISTEN"}, "", "", "ss", 0},
		{[]string{"-c", "printf 'a\\r\\nb\\n' | tr -d '\\r\\n'; seq 5 | tail -n 2; seq 5 | tail -n +4; seq 5 | head -2; seq 3 | wc -l"}, "",
			"ab4\n5\n4\n5\n1\n2\n3\n", "", 0},
		{[]string{"-c", "mkdir -p a/b; touch a/b/c; ls a/b; rm -rf a; ls a"}, "", "c\n", "ls: a: No such file or directory", 1},
		{[]string{"-c", "curl http://x; test \"$?\" -ne \"0\""}, "", "", "curl", 0},
		{[]string{"-c", "nosuchprogram"}, "", "", "nosuchprogram", 127},
		{[]string{"-c", "sleep x"}, "", "", "invalid number 'x'", 1},
		{[]string{"-c", "sleep 0; true; /bin/false"}, "", "", "", 1},
		{[]string{"-c", "echo $0 $1", "me", "you"}, "", "me you\n", "", 0},
		{nil, "cat\nhi there\n", "hi there\n", "", 0},
		{[]string{"-c", "if"}, "", "", "syntax error", 2},
		{[]string{"-c"}, "", "", "requires an argument", 2},
		{[]string{"-z"}, "", "", "illegal option -z", 2},
		{[]string{"nofile"}, "", "", "can't open 'nofile'", 127},
		{[]string{"-c", "dd if=/dev/urandom of=file bs=1M count=2; wc -c file; dd if=/dev/zero bs=4 count=2 | wc -c"}, "", "2097152 file\n8\n",
			"2+0 records in", 0},
		{[]string{"-c", "dd if=nofile"}, "", "", "dd: can't open 'nofile': No such file or directory", 1},
		{[]string{"-c", "dd bs=x"}, "", "", "invalid number 'x'", 1},
		{[]string{"-c", "date +%Q"}, "", "", "does not know %Q", 2},
		{[]string{"-c", "grep -P a"}, "", "", "does not know -P", 2},
	} {
		s, out, errs := bed(t, c.in)
		in := c.in
		if in != "" { // a script from the input reads the rest of it
			s.in = strings.NewReader(strings.Replace(in, "cat\n", "echo ", 1))
		}
		code := shell(t.Context(), s, c.args)
		if out.String() != c.out || !strings.Contains(errs.String(), c.errs) || code != c.code {
			t.Errorf("%q: %q, %q, %d; want %q, %q, %d", c.args, out, errs, code, c.out, c.errs, c.code)
		}
	}
	s, out, _ := bed(t, "")
	if err := os.WriteFile(filepath.Join(s.dir, "script"), []byte("echo from $0 $1\r\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if code := shell(t.Context(), s, []string{"script", "1"}); code != 0 || out.String() != "from script 1\n" {
		t.Errorf("%q, %d", out, code)
	}
}

// TestPlaces: a path without a drive is one of drive C.
func TestPlaces(t *testing.T) {
	for name, want := range map[string]string{"/results/a": `C:\results\a`, `\results`: `C:\results`, "/dev/null": "NUL"} {
		if got := place(`C:\work`, name, true); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := place("/work", "/results/a", false); got != "/results/a" {
		t.Error(got)
	}
	if find(`C:\bin\SH.exe`) == nil || find("/bin/false") == nil || find("/agnhost") != nil {
		t.Error("find")
	}
}

// TestNetcat: what it sends and prints, and its ends.
func TestNetcat(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b := make([]byte, 100)
			n, _ := c.Read(b)
			fmt.Fprintf(c, "you said %s", b[:n])
			_ = c.Close()
		}
	}()
	u, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = u.Close() }()
	go func() {
		b := make([]byte, 100)
		for {
			n, from, err := u.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = u.WriteTo(append([]byte("datagram "), b[:n]...), from)
		}
	}()
	free, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = free.Close()
	port := func(a net.Addr) string { return a.String()[strings.LastIndex(a.String(), ":")+1:] }
	for _, c := range []struct {
		args, out, errs string
		code            int
	}{
		{"-v -t -w 2 web " + port(l.Addr()), "you said hostName\n", "web [127.0.0.1] " + port(l.Addr()) + " (?) open\n", 0},
		{"-w2 127.0.0.1 " + port(l.Addr()), "you said hostName\n", "", 0},
		{"-v -z web " + port(l.Addr()), "", "open", 0},
		{"-v -u -w 1 web " + port(u.LocalAddr()), "datagram hostName\n", "open", 0},
		{"-v -w 2 web " + port(free.Addr()), "", "connection refused", 1},
		{"-w 2 web " + port(free.Addr()), "", "", 1},
		{"nosuch 80", "", "HOST_NOT_FOUND", 1},
		{"-u -W 1 web 80", "", "illegal option -- W", 1},
		{"-l -p 80", "", "does not know -l", 2},
		{"-w x web 80", "", "invalid value x of -w", 1},
		{"web", "", "no port", 1},
		{"web 0", "", "invalid port 0", 1},
	} {
		s, out, errs := bed(t, "hostName\n")
		if code := nc(t.Context(), s, strings.Fields(c.args)); code != c.code || out.String() != c.out ||
			!strings.Contains(errs.String(), c.errs) || c.errs == "" && errs.Len() > 0 {
			t.Errorf("nc %s: %q, %q, %d", c.args, out, errs, code)
		}
	}
}

func TestWget(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/no" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprintf(w, "%s of %s", r.URL.Path, r.UserAgent())
	}))
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	for _, c := range []struct {
		args, out, errs string
		code            int
	}{
		{"-q -O - http://web:" + port + "/x", "/x of Wget", "", 0},
		{"-T 5 -qO- web:" + port, "/ of Wget", "", 0},
		{"-q -O - http://web:" + port + "/no", "", "server returned error: HTTP/1.1 404 Not Found", 1},
		{"-q -O - http://nosuch", "", "bad address 'nosuch'", 1},
		{"-q -O - http://127.0.0.1:1", "", "Connection refused", 1},
		{"-q ftp://x", "", "not an http URL", 1},
		{"-c http://x", "", "does not know -c", 2},
	} {
		s, out, errs := bed(t, "")
		if code := wget(t.Context(), s, strings.Fields(c.args)); code != c.code || out.String() != c.out ||
			!strings.Contains(errs.String(), c.errs) {
			t.Errorf("wget %s: %q, %q, %d", c.args, out, errs, code)
		}
	}
	s, _, _ := bed(t, "")
	if code := wget(t.Context(), s, []string{"-q", "http://web:" + port + "/page"}); code != 0 {
		t.Error(code)
	}
	if text, err := os.ReadFile(filepath.Join(s.dir, "page")); err != nil || string(text) != "/page of Wget" {
		t.Errorf("%q %v", text, err)
	}
}

// TestDig asks a server that knows web.default.svc. and answers over UDP and TCP.
func TestDig(t *testing.T) {
	mux := dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		a := new(dns.Msg)
		a.SetReply(q)
		for _, text := range []string{"web.default.svc. 5 IN A 10.0.0.1", "web.default.svc. 5 IN CNAME other.example.",
			"_http._tcp.web.default.svc. 5 IN SRV 0 100 80 web.default.svc.", "1.0.0.10.in-addr.arpa. 5 IN PTR web.default.svc."} {
			if r, err := dns.NewRR(text); err == nil && r.Header().Name == q.Question[0].Name && r.Header().Rrtype == q.Question[0].Qtype {
				a.Answer = append(a.Answer, r)
			}
		}
		if len(a.Answer) == 0 {
			a.Rcode = dns.RcodeNameError
		}
		_ = w.WriteMsg(a)
	})
	u, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := u.LocalAddr().(*net.UDPAddr).Port
	l, err := net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		t.Skipf("port %d is free for UDP and not for TCP: %v", port, err)
	}
	for _, server := range []*dns.Server{{PacketConn: u, Handler: mux}, {Listener: l, Handler: mux}} {
		go func() { _ = server.ActivateAndServe() }()
		defer func() { _ = server.Shutdown() }()
	}
	for _, c := range []struct {
		args, out, errs string
		suffixes        []string
		code            int
	}{
		{"+short web.default.svc", "10.0.0.1\n", "", nil, 0},
		{"+notcp +noall +answer +search web.default.svc A", "web.default.svc.\t5\tIN\tA\t10.0.0.1\n", "", nil, 0},
		{"+tcp +noall +answer +search _http._tcp.web.default.svc SRV", "_http._tcp.web.default.svc.\t5\tIN\tSRV\t0 100 80 web.default.svc.\n", "",
			nil, 0},
		{"+short web.default.svc CNAME", "other.example.\n", "", nil, 0},
		{"+short -x 10.0.0.1", "web.default.svc.\n", "", nil, 0},
		{"+noall +answer 1.0.0.10.in-addr.arpa PTR", "1.0.0.10.in-addr.arpa.\t5\tIN\tPTR\tweb.default.svc.\n", "", nil, 0},
		// dig does not use the suffixes of adapters.
		{"+notcp +noall +answer +search web.default A", "", "", nil, 0},
		{"+short +search web.default", "10.0.0.1\n", "", []string{"nosuch", "svc"}, 0},
		{"+short +search web", "10.0.0.1\n", "", []string{"default.svc"}, 0},
		{"+short web", "", "", []string{"default.svc"}, 0},
		{"+short @nosuch web", "", "couldn't get address", nil, 10},
		{"+trace web", "", "does not know +trace", nil, 2},
	} {
		s, out, errs := bed(t, "")
		s.servers = func(context.Context) ([]netip.Addr, []string, error) {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, c.suffixes, nil
		}
		if code := dig(t.Context(), s, append([]string{"-p", strconv.Itoa(port)}, strings.Fields(c.args)...)); code != c.code ||
			out.String() != c.out || !strings.Contains(errs.String(), c.errs) {
			t.Errorf("dig %s: %q, %q, %d", c.args, out, errs, code)
		}
	}
}
