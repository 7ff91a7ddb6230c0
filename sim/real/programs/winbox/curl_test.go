package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/real/programs/relay"
)

// try runs a program with names that resolve to 127.0.0.1, but for "nosuch".
func try(t *testing.T, in string, args ...string) (out, errs string, code int) {
	t.Helper()
	var o, e bytes.Buffer
	env := map[string]string{"USERNAME": "ContainerUser", "USERDOMAIN": "User Manager", "NODE": "win1"}
	s := &system{in: strings.NewReader(in), out: &o, err: &e, start: start, getenv: func(k string) string { return env[k] },
		addresses: func(_ context.Context, name string) ([]netip.Addr, error) {
			if name == "nosuch" {
				return nil, relay.ErrNoName
			}
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		}}
	code, known := run(t.Context(), s, args)
	if !known {
		t.Fatalf("no program %s", args[0])
	}
	return o.String(), e.String(), code
}

// server is what the transfers ask.
func server(t *testing.T) *httptest.Server {
	t.Helper()
	tries := 0
	h := http.NewServeMux()
	h.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s %s", r.Method, r.RequestURI, r.Header.Get("X-A"), body)
	})
	h.HandleFunc("/missing", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusNotFound) })
	h.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/there", http.StatusFound) })
	h.HandleFunc("/loop", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/loop", http.StatusFound) })
	h.HandleFunc("/busy", func(w http.ResponseWriter, _ *http.Request) {
		if tries++; tries < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprint(w, tries)
	})
	h.HandleFunc("/stuck", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	h.HandleFunc("/short", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, "x")
	})
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// raw is a server that does one thing with each connection.
func raw(t *testing.T, f func(c net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			f(c)
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}

// The codes and messages of curl; the manual's EXIT CODES and libcurl-errors have them.
func TestCurl(t *testing.T) {
	web := server(t)
	at := strings.TrimPrefix(web.URL, "http://")
	_, port, _ := net.SplitHostPort(at)
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "secret") }))
	t.Cleanup(secure.Close)
	empty := raw(t, func(c net.Conn) { _, _ = c.Read(make([]byte, 512)) })
	reset := raw(t, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 512))
		_ = c.(*net.TCPConn).SetLinger(0)
	})
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := closed.Addr().String()
	_ = closed.Close()
	dir := t.TempDir()
	for _, c := range []struct {
		args      string
		out, errs string // errs: what it begins with
		code      int
	}{
		{at + "/a", "GET /a  ", "", 0},
		{"-s http://web:" + port + "/a -H X-A:1 -H Accept:", "GET /a 1 ", "", 0},
		{"-d a=1 -d b=2 " + at + "/p", "POST /p  a=1&b=2", "", 0},
		{"-sG -d a=1 " + at + "/p", "GET /p?a=1  ", "", 0},
		{"-X PUT --data-raw @x " + at, "PUT /  @x", "", 0},
		{at + "/missing", "no\n", "", 0},
		{"-f " + at + "/missing", "", "curl: (22) The requested URL returned error: 404\r\n", 22},
		{"-sf " + at + "/missing", "", "", 22},
		{"--fail-with-body -sS " + at + "/missing", "no\n", "curl: (22)", 22},
		{"-sSo NUL -w %{http_code}|%{num_redirects}|%{size_download}|%{remote_port}\\n -L " + at + "/moved", "200|1|12|" + port + "\n", "", 0},
		{"-s -o NUL -w %{http_code} " + at + "/moved", "302", "", 0},
		{"-sL --max-redirs 3 " + at + "/loop", "", "", 47},
		{"-s -I " + at + "/a", "HTTP/1.1 200 OK\r\n", "", 0},
		{"-v -s -o NUL " + at, "", "*   Trying 127.0.0.1:" + port, 0},
		{"-k https://nosuch:443", "", "curl: (6) Could not resolve host: nosuch\r\n", 6},
		{"-s https://nosuch:443", "", "", 6},
		{"-6 web:" + port, "", "curl: (6) Could not resolve host: web", 6},
		{"-4 " + refused + " --connect-timeout 10 --fail", "", "curl: (7) Failed to connect to 127.0.0.1 port ", 7},
		{"-m 0.2 " + at + "/stuck", "", "curl: (28) Operation timed out after ", 28},
		{"-s --resolve nosuch:" + port + ":127.0.0.1 nosuch:" + port + "/r", "GET /r  ", "", 0},
		{empty, "", "curl: (52) Empty reply from server", 52},
		{reset, "", "curl: (56) Recv failure: Connection was reset", 56},
		{at + "/short", "x", "curl: (18) ", 18},
		{secure.URL, "", "curl: (60) schannel: SEC_E_UNTRUSTED_ROOT", 60},
		{"-k " + secure.URL, "secret", "", 0},
		{"-sS https://" + at, "", "curl: (35) ", 35},
		{"ftp://x", "", `curl: (1) Protocol "ftp" not supported`, 1},
		{"http://", "", "curl: (3) ", 3},
		{"--nosuch x", "", "curl: option --nosuch: is unknown\r\ncurl: try 'curl --help'", 2},
		{"-m", "", "curl: option -m: requires parameter", 2},
		{"-m x y", "", "curl: option -m: expected a proper numerical parameter", 2},
		{"-s", "", "curl: no URL specified", 2},
		{"-s --retry 3 --retry-delay 0.001 " + at + "/busy", "\x00", "", 0},
		{"-s -o " + filepath.Join(dir, "no", "file") + " " + at, "", "", 23},
		{"--interface 127.0.0.1 --noproxy * -s " + at, "GET /  ", "", 0},
		{"--interface nosuch0 " + at, "", "curl: (45) ", 45},
	} {
		out, errs, code := try(t, "", append([]string{"curl.exe"}, strings.Fields(c.args)...)...)
		if c.out == "\x00" { // each try writes what it got
			c.out = out
			if !strings.HasSuffix(out, "3") {
				t.Errorf("%s: %q", c.args, out)
			}
		}
		same := out == c.out || strings.HasPrefix(c.out, "HTTP/") && strings.HasPrefix(out, c.out)
		if !same || code != c.code || (c.errs == "") != (errs == "") || !strings.HasPrefix(errs, c.errs) {
			t.Errorf("curl %s: code %d\n%q\n%q\nwant %d\n%q\n%q", c.args, code, out, errs, c.code, c.out, c.errs)
		}
	}
	file := filepath.Join(dir, "got")
	if _, errs, code := try(t, "", "curl", "-so", file, at+"/f"); code != 0 || errs != "" {
		t.Errorf("%d %s", code, errs)
	}
	if got, _ := os.ReadFile(file); string(got) != "GET /f  " {
		t.Errorf("%q", got)
	}
}

func TestSmallPrograms(t *testing.T) {
	t.Chdir(t.TempDir()) // a path of Linux would be an option
	const file = "f"
	if err := os.WriteFile(file, []byte("one\r\nTwo words\r\nthree\r\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		in   string
		out  string
		code int
	}{
		{[]string{"whoami.exe"}, "", "user manager\\containeruser\r\n", 0},
		{[]string{"findstr", "two one"}, "one\ntwo\nthree\n", "one\r\ntwo\r\n", 0},
		{[]string{"findstr", "/i", "/n", "two", file}, "", "2:Two words\r\n", 0},
		{[]string{"findstr", "/c:two words", "/i", file}, "", "Two words\r\n", 0},
		{[]string{"findstr", "/v", "o", file}, "", "three\r\n", 0},
		{[]string{"findstr", "nothing", file}, "", "", 1},
		{[]string{"findstr", "/b", "t.*e", file}, "", "three\r\n", 0},
		{[]string{"findstr", "x", "nosuchfile"}, "", "", 1},
		{[]string{"findstr"}, "", "", 2},
		{[]string{"nltest", "/PARENTDOMAIN"}, "", "", 1},
		{[]string{"timeout", "/t", "0"}, "", "", 0},
		{[]string{"timeout", "/t", "x"}, "", "", 1},
	} {
		out, errs, code := try(t, c.in, c.args...)
		if out != c.out || code != c.code || code == 0 && errs != "" {
			t.Errorf("%q: %d %q %q, want %d %q", c.args, code, out, errs, c.code, c.out)
		}
	}
	if out, _, code := try(t, "", "hostname"); code != 0 || strings.TrimSpace(out) == "" {
		t.Errorf("hostname: %d %q", code, out)
	}
}
