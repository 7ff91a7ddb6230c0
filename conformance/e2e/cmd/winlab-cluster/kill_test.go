package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/conformance/e2e/cluster"
	"github.com/winlab-dev/winlab/internal/dev/full"
	"github.com/winlab-dev/winlab/sim/real/wine/winetest"
)

// asProgram lets the test's program be winlab-cluster.
const asProgram = "WINLAB_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// asCommand is winlab-cluster with arguments.
func asCommand(args ...string) *exec.Cmd {
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), asProgram+"=1")
	return c
}

// TestKilled: of a cluster whose winlab-cluster is killed, in the foreground or in the
// background, nothing is left, and its name is free. Nothing is left after down, either.
func TestKilled(t *testing.T) {
	winetest.Need(t)
	if p, err := cluster.CachedPrograms(t.Context(), ".", ""); err != nil || p == nil {
		t.Skip("the programs of a cluster are not built: make cluster-binaries ", err)
	}
	name := fmt.Sprintf("killed-%d", os.Getpid())
	lab := filepath.FromSlash("../../cluster/testdata/lab.yaml")
	kill := func(t *testing.T, pid int) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		what   string
		detach bool
		end    func(t *testing.T, pid int)
	}{
		{"foreground", false, kill},
		{"background", true, kill},
		{"down", true, func(t *testing.T, _ int) {
			if out, err := asCommand("down", name).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			if c.what != "background" {
				full.Only(t, "a cluster in the background")
			}
			args := []string{"up", lab, "--name", name}
			if c.detach {
				args = append(args, "-d")
			}
			up := asCommand(args...)
			var said bytes.Buffer
			up.Stderr = &said
			if err := up.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- up.Wait() }()
			defer func() { _ = asCommand("down", name).Run() }() // after a failure
			for !isUp(name) {
				select {
				case err := <-ended:
					if ended <- err; !c.detach || err != nil {
						t.Fatalf("it does not come up: %v: %s", err, said.String())
					}
				case <-time.After(200 * time.Millisecond):
				}
			}
			pid := holder(t, name)
			left := family(pid)
			if len(left.pids) < 10 || len(left.folders) < 2 {
				t.Fatalf("too little of the cluster was found to look for it afterwards: %+v", left)
			}
			c.end(t, pid)
			if !c.detach {
				<-ended
			}
			left.wait(t)
			out, err := asCommand("down", name).CombinedOutput()
			if err == nil || !strings.Contains(string(out), "no cluster") {
				t.Errorf("down afterwards: %v: %s", err, out)
			}
		})
	}
}

func isUp(name string) bool {
	out, err := asCommand("status", "--name", name).CombinedOutput()
	return err == nil && strings.Contains(string(out), "is up")
}

// holder is the process that holds a cluster.
func holder(t *testing.T, name string) int {
	t.Helper()
	out, err := asCommand("status", "--name", name, "-o", "json").Output()
	var s status
	if err == nil {
		err = json.Unmarshal(out, &s)
	}
	if err != nil || s.PID == 0 {
		t.Fatalf("%v: %s", err, out)
	}
	return s.PID
}

// things are what a cluster has on this machine.
type things struct {
	pids    []int
	folders []string
}

// ownFolder finds folders of a cluster: winlab's are where temporary files are, Wine's in /tmp.
var ownFolder = regexp.MustCompile(`(` + regexp.QuoteMeta(filepath.Clean(os.TempDir())) +
	`/winlab-[a-z]+-[0-9]+|/tmp/wine-[A-Za-z0-9]{6})\b`)

// family is a process with all its descendants, their PIDs with the time of their start,
// and the folders that these name.
func family(pid int) (all things) {
	seen := map[string]bool{}
	var add func(int)
	add = func(pid int) {
		dir := fmt.Sprintf("/proc/%d", pid)
		all.pids = append(all.pids, pid)
		var text bytes.Buffer
		for _, f := range []string{"environ", "cmdline"} {
			b, _ := os.ReadFile(filepath.Join(dir, f))
			text.Write(bytes.ReplaceAll(b, []byte{0}, []byte{'\n'}))
		}
		cwd, _ := os.Readlink(filepath.Join(dir, "cwd"))
		text.WriteString(cwd)
		for _, f := range ownFolder.FindAllString(text.String(), -1) {
			if _, err := os.Stat(f); err == nil && !seen[f] {
				seen[f] = true
				all.folders = append(all.folders, f)
			}
		}
		children, _ := filepath.Glob(filepath.Join(dir, "task", "*", "children"))
		for _, f := range children {
			b, _ := os.ReadFile(f)
			for _, s := range strings.Fields(string(b)) {
				if n, err := strconv.Atoi(s); err == nil {
					add(n)
				}
			}
		}
	}
	add(pid)
	return all
}

// wait waits until all is gone. A process that waits for its parent counts as gone.
func (l things) wait(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		var still []string
		for _, p := range l.pids {
			if s, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p)); err == nil && !bytes.Contains(s, []byte(") Z ")) {
				still = append(still, string(s[:min(len(s), 60)]))
			}
		}
		for _, f := range l.folders {
			if _, err := os.Stat(f); !errors.Is(err, fs.ErrNotExist) {
				still = append(still, f)
			}
		}
		mounts, _ := os.ReadFile("/proc/self/mounts")
		for _, f := range l.folders {
			if bytes.Contains(mounts, []byte(f)) {
				still = append(still, "a mount at "+f)
			}
		}
		if len(still) == 0 {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("this is left: %q", still)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
