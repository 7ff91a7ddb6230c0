package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/winlab-dev/winlab/cmd/winlab/internal/cli"
	"github.com/winlab-dev/winlab/internal/cache"
	"github.com/winlab-dev/winlab/internal/capture"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/lab/replay/replaytest"
	"github.com/winlab-dev/winlab/sim/live/control"
	"github.com/winlab-dev/winlab/sim/live/netns"
	"github.com/winlab-dev/winlab/sim/real/components"
)

var update = flag.Bool("update", false, "write what the program prints into the scripts and docs/cli.md")

// fixtures is the folder that scripts find as fixtures/.
const fixtures = "../../fixtures"

func TestMain(m *testing.M) {
	main := func() { os.Exit(cli.Main()) }
	testscript.Main(m, map[string]func(){"winlab": main, "kubectl-winlab": main})
}

// TestScripts runs every scenario of the command line: testdata/script/*.txtar.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			if !realPrograms() { // not in the scripts either
				e.Setenv("WINLAB_WINE", "/nonexistent")
			} else if err := realComponents(e); err != nil {
				return err
			}
			all, err := filepath.Abs(fixtures)
			if err != nil {
				return err
			}
			if strings.HasPrefix(filepath.Base(e.WorkDir), "script-live") {
				// Names of labs that are up are those of a user: two runs of these tests at
				// once need names of their own.
				lab := fmt.Sprintf("%s-%d", filepath.Base(e.WorkDir), os.Getpid())
				e.Setenv("LAB", lab)
				e.Defer(func() { takeDown(lab) })
			}
			// A link and not 340 copies for each script: scripts only read them.
			return os.Symlink(all, filepath.Join(e.WorkDir, "fixtures"))
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "wine":
				return realPrograms(), nil
			case "live":
				return liveNetworks(), nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "field": field, "lines": lines, "packets": packets, "mkcapture": mkcapture, "cut": cut, "mkfile": mkfile,
			"hnsready": hnsready,
		},
	})
}

// takeDown ends the lab of a script that failed.
func takeDown(name string) {
	names, _ := control.Names()
	for _, n := range names {
		if n == name {
			_, _ = control.Do(context.Background(), n, "down", nil, [3]*os.File{os.Stdin, os.Stdout, os.Stderr}, nil)
		}
	}
}

// liveNetworks reports whether labs can be up on this machine.
var liveNetworks = sync.OnceValue(func() bool {
	h, err := netns.Start(netns.Options{})
	if err == nil {
		h.Close()
	}
	return err == nil
})

// realPrograms reports whether scripts may build and run Windows programs.
func realPrograms() bool { return !testing.Short() && components.Available() == nil }

// realComponents lets a script build Windows programs, or find those that are built.
func realComponents(e *testscript.Env) error {
	cache, err := cache.Dir()
	if err != nil {
		return err
	}
	e.Setenv("WINLAB_CACHE", cache)
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPROXY", "GOSUMDB", "GOFLAGS"} {
		out, err := exec.Command("go", "env", name).Output()
		if err != nil {
			return err
		}
		e.Setenv(name, strings.TrimSpace(string(out)))
	}
	return nil
}

// exits CODE COMMAND...: the command ends with that exit code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	code := 0
	err := ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		code = exit.ExitCode()
	default:
		ts.Check(err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

// field FILE PATH WANT: the value at a path ("paths.0.verdict") of a JSON file
// is WANT. "*" asks only that it is there.
func field(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: field FILE PATH WANT")
	}
	var v any
	if err := json.Unmarshal([]byte(ts.ReadFile(args[0])), &v); err != nil {
		ts.Fatalf("%s: %v", args[0], err)
	}
	for _, key := range strings.Split(args[1], ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i >= len(x) {
				ts.Fatalf("%s: no element %s of %d", args[1], key, len(x))
			}
			v = x[i]
		default:
			v = nil
		}
	}
	got := fmt.Sprint(v)
	if ok := got == args[2] || args[2] == "*" && v != nil; ok == neg {
		ts.Fatalf("%s is %s, want %s", args[1], got, args[2])
	}
}

// lines FILE N: the file has N lines.
func lines(ts *testscript.TestScript, neg bool, args []string) {
	got := strings.Count(ts.ReadFile(args[0]), "\n")
	if (strconv.Itoa(got) == args[1]) == neg {
		ts.Fatalf("%d lines, want %s:\n%s", got, args[1], ts.ReadFile(args[0]))
	}
}

// packets FILE prints the packets of a capture: interface, comment, packet.
func packets(ts *testscript.TestScript, _ bool, args []string) {
	f, err := os.Open(ts.MkAbs(args[0]))
	ts.Check(err)
	defer f.Close()
	r, err := capture.Open(f)
	ts.Check(err)
	for {
		data, info, err := r.Next()
		if err == io.EOF {
			return
		}
		ts.Check(err)
		p, perr := packet.New(data)
		fmt.Fprintf(ts.Stdout(), "[%s] [%s] %s\n", info.Name, info.Comment, p)
		ts.Check(perr)
		ts.Check(p.VerifyChecksums())
	}
}

// mkcapture FILE DST:PORT SRC... writes a capture: each source sends a SYN to the
// destination, then data, two packets for each source.
func mkcapture(ts *testscript.TestScript, _ bool, args []string) {
	t := replaytest.Traffic{Packets: 2 * (len(args) - 2), Flows: len(args) - 2, Seed: 1}
	for i, a := range args[1:] {
		var err error
		if i == 0 {
			err = addTarget(&t, a)
		} else {
			err = addSource(&t, a)
		}
		ts.Check(err)
	}
	var b bytes.Buffer
	ts.Check(t.Write(&b))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), b.Bytes(), 0o644))
}

// mkfile FILE TEXT N...: a file of each text N times; a text may have the
// escapes of Go's strings.
func mkfile(ts *testscript.TestScript, _ bool, args []string) {
	var b bytes.Buffer
	for i := 1; i+1 < len(args); i += 2 {
		text, err := strconv.Unquote(`"` + strings.ReplaceAll(args[i], `"`, `\"`) + `"`)
		ts.Check(err)
		n, err := strconv.Atoi(args[i+1])
		ts.Check(err)
		for range n {
			b.WriteString(text)
		}
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), b.Bytes(), 0o644))
}

// cut FILE N takes N bytes off the end of a file.
func cut(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	b := []byte(ts.ReadFile(args[0]))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), slices.Clip(b[:len(b)-n]), 0o644))
}

func addTarget(t *replaytest.Traffic, s string) error {
	a, err := netip.ParseAddrPort(s)
	t.Targets = append(t.Targets, a)
	return err
}

func addSource(t *replaytest.Traffic, s string) error {
	a, err := netip.ParseAddr(s)
	t.Sources = append(t.Sources, a)
	return err
}

// hnsready FILE waits until winlab hns serve has written its address there, and
// sets WINLAB_HCN.
func hnsready(ts *testscript.TestScript, _ bool, args []string) {
	for range 6000 {
		if text, err := os.ReadFile(ts.MkAbs(args[0])); err == nil {
			ts.Setenv("WINLAB_HCN", strings.TrimSpace(string(text)))
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	ts.Fatalf("%s is not there: the service did not begin", args[0])
}
