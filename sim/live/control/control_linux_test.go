package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func files(t *testing.T) (stdio [3]*os.File, out func() string) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	return [3]*os.File{null, w, w}, func() string {
		w.Close()
		b, _ := io.ReadAll(r)
		return string(b)
	}
}

func TestCalls(t *testing.T) {
	name := fmt.Sprintf("test-%d", os.Getpid())
	started := make(chan struct{}, 1)
	s, err := Listen(name, func(ctx context.Context, c Call) (int, error) {
		switch c.Verb {
		case "echo":
			var text string
			if err := json.Unmarshal(c.Args, &text); err != nil {
				return 0, err
			}
			fmt.Fprint(c.Stdio[1], text)
			return 3, nil
		case "wait":
			started <- struct{}{}
			select {
			case n := <-c.Signals:
				return 100 + n, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
		return 0, fmt.Errorf("no verb %s", c.Verb)
	})
	if err != nil {
		t.Fatal(err)
	}
	if names, err := Names(); err != nil || !slices.Contains(names, name) {
		t.Errorf("running: %v, %v", names, err)
	}
	if _, err := Listen(name, nil); err == nil || !strings.Contains(err.Error(), "is already up") {
		t.Errorf("a second one of that name: %v", err)
	}
	stdio, out := files(t)
	if code, err := Do(t.Context(), name, "echo", "hello", stdio, nil); code != 3 || err != nil {
		t.Errorf("echo: %d, %v", code, err)
	}
	if got := out(); got != "hello" {
		t.Errorf("it wrote %q", got)
	}
	var remote *Remote
	stdio, _ = files(t)
	if code, err := Do(t.Context(), name, "fly", nil, stdio, nil); code != 2 || !errors.As(err, &remote) || remote.Text != "no verb fly" {
		t.Errorf("an unknown verb: %d, %v", code, err)
	}
	signals := make(chan os.Signal, 1)
	signals <- syscall.SIGTERM
	if code, err := Do(t.Context(), name, "wait", nil, stdio, signals); code != 115 || err != nil {
		t.Errorf("a signal: %d, %v", code, err)
	}
	<-started
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-started; cancel() }()
	if _, err := Do(ctx, name, "wait", nil, stdio, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that goes: %v", err)
	}
	go func() { <-started; s.stop() }()
	if _, err := Do(t.Context(), name, "wait", nil, stdio, nil); err == nil {
		t.Error("a network that goes down: no error")
	}
	s.Close()
	if _, err := Do(t.Context(), name, "echo", "", stdio, nil); !errors.Is(err, ErrNone) {
		t.Errorf("after the end: %v", err)
	}
	if _, err := Listen("Bad Name", nil); err == nil {
		t.Error("a bad name was taken")
	}
}
