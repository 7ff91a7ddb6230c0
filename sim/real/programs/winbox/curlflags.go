package main

import (
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// curlOptions are what the arguments of curl say (curl.se/docs/manpage.html).
type curlOptions struct {
	silent, showError, verbose, include, head, fail, failBody, insecure, location, globOff bool
	output                                                                                 string
	remoteName                                                                             bool
	writeOut                                                                               string
	maxTime, connectTimeout, retryDelay                                                    time.Duration
	retry                                                                                  int
	retryRefused, retryAll                                                                 bool
	headers                                                                                []string
	data                                                                                   []byte
	hasData                                                                                bool
	dataInURL                                                                              bool
	method                                                                                 string
	family                                                                                 int
	iface, user, agent                                                                     string
	redirects                                                                              int
	resolve                                                                                map[string]netip.Addr
	urls                                                                                   []string
}

// curlError is a failure with curl's exit code (curl.se/libcurl/c/libcurl-errors.html).
type curlError struct {
	code int
	text string
}

func (e *curlError) Error() string { return e.text }

// flag is one of curl's options: its short letter or 0, its name, whether a value follows.
type flag struct {
	short byte
	name  string
	value bool
	set   func(o *curlOptions, v string) error
}

func yes(p func(*curlOptions) *bool) func(*curlOptions, string) error {
	return func(o *curlOptions, _ string) error { *p(o) = true; return nil }
}

func text(p func(*curlOptions) *string) func(*curlOptions, string) error {
	return func(o *curlOptions, v string) error { *p(o) = v; return nil }
}

func ignored(*curlOptions, string) error { return nil }

func seconds(p func(*curlOptions) *time.Duration) func(*curlOptions, string) error {
	return func(o *curlOptions, v string) error {
		f, err := strconv.ParseFloat(v, 64)
		if err != nil || f < 0 || f > 1e9 {
			return &curlError{2, "expected a proper numerical parameter"}
		}
		*p(o) = time.Duration(f * float64(time.Second))
		return nil
	}
}

func number(p func(*curlOptions) *int) func(*curlOptions, string) error {
	return func(o *curlOptions, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil {
			return &curlError{2, "expected a proper numerical parameter"}
		}
		*p(o) = n
		return nil
	}
}

// body collects what -d and its like say. Several are joined by "&".
func body(trim, at bool) func(*curlOptions, string) error {
	return func(o *curlOptions, v string) error {
		part := []byte(v)
		if name, ok := strings.CutPrefix(v, "@"); ok && at {
			var err error
			if name == "-" {
				part, err = io.ReadAll(os.Stdin)
			} else {
				part, err = os.ReadFile(name)
			}
			if err != nil {
				return &curlError{26, "Failed to open " + name}
			}
			if trim {
				part = []byte(strings.NewReplacer("\r", "", "\n", "").Replace(string(part)))
			}
		}
		if o.hasData {
			o.data = append(o.data, '&')
		}
		o.data, o.hasData = append(o.data, part...), true
		return nil
	}
}

func pinned(o *curlOptions, v string) error {
	parts := strings.SplitN(v, ":", 3)
	if len(parts) == 3 {
		if a, err := netip.ParseAddr(strings.Trim(parts[2], "[]")); err == nil {
			o.resolve[strings.ToLower(parts[0])+":"+parts[1]] = a
			return nil
		}
	}
	return &curlError{49, "Couldn't parse CURLOPT_RESOLVE entry '" + v + "'"}
}

// curlFlags are the options that are known.
func curlFlags() []flag {
	return []flag{
		{'s', "silent", false, yes(func(o *curlOptions) *bool { return &o.silent })},
		{'S', "show-error", false, yes(func(o *curlOptions) *bool { return &o.showError })},
		{'v', "verbose", false, yes(func(o *curlOptions) *bool { return &o.verbose })},
		{'i', "include", false, yes(func(o *curlOptions) *bool { return &o.include })},
		{'i', "show-headers", false, yes(func(o *curlOptions) *bool { return &o.include })},
		{'I', "head", false, yes(func(o *curlOptions) *bool { return &o.head })},
		{'f', "fail", false, yes(func(o *curlOptions) *bool { return &o.fail })},
		{0, "fail-with-body", false, yes(func(o *curlOptions) *bool { return &o.failBody })},
		{'k', "insecure", false, yes(func(o *curlOptions) *bool { return &o.insecure })},
		{'L', "location", false, yes(func(o *curlOptions) *bool { return &o.location })},
		{'g', "globoff", false, yes(func(o *curlOptions) *bool { return &o.globOff })},
		{'o', "output", true, text(func(o *curlOptions) *string { return &o.output })},
		{'O', "remote-name", false, yes(func(o *curlOptions) *bool { return &o.remoteName })},
		{'w', "write-out", true, text(func(o *curlOptions) *string { return &o.writeOut })},
		{'m', "max-time", true, seconds(func(o *curlOptions) *time.Duration { return &o.maxTime })},
		{0, "connect-timeout", true, seconds(func(o *curlOptions) *time.Duration { return &o.connectTimeout })},
		{0, "retry", true, number(func(o *curlOptions) *int { return &o.retry })},
		{0, "retry-delay", true, seconds(func(o *curlOptions) *time.Duration { return &o.retryDelay })},
		{0, "retry-connrefused", false, yes(func(o *curlOptions) *bool { return &o.retryRefused })},
		{0, "retry-all-errors", false, yes(func(o *curlOptions) *bool { return &o.retryAll })},
		{'H', "header", true, func(o *curlOptions, v string) error { o.headers = append(o.headers, v); return nil }},
		{'d', "data", true, body(true, true)},
		{0, "data-ascii", true, body(true, true)},
		{0, "data-raw", true, body(false, false)},
		{0, "data-binary", true, body(false, true)},
		{'G', "get", false, yes(func(o *curlOptions) *bool { return &o.dataInURL })},
		{'X', "request", true, text(func(o *curlOptions) *string { return &o.method })},
		{'4', "ipv4", false, func(o *curlOptions, _ string) error { o.family = 4; return nil }},
		{'6', "ipv6", false, func(o *curlOptions, _ string) error { o.family = 6; return nil }},
		{0, "interface", true, text(func(o *curlOptions) *string { return &o.iface })},
		{'u', "user", true, text(func(o *curlOptions) *string { return &o.user })},
		{'A', "user-agent", true, text(func(o *curlOptions) *string { return &o.agent })},
		{0, "max-redirs", true, number(func(o *curlOptions) *int { return &o.redirects })},
		{0, "resolve", true, pinned},
		{0, "url", true, func(o *curlOptions, v string) error { o.urls = append(o.urls, v); return nil }},
		// There is no proxy, and these change nothing that is seen.
		{0, "noproxy", true, ignored}, {'N', "no-buffer", false, ignored}, {'#', "progress-bar", false, ignored},
		{0, "no-progress-meter", false, ignored}, {0, "http1.1", false, ignored}, {'0', "http1.0", false, ignored},
		{0, "compressed", false, ignored},
		{0, "no-keepalive", false, ignored}, {0, "tcp-nodelay", false, ignored}, {0, "ssl-no-revoke", false, ignored},
		{'q', "disable", false, ignored},
	}
}

// curlArgs reads the arguments.
func curlArgs(args []string) (*curlOptions, error) {
	o := &curlOptions{redirects: 50, resolve: map[string]netip.Addr{}}
	flags := curlFlags()
	for len(args) > 0 {
		a := args[0]
		args = args[1:]
		take := func(name string) (string, error) {
			if len(args) == 0 {
				return "", &curlError{2, "option " + name + ": requires parameter"}
			}
			v := args[0]
			args = args[1:]
			return v, nil
		}
		var err error
		switch {
		case a == "--":
			o.urls = append(o.urls, args...)
			args = nil
		case strings.HasPrefix(a, "--"):
			err = longFlag(o, flags, a, take)
		case strings.HasPrefix(a, "-") && len(a) > 1:
			err = shortFlags(o, flags, a, take)
		default:
			o.urls = append(o.urls, a)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(o.urls) == 0 {
		return nil, &curlError{2, "no URL specified"}
	}
	return o, nil
}

func longFlag(o *curlOptions, flags []flag, a string, take func(string) (string, error)) error {
	i := slices.IndexFunc(flags, func(f flag) bool { return f.name == a[2:] })
	if i < 0 {
		return &curlError{2, fmt.Sprintf("option %s: is unknown", a)}
	}
	v := ""
	if flags[i].value {
		var err error
		if v, err = take(a); err != nil {
			return err
		}
	}
	return wrong(a, flags[i].set(o, v))
}

// shortFlags reads "-sSo NUL": letters, the last of which may have a value.
func shortFlags(o *curlOptions, flags []flag, a string, take func(string) (string, error)) error {
	for rest := a[1:]; rest != ""; {
		letter := rest[0]
		rest = rest[1:]
		i := slices.IndexFunc(flags, func(f flag) bool { return f.short == letter })
		if i < 0 {
			return &curlError{2, fmt.Sprintf("option %s: is unknown", a)}
		}
		v := ""
		if flags[i].value {
			if v, rest = rest, ""; v == "" {
				var err error
				if v, err = take("-" + string(letter)); err != nil {
					return err
				}
			}
		}
		if err := wrong("-"+string(letter), flags[i].set(o, v)); err != nil {
			return err
		}
	}
	return nil
}

func wrong(option string, err error) error {
	if e, ok := err.(*curlError); ok && e.code == 2 {
		return &curlError{2, "option " + option + ": " + e.text}
	}
	return err
}

// verb is the method of the request.
func (o *curlOptions) verb() string {
	switch {
	case o.method != "":
		return o.method
	case o.head:
		return http.MethodHead
	case o.hasData && !o.dataInURL:
		return http.MethodPost
	}
	return http.MethodGet
}
