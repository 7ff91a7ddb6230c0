package hcn

import (
	"bytes"
	"errors"
	"io"
	"log"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// serveWith is a server with other limits, or another listener, whose log is said.
func serveWith(t *testing.T, l limits, through func(net.Listener) net.Listener) (v *Server, said *safe, done chan error) {
	t.Helper()
	said = &safe{has: make(chan struct{}, 1)}
	s := must(Start(builds.MustLookup("10.0.20348"), testNode, Options{Log: log.New(said, "", 0)}))(t)
	v = must(Listen(s, "127.0.0.1:0"))(t)
	v.limits = l
	if through != nil {
		for _, near := range v.listeners[1:] {
			must(0, near.Close())(t)
		}
		v.listeners = []net.Listener{through(v.listeners[0])}
	}
	done = make(chan error, 1)
	go func() { done <- v.Serve(t.Context()) }()
	t.Cleanup(func() { _ = v.Close() })
	return v, said, done
}

// troubled is a listener whose first accepts fail.
type troubled struct {
	net.Listener
	errs []error
}

func (l *troubled) Accept() (net.Conn, error) {
	if len(l.errs) > 0 {
		err := l.errs[0]
		l.errs = l.errs[1:]
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", err)}
	}
	return l.Listener.Accept()
}

// TestAcceptErrorsPass: a process out of descriptors for a moment serves on; an error
// that does not pass ends the service.
func TestAcceptErrorsPass(t *testing.T) {
	v, said, _ := serveWith(t, defaultLimits, func(l net.Listener) net.Listener {
		return &troubled{l, []error{syscall.EMFILE, syscall.EMFILE, syscall.ECONNABORTED}}
	})
	must(dial(t, v).Enumerate(Network, ""))(t)
	if text := said.String(); strings.Count(text, syscall.EMFILE.Error()) != 1 || !strings.Contains(text, "accepted again") {
		t.Errorf("the log says %q", text)
	}
	_, _, done := serveWith(t, defaultLimits, func(l net.Listener) net.Listener { return &troubled{l, []error{syscall.EBADF}} })
	if err := <-done; !errors.Is(err, syscall.EBADF) {
		t.Errorf("ended with %v", err)
	}
}

// endless is a listener that is always out of descriptors.
type endless struct {
	net.Listener
	asked chan struct{}
}

func (l *endless) Accept() (net.Conn, error) {
	select {
	case l.asked <- struct{}{}:
	default:
	}
	return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
}

func TestCloseEndsThePause(t *testing.T) {
	asked := make(chan struct{}, 1)
	v, _, done := serveWith(t, defaultLimits, func(l net.Listener) net.Listener { return &endless{l, asked} })
	<-asked
	must(0, v.Close())(t)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestSlowClients: whoever stops in the middle is cut off and named; whoever is
// silent between requests is not.
func TestSlowClients(t *testing.T) {
	const short = 50 * time.Millisecond
	// One is short at a time: a busy machine must not make another the reason.
	hellos, requests, answers := defaultLimits, defaultLimits, defaultLimits
	hellos.hello, requests.request, answers.answer = 10*short, short, short
	hello := appendHello(nil, "slow\nclient")
	frame := appendRequest(nil, &request{Seq: 1, Verb: verbEnumerate, Kind: Network, Texts: []string{""}})
	many := bytes.Clone(hello)
	big := appendRequest(nil, &request{Verb: verbHNSCall, Texts: []string{"GET", strings.Repeat("x", maxPath), ""}})
	for range 4000 { // answers of some 4 KB each, more than the buffers between the two hold
		many = append(many, big...)
	}
	for name, c := range map[string]struct {
		limits limits
		send   []byte
		want   string
		read   bool
	}{
		"no hello":     {hellos, nil, "the hello did not arrive completely within 500ms", true},
		"half a hello": {hellos, hello[:9], "the hello did not arrive completely within 500ms", true},
		"half a length": {requests, append(bytes.Clone(hello), frame[:2]...),
			"slow?client: a request did not arrive completely within 50ms", true},
		"half a request": {requests, append(bytes.Clone(hello), frame[:20]...),
			"slow?client: a request did not arrive completely within 50ms", true},
		"answers are not read": {answers, many, "slow?client: the client did not read its answers for 50ms", false},
	} {
		t.Run(name, func(t *testing.T) {
			v, said, _ := serveWith(t, c.limits, nil)
			good := dial(t, v)
			conn := must(net.Dial("tcp4", v.Addr()))(t)
			defer func() { _ = conn.Close() }()
			sent := make(chan struct{})
			go func() { defer close(sent); _, _ = conn.Write(c.send) }()
			if c.read {
				<-sent
				_, _ = io.Copy(io.Discard, conn) // ends when the server closes it
			}
			<-said.has
			<-sent
			if !strings.Contains(said.String(), c.want) {
				t.Errorf("the log says %q", said)
			}
			must(good.Enumerate(Network, ""))(t)
		})
	}
}

func TestTooManyClients(t *testing.T) {
	few := defaultLimits
	few.conns = 2
	v, said, _ := serveWith(t, few, nil)
	a := dial(t, v)
	dial(t, v)
	if _, err := Dial(t.Context(), v.Addr(), "third"); err == nil ||
		!strings.Contains(said.String(), "2 clients are connected, which is the limit") {
		t.Errorf("a third client: %v; the log says %q", err, said)
	}
	must(a.Enumerate(Network, ""))(t)
	must(0, a.Close())(t)
	for { // the server notices the end of a client when it reads
		c, err := Dial(t.Context(), v.Addr(), "third")
		if err == nil {
			must(0, c.Close())(t)
			break
		}
	}
}

func TestLongNamesAreRefused(t *testing.T) {
	_, v, _ := serve(t, "10.0.20348", Options{})
	c := dial(t, v)
	long := strings.Repeat("x", maxPath+1)
	for _, r := range []request{
		{Verb: verbHNSCall, Texts: []string{"GET", long, ""}},
		{Verb: verbHNSCall, Texts: []string{long, "/networks/", ""}},
		{Verb: verbOpen, Kind: computeSystem, Texts: []string{long}},
	} {
		_, err := c.do(r)
		if refusal(t, err) != 0x80070057 || !strings.Contains(err.Error(), "4097 bytes; the limit is 4096") || len(err.Error()) > 500 {
			t.Errorf("got %.300v", err)
		}
	}
}

// TestTornCallLog: a service that died in the middle of a line leaves a log that can be
// replayed, and that the next service goes on with.
func TestTornCallLog(t *testing.T) {
	name := filepath.Join(t.TempDir(), "calls.jsonl")
	run := func() string {
		said := &safe{has: make(chan struct{}, 1)}
		l := log.New(said, "", 0)
		f := must(OpenCallLog(name, l))(t)
		s := must(Start(builds.MustLookup("10.0.20348"), testNode, Options{CallLog: f, Log: l}))(t)
		s.started()
		c := s.session("a")
		c.call(&request{Verb: verbCreate, Kind: Namespace, Texts: []string{"{}"}})
		c.close()
		must(0, f.Close())(t)
		return said.String()
	}
	tear := func() {
		text := must(os.ReadFile(name))(t)
		must(0, os.WriteFile(name, text[:len(text)-20], 0o644))(t)
	}
	replay := func(starts int) (int, string) {
		said := &safe{has: make(chan struct{}, 1)}
		s := must(Start(builds.MustLookup("10.0.20348"), testNode, Options{Log: log.New(said, "", 0)}))(t)
		n, diff, err := s.Replay(t.Context(), "log", bytes.NewReader(must(os.ReadFile(name))(t)))
		// The second service began without objects, a replay goes on with those of the first.
		if err != nil || (starts == 1 && len(diff) > 0) {
			t.Errorf("differences %v, %v", diff, err)
		}
		return n, said.String()
	}
	if said := run(); said != "" {
		t.Errorf("a new log: %q", said)
	}
	if n, said := replay(1); n != 1 || said != "" {
		t.Errorf("whole: %d calls, %q", n, said)
	}
	tear() // "disconnect" is half there
	if n, said := replay(1); n != 1 || !strings.Contains(said, "log:4: the log ends in the middle of a line") {
		t.Errorf("torn: %d calls, %q", n, said)
	}
	if said := run(); !strings.Contains(said, "ends in the middle of a line") {
		t.Errorf("the next service says %q", said)
	}
	if n, said := replay(2); n != 2 || said != "" {
		t.Errorf("after the next service: %d calls, %q", n, said)
	}
	// A file without any line is not a log, and nothing of it is whole.
	must(0, os.WriteFile(name, []byte(`{"call`), 0o644))(t)
	s := must(Start(builds.MustLookup("10.0.20348"), testNode, Options{}))(t)
	if _, _, err := s.Replay(t.Context(), "log", strings.NewReader(`{"call`)); err == nil {
		t.Error("half a line alone was taken for a log")
	}
}
