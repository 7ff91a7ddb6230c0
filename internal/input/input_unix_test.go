//go:build unix

package input

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Nothing that a user can name blocks or is read without an end.
func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := syscall.Mkfifo(at("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", at("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.WriteFile(at("large"), make([]byte, 1001), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", at("link")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, wants string }{
		{"/dev/zero", "this is a device"},
		{at("link"), "this is a device"},
		{at("pipe"), "this is a pipe"},
		{at("socket"), "this is a socket"},
		{dir, "this is a folder"},
		{at("large"), "the file has 1001 bytes; up to 1000 are read"},
		{at("missing"), "no such file"},
	} {
		for how, read := range map[string]func() error{
			"ReadFile": func() error { _, err := ReadFile(c.name, 1000); return err },
			"Open": func() error {
				in, err := Open(t.Context(), c.name, 1000)
				if err != nil {
					return err
				}
				defer in.Close()
				_, err = io.ReadAll(in)
				return err
			},
		} {
			if err := read(); err == nil || !strings.Contains(err.Error(), c.wants) || !strings.Contains(err.Error(), c.name) {
				t.Errorf("%s %s: got %v, want %q", how, c.name, err, c.wants)
			}
		}
	}
}

func TestPipeEndsWithContextAndLimit(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := os.OpenFile(pipe, os.O_RDWR, 0) // as a program that has it open, and writes nothing more
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := w.WriteString("12345"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	in, err := Open(ctx, pipe, 100)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, cancel)
	if text, err := io.ReadAll(in); !errors.Is(err, context.Canceled) || string(text) != "12345" {
		t.Errorf("got %q, %v; want what was written, and that the context ended", text, err)
	}
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	if _, err := w.WriteString("12345"); err != nil {
		t.Fatal(err)
	}
	in, err = Open(t.Context(), pipe, 4)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var limit *LimitError
	if text, err := io.ReadAll(in); !errors.As(err, &limit) || string(text) != "1234" {
		t.Errorf("got %q, %v; want 4 bytes and a LimitError", text, err)
	}
}

// A file that grows, or whose size the system does not know, ends at the limit.
func TestReadFileOfUnknownSize(t *testing.T) {
	var limit *LimitError
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("no /proc here")
	}
	if _, err := ReadFile("/proc/self/status", 10); !errors.As(err, &limit) {
		t.Errorf("got %v; want a LimitError", err)
	}
	if text, err := ReadFile("/proc/self/status", 1<<20); err != nil || len(text) < 100 {
		t.Errorf("got %d bytes, %v", len(text), err)
	}
}
