package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/winlab-dev/winlab/sim/lab"
)

var update = flag.Bool("update", false, "rewrite the output of the commands in README.md, CONTRIBUTING.md and pages of docs")

// binaries holds what program builds; programs are their paths by overlay.
var (
	binaries string
	programs = map[string]string{}
)

func TestMain(m *testing.M) {
	var err error
	if binaries, err = os.MkdirTemp("", "winlab-docs-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(binaries)
	os.Exit(code)
}

// program returns the path of winlab, built once as it is or with the go command's
// overlay file.
func program(t *testing.T, overlay string) string {
	t.Helper()
	if bin, ok := programs[overlay]; ok {
		return bin
	}
	bin := filepath.Join(binaries, fmt.Sprintf("winlab-%d.exe", len(programs)))
	args := []string{"build", "-o", bin}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	build := exec.Command("go", append(args, "./cmd/winlab")...)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build ./cmd/winlab: %v\n%s", err, out)
	}
	programs[overlay] = bin
	return bin
}

// block is a fenced block of a Markdown page.
var block = regexp.MustCompile("(?s)```([a-z]+)\n(.*?)```\n")

// TestCommandsPrintWhatTheyAreSaidToPrint runs every "$ go run ./cmd/winlab" in a
// console block and compares what it prints. A line "..." in the page stands for any
// lines. -update does not rewrite such a block, because it cannot know what to leave out.
func TestCommandsPrintWhatTheyAreSaidToPrint(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program; left out with -short")
	}
	bin := program(t, "")
	ran := 0
	for _, name := range []string{"README.md", "docs/tutorial.md", "docs/on-call.md"} {
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
			have := shown(t, name, first, want, run(t, bin, strings.Fields(args)))
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

// shown returns what the page shall show below the command: what it shows, want, unless
// -update is to write what the program prints, have.
func shown(t *testing.T, page, command, want, have string) string {
	t.Helper()
	elided := strings.Contains("\n"+want, "\n...\n")
	switch {
	case matchesElided(want, have):
		return want
	case *update && !elided:
		return have
	case elided:
		t.Errorf("%s: the block of %s leaves out lines, so edit it by hand", page, command)
	}
	t.Errorf("%s: %s (- page, + program; -update rewrites it):\n%s", page, command, cmp.Diff(want, have))
	return want
}

// run returns what a command prints, without spaces at the ends of lines.
func run(t *testing.T, bin string, args []string) string {
	cmd := exec.Command(bin, args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "NO_COLOR=1", "COLUMNS=")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	// 1 is "not as expected": check and doctor have found something.
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		t.Errorf("winlab %s: %v\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	lines := strings.Split(strings.ReplaceAll(string(out), "\r\n", "\n"), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.Join(lines, "\n")
}

// TestReadmeIsShort: a stranger reads it in three minutes.
func TestReadmeIsShort(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if got, limit := len(strings.Fields(string(page))), 800; got > limit {
		t.Errorf("README.md has %d words, want at most %d: move text to a page in docs", got, limit)
	}
}

// matchesElided says whether have is the text of a page in which each line "..."
// stands for any number of lines. The pieces between them must come in order, the first
// at the beginning and the last at the end.
func matchesElided(page, have string) bool {
	pieces := strings.Split("\n"+page, "\n...\n")
	have = "\n" + have
	for i, piece := range pieces {
		if i < len(pieces)-1 {
			piece += "\n"
		}
		if i > 0 {
			piece = "\n" + piece
		}
		at := strings.Index(have, piece)
		switch {
		case i == len(pieces)-1 && i > 0:
			return strings.HasSuffix(have, piece)
		case at < 0, i == 0 && at > 0:
			return false
		}
		// The line feed that ends this piece may begin the next one.
		have = have[at+len(piece)-1:]
	}
	return have == "\n"
}

func TestMatchesElided(t *testing.T) {
	const have = "one\ntwo\nthree\nfour\n"
	for page, want := range map[string]bool{
		have:               true,
		"one\n...\nfour\n": true, "...\nthree\nfour\n": true, "one\ntwo\n...\n": true, "...\n": true,
		"...\ntwo\n...\nfour\n": true, "one\n...\ntwo\nthree\nfour\n": true,
		"one\n...\nfive\n": false, "two\n...\nfour\n": false, "one\n...\nthree\n": false,
		"...\nthree\n...\ntwo\n...\n": false, "...\nwo\n...\n": false, "one\ntwo\n": false, "": false,
	} {
		if got := matchesElided(page, have); got != want {
			t.Errorf("matchesElided(%q) = %v, want %v", page, got, want)
		}
	}
}

// TestTheLabInTheTutorialHolds: the lab that the page shows is docs/first-lab.yaml, and
// a reader gets the verdicts stated in it.
func TestTheLabInTheTutorialHolds(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "tutorial.md"))
	if err != nil {
		t.Fatal(err)
	}
	labs := 0
	for _, m := range block.FindAllSubmatch(page, -1) {
		if string(m[1]) != "yaml" || !bytes.Contains(m[2], []byte("kind: Lab")) {
			continue
		}
		labs++
		path := filepath.Join(root, "docs", "first-lab.yaml")
		if saved, err := os.ReadFile(path); err != nil || !bytes.Equal(saved, m[2]) {
			t.Errorf("docs/first-lab.yaml is not the lab in docs/tutorial.md: %v", err)
		}
		file, err := lab.Parse(path, m[2])
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
		t.Error("found no lab in docs/tutorial.md")
	}
}

// link is a relative link or picture in Markdown, heading a heading.
var (
	link    = regexp.MustCompile(`\]\(([^)#:]*)(#[^)]*)?\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

// documents are the Markdown pages that people write, from the root of the repository.
func documents(t *testing.T) []string {
	pages := []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md"}
	for _, dir := range []string{"docs", "fixtures"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			// Predictions are not edited, so they may name what has moved.
			if err == nil && filepath.Ext(path) == ".md" && d.Name() != "predictions.md" {
				name, _ := filepath.Rel(root, path)
				pages = append(pages, name)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return pages
}

// anchor is the name that GitHub gives to a heading.
func anchor(title string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(title) {
		switch {
		case r == ' ':
			b.WriteByte('-')
		case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
			b.WriteRune(r)
		}
	}
	return b.String()
}

func TestLinksLeadSomewhere(t *testing.T) {
	for _, page := range documents(t) {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllSubmatch(text, -1) {
			target, want := filepath.Join(root, page), strings.TrimPrefix(string(m[2]), "#")
			if len(m[1]) > 0 {
				target = filepath.Join(root, filepath.Dir(page), string(m[1]))
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, m[1])
				continue
			}
			if want == "" || filepath.Ext(target) != ".md" {
				continue
			}
			text, err := os.ReadFile(target)
			if err != nil {
				t.Fatal(err)
			}
			found := slices.ContainsFunc(heading.FindAllSubmatch(text, -1), func(h [][]byte) bool { return anchor(string(h[1])) == want })
			if !found && !bytes.Contains(text, []byte(`id="`+want+`"`)) {
				t.Errorf("%s links to %s%s, which does not have such a heading", page, m[1], m[2])
			}
		}
	}
}

// repositoryPath is a path of this repository in a page.
var repositoryPath = regexp.MustCompile("`((?:sim|conformance|internal|reports|cmd|fixtures|docs)/[A-Za-z0-9_./*-]+)`")

// TestPathsExist: pages name folders and files, and these get other names.
func TestPathsExist(t *testing.T) {
	for _, page := range documents(t) {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range repositoryPath.FindAllSubmatch(text, -1) {
			path := string(m[1])
			if strings.Contains(path, "...") || strings.ToLower(path) != path {
				continue // a pattern of packages, or a name to fill in
			}
			if found, err := filepath.Glob(filepath.Join(root, path)); err != nil || len(found) == 0 {
				t.Errorf("%s names %s, which does not exist: %v", page, path, err)
			}
		}
	}
}

// TestEveryPageIsListed: a page that docs/README.md does not link is not found.
func TestEveryPageIsListed(t *testing.T) {
	list, err := os.ReadFile(filepath.Join(root, "docs", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range documents(t) {
		name, ok := strings.CutPrefix(filepath.ToSlash(page), "docs/")
		if !ok || name == "README.md" || strings.HasPrefix(name, "decisions/") {
			continue
		}
		if !bytes.Contains(list, []byte("("+name+")")) {
			t.Errorf("docs/README.md does not list %s", name)
		}
	}
}

func TestEveryDecisionIsListed(t *testing.T) {
	dir := filepath.Join(root, "docs", "decisions")
	list, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := filepath.Base(f)
		if name == "README.md" {
			continue
		}
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
