package images

import (
	"context"
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestSelfSigned: the two files belong together.
func TestSelfSigned(t *testing.T) {
	c, ok, err := File{SelfSigned: certificate}.Content()
	k, _, err2 := File{SelfSigned: key}.Content()
	if err := errors.Join(err, err2); err != nil || !ok {
		t.Fatal(ok, err)
	}
	if _, err := tls.X509KeyPair(c, k); err != nil {
		t.Error(err)
	}
	if _, ok, _ := (File{Program: "x"}).Content(); ok {
		t.Error("a program has content")
	}
	if _,
		err := ReadTable(
		[]byte("images: [{repositories: [docker.io/x/y], tags: ['*'], linux: {files: {/a: {selfSigned: both}}}}]")); err == nil ||
		!strings.Contains(err.Error(), "write certificate or key") {
		t.Error(err)
	}
}

func TestReference(t *testing.T) {
	for s, want := range map[string]string{
		"busybox":                               "docker.io/library/busybox:latest",
		"nginx:1.27":                            "docker.io/library/nginx:1.27",
		"registry.k8s.io/pause:3.10.2":          "registry.k8s.io/pause:3.10.2",
		"localhost:5000/a/b:c":                  "localhost:5000/a/b:c",
		"a:1@sha256:" + strings.Repeat("0", 64): "docker.io/library/a@sha256:" + strings.Repeat("0", 64),
		"":                                      "",
		"A":                                     "",
		"a:b:c":                                 "",
		"a@sha256:1":                            "",
	} {
		r, err := ParseReference(s)
		if r.Name != want || (err != nil) != (want == "") {
			t.Errorf("%q is %q, %v; want %q", s, r.Name, err, want)
		}
		if err == nil && (r.Tag == "") == (r.Digest == "") {
			t.Errorf("%q: tag %q and digest %q", s, r.Tag, r.Digest)
		}
	}
}

func FuzzReference(f *testing.F) {
	for _, s := range []string{"busybox", "registry.k8s.io/e2e-test-images/agnhost:2.66.1", "a@sha256:" + strings.Repeat("a", 64), "::",
		"x/y:z@"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ParseReference(s)
		if err != nil {
			return
		}
		again, err := ParseReference(r.Name)
		if err != nil || again != r {
			t.Errorf("%q is %+v, which is %+v, %v", s, r, again, err)
		}
	})
}

func TestBuiltin(t *testing.T) {
	tb, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	// Those of the e2e framework of Kubernetes 1.37 that Windows nodes run, and more.
	both := []string{
		"registry.k8s.io/e2e-test-images/agnhost:2.66.1", "registry.k8s.io/e2e-test-images/agnhost:2.55",
		"registry.k8s.io/e2e-test-images/busybox:1.37.0-2",
		"registry.k8s.io/e2e-test-images/nonroot:1.5", "registry.k8s.io/e2e-test-images/kitten:1.8",
		"registry.k8s.io/e2e-test-images/nautilus:1.8",
		"registry.k8s.io/e2e-test-images/resource-consumer:1.14", "registry.k8s.io/pause:3.10.2",
	}
	for name, on := range map[string]string{
		"registry.k8s.io/e2e-test-images/nginx:1.27.0-2": "linux", "registry.k8s.io/etcd:3.7.0-0": "linux",
		"mcr.microsoft.com/windows/servercore:ltsc2022": "windows", "mcr.microsoft.com/windows/nanoserver:ltsc2022": "windows",
	} {
		for _, system := range []string{"linux", "windows"} {
			r, _ := ParseReference(name)
			if _, err := tb.Find(r, Platform{OS: system, Build: ltsc2022}); (err == nil) != (system == on) {
				t.Errorf("%s on %s: %v", name, system, err)
			}
		}
	}
	for _, name := range both {
		for _, system := range []string{"linux", "windows"} {
			r, _ := ParseReference(name)
			im, err := tb.Find(r, Platform{OS: system, Build: ltsc2022})
			if err != nil {
				t.Errorf("%s on %s: %v", name, system, err)
			} else if len(im.Config.Entrypoint)+len(im.Config.Cmd) == 0 {
				t.Errorf("%s on %s runs nothing", name, system)
			}
		}
	}
	for _, name := range []string{"invalid.registry.k8s.io/invalid/alpine:3.1", "gcr.io/k8s-authenticated-test/agnhost:2.6",
		"docker.io/library/agnhost:2.66.1"} {
		r, _ := ParseReference(name)
		if _, err := tb.Find(r, Platform{OS: "linux"}); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWindowsVersions(t *testing.T) {
	tb, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		tag  string
		host int
		runs bool
	}{
		{"ltsc2019", ltsc2019, true}, {"ltsc2022", ltsc2019, false}, {"ltsc2025", ltsc2019, false},
		{"ltsc2019", ltsc2022, false}, {"ltsc2022", ltsc2022, true}, {"ltsc2025", ltsc2022, false},
		{"ltsc2019", ltsc2025, false}, {"ltsc2022", ltsc2025, true}, {"ltsc2025", ltsc2025, true},
		{"ltsc2022", 19041, false},
	} {
		r, _ := ParseReference("mcr.microsoft.com/windows/servercore:" + c.tag)
		_, err := tb.Find(r, Platform{OS: "windows", Build: c.host})
		if (err == nil) != c.runs || err != nil && !strings.Contains(err.Error(), "no match for platform in manifest: not found") {
			t.Errorf("%s on %d: %v", c.tag, c.host, err)
		}
	}
}

func TestTableMistakes(t *testing.T) {
	_, err := ReadTable([]byte(`
images:
- repositories: [busybox]
  tags: ["["]
- tags: ["*"]
  linux: {files: {/a: {program: x, text: y}}, builds: [1]}
`))
	for _, want := range []string{"not a whole repository", "not a pattern", "no system", "no repositories", "has 2 of program",
		"builds; they are for windows"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not in: %v", want, err)
		}
	}
	if _, err := ReadTable([]byte("images:\n- tag: x\n")); err == nil || !strings.Contains(err.Error(), "tag") {
		t.Errorf("an unknown field: %v", err)
	}
}

func TestStore(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "tool"), []byte("12345"), 0o755); err != nil {
		t.Fatal(err)
	}
	tb, err := ReadTable([]byte(`
images:
- repositories: [a.io/tool]
  tags: ["*"]
  linux: {cmd: [/tool], files: {/tool: {program: tool}}}
- repositories: [a.io/absent]
  tags: ["*"]
  linux: {cmd: [x], files: {/x: {program: other}, /y: {machine: no-such-program-here, package: such}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	s, ctx := NewStore(tb, Platform{OS: "linux"}, Folder(dir)), context.Background()
	id, err := s.Pull(ctx, "a.io/tool:1")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := s.Pull(ctx, "a.io/tool:2"); err != nil || again != id {
		t.Errorf("the same content has another ID: %v %v", again, err)
	}
	p := s.Get("a.io/tool:2")
	if p == nil || p.Size != 5 || p.Files["/tool"] != filepath.Join(dir, "tool") ||
		!slices.Equal(p.Tags, []string{"a.io/tool:1", "a.io/tool:2"}) || len(p.Digests) != 1 {
		t.Fatalf("%+v", p)
	}
	s.Remove("a.io/tool:1")
	if s.Get(id) != nil || len(s.List()) != 0 {
		t.Error("it is there still")
	}
	if again, err := s.Pull(ctx, p.Digests[0]); err != nil || again != id {
		t.Errorf("by its digest: %v %v", again, err)
	}
	if got := s.Get(id); len(got.Tags) != 0 {
		t.Errorf("pulled by digest it has tags %v", got.Tags)
	}
	if _, err := s.Pull(ctx, "a.io/tool@sha256:"+strings.Repeat("1", 64)); !errors.Is(err, ErrNotFound) ||
		!strings.Contains(err.Error(), "image table") {
		t.Error(err)
	}
	if _, err := s.Pull(ctx, "a.io/absent:1"); err == nil || errors.Is(err, ErrNotFound) ||
		!strings.Contains(err.Error(), "install the package such") || !strings.Contains(err.Error(), "other is not built") {
		t.Error(err)
	}
}
