package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
)

// psRecord is an object with properties, shown as a list.
type psRecord struct {
	order  []string
	values map[string]any // by the name in small letters
}

func (r *psRecord) get(name string) (any, bool) { v, ok := r.values[name]; return v, ok }
func (r *psRecord) set(name string, v any) bool { r.values[name] = v; return true }
func (r *psRecord) call(*interp, string, []any) (any, error) {
	return nil, errNoMethod
}

func (r *psRecord) String() string {
	width := 0
	for _, n := range r.order {
		width = max(width, len(n))
	}
	var b strings.Builder
	b.WriteString("\n")
	for _, n := range r.order {
		fmt.Fprintf(&b, "%-*s : %s\n", width, n, show(r.values[strings.ToLower(n)]))
	}
	return b.String()
}

var errNoMethod = errors.New("no such method")

type psType string

func (t psType) String() string { return string(t) }

// member reads a property or calls a method.
func (i *interp) member(n nMember) (any, error) {
	of, err := i.value(n.of)
	if err != nil {
		return nil, err
	}
	var args []any
	for _, a := range n.args {
		v, err := i.value(a)
		if err != nil {
			return nil, err
		}
		args = append(args, v)
	}
	if t, ok := of.(psType); ok {
		return static(i, t, n.name, args)
	}
	if !n.call {
		return i.property(of, n.name)
	}
	v, err := i.method(of, n.name, args)
	if errors.Is(err, errNoMethod) {
		if of == nil {
			return nil, &psError{"You cannot call a method on a null-valued expression."}
		}
		return nil, &psError{fmt.Sprintf("winlab: powershell.exe here does not know the method %s of %T", n.name, of)}
	}
	return v, err
}

func (i *interp) property(of any, name string) (any, error) {
	switch of := of.(type) {
	case nil:
		return nil, nil
	case string:
		if name == "length" {
			return int64(len(of)), nil
		}
	case []any:
		if name == "length" || name == "count" {
			return int64(len(of)), nil
		}
		var all []any // the property of each
		for _, x := range of {
			v, err := i.property(x, name)
			if err != nil {
				return nil, err
			}
			all = append(all, v)
		}
		return all, nil
	case []byte:
		if name == "length" || name == "count" {
			return int64(len(of)), nil
		}
	case *psTable:
		switch v, ok := of.values[name]; {
		case ok:
			return v, nil
		case name == "keys":
			return of.list(false), nil
		case name == "values":
			return of.list(true), nil
		case name == "count":
			return int64(len(of.keys)), nil
		}
		return nil, nil
	case psObject:
		if v, ok := of.get(name); ok {
			return v, nil
		}
		return nil, nil
	}
	if name == "count" {
		return int64(1), nil
	}
	return nil, nil
}

func (i *interp) method(of any, name string, args []any) (any, error) {
	arg := func(n int) any {
		if n < len(args) {
			return args[n]
		}
		return nil
	}
	switch of := of.(type) {
	case psObject:
		return of.call(i, name, args)
	case *psTable:
		switch name {
		case "get_item", "item":
			return of.values[strings.ToLower(show(arg(0)))], nil
		case "set_item", "add":
			of.put(arg(0), arg(1))
			return nil, nil
		case "containskey", "contains":
			_, ok := of.values[strings.ToLower(show(arg(0)))]
			return ok, nil
		}
	case string:
		switch name {
		case "tolower":
			return strings.ToLower(of), nil
		case "toupper":
			return strings.ToUpper(of), nil
		case "trim":
			return strings.TrimSpace(of), nil
		case "contains":
			return strings.Contains(of, show(arg(0))), nil
		case "startswith":
			return strings.HasPrefix(of, show(arg(0))), nil
		case "endswith":
			return strings.HasSuffix(of, show(arg(0))), nil
		case "replace":
			return strings.ReplaceAll(of, show(arg(0)), show(arg(1))), nil
		case "split":
			var all []any
			for _, x := range strings.Split(of, show(arg(0))) {
				all = append(all, x)
			}
			return all, nil
		}
	}
	if name == "tostring" && of != nil {
		return show(of), nil
	}
	return nil, errNoMethod
}

// static is a member of a type.
func static(i *interp, t psType, name string, args []any) (any, error) {
	var first any
	if len(args) > 0 {
		first = args[0]
	}
	kind := strings.TrimPrefix(string(t), "system.")
	switch kind + "::" + name {
	case "text.encoding::utf8", "text.encoding::ascii", "text.encoding::unicode":
		return psEncoding(name), nil
	case "convert::frombase64string":
		raw, err := base64.StdEncoding.DecodeString(show(first))
		return raw, err
	case "int::cast", "int32::cast", "long::cast", "int64::cast":
		n, ok := number64(first)
		if !ok {
			return nil, &psError{fmt.Sprintf("Cannot convert value %q to type \"System.Int32\".", show(first))}
		}
		return int64(n), nil
	case "string::cast":
		return show(first), nil
	case "bool::cast":
		return truth(first), nil
	case "void::cast":
		return nil, nil
	case "environment::machinename":
		return i.s.getenv("COMPUTERNAME"), nil
	case "environment::getenvironmentvariable":
		return i.variable("env:" + show(first)), nil
	}
	return nil, &psError{fmt.Sprintf("winlab: powershell.exe here does not know [%s]::%s", t, name)}
}

type psEncoding string

func (psEncoding) get(string) (any, bool) { return nil, false }
func (psEncoding) set(string, any) bool   { return false }
func (e psEncoding) call(_ *interp, name string, args []any) (any, error) {
	if len(args) == 0 {
		return nil, errNoMethod
	}
	switch name {
	case "getbytes":
		if e == "unicode" {
			var all []byte
			for _, u := range utf16.Encode([]rune(show(args[0]))) {
				all = append(all, byte(u), byte(u>>8))
			}
			return all, nil
		}
		return []byte(show(args[0])), nil
	case "getstring":
		if raw, ok := args[0].([]byte); ok && e != "unicode" {
			return string(raw), nil
		}
	}
	return nil, errNoMethod
}

func newObject(c *psCall) error {
	v, _ := c.get(0, "-typename")
	switch strings.TrimPrefix(strings.ToLower(show(v)), "system.") {
	case "net.httplistener":
		return c.emit(&psListener{ctx: c.i.ctx, requests: make(chan *psContext)})
	case "net.webclient":
		return c.emit(psWebClient{})
	}
	return refuse("winlab: New-Object here does not know %s", show(v))
}

// psListener is System.Net.HttpListener.
type psListener struct {
	ctx      context.Context
	prefixes []string
	servers  []*http.Server
	requests chan *psContext
	runs     bool
}

func (l *psListener) get(name string) (any, bool) {
	switch name {
	case "islistening":
		return l.runs, true
	case "prefixes":
		return psPrefixes{l}, true
	}
	return nil, false
}
func (l *psListener) set(string, any) bool { return false }

func (l *psListener) call(i *interp, name string, _ []any) (any, error) {
	switch name {
	case "start":
		return nil, l.start()
	case "stop", "close":
		for _, s := range l.servers {
			_ = s.Close()
		}
		l.runs = false
		return nil, nil
	case "getcontext":
		select {
		case c := <-l.requests:
			return c, nil
		case <-i.ctx.Done():
			return nil, i.ctx.Err()
		}
	}
	return nil, errNoMethod
}

func (l *psListener) start() error {
	for _, p := range l.prefixes {
		u, err := url.Parse(strings.NewReplacer("://*", "://0.0.0.0", "://+", "://0.0.0.0").Replace(p))
		if err != nil || u.Scheme != "http" {
			return &psError{fmt.Sprintf("Exception calling \"Start\" with \"0\" argument(s): \"winlab: the prefix %s\"", p)}
		}
		host := u.Hostname()
		if host == "0.0.0.0" {
			host = ""
		}
		at, err := net.Listen("tcp", net.JoinHostPort(host, cmp.Or(u.Port(), "80")))
		if err != nil {
			return &psError{"Exception calling \"Start\" with \"0\" argument(s): \"Failed to listen on prefix '" + p +
				"' because it conflicts with an existing registration on the machine.\""}
		}
		s := &http.Server{Handler: l, ReadHeaderTimeout: time.Minute}
		l.servers = append(l.servers, s)
		go func() { _ = s.Serve(at) }()
	}
	l.runs = true
	return nil
}

// ServeHTTP hands a request to the script and waits until that has closed the response.
func (l *psListener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &psContext{w: w, r: r, done: make(chan struct{})}
	select {
	case l.requests <- c:
	case <-r.Context().Done():
		return
	}
	select {
	case <-c.done:
	case <-l.ctx.Done():
	}
}

type psPrefixes struct{ l *psListener }

func (psPrefixes) get(string) (any, bool) { return nil, false }
func (psPrefixes) set(string, any) bool   { return false }
func (p psPrefixes) call(_ *interp, name string, args []any) (any, error) {
	if name != "add" || len(args) != 1 {
		return nil, errNoMethod
	}
	p.l.prefixes = append(p.l.prefixes, show(args[0]))
	return nil, nil
}

// psContext is a request and its response; the response is the same object.
type psContext struct {
	w      http.ResponseWriter
	r      *http.Request
	status int
	body   bytes.Buffer
	closed bool
	done   chan struct{}
}

func (c *psContext) get(name string) (any, bool) {
	host, port, _ := net.SplitHostPort(c.r.RemoteAddr)
	n, _ := strconv.ParseInt(port, 10, 64)
	switch name {
	case "request":
		u := "http://" + c.r.Host + c.r.RequestURI
		return &psRecord{values: map[string]any{"url": &psURL{u, c.r.URL}, "rawurl": c.r.RequestURI, "httpmethod": c.r.Method,
			"useragent": c.r.UserAgent(), "userhostaddress": c.r.Host,
			"remoteendpoint": &psRecord{values: map[string]any{"address": host, "port": n}}}}, true
	case "response", "outputstream":
		return c, true
	case "statuscode":
		return int64(cmp.Or(c.status, 200)), true
	}
	return nil, false
}

type psURL struct {
	text string
	u    *url.URL
}

func (u *psURL) String() string       { return u.text }
func (u *psURL) set(string, any) bool { return false }
func (u *psURL) get(name string) (any, bool) {
	switch name {
	case "localpath", "absolutepath":
		return u.u.Path, true
	case "query":
		return u.u.RawQuery, true
	}
	return nil, false
}
func (u *psURL) call(*interp, string, []any) (any, error) { return nil, errNoMethod }

func (c *psContext) set(name string, v any) bool {
	switch name {
	case "statuscode":
		n, _ := number64(v)
		c.status = int(n)
	case "contenttype":
		c.w.Header().Set("Content-Type", show(v))
	case "contentlength64", "keepalive", "statusdescription":
	default:
		return false
	}
	return true
}

func (c *psContext) call(_ *interp, name string, args []any) (any, error) {
	switch name {
	case "write":
		if len(args) != 3 {
			return nil, errNoMethod
		}
		if raw, ok := args[0].([]byte); ok {
			from, _ := number64(args[1])
			n, _ := number64(args[2])
			if from >= 0 && n >= 0 && int(from+n) <= len(raw) {
				c.body.Write(raw[int(from):int(from+n)])
				return nil, nil
			}
		}
		return nil, errNoMethod
	case "close", "flush":
		if !c.closed && name == "close" {
			c.closed = true
			c.w.Header().Set("Server", "Microsoft-HTTPAPI/2.0")
			if c.w.Header().Get("Content-Type") == "" {
				c.w.Header()["Content-Type"] = nil // HttpListener sends none of its own
			}
			c.w.WriteHeader(cmp.Or(c.status, 200))
			_, _ = c.w.Write(c.body.Bytes())
			close(c.done)
		}
		return nil, nil
	case "addheader", "appendheader":
		if len(args) == 2 {
			c.w.Header().Add(show(args[0]), show(args[1]))
			return nil, nil
		}
	}
	return nil, errNoMethod
}
