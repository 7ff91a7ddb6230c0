package main

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestStart counts what the program allocates before main: every verb waits for it, the ones
// that answer in milliseconds, too. Tables are decoded, expressions and templates compiled when
// somebody asks for them. Allocations are counted, not time: they are the same on every machine.
func TestStart(t *testing.T) {
	const (
		one = 300  // of one package of winlab: its facts, and nothing that is decoded
		all = 1600 // of all of them
	)
	winlab, err := exec.LookPath("winlab")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(winlab, "version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var out bytes.Buffer
	cmd.Stderr = &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	form := regexp.MustCompile(`^init (github\.com/winlab-dev/winlab/\S+) @.* (\d+) allocs$`)
	packages, sum := 0, 0
	for line := range strings.SplitSeq(out.String(), "\n") {
		m := form.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		n, err := strconv.Atoi(m[2])
		if err != nil {
			t.Fatal(err)
		}
		packages, sum = packages+1, sum+n
		if n > one {
			t.Errorf("%s allocates %d times while it is initialised, more than %d: what does it make that few verbs need?", m[1], n, one)
		}
	}
	if packages < 10 {
		t.Fatalf("%d packages of winlab in the trace of its start:\n%s", packages, out.String())
	}
	if sum > all {
		t.Errorf("winlab's packages allocate %d times before main, more than %d", sum, all)
	}
	t.Logf("%d allocations in %d packages", sum, packages)
}
