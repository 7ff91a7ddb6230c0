package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/conformance/e2e/cluster"
	"github.com/winlab-dev/winlab/sim/live/agree"
	"github.com/winlab-dev/winlab/sim/real/wine/winetest"
)

// session is a fenced block with commands and what they print.
var session = regexp.MustCompile("(?s)```console\n(.*?)```\n")

// step is a command of the tutorial; want is nil when it may print anything.
type step struct {
	command string
	want    *string
}

func steps(page string) (all []step) {
	for _, m := range session.FindAllStringSubmatch(page, -1) {
		for _, part := range strings.Split("\n"+m[1], "\n$ ")[1:] {
			command, output, _ := strings.Cut(part, "\n")
			s := step{command, &output}
			if strings.TrimSpace(output) == "..." {
				s.want = nil
			}
			all = append(all, s)
		}
	}
	return all
}

// differs are what may be different from run to run, and from machine to machine.
var differs = []struct {
	what *regexp.Regexp
	name string
}{
	{regexp.MustCompile(`win-webserver-[0-9a-z]+-[0-9a-z]{5}`), "win-webserver-X-X"},
	{regexp.MustCompile(`\d\d:\d\d:\d\d\.\d{3}`), "TIME"},
	{regexp.MustCompile(`192\.168\.1\.11:\d{5} \(node/win1\) ->`), "192.168.1.11:PORT (node/win1) ->"},
	{regexp.MustCompile(`(?m)^(linux1 +\S+ +\S+) .*`), "$1 LINUX"},
	{regexp.MustCompile(`[ \t\r]+`), " "},
	{regexp.MustCompile(`(?m) $`), ""},
}

func plain(text string) string {
	for _, d := range differs {
		text = d.what.ReplaceAllString(text, d.name)
	}
	return strings.TrimSpace(text)
}

// TestTutorial runs the commands of docs/tutorial.md one after another in one shell and
// compares what they print.
func TestTutorial(t *testing.T) {
	winetest.Need(t)
	if err := agree.Available(); err != nil {
		t.Skip(err)
	}
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	programs, err := cluster.CachedPrograms(t.Context(), root, "")
	if err != nil {
		t.Fatal(err)
	}
	if programs == nil {
		t.Skip("the programs of Kubernetes are not built: make cluster-binaries")
	}
	kubectl, err := programs.Path("kubectl")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "tutorial.md"))
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(kubectl, filepath.Join(bin, "kubectl")); err != nil {
		t.Fatal(err)
	}
	for dir, pkg := range map[string]string{root: "./cmd/winlab", filepath.Join(root, "conformance", "e2e"): "./cmd/winlab-cluster"} {
		c := exec.CommandContext(t.Context(), "go", "build", "-o", bin+"/", pkg)
		c.Dir = dir
		if text, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", pkg, err, text)
		}
	}
	// A name of its own: somebody may be at the tutorial on this machine.
	name := fmt.Sprintf("tutorial-%d", os.Getpid())
	t.Cleanup(func() { _ = exec.Command(filepath.Join(bin, "winlab-cluster"), "down", name).Run() })
	s := &shell{t: t, dir: root, env: append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))}
	ran := 0
	for _, step := range steps(string(page)) {
		if strings.HasPrefix(step.command, "go run ./cmd/winlab ") {
			continue // needs no cluster: internal/dev/docsgen runs it
		}
		ran++
		out := strings.ReplaceAll(s.run(strings.ReplaceAll(step.command, "tutorial", name)), name, "tutorial")
		if step.want != nil && plain(out) != plain(*step.want) {
			t.Fatalf("$ %s\nprints\n%s\nand the page says\n%s", step.command, out, *step.want)
		}
	}
	if ran < 20 {
		t.Errorf("%d commands ran; does this test still read the right blocks?", ran)
	}
}

// shell runs commands as if they were typed into one shell: its variables stay.
type shell struct {
	t   *testing.T
	dir string
	env []string
}

func (s *shell) run(command string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 10*time.Minute)
	defer cancel()
	// The variables after the command, through a file: its output is for the page.
	vars := filepath.Join(s.t.TempDir(), "vars")
	c := exec.CommandContext(ctx, "bash", "-c", command+"\nenv -0 > "+vars)
	c.Dir, c.Env = s.dir, s.env
	out, err := os.CreateTemp(s.t.TempDir(), "out")
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	// A file and no pipe: a cluster in the background has it, too.
	c.Stdout, c.Stderr = out, out
	err = c.Run()
	text, _ := os.ReadFile(out.Name())
	if err != nil {
		s.t.Fatalf("$ %s\n%v\n%s", command, err, text)
	}
	s.t.Logf("$ %s\n%s", command, text)
	after, err := os.ReadFile(vars)
	if err != nil {
		s.t.Fatal(err)
	}
	s.env = strings.Split(strings.TrimSuffix(string(after), "\x00"), "\x00")
	return string(text)
}
