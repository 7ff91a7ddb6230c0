package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestOtherSystemsNeedNoLinux: people try their clusters from Macs and Windows, where
// simulated clusters cannot be. What is for Linux alone must not be among what the program
// imports there. (That all of it compiles there is more than this says; see CONTRIBUTING.md.)
func TestOtherSystemsNeedNoLinux(t *testing.T) {
	for _, system := range []string{"windows", "darwin"} {
		cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", ".")
		cmd.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", system, err)
		}
		for pkg := range strings.FieldsSeq(string(out)) {
			for _, linux := range []string{"/conformance/e2e/cluster", "/conformance/e2e/cri", "/sim/live"} {
				if strings.HasPrefix(pkg, "github.com/winlab-dev/winlab"+linux) {
					t.Errorf("on %s winlab-e2e imports %s", system, pkg)
				}
			}
		}
	}
}
