package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// loopHeading begins the section of CONTRIBUTING.md that changes a rule, looks at a
// packet and runs a test.
const loopHeading = "## The five-minute loop\n"

// loopSection returns the text before, in and after that section.
func loopSection(t *testing.T, page string) (before, section, after string) {
	before, rest, ok := strings.Cut(page, loopHeading)
	if !ok {
		t.Fatalf("CONTRIBUTING.md lacks %q", loopHeading)
	}
	section, after, _ = strings.Cut(rest, "\n## ")
	return before, section, "\n## " + after
}

// sourceFile is a Go file that the section names.
var sourceFile = regexp.MustCompile("`([a-z0-9_/]+\\.go)`")

// TestFiveMinuteLoop does what the section says, without touching the source: the go
// command gets the changed file by -overlay. Commands before the change must print what
// the page shows with the program as it is, those after it with the changed one, and
// each go test after it must fail.
func TestFiveMinuteLoop(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program twice; left out with -short")
	}
	path := filepath.Join(root, "CONTRIBUTING.md")
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, section, after := loopSection(t, string(page))
	l := loop{t: t}
	l.change(section)
	fresh := block.ReplaceAllStringFunc(section, func(b string) string {
		m := block.FindStringSubmatch(b)
		switch m[1] {
		case "go":
			l.codeSeen++
		case "console":
			first, want, _ := strings.Cut(m[2], "\n")
			return "```console\n" + first + "\n" + l.command(first, want) + "```\n"
		}
		return b
	})
	if l.ran < 3 {
		t.Errorf("%d commands ran, want one before the change, one after it and a test", l.ran)
	}
	if *update && fresh != section {
		if err := os.WriteFile(path, []byte(before+loopHeading+fresh+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// loop is one run through the section.
type loop struct {
	t        *testing.T
	overlay  string // the file for -overlay
	codeSeen int    // go blocks so far: after two of them the rule is changed
	ran      int
}

// change writes the overlay: the first go block of the section is replaced by the
// second one in the file that the section names.
func (l *loop) change(section string) {
	file := sourceFile.FindStringSubmatch(section)
	var code []string
	for _, m := range block.FindAllStringSubmatch(section, -1) {
		if m[1] == "go" {
			code = append(code, strings.TrimSpace(m[2]))
		}
	}
	if file == nil || len(code) != 2 {
		l.t.Fatalf("the section names the file %v and has %d go blocks, want a file, what to replace, and by what", file, len(code))
	}
	source, err := filepath.Abs(filepath.Join(root, file[1]))
	if err != nil {
		l.t.Fatal(err)
	}
	text, err := os.ReadFile(source)
	if err != nil {
		l.t.Fatal(err)
	}
	if n := bytes.Count(text, []byte(code[0])); n != 1 {
		l.t.Fatalf("%s has %d times the line to replace, want 1:\n%s", file[1], n, code[0])
	}
	changed := filepath.Join(l.t.TempDir(), filepath.Base(source))
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {source: changed}})
	if err != nil {
		l.t.Fatal(err)
	}
	l.overlay = filepath.Join(l.t.TempDir(), "overlay.json")
	for name, text := range map[string][]byte{changed: bytes.Replace(text, []byte(code[0]), []byte(code[1]), 1), l.overlay: replace} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			l.t.Fatal(err)
		}
	}
}

// command runs the first line of a console block and returns what the page shall show.
func (l *loop) command(first, want string) string {
	overlay := ""
	if l.codeSeen == 2 {
		overlay = l.overlay
	}
	l.ran++
	if args, ok := strings.CutPrefix(first, "$ go test "); ok {
		l.test(overlay, strings.Fields(args))
		return want
	}
	args, ok := strings.CutPrefix(first, "$ go run ./cmd/winlab ")
	if !ok {
		l.t.Errorf("%q is neither go run ./cmd/winlab nor go test", first)
		return want
	}
	return shown(l.t, "CONTRIBUTING.md", first, want, run(l.t, program(l.t, overlay), strings.Fields(args)))
}

// test runs go test with the change, which must fail because a test does.
func (l *loop) test(overlay string, args []string) {
	if overlay == "" {
		l.t.Errorf("go test %s stands before the change", strings.Join(args, " "))
		return
	}
	cmd := exec.Command("go", append([]string{"test", "-overlay", overlay}, args...)...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte("--- FAIL: ")) {
		l.t.Errorf("go test %s with the change: %v, want a test that fails\n%s", strings.Join(args, " "), err, out)
	}
}
