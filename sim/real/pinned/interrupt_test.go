//go:build linux

package pinned

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// slowGo is a go command whose build starts a child and never ends.
const slowGo = `#!/bin/sh
if [ "$1" = env ]; then echo go1.26; exit; fi
sleep 3600 &
echo $$ $! > "$PIDS.new" && mv "$PIDS.new" "$PIDS"
wait
`

// TestHelperBuilds is not a test: it is the program that TestInterruptedBuild interrupts.
func TestHelperBuilds(t *testing.T) {
	dir := os.Getenv("WINLAB_TEST_BUILDS")
	if dir == "" {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	_, err := Build(ctx, dir)
	fmt.Println(err)
	if ctx.Err() != nil {
		os.Exit(130)
	}
}

// Ctrl-C ends a build with all its processes, and leaves nothing in the cache that
// could be taken for its result.
func TestInterruptedBuild(t *testing.T) {
	t.Parallel()
	dir, bin, cache := t.TempDir(), t.TempDir(), t.TempDir()
	pids := filepath.Join(t.TempDir(), "pids")
	for file, text := range map[string]string{
		filepath.Join(bin, "go"):            slowGo,
		filepath.Join(dir, "binaries.yaml"): "binaries:\n- {name: x.exe, package: winlab.dev/x}\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHelperBuilds$")
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "PIDS="+pids, "WINLAB_TEST_BUILDS="+dir, "WINLAB_CACHE="+cache)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for !exists(pids) {
		select {
		case err := <-ended:
			t.Fatalf("the program has ended before it was interrupted: %v\n%s", err, said.String())
		case <-time.After(5 * time.Millisecond):
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	<-ended
	if code := cmd.ProcessState.ExitCode(); code != 130 || !strings.Contains(said.String(), context.Canceled.Error()) {
		t.Errorf("exit code %d: %s", code, said.String())
	}
	text, err := os.ReadFile(pids)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(p)
		if err != nil {
			t.Fatal(err)
		}
		if !gone(pid) {
			t.Errorf("process %d of the build still runs", pid)
		}
	}
	left, err := os.ReadDir(filepath.Join(cache, "programs"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		if e.IsDir() {
			t.Errorf("%s is left in the cache", e.Name())
		}
	}
}

// gone reports whether a process has ended, or does so within a minute. What was
// killed may be a zombie until its new parent notices.
func gone(pid int) bool {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || syscall.Kill(pid, 0) != nil || strings.Contains(string(stat), ") Z ") {
			return true
		}
	}
	return false
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
