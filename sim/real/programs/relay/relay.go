// Package relay asks the machine that winlab simulates what a program of a Windows container
// cannot learn from Wine: the addresses of names, and the name servers. It uses the standard
// library alone. It must not know the programs that ask.
package relay

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

// Address is the environment variable that names the service that answers for the machine; package shims of winlab's
// sim/windows/hcn has the protocol (tool.c).
const Address = "WINLAB_TOOLS"

// ErrNoName says that a name has no address, ErrNoAnswer that no server could be asked.
var (
	ErrNoName   = errors.New("no such host is known")
	ErrNoAnswer = errors.New("the name could not be asked for")
)

// Resolve asks hosts first, as the DNS client of Windows, then the machine's resolver: the
// model of it in winlab, whose questions are real datagrams. Outside of winlab it is the
// system's getaddrinfo.
func Resolve(ctx context.Context, name string) ([]netip.Addr, error) {
	if strings.EqualFold(name, "localhost") {
		return []netip.Addr{netip.IPv6Loopback(), netip.MustParseAddr("127.0.0.1")}, nil
	}
	if all := inHosts(os.Getenv("SystemRoot")+`\system32\drivers\etc\hosts`, name); len(all) > 0 {
		return all, nil
	}
	at := os.Getenv(Address)
	if at == "" {
		all, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
		for i := range all {
			all[i] = all[i].Unmap()
		}
		return all, err
	}
	code, out, errText, err := Ask(ctx, at, "getaddrinfo", name)
	if err != nil {
		return nil, errors.Join(ErrNoAnswer, err)
	}
	if code != 0 {
		return nil, fmt.Errorf("%w: %s", ErrNoName, strings.TrimSpace(errText))
	}
	var all []netip.Addr
	for _, f := range strings.Fields(out) {
		if a, err := netip.ParseAddr(f); err == nil {
			all = append(all, a)
		}
	}
	if len(all) == 0 {
		return nil, ErrNoName
	}
	return all, nil
}

// Ask sends words to the relay and returns what it says.
func Ask(ctx context.Context, at string, words ...string) (code int, out, errText string, err error) {
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

// Servers are the name servers of the machine in their order, and the suffixes of its global
// search list, which is what the registry's SearchList has.
func Servers(ctx context.Context) (servers []netip.Addr, suffixes []string, err error) {
	at := os.Getenv(Address)
	if at == "" {
		return nil, nil, fmt.Errorf("%w: %s is not set", ErrNoAnswer, Address)
	}
	code, out, errText, err := Ask(ctx, at, "resolver")
	if err == nil && code != 0 {
		err = errors.New(strings.TrimSpace(errText))
	}
	if err != nil {
		return nil, nil, errors.Join(ErrNoAnswer, err)
	}
	for line := range strings.Lines(out) {
		switch what, value, _ := strings.Cut(strings.TrimSpace(line), " "); what {
		case "server":
			a, err := netip.ParseAddr(value)
			if err != nil {
				return nil, nil, fmt.Errorf("%w: %w", ErrNoAnswer, err)
			}
			servers = append(servers, a)
		case "suffix":
			suffixes = append(suffixes, value)
		}
	}
	return servers, suffixes, nil
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
