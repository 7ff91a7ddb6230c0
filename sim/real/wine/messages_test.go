//go:build linux

package wine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMessages: a program of Wine's says what Windows says.
func TestMessages(t *testing.T) {
	w, dll, _ := need(t)
	p := newPrefix(t, w, dll, "10.0.20348.2762")
	for command, want := range map[string]string{
		`echo x> C:\windows`:     "Access is denied.",
		`type C:\not-there.txt`:  "The system cannot find the file specified.",
		`cd C:\not\there`:        "The system cannot find the path specified.",
		`echo x> C:\a?b`:         "The filename, directory name, or volume label syntax is incorrect.",
		`rd C:\windows\system32`: "The directory is not empty.",
	} {
		r := run(t, p, Command{Path: filepath.Join(p.Dir, "drive_c/windows/system32/cmd.exe"), Args: []string{"/c", command}})
		if got := r.Stdout + r.Stderr; !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}

// TestMessagesOfNoDLL: what is no DLL, or ends too early, is an error.
func TestMessagesOfNoDLL(t *testing.T) {
	w, _, _ := need(t)
	made, err := w.withMessages(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(made)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 1, 64, 200, 1000, 4096, len(text) / 2} {
		if _, err := setMessages(text[:n], messages); err == nil {
			t.Errorf("%d bytes are taken for a DLL", n)
		}
	}
	if _, err := setMessages(text, messages); err != nil {
		t.Error(err)
	}
}
