package hcn

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

func TestListensOnLoopbackOnly(t *testing.T) {
	s := must(Start(builds.MustLookup("10.0.20348"), testNode, Options{}))(t)
	for _, a := range []string{"0.0.0.0:0", ":0", "192.168.1.11:0", "localhost:0", "[::1]:0", "[::]:0", "127.0.0.1", ""} {
		if v, err := Listen(s, a); err == nil {
			t.Errorf("listens on %q (%s)", a, v.Addr())
		}
		if _, err := Dial(t.Context(), a, "x"); err == nil {
			t.Errorf("dials %q", a)
		}
	}
}

// safe is a buffer for a logger while the server writes to it.
type safe struct {
	mu  sync.Mutex
	buf bytes.Buffer
	has chan struct{}
}

func (s *safe) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.buf.Write(p)
	select {
	case s.has <- struct{}{}:
	default:
	}
	return n, err
}

func (s *safe) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

// TestBadClients: whatever a client sends, its connection is closed, the log has
// a line, and others are not disturbed.
func TestBadClients(t *testing.T) {
	hello := appendHello(nil, "bad")
	frame := appendRequest(nil, &request{Seq: 1, Verb: verbEnumerate, Kind: Network, Texts: []string{""}})
	spoilt := bytes.Clone(frame)
	spoilt[34] = 99
	oversized := binary.LittleEndian.AppendUint32(nil, maxRequest+1)
	for name, send := range map[string][]byte{
		"HTTP":                    []byte("GET /networks HTTP/1.1\r\nHost: x\r\n\r\n"),
		"another version":         append([]byte("WHCN\x09\x00\x01\x00"), 'x'),
		"an endless name":         []byte("WHCN\x01\x00\xff\xff"),
		"oversized":               append(bytes.Clone(hello), oversized...),
		"texts that do not fit":   append(bytes.Clone(hello), spoilt...),
		"an empty frame":          append(bytes.Clone(hello), 0, 0, 0, 0),
		"dies in the middle":      append(bytes.Clone(hello), frame[:9]...),
		"dies in the hello":       hello[:5],
		"dies in the frame's end": append(bytes.Clone(hello), frame[:len(frame)-1]...),
	} {
		t.Run(name, func(t *testing.T) {
			said := &safe{has: make(chan struct{}, 1)}
			_, v, good := serve(t, "10.0.20348", Options{Log: log.New(said, "", 0)})
			must(good.Create(Network, 0, l2bridge))(t)
			c, err := net.Dial("tcp4", v.Addr())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Write(send); err != nil {
				t.Fatal(err)
			}
			if err := c.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, c); err != nil && !strings.Contains(err.Error(), "reset") {
				t.Fatal(err)
			}
			<-said.has
			if !strings.Contains(said.String(), "the connection is closed") {
				t.Errorf("the log says %q", said)
			}
			if ids := must(good.Enumerate(Network, ""))(t); len(ids) != 1 {
				t.Errorf("the other client sees %v", ids)
			}
		})
	}
}

// TestClientThatDoesNotRead sends requests ahead and goes away without reading.
func TestClientThatDoesNotRead(t *testing.T) {
	_, v, good := serve(t, "10.0.20348", Options{})
	c, err := net.Dial("tcp4", v.Addr())
	if err != nil {
		t.Fatal(err)
	}
	send := appendHello(nil, "silent")
	for i := range uint32(1000) {
		send = appendRequest(send, &request{Seq: i, Verb: verbCreate, Kind: Namespace, Texts: []string{"{}"}})
	}
	if _, err := c.Write(send); err != nil {
		t.Fatal(err)
	}
	must(good.Enumerate(Namespace, ""))(t)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	must(good.Enumerate(Namespace, ""))(t)
}

func TestRequestsSentAheadAreAnsweredInOrder(t *testing.T) {
	_, v, _ := serve(t, "10.0.20348", Options{})
	c, err := net.Dial("tcp4", v.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	send := appendHello(nil, "ahead")
	for i := range uint32(100) {
		send = appendRequest(send, &request{Seq: i, Verb: verbEnumerate, Kind: Network, Texts: []string{""}})
	}
	if _, err := c.Write(send); err != nil {
		t.Fatal(err)
	}
	if _, _, err := readHello(c); err != nil {
		t.Fatal(err)
	}
	in := frames{most: maxResponse}
	for i := range uint32(100) {
		if r, err := parseResponse(must(in.read(c))(t)); err != nil || r.Seq != i || r.Output != "[]" {
			t.Fatalf("answer %d: %+v, %v", i, r, err)
		}
	}
}

func TestHandlesEndWithTheConnection(t *testing.T) {
	var calls safe
	s, v, _ := serve(t, "10.0.20348", Options{CallLog: &calls})
	c := dial(t, v)
	must(c.Create(Network, 0, l2bridge))(t)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	w := dial(t, v)
	entries, stop := s.watch()
	defer stop()
	if !strings.Contains(calls.String(), `"disconnect"`) {
		for line := range entries {
			if bytes.Contains(line, []byte(`"disconnect"`)) {
				break
			}
		}
	}
	must(w.Enumerate(Network, ""))(t)
}

func TestWatch(t *testing.T) {
	_, v, c := serve(t, "10.0.20348", Options{})
	w := dial(t, v)
	begun, got := make(chan struct{}), make(chan Entry, 1)
	go func() {
		_ = w.Watch(func() { close(begun) }, func(line []byte) bool {
			var e Entry
			if err := json.Unmarshal(line, &e); err != nil {
				t.Errorf("%v: %s", err, line)
			}
			if e.Call != "HcnCreateNetwork" {
				return true
			}
			got <- e
			return false
		})
	}()
	<-begun
	must(c.Create(Network, 0, l2bridge))(t)
	e := <-got
	if e.HResult != "0x0" || len(e.Changes) != 1 || e.Changes[0].What != hns.Created || e.Changes[0].ID != e.Object ||
		string(e.Settings) != l2bridge {
		t.Errorf("entry %+v", e)
	}
}

// TestReplay makes the calls of a log again: those that failed fail again.
func TestReplay(t *testing.T) {
	var calls bytes.Buffer
	b := builds.MustLookup("10.0.20348")
	s := must(Start(b, testNode, Options{CallLog: &calls}))(t)
	s.started()
	c := s.session("a")
	populate(t, c)
	for _, r := range []*request{
		{Verb: verbQuery, Kind: Network, Handle: 12345},
		{Verb: verbCreate, Kind: Network, Texts: []string{`{"Name":`}},
		{Verb: verbCreate, Kind: Network, Texts: []string{`"text"`}},
		{Verb: verbHNSCall, Texts: []string{"POST", "/networks/", "not JSON"}},
		{Verb: verbOpen, Kind: Endpoint, ID: GUID{1}},
		{Verb: 99},
	} {
		if res := c.call(r); res.HResult == 0 && r.Verb != verbHNSCall {
			t.Errorf("%+v succeeded", r)
		}
	}
	c.close()
	log := calls.String()
	fresh := must(Start(b, testNode, Options{}))(t)
	n, diff, err := fresh.Replay(t.Context(), "log", strings.NewReader(log))
	if err != nil || len(diff) > 0 || n < 15 {
		t.Errorf("%d calls, differences %v, %v", n, diff, err)
	}
	if held(fresh) != held(s) {
		t.Errorf("the objects differ:\n%s\n%s", held(s), held(fresh))
	}
	// Over the same objects, what was created is taken.
	_, diff, err = fresh.Replay(t.Context(), "log", strings.NewReader(log))
	if err != nil || len(diff) == 0 || !strings.Contains(diff[0].String(), "HcnCreateNetwork: was 0x0, is 0x803b0010") {
		t.Errorf("differences %v, %v", diff, err)
	}
	if _, _, err := fresh.Replay(t.Context(), "log", strings.NewReader("{\"call\":\"start\"}\nnonsense\n")); err == nil ||
		!strings.HasPrefix(err.Error(), "log:2:") {
		t.Errorf("got %v", err)
	}
}

func TestCallLogThatFailsStopsNothing(t *testing.T) {
	said := &safe{has: make(chan struct{}, 1)}
	full, err := os.OpenFile(os.DevNull, os.O_RDONLY, 0) // writing to it fails
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = full.Close() }()
	_, _, c := serve(t, "10.0.20348", Options{CallLog: full, Log: log.New(said, "", 0)})
	must(c.Create(Network, 0, l2bridge))(t)
	must(c.Enumerate(Network, ""))(t)
	if n := strings.Count(said.String(), "call log"); n != 1 {
		t.Errorf("the log says %q", said)
	}
}

func BenchmarkCalls(b *testing.B) {
	s, err := Start(builds.MustLookup("10.0.20348"), testNode, Options{})
	if err != nil {
		b.Fatal(err)
	}
	v, err := Listen(s, "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = v.Serve(b.Context()) }()
	defer func() { _ = v.Close() }()
	c, err := Dial(b.Context(), v.Addr(), "bench")
	if err != nil {
		b.Fatal(err)
	}
	nh, err := c.Create(Network, 0, `{"Name":"n","Type":"NAT","Ipams":[{"Subnets":[{"IpAddressPrefix":"10.0.0.0/8"}]}]}`)
	if err != nil {
		b.Fatal(err)
	}
	h, err := c.Create(Endpoint, nh, `{"Name":"e","IpConfigurations":[{"IpAddress":"10.1.2.3","PrefixLength":8}]}`)
	if err != nil {
		b.Fatal(err)
	}
	perSecond := func(b *testing.B) { b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s") }
	b.Run("query", func(b *testing.B) {
		for b.Loop() {
			if _, err := c.query(Endpoint, h); err != nil {
				b.Fatal(err)
			}
		}
		perSecond(b)
	})
	b.Run("four clients", func(b *testing.B) {
		var wg sync.WaitGroup
		for i := range 4 {
			c, err := Dial(b.Context(), v.Addr(), "bench")
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			n := b.N / 4
			if i == 0 {
				n += b.N % 4
			}
			wg.Go(func() {
				for range n {
					if _, err := c.Enumerate(Endpoint, FilterBy("Name", "e")); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		perSecond(b)
	})
	b.Run("create and delete", func(b *testing.B) {
		id := 0
		for b.Loop() {
			id++
			h, err := c.Create(Namespace, 0, fmt.Sprintf(`{"ID":"00000000-0000-4000-8000-%012d"}`, id))
			if err != nil {
				b.Fatal(err)
			}
			if err := c.Delete(Namespace, fmt.Sprintf("00000000-0000-4000-8000-%012d", id)); err != nil {
				b.Fatal(err)
			}
			if err := c.CloseHandle(Namespace, h); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(3*float64(b.N)/b.Elapsed().Seconds(), "calls/s")
	})
}
