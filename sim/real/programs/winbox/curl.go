package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// transfer is one URL that curl fetches.
type transfer struct {
	o *curlOptions
	s *system

	begin                            time.Time
	connected, firstByte, resolved   time.Duration
	local, remote                    netip.AddrPort
	status, redirects                int
	size                             int64
	contentType, effective, protocol string
	failed                           *curlError
}

const userAgent = "curl/8 (winlab)"

// curl fetches URLs as curl.exe does. Its exit codes are curl's.
func curl(ctx context.Context, s *system, args []string) int {
	if slices.Contains(args, "-V") || slices.Contains(args, "--version") {
		s.printf("winlab's curl.exe: http and https with curl's options, exit codes and messages\nProtocols: http https\n")
		return 0
	}
	o, err := curlArgs(args)
	if err != nil {
		code := 2
		if e, ok := err.(*curlError); ok {
			code = e.code
		}
		return s.complain(code, "curl: %v\ncurl: try 'curl --help' for more information", err)
	}
	code := 0
	for _, u := range o.urls {
		t := o.fetch(ctx, s, u)
		if t.failed != nil {
			code = t.failed.code
			if !o.silent || o.showError {
				s.complain(code, "curl: (%d) %s", code, t.failed.text)
			}
		} else {
			code = 0
		}
		if o.writeOut != "" {
			fmt.Fprint(s.out, t.write(o.writeOut, code))
		}
	}
	return code
}

// fetch makes a transfer, again where --retry says so.
func (o *curlOptions) fetch(ctx context.Context, s *system, u string) *transfer {
	for left, wait := o.retry, time.Second; ; left, wait = left-1, min(2*wait, 10*time.Minute) {
		t := &transfer{o: o, s: s, begin: time.Now(), effective: u}
		err := t.run(ctx)
		if err != nil {
			t.failed = t.explain(err)
		}
		if left <= 0 || !t.transient() || ctx.Err() != nil {
			return t
		}
		delay := cmp.Or(o.retryDelay, wait)
		if !o.silent || o.showError {
			s.complain(0, "curl: (%d) %s\nWarning: Problem: %s. Will retry in %d seconds. %d retries left.", t.code(), t.problem(), t.problem(),
				int(delay.Seconds()), left)
		}
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return t
		}
	}
}

func (t *transfer) code() int {
	if t.failed != nil {
		return t.failed.code
	}
	return 0
}

func (t *transfer) problem() string {
	if t.failed != nil {
		return t.failed.text
	}
	return fmt.Sprintf("HTTP error %d", t.status)
}

// transient are the failures that --retry tries again (curl's manual, --retry).
func (t *transfer) transient() bool {
	switch {
	case t.o.retryAll && t.failed != nil:
		return true
	case t.failed == nil || t.failed.code == 22:
		return slices.Contains([]int{408, 429, 500, 502, 503, 504}, t.status)
	case t.failed.code == 7:
		return t.o.retryRefused
	}
	return t.failed.code == 28 || t.failed.code == 6 && strings.HasPrefix(t.failed.text, "Resolving timed out")
}

// run makes the requests, one after the other along redirections.
func (t *transfer) run(ctx context.Context) error {
	if t.o.maxTime > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, t.o.maxTime, errSlow)
		defer cancel()
	}
	at, err := parseURL(t.effective)
	if err != nil {
		return err
	}
	verb, data := t.o.verb(), t.o.data
	if t.o.dataInURL {
		at.RawQuery = strings.TrimPrefix(at.RawQuery+"&"+string(data), "&")
		data = nil
	}
	client := t.transport()
	defer client.CloseIdleConnections()
	for {
		t.effective = at.String()
		res, err := t.request(ctx, client, verb, at, data)
		if err != nil {
			return err
		}
		next, err := t.answer(ctx, res, at)
		if err != nil || next == nil {
			return err
		}
		if t.redirects++; t.o.redirects >= 0 && t.redirects > t.o.redirects {
			return &curlError{47, fmt.Sprintf("Maximum (%d) redirects followed", t.o.redirects)}
		}
		at = next
		if t.o.method == "" && verb == http.MethodPost && res.StatusCode < 307 {
			verb, data = http.MethodGet, nil
		}
	}
}

// parseURL reads a URL as curl does: without a scheme it is http.
func parseURL(s string) (*url.URL, error) {
	if s == "" {
		return nil, &curlError{3, "URL using bad/illegal format or missing URL"}
	}
	if !strings.Contains(s, "://") {
		s = "http://" + s
	}
	u, err := url.Parse(s)
	if err != nil {
		return nil, &curlError{3, "URL rejected: Malformed input to a URL function"}
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, &curlError{1, fmt.Sprintf("Protocol %q not supported", u.Scheme)}
	case u.Hostname() == "":
		return nil, &curlError{3, "URL rejected: No host part in the URL"}
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.Atoi(p); err != nil || n > 65535 {
			return nil, &curlError{3, "URL rejected: Port number was not a decimal number between 0 and 65535"}
		}
	}
	if u.Path == "" {
		u.Path = "/"
	}
	return u, nil
}

func (t *transfer) request(ctx context.Context, client http.RoundTripper, verb string, at *url.URL, data []byte) (*http.Response, error) {
	var body io.Reader
	if t.o.hasData && data != nil {
		body = bytes.NewReader(data)
	}
	q, err := http.NewRequestWithContext(ctx, verb, at.String(), body)
	if err != nil {
		return nil, &curlError{3, "URL rejected: Malformed input to a URL function"}
	}
	q.Header.Set("User-Agent", cmp.Or(t.o.agent, userAgent))
	q.Header.Set("Accept", "*/*")
	if body != nil {
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if name, password, _ := strings.Cut(t.o.user, ":"); t.o.user != "" {
		q.SetBasicAuth(name, password)
	} else if at.User != nil {
		password, _ := at.User.Password()
		q.SetBasicAuth(at.User.Username(), password)
	}
	for _, h := range t.o.headers {
		name, value, ok := strings.Cut(h, ":")
		value = strings.TrimSpace(value)
		switch {
		case strings.EqualFold(name, "Host"):
			q.Host = value
		case ok && value == "":
			q.Header.Del(name)
		case ok:
			q.Header.Set(name, value)
		}
	}
	if t.o.verbose {
		said := func(httptrace.GotConnInfo) {
			t.note("> %s %s HTTP/1.1\n> Host: %s", verb, at.RequestURI(), cmp.Or(q.Host, at.Host))
			for _, name := range slices.Sorted(maps.Keys(q.Header)) {
				t.note("> %s: %s", name, strings.Join(q.Header[name], ", "))
			}
			t.note(">")
		}
		q = q.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: said}))
	}
	return client.RoundTrip(q)
}

func (t *transfer) note(format string, args ...any) { t.s.complain(0, format, args...) }

// answer writes what has come. next is where a redirection leads that is to be followed.
func (t *transfer) answer(ctx context.Context, res *http.Response, at *url.URL) (next *url.URL, err error) {
	defer res.Body.Close()
	t.status, t.contentType, t.protocol = res.StatusCode, res.Header.Get("Content-Type"), fmt.Sprint(res.ProtoMajor, ".", res.ProtoMinor)
	t.firstByte = time.Since(t.begin)
	head := fmt.Sprintf("%s %s\r\n", res.Proto, res.Status)
	for _, name := range slices.Sorted(maps.Keys(res.Header)) {
		for _, v := range res.Header[name] {
			head += name + ": " + v + "\r\n"
		}
	}
	if t.o.verbose {
		for line := range strings.Lines(head) {
			t.note("< %s", strings.TrimRight(line, "\r\n"))
		}
		t.note("<")
	}
	to := res.Header.Get("Location")
	if t.o.location && res.StatusCode/100 == 3 && to != "" {
		if next, err = at.Parse(to); err != nil {
			return nil, &curlError{3, "URL rejected: Malformed input to a URL function"}
		}
	}
	fails := res.StatusCode >= 400 && t.o.fail
	if fails {
		return nil, &curlError{22, fmt.Sprintf("The requested URL returned error: %d", res.StatusCode)}
	}
	out, err := t.output(at)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	if t.o.include || t.o.head {
		_, err = io.WriteString(out, head+"\r\n")
	}
	if next != nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<20))
		return next, err
	}
	var n int64
	if err == nil {
		n, err = io.Copy(writer{out}, res.Body)
		t.size += n
	}
	var w *writeError
	switch {
	case errors.As(err, &w):
		return nil, &curlError{23, "Failure writing output to destination"}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, &curlError{18, "end of response with missing bytes"}
	case err != nil:
		return nil, err
	case t.o.failBody && res.StatusCode >= 400:
		return nil, &curlError{22, fmt.Sprintf("The requested URL returned error: %d", res.StatusCode)}
	}
	return nil, nil
}

// writer tells errors of writing from those of reading.
type writer struct{ io.Writer }
type writeError struct{ error }

func (w writer) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if err != nil {
		err = &writeError{err}
	}
	return n, err
}

type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }

// output is where the body goes.
func (t *transfer) output(at *url.URL) (io.WriteCloser, error) {
	name := t.o.output
	if t.o.remoteName {
		if name = path.Base(at.Path); name == "/" || name == "." {
			return nil, &curlError{23, "Failed to extract a sensible file name from the URL to use for storage!"}
		}
	}
	switch {
	case name == "" || name == "-":
		return keepOpen{t.s.out}, nil
	case strings.EqualFold(name, "NUL") || name == "/dev/null":
		return keepOpen{io.Discard}, nil
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, &curlError{23, "Failure writing output to destination"}
	}
	return f, nil
}

var errSlow = errors.New("--max-time is over")

// transport makes connections as the options say. There is no proxy.
func (t *transfer) transport() *http.Transport {
	return &http.Transport{
		DialContext:        t.dial,
		TLSClientConfig:    &tls.Config{InsecureSkipVerify: t.o.insecure}, //nolint:gosec // -k asks for it
		DisableCompression: true,
		DisableKeepAlives:  false,
	}
}

// dial connects to one address after the other until one answers. (curl starts the next
// family a moment before the last has failed; who answers is the same.)
func (t *transfer) dial(ctx context.Context, _, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	limit := t.o.connectTimeout
	if limit == 0 {
		limit = 300 * time.Second // libcurl's CURLOPT_CONNECTTIMEOUT
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	all, err := t.addresses(ctx, host, port)
	if err != nil {
		return nil, err
	}
	t.resolved = time.Since(t.begin)
	var d net.Dialer
	if t.o.iface != "" {
		a, err := localAddress(strings.TrimPrefix(t.o.iface, "if!"), all[0].Is6())
		if err != nil {
			return nil, err
		}
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(a, 0))
	}
	var last error
	for _, a := range all {
		at := net.JoinHostPort(a.String(), port)
		if t.o.verbose {
			t.note("*   Trying %s...", at)
		}
		c, err := d.DialContext(ctx, "tcp", at)
		if err == nil {
			t.connected = time.Since(t.begin)
			t.local, _ = netip.ParseAddrPort(c.LocalAddr().String())
			t.remote, _ = netip.ParseAddrPort(c.RemoteAddr().String())
			if t.o.verbose {
				t.note("* Connected to %s (%s) port %s", host, a, port)
			}
			return c, nil
		}
		last = err
		if t.o.verbose {
			t.note("* connect to %s port %s failed: %s", a, port, plain(err))
		}
	}
	ms := time.Since(t.begin).Milliseconds()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		if t.o.maxTime > 0 && time.Since(t.begin) >= t.o.maxTime || t.o.connectTimeout > 0 {
			return nil, &curlError{28, fmt.Sprintf("Connection timed out after %d milliseconds", ms)}
		}
	}
	if timed, ok := last.(net.Error); ok && timed.Timeout() {
		return nil, &curlError{28, fmt.Sprintf("Failed to connect to %s port %s after %d ms: Timed out", host, port, ms)}
	}
	return nil, &curlError{7, fmt.Sprintf("Failed to connect to %s port %s after %d ms: Could not connect to server", host, port, ms)}
}

// addresses of a host, of the family that is asked for.
func (t *transfer) addresses(ctx context.Context, host, port string) ([]netip.Addr, error) {
	var all []netip.Addr
	if a, ok := t.o.resolve[strings.ToLower(host)+":"+port]; ok {
		all = []netip.Addr{a}
	} else if a, err := netip.ParseAddr(host); err == nil {
		all = []netip.Addr{a}
	} else if all, err = t.s.addresses(ctx, host); err != nil {
		if errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			return nil, &curlError{28, fmt.Sprintf("Resolving timed out after %d milliseconds", time.Since(t.begin).Milliseconds())}
		}
		return nil, &curlError{6, "Could not resolve host: " + host}
	}
	if t.o.family != 0 {
		all = slices.DeleteFunc(all, func(a netip.Addr) bool { return a.Is6() != (t.o.family == 6) })
	}
	if len(all) == 0 {
		return nil, &curlError{6, "Could not resolve host: " + host}
	}
	return all, nil
}

// localAddress is what --interface names: an address or an adapter.
func localAddress(name string, six bool) (netip.Addr, error) {
	if a, err := netip.ParseAddr(strings.TrimPrefix(name, "host!")); err == nil {
		return a, nil
	}
	if i, err := net.InterfaceByName(name); err == nil {
		all, _ := i.Addrs()
		for _, x := range all {
			if p, err := netip.ParsePrefix(x.String()); err == nil && p.Addr().Is6() == six {
				return p.Addr(), nil
			}
		}
	}
	return netip.Addr{}, &curlError{45, fmt.Sprintf("bind failed: could not bind to %q", name)}
}

// write fills in a --write-out text (curl's manual, -w).
func (t *transfer) write(form string, code int) string {
	seconds := func(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 6, 64) }
	status := fmt.Sprintf("%03d", t.status)
	message := ""
	if t.failed != nil {
		message = t.failed.text
	}
	addr := func(a netip.AddrPort) (string, string) {
		if !a.IsValid() {
			return "", "0"
		}
		return a.Addr().String(), fmt.Sprint(a.Port())
	}
	localIP, localPort := addr(t.local)
	remoteIP, remotePort := addr(t.remote)
	return strings.NewReplacer(
		`\n`, "\n", `\r`, "\r", `\t`, "\t", "%%", "%",
		"%{http_code}", status, "%{response_code}", status, "%{exitcode}", fmt.Sprint(code), "%{errormsg}", message,
		"%{remote_ip}", remoteIP, "%{remote_port}", remotePort, "%{local_ip}", localIP, "%{local_port}", localPort,
		"%{time_total}", seconds(time.Since(t.begin)), "%{time_connect}", seconds(t.connected), "%{time_namelookup}", seconds(t.resolved),
		"%{time_starttransfer}", seconds(t.firstByte), "%{size_download}", fmt.Sprint(t.size), "%{url_effective}", t.effective,
		"%{num_redirects}", fmt.Sprint(t.redirects), "%{content_type}", t.contentType, "%{method}", t.o.verb(), "%{http_version}", t.protocol,
	).Replace(form)
}
