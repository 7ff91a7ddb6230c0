package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// TestCtrlC: a command that is at work ends with exit code 130 when it is interrupted.
// Nothing waits for a time: each command is interrupted once it has shown that it works.
func TestCtrlC(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows sends no signals")
	}
	for _, tt := range []struct {
		name string
		args []string
		// works returns when the command works.
		works func(t *testing.T, in io.Writer, errs *bufio.Reader)
	}{
		{"check reads standard input", []string{"check", "-"}, reads},
		{"hns call reads standard input", []string{"hns", "call", "POST", "/networks/", "-"}, reads},
		{"run simulates labs", []string{"run", fixtures, "-d", t.TempDir()}, func(t *testing.T, _ io.Writer, errs *bufio.Reader) {
			if line, err := errs.ReadString('\n'); err != nil || !strings.Contains(line, "%") {
				t.Fatalf("no progress, but %q (%v)", line, err)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command("winlab", tt.args...)
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			errs, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			r := bufio.NewReader(errs)
			tt.works(t, in, r)
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			said, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			var exit *exec.ExitError
			if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 130 {
				t.Errorf("ended with %v, want exit code 130", err)
			}
			if !strings.HasSuffix(string(said), "winlab: interrupted\n") {
				t.Errorf("said %q", said)
			}
		})
	}
}

// reads returns when the command has begun to read: a pipe does not hold that much.
func reads(t *testing.T, in io.Writer, _ *bufio.Reader) {
	if _, err := in.Write(bytes.Repeat([]byte("# a comment\n"), 32<<10)); err != nil {
		t.Fatal(err)
	}
}
