package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// fetch is what Invoke-WebRequest and WebClient ask.
func fetch(i *interp, u string, seconds float64) (*http.Response, []byte, error) {
	o := &curlOptions{connectTimeout: time.Duration(seconds * float64(time.Second)), maxTime: time.Duration(seconds * float64(time.Second))}
	t := &transfer{o: o, s: i.s, begin: time.Now(), effective: u}
	ctx := i.ctx
	if seconds > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.maxTime)
		defer cancel()
	}
	at, err := parseURL(u)
	if err != nil {
		return nil, nil, err
	}
	tr := t.transport()
	defer tr.CloseIdleConnections()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, nil, err
	}
	res, err := (&http.Client{Transport: tr}).Do(q)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 1<<26))
	return res, body, err
}

func webRequest(c *psCall) error {
	v, ok := c.get(0, "-uri")
	if !ok {
		return refuse("Invoke-WebRequest : -Uri is missing")
	}
	wait := 0.0
	if s, ok := c.get(-1, "-timeoutsec"); ok {
		wait, _ = number64(s)
	}
	res, body, err := fetch(c.i, show(v), wait)
	var known *curlError
	switch {
	case errors.As(err, &known) && known.code == 6:
		return &flow{"throw", "Invoke-WebRequest : The remote name could not be resolved: '" +
			strings.TrimPrefix(known.text, "Could not resolve host: ") + "'"}
	case errors.As(err, &known) && known.code == 28, errors.Is(err, context.DeadlineExceeded):
		return &flow{"throw", "Invoke-WebRequest : The operation has timed out."}
	case err != nil:
		return &flow{"throw", "Invoke-WebRequest : Unable to connect to the remote server"}
	case res.StatusCode >= 400:
		return &flow{"throw", fmt.Sprintf("Invoke-WebRequest : The remote server returned an error: (%d) %s.", res.StatusCode,
			strings.TrimPrefix(res.Status, fmt.Sprint(res.StatusCode, " ")))}
	}
	headers := newTable()
	for _, n := range slices.Sorted(maps.Keys(res.Header)) {
		headers.put(n, res.Header.Get(n))
	}
	return c.emit(&psRecord{order: []string{"StatusCode", "StatusDescription", "Content", "RawContentLength"}, values: map[string]any{
		"statuscode": int64(res.StatusCode), "statusdescription": http.StatusText(res.StatusCode), "content": string(body),
		"rawcontentlength": int64(len(body)), "headers": headers}})
}

type psWebClient struct{}

func (psWebClient) get(string) (any, bool) { return nil, false }
func (psWebClient) set(string, any) bool   { return false }
func (psWebClient) call(i *interp, name string, args []any) (any, error) {
	if name != "downloadstring" || len(args) != 1 {
		return nil, errNoMethod
	}
	_, body, err := fetch(i, show(args[0]), 0)
	if err != nil {
		return nil, &psError{"Exception calling \"DownloadString\" with \"1\" argument(s): \"" + err.Error() + "\""}
	}
	return string(body), nil
}
