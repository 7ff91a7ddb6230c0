//go:build linux

package wine

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// TestHelperDies is not a test: it is the program that TestNothingIsLeft runs and that
// dies with a prefix in use.
func TestHelperDies(t *testing.T) {
	how := os.Getenv("WINLAB_TEST_DIES")
	if how == "" {
		return
	}
	w, dll, hello := need(t)
	config := Config{Dir: os.Getenv("WINLAB_TEST_DIR"), Build: builds.MustLookup("2022"), DLLs: []string{dll}, Boot: booter(dll)}
	if strings.HasPrefix(how, "interrupted") {
		untilInterrupted(t, w, config, hello)
		os.Exit(130)
	}
	p, err := w.Prefix(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Start(t.Context(), Command{Path: hello, Args: []string{"stubborn"}})
	if err != nil {
		t.Fatal(err)
	}
	waitForOutput(t, r, "asleep")
	if how == "panic" {
		go panic("the test panics")
	}
	_, _ = os.Stdout.WriteString("ready\n")
	time.Sleep(time.Hour)
}

// untilInterrupted runs a program that ignores Ctrl-C, as winlab's own commands run
// programs: until their context ends.
func untilInterrupted(t *testing.T, w *Wine, config Config, hello string) {
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt)
	defer stop()
	p, err := w.Prefix(ctx, config)
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		return
	}
	r, err := p.Start(ctx, Command{Path: hello, Args: []string{"stubborn"}, grace: 100 * time.Millisecond})
	if err == nil {
		waitForOutput(t, r, "asleep")
		_, _ = os.Stdout.WriteString("ready\n")
		_, err = r.wait()
	}
	if err := errors.Join(err, p.Close()); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// However the program ends that has made a prefix, nothing of the prefix is left:
// no process, no folder.
func TestNothingIsLeft(t *testing.T) {
	_, dll, hello := need(t)
	signals := map[string]os.Signal{"killed": os.Kill, "terminated": syscall.SIGTERM, "interrupted": os.Interrupt,
		"interrupted while Wine starts": os.Interrupt}
	for _, how := range []string{"panic", "timeout", "killed", "terminated", "interrupted", "interrupted while Wine starts"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHelperDies$", "-test.timeout=2m")
			if how == "timeout" {
				cmd.Args[2] = "-test.timeout=8s"
			}
			cmd.Env = append(os.Environ(), "WINLAB_TEST_DIES="+how, "WINLAB_TEST_DIR="+dir, "WINLAB_TEST_DLL="+dll, "WINLAB_TEST_HELLO="+hello)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			prefix := filepath.Join(dir, "prefix")
			in := bufio.NewReader(out)
			switch how {
			case "killed", "terminated", "interrupted":
				for line := ""; strings.TrimSpace(line) != "ready"; {
					if line, err = in.ReadString('\n'); err != nil {
						t.Fatalf("the program has ended before it was killed: %v", err)
					}
				}
				if len(processesOf(prefix)) < 3 { // stubborn, its child, the server
					t.Errorf("only these run: %q", processesOf(prefix))
				}
			case "interrupted while Wine starts":
				for len(processesOf(prefix)) == 0 {
					time.Sleep(time.Millisecond)
				}
			}
			if s := signals[how]; s != nil {
				if err := cmd.Process.Signal(s); err != nil {
					t.Fatal(err)
				}
			}
			said, _ := io.ReadAll(in)
			if err := cmd.Wait(); err == nil {
				t.Errorf("the program has ended well: %s", said)
			}
			if code := cmd.ProcessState.ExitCode(); strings.HasPrefix(how, "interrupted") && code != 130 {
				t.Errorf("exit code %d: %s", code, said)
			}
			for deadline := time.Now().Add(time.Minute); len(processesOf(prefix)) > 0 || exists(prefix); time.Sleep(20 * time.Millisecond) {
				if time.Now().After(deadline) {
					nothingLeft(t, prefix)
					break
				}
			}
		})
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// A user who is not root can do the same, with nothing but a folder for the cache.
func TestOtherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can become another user; this whole run is one of a normal user")
	}
	_, dll, hello := need(t)
	const nobody = 65534
	dir, err := os.MkdirTemp("", "winlab-nobody-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for from, to := range map[string]string{os.Args[0]: "wine.test", dll: "bcryptprimitives.dll", hello: "hello.exe"} {
		if err := copyFile(from, filepath.Join(dir, to), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(dir, "wine.test"), "-test.run=^(TestBuildOfPrefix|TestStop)$", "-test.timeout=5m")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "WINLAB_CACHE=" + filepath.Join(dir, "cache"),
		"WINLAB_TEST_DLL=" + filepath.Join(dir, "bcryptprimitives.dll"), "WINLAB_TEST_HELLO=" + filepath.Join(dir, "hello.exe")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
		t.Errorf("%v\n%s", err, out)
	}
}
