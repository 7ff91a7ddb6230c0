package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Scripts that need more of the language than psScript has, and that documents and tests of
// Kubernetes run as they stand: each is known by its form and done in Go.
var (
	// The load of test/e2e/windows/cpu_limits.go: N jobs that multiply without end.
	burnForm = regexp.MustCompile(
		`^\s*foreach \(\$\w+ in 1\.\.(\d{1,2})\) \{ Start-Job -ScriptBlock \{.*1\.\.2147483647.*\} \} ; get-job \| wait-job\s*$`)
	// The web servers of the Windows guides (kubernetes.io, "Windows containers in Kubernetes"):
	// one counts the calls of each client, one answers with an empty body.
	serverForm  = regexp.MustCompile(`(?s)New-Object (?:System\.)?Net\.HttpListener.*\.Prefixes\.Add\(['"]http://[*+]:(\d+)/['"]\).*\.GetContext\(\)`)
	countsForm  = regexp.MustCompile(`\$callerCounts\.Set_Item\(\$clientIP, \$count\)`)
	emptyForm   = regexp.MustCompile(`\$context = \$listener\.GetContext\(\); \$context\.Response\.Close\(\) \}\s*$`)
	listensForm = regexp.MustCompile(`Write-Host\('(Listening at [^']*)'\)`)
)

// psForms runs a script that it knows by its form.
func psForms(ctx context.Context, s *system, script string) (code int, known bool) {
	if m := burnForm.FindStringSubmatch(script); m != nil {
		n, _ := strconv.Atoi(m[1])
		return burn(ctx, n), true
	}
	m := serverForm.FindStringSubmatch(script)
	switch {
	case m == nil:
		return 0, false
	case countsForm.MatchString(script):
		return serve(ctx, s, m[1], script, countCallers(s)), true
	case emptyForm.MatchString(script):
		return serve(ctx, s, m[1], script, func(http.ResponseWriter, *http.Request) {}), true
	}
	return s.complain(1, "winlab: powershell.exe here knows the HttpListener of Kubernetes' Windows guides only"), true
}

// burn keeps processors busy until it is ended.
func burn(ctx context.Context, jobs int) int {
	var all sync.WaitGroup
	for range jobs {
		all.Go(func() {
			for n := uint64(1); ctx.Err() == nil; n++ {
				_ = n * n * 1340371
			}
		})
	}
	all.Wait()
	return 1
}

// serve answers requests one after another, as the scripts do.
func serve(ctx context.Context, s *system, port, script string, answer http.HandlerFunc) int {
	l, err := net.Listen("tcp", ":"+port)
	if err != nil {
		return s.complain(1, "Exception calling \"Start\" with \"0\" argument(s): \"Failed to listen on prefix 'http://*:%s/' "+
			"because it conflicts with an existing registration on the machine.\"", port)
	}
	if m := listensForm.FindStringSubmatch(script); m != nil {
		s.printf("%s\n", m[1])
	}
	var one sync.Mutex
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		one.Lock()
		defer one.Unlock()
		w.Header().Set("Server", "Microsoft-HTTPAPI/2.0")
		w.Header()["Content-Type"] = nil // HttpListener sends none of its own
		answer(w, r)
	})}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	_ = server.Serve(l)
	return 1
}

// countCallers is the page of the guide's server, and what its script prints.
func countCallers(s *system) http.HandlerFunc {
	counts := map[string]int{}
	var order []string
	return func(w http.ResponseWriter, r *http.Request) {
		s.printf("\n> http://%s%s\n", r.Host, r.RequestURI)
		client, _, _ := net.SplitHostPort(r.RemoteAddr)
		if counts[client] == 0 {
			order = append(order, client)
		}
		counts[client]++
		var page strings.Builder
		page.WriteString("<html><body><H1>Windows Container Web Server</H1>")
		for _, c := range order {
			fmt.Fprintf(&page, "<p>IP %s callerCount %d ", ownAddress(), counts[c])
		}
		page.WriteString("</body></html>")
		s.printf("%s\n", page.String())
		w.Header().Set("Content-Length", strconv.Itoa(page.Len()))
		_, _ = w.Write([]byte(page.String()))
		s.printf("< 200\n")
	}
}

// ownAddress is the second address that Get-NetIpAddress shows of the machine's adapter, which
// is its IPv4 address.
func ownAddress() string {
	all, _ := net.InterfaceAddrs()
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && n.IP.To4() != nil {
			return n.IP.String()
		}
	}
	return ""
}
