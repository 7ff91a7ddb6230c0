//go:build unix

package outfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/winlab-dev/winlab/internal/input"
)

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestWriteRefuses(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		os.WriteFile(at("in"), []byte("precious"), 0o600),
		os.Link(at("in"), at("hard")),
		os.Symlink("in", at("soft")),
		os.Symlink("missing", at("dangling")),
		syscall.Mkfifo(at("pipe"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	input.Forget()
	if _, err := input.ReadFile(at("in"), 100); err != nil {
		t.Fatal(err)
	}
	for name, wants := range map[string]string{
		at("in"):       "which is read",
		at("hard"):     "which is read",
		at("soft"):     "which is read",
		at("dangling"): "a link to a file that does not exist",
		at("pipe"):     "start the program that reads",
		dir:            "this is a folder",
		at("no/file"):  "there is no folder",
		"/dev/full":    "this is a device",
		"/dev/zero":    "this is a device",
	} {
		if err := WriteFile(name, []byte("x"), 0o666); err == nil || !strings.Contains(err.Error(), wants) {
			t.Errorf("WriteFile %s: got %v, want %q", name, err, wants)
		}
		f, err := Stream(name)
		if err == nil {
			f.Close()
		}
		if err == nil || !strings.Contains(err.Error(), wants) {
			t.Errorf("Stream %s: got %v, want %q", name, err, wants)
		}
	}
	if got := read(t, at("in")); got != "precious" {
		t.Errorf("the input is %q now", got)
	}
	if err := WriteFile(os.DevNull, []byte("x"), 0o666); err != nil {
		t.Error(err)
	}
	input.Forget()
	if err := WriteFile(at("soft"), []byte("newer"), 0o666); err != nil || read(t, at("in")) != "newer" {
		t.Errorf("through a link: %v, %q", err, read(t, at("in")))
	}
}

func TestWriteIsWholeAndFollowsUmask(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "out")
	defer syscall.Umask(syscall.Umask(0o027))
	mode := func() os.FileMode {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	if err := WriteFile(name, []byte("first"), 0o666); err != nil || mode() != 0o640 {
		t.Errorf("got %v, mode %v; want 0640", err, mode())
	}
	if err := os.Chmod(name, 0o604); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("failed")
	if err := Write(name, 0o666, func(w io.Writer) error {
		_, _ = w.Write([]byte("half"))
		return failed
	}); !errors.Is(err, failed) || read(t, name) != "first" {
		t.Errorf("got %v, %q; want the old file", err, read(t, name))
	}
	if err := WriteFile(name, []byte("second"), 0o666); err != nil || read(t, name) != "second" || mode() != 0o604 {
		t.Errorf("got %v, %q, mode %v; want the mode that it had", err, read(t, name), mode())
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 1 {
		t.Errorf("got %v, %v; want nothing left over", all, err)
	}
}
