package main

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/winlab-dev/winlab/sim/lab"
)

var update = flag.Bool("update", false, "rewrite the output of the commands in README.md and CONTRIBUTING.md")

// block is a fenced block of a Markdown page.
var block = regexp.MustCompile("(?s)```([a-z]+)\n(.*?)```\n")

// TestCommandsPrintWhatTheyAreSaidToPrint runs every "$ winlab" in a console
// block and compares what it prints.
func TestCommandsPrintWhatTheyAreSaidToPrint(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program; left out with -short")
	}
	bin := filepath.Join(t.TempDir(), "winlab")
	if runtime.GOOS == "windows" {
		bin += ".exe"
	}
	build := exec.Command("go", "build", "-o", bin, "./cmd/winlab")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build ./cmd/winlab: %v\n%s", err, out)
	}
	ran := 0
	for _, name := range []string{"README.md", "CONTRIBUTING.md"} {
		path := filepath.Join(root, name)
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		fresh := block.ReplaceAllFunc(page, func(b []byte) []byte {
			m := block.FindSubmatch(b)
			first, want, _ := strings.Cut(string(m[2]), "\n")
			args, ok := strings.CutPrefix(first, "$ go run ./cmd/winlab ")
			if string(m[1]) != "console" || !ok {
				return b
			}
			ran++
			have := run(t, bin, strings.Fields(args))
			if !*update {
				if diff := cmp.Diff(want, have); diff != "" {
					t.Errorf("%s: %s (- page, + program; -update rewrites it):\n%s", name, first, diff)
				}
			}
			return []byte("```console\n" + first + "\n" + have + "```\n")
		})
		if *update && !bytes.Equal(page, fresh) {
			if err := os.WriteFile(path, fresh, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if ran == 0 {
		t.Error("found no command; does this test still read the right blocks?")
	}
}

// run returns what a command prints, without spaces at the ends of lines.
func run(t *testing.T, bin string, args []string) string {
	cmd := exec.Command(bin, args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "NO_COLOR=1", "COLUMNS=")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("winlab %s: %v\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	lines := strings.Split(strings.ReplaceAll(string(out), "\r\n", "\n"), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.Join(lines, "\n")
}

// TestTheLabInTheReadmeHolds: a reader who saves it gets the verdicts stated in it.
func TestTheLabInTheReadmeHolds(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	labs := 0
	for _, m := range block.FindAllSubmatch(page, -1) {
		if string(m[1]) != "yaml" || !bytes.Contains(m[2], []byte("kind: Lab")) {
			continue
		}
		labs++
		file, err := lab.Parse(filepath.Join(root, "first.yaml"), m[2])
		if err != nil {
			t.Fatal(err)
		}
		cluster, err := lab.Build(t.Context(), file, lab.Options{})
		if err != nil {
			t.Fatal(err)
		}
		flows := file.Lab.Spec.Flows
		if len(flows) == 0 {
			t.Error("the lab expects nothing")
		}
		for _, f := range flows {
			if f.Expect == "" {
				t.Errorf("%s to %s: the lab expects nothing of the flow", f.From, f.To)
			}
			o, err := cluster.Run(t.Context(), f)
			if err != nil {
				t.Fatal(err)
			}
			if !o.Pass {
				t.Errorf("%s to %s: %s", f.From, f.To, o.Why)
			}
		}
	}
	if labs == 0 {
		t.Error("found no lab in README.md")
	}
}

// link is a relative link or picture in Markdown.
var link = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)

func TestLinksLeadSomewhere(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob(filepath.Join(root, "docs", "decisions", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	pages = append(append(pages, more...), filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md"), filepath.Join(root, "CHANGELOG.md"))
	for _, p := range pages {
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(p), string(m[1]))); err != nil {
				t.Errorf("%s links to %s, which does not exist", p, m[1])
			}
		}
	}
}

func TestEveryDecisionIsListed(t *testing.T) {
	dir := filepath.Join("..", "decisions")
	list, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "0*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := filepath.Base(f)
		if !bytes.Contains(list, []byte("("+name+")")) {
			t.Errorf("docs/decisions/README.md does not list %s", name)
		}
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range []string{"\n## Context\n", "\n## Decision\n", "\n## Consequences\n"} {
			if !bytes.Contains(text, []byte(h)) {
				t.Errorf("%s has no heading %q", name, strings.TrimSpace(h))
			}
		}
	}
}
