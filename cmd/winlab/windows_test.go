package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestBuildsForWindows: winlab.exe is the collector on a node.
func TestBuildsForWindows(t *testing.T) {
	if testing.Short() {
		t.Skip("-short builds no Windows program")
	}
	out := filepath.Join(t.TempDir(), "winlab.exe")
	c := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", out, ".")
	c.Env = append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0")
	if text, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	head, err := os.ReadFile(out)
	if err != nil || len(head) < 2 || string(head[:2]) != "MZ" {
		t.Errorf("it is not a Windows program: %v", err)
	}
}
