package hcn

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// eachSocket tries what listens at each of the server's sockets: TCP, and the Unix socket on
// Linux.
func eachSocket(t *testing.T, test func(t *testing.T, network string)) {
	s := must(Start(builds.MustLookup("10.0.20348"), testNode, Options{}))(t)
	v := must(Listen(s, "127.0.0.1:0"))(t)
	networks := []string{}
	for _, l := range v.listeners {
		networks = append(networks, l.Addr().Network())
	}
	must(0, v.Close())(t)
	for _, n := range networks {
		t.Run(n, func(t *testing.T) { test(t, n) })
	}
}

// serveOnly is a server with one of the sockets, and the calls that it logged.
func serveOnly(t *testing.T, network string) (v *Server, calls *safe, done chan error) {
	t.Helper()
	calls = &safe{has: make(chan struct{}, 1)}
	s := must(Start(builds.MustLookup("10.0.20348"), testNode, Options{CallLog: calls}))(t)
	v = must(Listen(s, "127.0.0.1:0"))(t)
	if network == "tcp" {
		for _, near := range v.listeners[1:] {
			must(0, near.Close())(t)
		}
		v.listeners = v.listeners[:1]
	}
	done = make(chan error, 1)
	go func() { done <- v.Serve(t.Context()) }()
	t.Cleanup(func() { _ = v.Close() })
	return v, calls, done
}

func rawConn(t *testing.T, v *Server, network string) net.Conn {
	t.Helper()
	for _, l := range v.listeners {
		if l.Addr().Network() == network {
			c := must(net.Dial(network, l.Addr().String()))(t)
			t.Cleanup(func() { _ = c.Close() })
			return c
		}
	}
	t.Fatalf("no socket of %s", network)
	return nil
}

// TestLongRequestsAndAnswers: what does not fit between the two goes in parts, and the next
// call is as any other.
func TestLongRequestsAndAnswers(t *testing.T) {
	eachSocket(t, func(t *testing.T, network string) {
		v, _, _ := serveOnly(t, network)
		c := dial(t, v)
		if n := c.conn.RemoteAddr().Network(); n != network {
			t.Fatalf("Dial takes %s", n)
		}
		for _, size := range []int{1, firstRoom, keptRoom + 1, 5 << 20} {
			name := strings.Repeat("n", size)
			h := must(c.Create(Network, 0, fmt.Sprintf(`{"Name":%q,"Type":"l2bridge"}`, name)))(t)
			var got struct{ Name, ID string }
			if err := json.Unmarshal([]byte(must(c.query(Network, h))(t)), &got); err != nil || got.Name != name {
				t.Fatalf("%d bytes: %v, a name of %d bytes", size, err, len(got.Name))
			}
			must(0, c.Delete(Network, got.ID))(t)
			if _, err := c.query(Network, h); refusal(t, err) != 0x803b0001 {
				t.Errorf("after the deletion: %v", err)
			}
			if n := len(c.in.room()) + len(c.out); n > 3*keptRoom {
				t.Errorf("the client holds %d bytes between two calls", n)
			}
		}
	})
}

// TestOneByteAtATime: a request may come in any parts, and the answer to a whole one does not
// wait for the rest of the next. Who has closed one half is answered, too.
func TestOneByteAtATime(t *testing.T) {
	eachSocket(t, func(t *testing.T, network string) {
		v, _, _ := serveOnly(t, network)
		c := rawConn(t, v, network)
		send := appendHello(nil, "slow")
		first := appendRequest(nil, &request{Seq: 1, Verb: verbEnumerate, Kind: Network, Texts: []string{""}})
		second := appendRequest(nil, &request{Seq: 2, Verb: verbEnumerate, Kind: Endpoint, Texts: []string{""}})
		send = append(append(send, first...), second[:len(second)/2]...)
		for i := range send {
			must(c.Write(send[i : i+1]))(t)
		}
		if _, _, err := readHello(c); err != nil {
			t.Fatal(err)
		}
		in := frames{most: maxResponse}
		if r, err := parseResponse(must(in.read(c))(t)); err != nil || r.Seq != 1 {
			t.Errorf("the first answer: %+v, %v", r, err)
		}
		must(c.Write(append(second[len(second)/2:], first...)))(t)
		must(0, c.(interface{ CloseWrite() error }).CloseWrite())(t)
		for _, seq := range []uint32{2, 1} {
			if r, err := parseResponse(must(in.read(c))(t)); err != nil || r.Seq != seq {
				t.Errorf("answer %d: %+v, %v", seq, r, err)
			}
		}
		if _, err := in.read(c); err != io.EOF {
			t.Errorf("after the last: %v", err)
		}
	})
}

// TestServiceThatHasGone: a client that was silent while the service went away is told, and
// does not wait for an answer.
func TestServiceThatHasGone(t *testing.T) {
	eachSocket(t, func(t *testing.T, network string) {
		v, _, done := serveOnly(t, network)
		c := dial(t, v)
		must(c.Enumerate(Network, ""))(t)
		must(0, v.Close())(t)
		must(0, <-done)(t)
		for range 2 {
			if ids, err := c.Enumerate(Network, ""); err == nil {
				t.Errorf("an answer: %v", ids)
			}
		}
	})
}

// TestCallsOfClientsThatDie: clients that die in the middle of a request, one after the other and
// at once, leave every whole request in the call log, in their order, and nothing of the rest.
// The logs of both sockets are the same.
func TestCallsOfClientsThatDie(t *testing.T) {
	const clients, rounds = 8, 30
	var logs []map[string][]string
	eachSocket(t, func(t *testing.T, network string) {
		v, calls, done := serveOnly(t, network)
		var wg sync.WaitGroup
		for i := range clients {
			c := rawConn(t, v, network)
			wg.Go(func() {
				send := appendHello(nil, fmt.Sprintf("client %d", i))
				for j := range rounds {
					send = appendRequest(send, &request{Seq: uint32(j), Verb: verbEnumerate, Kind: Kind(1 + j%5),
						Texts: []string{FilterBy("Name", fmt.Sprint(i, "/", j))}})
				}
				half := appendRequest(nil, &request{Verb: verbCreate, Kind: Namespace, Texts: []string{"{}"}})
				send = append(send, half[:len(half)-1-i]...)
				if _, err := c.Write(send); err != nil {
					t.Error(err)
				}
				if _, _, err := readHello(c); err != nil {
					t.Error(err)
				}
				in := frames{most: maxResponse}
				for j := range rounds {
					body, err := in.read(c)
					if err != nil {
						t.Error(err)
						return
					}
					if r, err := parseResponse(body); err != nil || r.Seq != uint32(j) || r.Output != "[]" {
						t.Errorf("answer %d: %+v, %v", j, r, err)
					}
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		good := dial(t, v)
		must(good.Enumerate(Namespace, ""))(t)
		must(0, v.Close())(t)
		must(0, <-done)(t)
		by := map[string][]string{}
		for i, line := range strings.Split(strings.TrimSpace(calls.String()), "\n") {
			var e Entry
			if err := json.Unmarshal([]byte(line), &e); err != nil || e.Seq != uint64(i+1) {
				t.Fatalf("line %d: %s: %v", i+1, line, err)
			}
			client, _, _ := strings.Cut(e.Client, "#") // the number is that of the connection
			by[client] = append(by[client], fmt.Sprint(e.Call, string(e.Query), e.HResult, string(e.Output)))
		}
		for i := range clients {
			if n := len(by[fmt.Sprint("client ", i)]); n != rounds+2 {
				t.Errorf("client %d has %d lines", i, n)
			}
		}
		logs = append(logs, by)
	})
	for _, l := range logs[1:] {
		if d := cmp.Diff(logs[0], l); d != "" {
			t.Errorf("the logs differ:\n%s", d)
		}
	}
}
