package hcn

import (
	"bufio"
	"bytes"
	"errors"
	"net"
	"syscall"
	"testing"

	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// TestNearIsTheSameService: a client by the Unix socket and one by TCP get the same bytes
// for the same requests, and see each other's objects.
func TestNearIsTheSameService(t *testing.T) {
	_, v, c := serve(t, "10.0.20348", Options{})
	if n := c.conn.RemoteAddr().Network(); n != "unix" {
		t.Fatalf("Dial takes %s where there is a Unix socket", n)
	}
	must(c.Create(Network, 0, l2bridge))(t)
	ask := func(c net.Conn) []byte {
		t.Helper()
		r := bufio.NewReader(c)
		must(c.Write(appendHello(nil, "asks")))(t)
		if _, _, err := readHello(r); err != nil {
			t.Fatal(err)
		}
		var all []byte
		in := frames{most: maxResponse}
		for i, req := range []request{
			{Verb: verbEnumerate, Kind: Network, Texts: []string{""}}, {Verb: verbEnumerate, Kind: Network, Texts: []string{"no JSON"}},
			{Verb: verbHNSCall, Texts: []string{"GET", "/networks/", ""}}, {Verb: verbSnapshot}, {Verb: verbQuery, Kind: Network, Handle: 7},
		} {
			req.Seq = uint32(i)
			must(c.Write(appendRequest(nil, &req)))(t)
			all = append(all, must(in.read(r))(t)...)
		}
		return all
	}
	near, far := must(net.Dial("unix", nearName(v.Addr())))(t), must(net.Dial("tcp4", v.Addr()))(t)
	defer func() { _, _ = near.Close(), far.Close() }()
	if a, b := ask(near), ask(far); !bytes.Equal(a, b) || len(a) < 1000 {
		t.Errorf("by the Unix socket\n%q\nby TCP\n%q", a, b)
	}
}

// TestNearIsNotThere: without a Unix socket beside the address Dial takes TCP.
func TestNearIsNotThere(t *testing.T) {
	s := must(Start(builds.MustLookup("10.0.20348"), testNode, Options{}))(t)
	v := On(s, must(net.Listen("tcp4", "127.0.0.1:0"))(t))
	done := make(chan error, 1)
	go func() { done <- v.Serve(t.Context()) }()
	c := dial(t, v)
	if n := c.conn.RemoteAddr().Network(); n != "tcp" {
		t.Errorf("Dial takes %s", n)
	}
	must(c.Enumerate(Network, ""))(t)
	must(0, v.Close())(t)
	must(0, <-done)(t)
}

// TestNearNameIsTaken: a service whose Unix socket is another's must not begin, and leaves
// its port.
func TestNearNameIsTaken(t *testing.T) {
	s := must(Start(builds.MustLookup("10.0.20348"), testNode, Options{}))(t)
	port := must(net.Listen("tcp4", "127.0.0.1:0"))(t)
	at := port.Addr().String()
	must(0, port.Close())(t)
	other := must(net.Listen("unix", nearName(at)))(t)
	if _, err := Listen(s, at); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("Listen: %v", err)
	}
	must(0, other.Close())(t)
	v := must(Listen(s, at))(t)
	must(0, v.Close())(t)
	if c := dialNear(t.Context(), at); c != nil {
		t.Error("the Unix socket is there after Close")
	}
}
