package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
)

// relayAddress names the service that answers for the machine; package shims of winlab's
// sim/windows/hcn has the protocol (tool.c).
const relayAddress = "WINLAB_TOOLS"

// errNoName says that a name has no address, errNoAnswer that nobody could be asked.
var (
	errNoName   = errors.New("no such host is known")
	errNoAnswer = errors.New("the name could not be asked for")
)

// resolve asks hosts first, as the DNS client of Windows, then the machine's resolver: the
// model of it in winlab, whose questions are real datagrams. Outside of winlab it is the
// system's getaddrinfo.
func resolve(ctx context.Context, name string) ([]netip.Addr, error) {
	if strings.EqualFold(name, "localhost") {
		return []netip.Addr{netip.IPv6Loopback(), netip.MustParseAddr("127.0.0.1")}, nil
	}
	if all := inHosts(os.Getenv("SystemRoot")+`\system32\drivers\etc\hosts`, name); len(all) > 0 {
		return all, nil
	}
	at := os.Getenv(relayAddress)
	if at == "" {
		all, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
		for i := range all {
			all[i] = all[i].Unmap()
		}
		return all, err
	}
	code, out, errText, err := ask(ctx, at, "getaddrinfo", name)
	if err != nil {
		return nil, errors.Join(errNoAnswer, err)
	}
	if code != 0 {
		return nil, fmt.Errorf("%w: %s", errNoName, strings.TrimSpace(errText))
	}
	var all []netip.Addr
	for _, f := range strings.Fields(out) {
		if a, err := netip.ParseAddr(f); err == nil {
			all = append(all, a)
		}
	}
	if len(all) == 0 {
		return nil, errNoName
	}
	return all, nil
}

// ask sends words to the relay and returns what it says.
func ask(ctx context.Context, at string, words ...string) (code int, out, errText string, err error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", at)
	if err != nil {
		return 0, "", "", err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	if _, err := io.WriteString(c, strings.Join(words, "\x00")+"\x00"); err != nil {
		return 0, "", "", err
	}
	if t, ok := c.(*net.TCPConn); ok {
		if err := t.CloseWrite(); err != nil {
			return 0, "", "", err
		}
	}
	r := bufio.NewReader(c)
	var n, m int
	if _, err := fmt.Fscanf(r, "%d %d %d\n", &code, &n, &m); err != nil || n < 0 || m < 0 || n+m > 1<<24 {
		return 0, "", "", fmt.Errorf("winlab does not answer at %s", at)
	}
	text := make([]byte, n+m)
	if _, err := io.ReadFull(r, text); err != nil {
		return 0, "", "", err
	}
	return code, string(text[:n]), string(text[n:]), nil
}

// inHosts are the addresses of a name in a hosts file.
func inHosts(file, name string) (all []netip.Addr) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		a, err := netip.ParseAddr(fields[0])
		if err != nil {
			continue
		}
		for _, f := range fields[1:] {
			if strings.EqualFold(f, strings.TrimSuffix(name, ".")) {
				all = append(all, a)
			}
		}
	}
	return all
}
