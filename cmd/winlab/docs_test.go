package main

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/winlab-dev/winlab/cmd/winlab/internal/cli"
)

// TestDocs compares docs/cli.md with the commands; -update writes it.
func TestDocs(t *testing.T) {
	const page = "../../docs/cli.md"
	want := cli.Docs()
	if *update {
		if err := os.WriteFile(page, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(have), string(want)); diff != "" {
		t.Errorf("docs/cli.md is stale; run make generate (- committed, + generated):\n%s", diff)
	}
}
