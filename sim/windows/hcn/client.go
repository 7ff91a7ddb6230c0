package hcn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// Client speaks with a [Server], as the DLLs do. It is safe for concurrent use;
// calls go one after the other.
type Client struct {
	mu   sync.Mutex
	conn net.Conn
	// ended is the error of the context that the connection ends with; stop takes
	// the connection from it.
	ended func() error
	stop  func() bool
	turns *turns // nil where there are none
	seq   uint32
	in    frames
	out   []byte
}

// CallError is a call that HNS refused.
type CallError struct {
	call    string
	hresult uint32
	// message is the text of the error record, details what winlab adds to it.
	message string
	details []string
}

// Error returns the message with the HRESULT.
func (e *CallError) Error() string {
	s := fmt.Sprintf("%s: %s (0x%x)", e.call, e.message, e.hresult)
	for _, d := range e.details {
		s += "; " + d
	}
	return s
}

// Dial connects to a server at "127.0.0.1:PORT". The name appears in its log. When
// ctx ends, the connection ends, and so does a call or a Watch that is under way. Where
// the server listens on a Unix socket beside that address, Dial takes that: the kernel
// needs less than half of the time for a call, as there is no TCP between the two.
func Dial(ctx context.Context, address, name string) (*Client, error) {
	if _, err := loopback(address); err != nil {
		return nil, err
	}
	conn := dialNear(ctx, address)
	if conn == nil {
		var d net.Dialer
		var err error
		if conn, err = d.DialContext(ctx, "tcp4", address); err != nil {
			return nil, err
		}
	}
	c := &Client{conn: conn, ended: ctx.Err, turns: turnsOf(conn), in: frames{most: maxResponse}}
	c.stop = context.AfterFunc(ctx, func() { _ = conn.Close() })
	if _, err := conn.Write(appendHello(nil, name)); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	version, _, err := readHello(conn)
	if err == nil && version != wireVersion {
		err = fmt.Errorf("%s speaks version %d of the protocol, this winlab %d", address, version, wireVersion)
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("the HNS service closed the connection before it answered; its own output says why")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", address, err), c.Close())
	}
	return c, nil
}

// Close ends the connection and with it the client's handles.
func (c *Client) Close() error {
	err := c.conn.Close()
	if !c.stop() && errors.Is(err, net.ErrClosed) {
		return nil // its context has closed it before
	}
	return err
}

// call makes one call. An error means that the connection is broken; a refusal
// of HNS is in the response.
func (c *Client) call(r request) (*response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	res, err := c.exchange(&r)
	if err != nil && c.ended() != nil {
		err = c.ended()
	}
	return res, err
}

// exchange sends a request and reads its answer.
func (c *Client) exchange(r *request) (*response, error) {
	c.seq++
	r.Seq = c.seq
	c.out = appendRequest(c.out[:0], r)
	wrote := 0
	if c.turns != nil && !c.in.begun() {
		n, read, err := 0, 0, error(nil)
		if n, read, err = c.turns.ask(c.out, c.in.room()); err != nil {
			return nil, c.broken(err)
		}
		wrote = n
		c.in.came(read)
	}
	if wrote < len(c.out) {
		if _, err := c.conn.Write(c.out[wrote:]); err != nil {
			return nil, err
		}
	}
	if cap(c.out) > keptRoom {
		c.out = nil
	}
	return c.receive()
}

func (c *Client) receive() (*response, error) {
	body, err := c.in.read(c.conn)
	if err != nil {
		return nil, c.broken(err)
	}
	res, err := parseResponse(body)
	if err == nil && res.Seq != c.seq {
		err = fmt.Errorf("%w: answer %d to request %d", errMalformed, res.Seq, c.seq)
	}
	return res, err
}

// broken is the error of a connection that ended when an answer was wanted.
func (c *Client) broken(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("the HNS service has closed the connection")
	}
	return err
}

// do makes a call and turns a refusal into a *CallError.
func (c *Client) do(r request) (*response, error) {
	res, err := c.call(r)
	if err != nil {
		return nil, err
	}
	if res.HResult&0x80000000 == 0 {
		return res, nil
	}
	e := &CallError{call: callName(r.Verb, r.Kind), hresult: res.HResult, message: res.Record}
	var rec record
	if json.Unmarshal([]byte(res.Record), &rec) == nil {
		e.message, e.details = rec.Error, rec.Details
	}
	return nil, e
}

// FilterBy returns the query for the objects whose field has the value.
func FilterBy(field, value string) string {
	filter, _ := json.Marshal(map[string]string{field: value}) // strings marshal
	q, _ := json.Marshal(struct {
		SchemaVersion struct{ Major, Minor int }
		Flags         uint32
		Filter        string
	}{SchemaVersion: struct{ Major, Minor int }{2, 0}, Filter: string(filter)})
	return string(q)
}

// Enumerate returns the ids of the objects that a query asks for, "" for all.
func (c *Client) Enumerate(k Kind, query string) ([]string, error) {
	res, err := c.do(request{Verb: verbEnumerate, Kind: k, Texts: []string{query}})
	if err != nil {
		return nil, err
	}
	var ids []string
	if err := json.Unmarshal([]byte(res.Output), &ids); err != nil {
		return nil, fmt.Errorf("%s: %w", callName(verbEnumerate, k), err)
	}
	return ids, nil
}

// Create makes an object and returns its handle; network is the handle of the
// network for an endpoint, else 0.
func (c *Client) Create(k Kind, network uint64, settings string) (uint64, error) {
	res, err := c.do(request{Verb: verbCreate, Kind: k, Handle: network, Texts: []string{settings}})
	if err != nil {
		return 0, err
	}
	return res.Handle, nil
}

// Open returns a handle of an object.
func (c *Client) Open(k Kind, id string) (uint64, error) {
	g, err := ParseGUID(id)
	if err != nil {
		return 0, err
	}
	res, err := c.do(request{Verb: verbOpen, Kind: k, ID: g})
	if err != nil {
		return 0, err
	}
	return res.Handle, nil
}

// modify changes the object of a handle.
func (c *Client) modify(k Kind, handle uint64, settings string) error {
	_, err := c.do(request{Verb: verbModify, Kind: k, Handle: handle, Texts: []string{settings}})
	return err
}

// query returns the JSON of the object of a handle.
func (c *Client) query(k Kind, handle uint64) (string, error) {
	res, err := c.do(request{Verb: verbQuery, Kind: k, Handle: handle, Texts: []string{""}})
	if err != nil {
		return "", err
	}
	return res.Output, nil
}

// CloseHandle gives a handle back.
func (c *Client) CloseHandle(k Kind, handle uint64) error {
	_, err := c.do(request{Verb: verbClose, Kind: k, Handle: handle})
	return err
}

// Delete deletes an object.
func (c *Client) Delete(k Kind, id string) error {
	g, err := ParseGUID(id)
	if err != nil {
		return err
	}
	_, err = c.do(request{Verb: verbDelete, Kind: k, ID: g})
	return err
}

// Get returns the JSON of an object by id: open, query, close.
func (c *Client) Get(k Kind, id string) (string, error) {
	h, err := c.Open(k, id)
	if err != nil {
		return "", err
	}
	text, err := c.query(k, h)
	return text, errors.Join(err, c.CloseHandle(k, h))
}

// Snapshot returns everything that the HNS holds.
func (c *Client) Snapshot() (*hns.Snapshot, error) {
	res, err := c.do(request{Verb: verbSnapshot})
	if err != nil {
		return nil, err
	}
	s := &hns.Snapshot{}
	if err := json.Unmarshal([]byte(res.Output), s); err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	return s, nil
}

// HNSCall makes a call of HNS v1 and returns the output of its reply.
func (c *Client) HNSCall(method, path, body string) (json.RawMessage, error) {
	res, err := c.do(request{Verb: verbHNSCall, Texts: []string{method, path, body}})
	if err != nil {
		return nil, err
	}
	var reply struct {
		Success   bool
		Error     string
		ErrorCode uint32
		Details   []string
		Output    json.RawMessage
	}
	if err := json.Unmarshal([]byte(res.Output), &reply); err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if !reply.Success {
		return nil, &CallError{call: method + " " + path, hresult: reply.ErrorCode, message: reply.Error, details: reply.Details}
	}
	return reply.Output, nil
}

// Watch calls f with every line of the call log from now on, until f says no, the
// server ends (nil) or the connection fails. begun, when not nil, is called
// once nothing can be missed any more. The client can make no calls after it.
func (c *Client) Watch(begun func(), f func(line []byte) bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.exchange(&request{Verb: verbWatch}); err != nil {
		return err
	}
	if begun != nil {
		begun()
	}
	for {
		body, err := c.in.read(c.conn)
		if err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
				return nil
			}
			return err
		}
		res, err := parseResponse(body)
		if err != nil {
			return err
		}
		if !f([]byte(res.Output)) {
			return nil
		}
	}
}
