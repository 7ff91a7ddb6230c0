package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
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

// TestCtrlCWhileReplayWaits: a capture may come out of a pipe in which nothing comes.
func TestCtrlCWhileReplayWaits(t *testing.T) {
	t.Parallel()
	mkfifo, err := exec.LookPath("mkfifo")
	if err != nil {
		t.Skip("there is no mkfifo here")
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := exec.Command(mkfifo, pipe).Run(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("winlab", "replay", fixtures+"/labs/l2bridge-flannel-host-gw.yaml", pipe)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w, err := os.OpenFile(pipe, os.O_WRONLY, 0) // returns when replay has opened the other end
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 130 || errs.String() != "winlab: interrupted\n" {
		t.Errorf("ended with %v, and said %q", err, errs.String())
	}
}
