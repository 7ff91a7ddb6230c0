package programs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPinned: the module of unixbox has the versions of this one, so that its build needs no
// module that this one does not need.
func TestPinned(t *testing.T) {
	ours, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := WriteUnix(dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "require ")
		line, _, _ = strings.Cut(line, " //")
		if name, version, ok := strings.Cut(line, " v"); ok {
			n++
			if !strings.Contains(string(ours), name+" v"+version) {
				t.Errorf("unixbox/go.mod.txt has %s, go.mod of winlab not", line)
			}
		}
	}
	if n < 4 {
		t.Errorf("%d modules in %s", n, text)
	}
	for _, name := range []string{"unixbox/main.go", "relay/relay.go", "go.sum", "binaries.yaml"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "unixbox/unixbox_test.go")); err == nil {
		t.Error("tests are there, too")
	}
}
