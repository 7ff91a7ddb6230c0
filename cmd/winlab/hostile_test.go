//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/internal/dev/full"
)

// hostileFiles are files that no verb can do anything good with, by name. Each begins as something
// else, so that each reader sees it from the beginning on.
func hostileFiles(t *testing.T, dir string) []string {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	random := func(n, from int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(from + r.IntN(256-from))
		}
		return b
	}
	bomb := "a: &a [" + strings.Repeat("x,", 5000) + "x]\nb: [" + strings.Repeat("*a,", 5000) + "*a]\n"
	head := "apiVersion: winlab.dev/v1alpha1\nkind: Lab\nmetadata: {name: x}\nspec:\n"
	all := map[string][]byte{
		"empty": nil, "zeros": make([]byte, 1<<20), "zero": {0}, "random": random(5000, 0), "letters": random(5000, 1),
		"brackets": bytes.Repeat([]byte("["), 200_000), "braces": bytes.Repeat([]byte("{\"a\":"), 100_000), "dashes": bytes.Repeat([]byte("- "), 50_000),
		"tabs": bytes.Repeat([]byte("\t"), 50_000), "line": bytes.Repeat([]byte("x"), 5<<20), "lines": bytes.Repeat([]byte("\n"), 1<<20),
		"marks": bytes.Repeat([]byte("---\n"), 100_000), "bom": []byte("\xff\xfe"), "utf16": bytes.Repeat([]byte("\xff\xfe\x00\xd8"), 1000),
		"aliases": []byte(bomb), "labaliases": []byte(head + "  a: &a [" + strings.Repeat("x,", 2000) + "]\n  b: [" + strings.Repeat("*a,", 2000) + "]\n"),
		"escape": []byte(head + "  manifests: [\"\\e]0;pwn\\a\"]\n"), "zip": []byte("PK\x03\x04rest"), "zipend": []byte("PK\x05\x06" + strings.Repeat("\x00", 18)),
		"pcap": binary.LittleEndian.AppendUint32([]byte("\xd4\xc3\xb2\xa1"), 0xffffffff), "list": []byte("apiVersion: v1\nkind: List\nitems: 7\n"),
		"number": []byte("1e999999"), "null": []byte("null"), "text": []byte("hello\n"), "self": []byte(head + "  base: self.yaml\n"),
		"schema": []byte(`{"schema":"winlab.dev/results/v1","cells":[{"checks":[{"trace":7}]}]}`),
	}
	var names []string
	for name, data := range all {
		at := filepath.Join(dir, name+".yaml")
		if err := os.WriteFile(at, data, 0o600); err != nil {
			t.Fatal(err)
		}
		names = append(names, at)
	}
	fifo, folder := filepath.Join(dir, "fifo"), filepath.Join(dir, "folder")
	if err := errors.Join(syscall.Mkfifo(fifo, 0o600), os.Mkdir(folder, 0o700), os.Symlink("/dev/zero", filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	return append(names, fifo, folder, filepath.Join(dir, "link"), filepath.Join(dir, "missing"), "/dev/zero", "/dev/null", "/dev/full")
}

// hostileVerbs are the verbs that read a file; @ is its name, and + where they write.
var hostileVerbs = []string{
	"run @ -d +", "run fixtures/labs/l2bridge-flannel-host-gw.yaml --baseline @ -d +", "trace @ --from pod/a --to pod/b:80", "reach @",
	"whatif @ --set windows=2019", "resolve @ a --from pod/a", "replay @ fixtures/x.pcap",
	"replay fixtures/labs/l2bridge-flannel-host-gw.yaml @", "check @", "check pod.yaml --baseline @", "doctor @", "compare @", "import @ -o +.yaml",
	"diff @ @", "site @ -d +", "hns export @ --node win1", "hns replay @",
}

// TestHostileInput gives each verb hostile files, with 3 GiB of address space and 60 seconds: it says
// what is wrong in a line that names the file or the flag, with exit code 2, and no stack.
func TestHostileInput(t *testing.T) {
	if testing.Short() || runtime.GOOS != "linux" {
		t.Skip("starts some hundred programs, with limits of Linux")
	}
	dir := t.TempDir()
	winlab := filepath.Join(dir, "winlab")
	if out, err := exec.Command("go", "build", "-o", winlab, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	abs, err := filepath.Abs(fixtures)
	if err != nil {
		t.Fatal(err)
	}
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {nodeSelector: {kubernetes.io/os: windows}, containers: [{name: c, image: i}]}\n"
	if err := errors.Join(os.Symlink(abs, filepath.Join(dir, "fixtures")), os.WriteFile(filepath.Join(dir, "pod.yaml"), []byte(pod), 0o600)); err != nil {
		t.Fatal(err)
	}
	files := hostileFiles(t, t.TempDir())
	tried := 0
	for i, verb := range hostileVerbs {
		for j, file := range files {
			if !full.Run() && (i+j)%3 != 0 {
				continue // make test-full tries all of them
			}
			tried++
			line := strings.ReplaceAll(strings.ReplaceAll(verb, "@", file), "+", filepath.Join(dir, fmt.Sprintf("out%d-%d", i, j)))
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			cmd := exec.CommandContext(ctx, "sh", "-c", "ulimit -v 3145728; exec ./winlab "+line)
			cmd.Dir = dir
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			_ = cmd.Run() // the exit code says it
			late := ctx.Err()
			stop()
			first, _, _ := strings.Cut(stderr.String(), "\n")
			report, _, _ := strings.Cut(stdout.String(), "\n") // check writes its findings there
			names := func(line string) bool {
				return strings.Contains(line, filepath.Base(file)) || strings.Contains(line, "--")
			}
			switch said := stderr.String() + stdout.String(); {
			case late != nil:
				t.Errorf("winlab %s: still runs after a minute", line)
			case cmd.ProcessState.ExitCode() != 2:
				t.Errorf("winlab %s: exit code %d, want 2; it says: %.200s", line, cmd.ProcessState.ExitCode(), first)
			case strings.Contains(said, "goroutine ") || strings.ContainsAny(said, "\x1b\x07\x00"):
				t.Errorf("winlab %s: a stack, or control characters: %.200q", line, said)
			case len(first) > 2000:
				t.Errorf("winlab %s: the first line has %d bytes: %.200q", line, len(first), first)
			case !names(first) && !names(report):
				t.Errorf("winlab %s: the first line names no file and no flag: %q", line, first)
			}
		}
	}
	t.Logf("%d inputs", tried)
}
