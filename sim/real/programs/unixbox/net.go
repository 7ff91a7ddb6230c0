package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// address resolves a host: IPv4 first, as these programs do.
func (s *system) address(ctx context.Context, host string) (netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return a, nil
	}
	all, err := s.addresses(ctx, host)
	if err != nil {
		return netip.Addr{}, err
	}
	for _, a := range all {
		if a.Is4() {
			return a, nil
		}
	}
	if len(all) == 0 {
		return netip.Addr{}, errors.New("no address")
	}
	return all[0], nil
}

// refused reports whether no program listens; the number is that of Windows.
func refused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.Errno(10061))
}

// ncOptions are those of nc.
type ncOptions struct {
	udp, verbose, zero bool
	wait               time.Duration
	port               int // the local one
	source             netip.Addr
}

// ncArgs reads the options of netcat-win32 1.12; code is that of a mistake. The program's own
// list is "ade:g:G:hi:lLno:p:rs:tcuvw:z": there is no -W and no -N.
func ncArgs(s *system, args []string) (o ncOptions, rest []string, code int) {
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		a := args[0]
		args = args[1:]
		for i := 1; i < len(a); i++ {
			switch a[i] {
			case 'u':
				o.udp = true
			case 'v':
				o.verbose = true
			case 'z':
				o.zero = true
			case 'n', 't', 'r':
			case 'w', 'p', 's':
				value := a[i+1:]
				if value == "" {
					if len(args) == 0 {
						return o, nil, s.fail(1, "nc: option requires an argument -- %c", a[i])
					}
					value, args = args[0], args[1:]
				}
				if !o.set(a[i], value) {
					return o, nil, s.fail(1, "invalid value %s of -%c", value, a[i])
				}
				i = len(a)
			case 'a', 'd', 'e', 'g', 'G', 'h', 'i', 'l', 'L', 'o', 'c':
				return o, nil, s.unknown("nc", "-"+string(a[i]))
			default:
				return o, nil, s.fail(1, "nc: illegal option -- %c\nnc -h for help", a[i])
			}
		}
	}
	return o, args, 0
}

func (o *ncOptions) set(option byte, value string) bool {
	n, err := strconv.Atoi(value)
	switch option {
	case 'w':
		o.wait = time.Duration(n) * time.Second
		return err == nil && n > 0
	case 'p':
		o.port = n
		return err == nil && n > 0 && n < 1<<16
	}
	o.source, err = netip.ParseAddr(value)
	return err == nil
}

// nc is netcat-win32 1.12 as a client: it connects, sends its input, and prints what comes
// until the other side ends the connection or nothing has come for -w seconds.
func nc(ctx context.Context, s *system, args []string) int {
	o, args, code := ncArgs(s, args)
	if code != 0 {
		return code
	}
	if len(args) != 2 {
		return s.fail(1, "no port[s] to connect to")
	}
	port, err := strconv.ParseUint(args[1], 10, 16)
	if err != nil || port == 0 {
		return s.fail(1, "invalid port %s", args[1])
	}
	to, err := s.address(ctx, args[0])
	if err != nil {
		return s.fail(1, "%s: forward host lookup failed: h_errno 11001: HOST_NOT_FOUND", args[0])
	}
	d := net.Dialer{Timeout: o.wait}
	network := "tcp"
	local := netip.AddrPortFrom(o.source, uint16(o.port))
	if !o.source.IsValid() {
		local = netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(o.port))
		if to.Is6() {
			local = netip.AddrPortFrom(netip.IPv6Unspecified(), uint16(o.port))
		}
	}
	d.LocalAddr = net.TCPAddrFromAddrPort(local)
	if o.udp {
		network, d.LocalAddr = "udp", net.UDPAddrFromAddrPort(local)
	}
	name := args[0] + " [" + to.String() + "] " + args[1]
	c, err := d.DialContext(ctx, network, netip.AddrPortFrom(to, uint16(port)).String())
	if err != nil {
		if !o.verbose {
			return 1
		}
		var timeout net.Error
		switch {
		case refused(err):
			return s.fail(1, "%s (?): connection refused", name)
		case errors.As(err, &timeout) && timeout.Timeout():
			return s.fail(1, "%s (?): TIMEDOUT", name)
		}
		return s.fail(1, "%s (?): %v", name, err)
	}
	defer func() { _ = c.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	if o.verbose {
		s.fail(0, "%s (?) open", name)
	}
	if o.zero {
		return 0
	}
	go send(c, s.in)
	return s.receive(c, o)
}

// send sends the input in pieces that fit a datagram.
func send(c net.Conn, in io.Reader) {
	b := make([]byte, 8192)
	for {
		n, err := in.Read(b)
		if n > 0 {
			if _, err := c.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// receive prints what comes.
func (s *system) receive(c net.Conn, o ncOptions) int {
	b := make([]byte, 8192)
	for {
		if o.wait > 0 {
			_ = c.SetReadDeadline(time.Now().Add(o.wait))
		}
		n, err := c.Read(b)
		if _, bad := s.out.Write(b[:n]); bad != nil {
			return 1
		}
		if err != nil {
			return 0 // the end, a reset, or too long a silence: netcat ends in the same way
		}
	}
}

// wget fetches a URL: wget [-q] [-T SECONDS] [-O FILE] URL.
func wget(ctx context.Context, s *system, args []string) int {
	var timeout time.Duration
	out, target := "", ""
	for len(args) > 0 {
		a := args[0]
		args = args[1:]
		if len(a) < 2 || a[0] != '-' {
			if target != "" {
				return s.unknown("wget", "several URLs")
			}
			target = a
			continue
		}
		for i := 1; i < len(a); i++ {
			switch a[i] {
			case 'q':
			case 'T', 'O':
				value := a[i+1:]
				if value == "" {
					if len(args) == 0 {
						return s.fail(1, "wget: option requires an argument -- %c", a[i])
					}
					value, args = args[0], args[1:]
				}
				if a[i] == 'O' {
					out = value
				} else if n, err := strconv.Atoi(value); err == nil {
					timeout = time.Duration(n) * time.Second
				} else {
					return s.fail(1, "wget: invalid number '%s'", value)
				}
				i = len(a)
			default:
				return s.unknown("wget", a)
			}
		}
	}
	if target == "" {
		return s.fail(1, "wget: no URL")
	}
	if !strings.Contains(target, "://") {
		target = "http://" + target
	}
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "http" || u.Host == "" {
		return s.fail(1, "wget: not an http URL: %s", target)
	}
	if out == "" {
		out = u.Path[strings.LastIndex(u.Path, "/")+1:]
		if out == "" {
			out = "index.html"
		}
	}
	return s.fetch(ctx, u, out, timeout)
}

// fetch fetches a URL into a file.
func (s *system) fetch(ctx context.Context, u *url.URL, out string, timeout time.Duration) int {
	client := http.Client{Timeout: timeout, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, at string) (net.Conn, error) {
			host, port, err := net.SplitHostPort(at)
			if err != nil {
				return nil, err
			}
			a, err := s.address(ctx, host)
			if err != nil {
				return nil, &net.DNSError{Err: err.Error(), Name: host, IsNotFound: true}
			}
			return new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(a.String(), port))
		}}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return s.fail(1, "wget: %v", err)
	}
	request.Header.Set("User-Agent", "Wget")
	answer, err := client.Do(request)
	if err != nil {
		var dns *net.DNSError
		var slow net.Error
		switch {
		case errors.As(err, &dns):
			return s.fail(1, "wget: bad address '%s'", u.Host)
		case refused(err):
			return s.fail(1, "wget: can't connect to remote host: Connection refused")
		case errors.As(err, &slow) && slow.Timeout():
			return s.fail(1, "wget: download timed out")
		}
		return s.fail(1, "wget: can't connect to remote host: %v", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return s.fail(1, "wget: server returned error: HTTP/1.1 %s", answer.Status)
	}
	to := s.out
	if out != "-" {
		f, err := os.Create(s.path(out))
		if err != nil {
			return s.fail(1, "wget: can't open '%s': %s", out, unixError(err))
		}
		defer func() { _ = f.Close() }()
		to = f
	}
	if _, err := io.Copy(to, answer.Body); err != nil {
		return s.fail(1, "wget: %v", err)
	}
	return 0
}
