package bundle

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

// entry is a file of a .zip as somebody made it.
type entry struct {
	name, text string
	mode       fs.FileMode
}

// zipped writes a .zip, whatever the names are.
func zipped(t testing.TB, entries ...entry) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		h.SetMode(e.mode | 0o644)
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(e.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return put(t, b.Bytes())
}

func put(t testing.TB, data []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "b.zip")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func open(t testing.TB, path string, l Limits) (*Bundle, error) {
	t.Helper()
	b, err := Open(t.Context(), path, l)
	if err == nil {
		t.Cleanup(func() {
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return b, err
}

// TestHostileZip: what a .zip may not have is left out with a notice that can be printed, and
// the rest is there.
func TestHostileZip(t *testing.T) {
	for _, c := range []struct {
		name   string
		bad    entry
		limits Limits
		why    string
	}{
		{"up", entry{name: "../../etc/passwd"}, Limits{}, "leads out of the bundle"},
		{"up on Windows", entry{name: `nodes\..\..\..\x`}, Limits{}, "leads out of the bundle"},
		{"absolute", entry{name: "/etc/passwd"}, Limits{}, "absolute"},
		{"drive", entry{name: `C:\Windows\x`}, Limits{}, "absolute"},
		{"share", entry{name: `\\host\share\x`}, Limits{}, "absolute"},
		{"stream", entry{name: "a.txt:hidden"}, Limits{}, "colon"},
		{"escape", entry{name: "a\x1b[2Jb"}, Limits{}, "do not show"},
		{"newline", entry{name: "a\nb"}, Limits{}, "do not show"},
		{"right to left", entry{name: "a\u202etxt.exe"}, Limits{}, "do not show"},
		{"not UTF-8", entry{name: "a\xff"}, Limits{}, "not UTF-8"},
		{"long", entry{name: strings.Repeat("a", 2000)}, Limits{}, "2000 bytes"},
		{"deep", entry{name: strings.Repeat("a/", 100) + "b"}, Limits{}, "101 folders deep"},
		{"link", entry{name: "link", text: "/etc/passwd", mode: fs.ModeSymlink}, Limits{}, "links are not followed"},
		{"device", entry{name: "null", mode: fs.ModeDevice}, Limits{}, "not a regular file"},
		{"twice", entry{name: "GOOD.txt"}, Limits{}, "there already"},
		{"a file where a folder is", entry{name: "good.txt/x"}, Limits{}, "left out"},
		{"a folder where a file is", entry{name: "nodes"}, Limits{}, "there already"},
		{"bomb", entry{name: "bomb", text: strings.Repeat("0", 64<<20)}, Limits{}, "more than 400 times"},
		{"large", entry{name: "large", text: strings.Repeat("0", 3000)}, Limits{File: 2000}, "3000 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := open(t, zipped(t, entry{name: "good.txt", text: "good"}, entry{name: "nodes/win1/x", text: "x"}, c.bad,
				entry{name: "last.txt"}), c.limits)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff([]string{"good.txt", "last.txt", "nodes/win1/x"}, b.Files); d != "" {
				t.Errorf("files (-want +got):\n%s", d)
			}
			if len(b.Notices) != 1 || !strings.Contains(b.Notices[0].Why, c.why) {
				t.Errorf("notices %v, want one with %q", b.Notices, c.why)
			}
			if data, err := b.Read("good.txt"); string(data) != "good" {
				t.Errorf("good.txt is %q %v", data, err)
			}
			onDisk(t, b)
		})
	}
}

// onDisk checks that there is nothing below the folder but the files, and that nothing that is
// printed changes a terminal.
func onDisk(t testing.TB, b *Bundle) {
	t.Helper()
	var all []string
	err := filepath.WalkDir(b.Dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(b.Dir, name)
			all = append(all, filepath.ToSlash(rel))
			if !d.Type().IsRegular() {
				t.Errorf("%s is %s", rel, d.Type())
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	slices.Sort(all)
	want := slices.Clone(b.Files)
	if b.Manifest != nil {
		all = slices.DeleteFunc(all, func(f string) bool { return filepath.Base(f) == Name })
		want = slices.DeleteFunc(want, func(f string) bool { return filepath.Base(f) == Name })
	}
	if d := cmp.Diff(want, all); d != "" && len(want)+len(all) > 0 {
		t.Errorf("on the disk (-want +got):\n%s", d)
	}
	for _, n := range b.Notices {
		if strings.ContainsFunc(n.Path+n.Why, unicode.IsControl) {
			t.Errorf("%q %q would reach a terminal", n.Path, n.Why)
		}
	}
}

// TestTooMuch: what cannot be a bundle ends the reading, and leaves nothing on the disk.
func TestTooMuch(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	many := []entry{}
	for _, c := range "abcdefgh" {
		many = append(many, entry{name: string(c), text: strings.Repeat(string(c), 1000)})
	}
	zip := zipped(t, many...)
	for _, c := range []struct {
		limits Limits
		why    string
	}{{Limits{Files: 7}, "8 files"}, {Limits{Total: 7999}, "7999 bytes"}} {
		if _, err := open(t, zip, c.limits); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%+v: %v", c.limits, err)
		}
		dir := t.TempDir()
		for _, e := range many {
			if err := os.WriteFile(filepath.Join(dir, e.name), []byte(e.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := open(t, dir, c.limits); err == nil {
			t.Errorf("folder, %+v: no error", c.limits)
		}
	}
	if _, err := open(t, zip, Limits{Files: 8, Total: 8000}); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, zip, Limits{}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if _, err := open(t, put(t, []byte("PK\x03\x04 and no more")), Limits{}); err == nil ||
		!strings.Contains(err.Error(), "not a .zip that can be read") {
		t.Errorf("a cut .zip: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(tmp, "winlab-bundle-*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 1 { // the one that was opened is closed at the end of the test
		t.Errorf("left: %q", left)
	}
}

// TestFolder: links in a folder are not followed, wherever they lead.
func TestFolder(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need rights there")
	}
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "secret")
	for name, text := range map[string]string{outside: "secret", filepath.Join(dir, "a.txt"): "a"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"out": outside, "up": "..", "in": "a.txt", "loop": "."} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	b, err := open(t, dir, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"a.txt"}, b.Files); d != "" || len(b.Notices) != 4 {
		t.Errorf("%s %v", d, b.Notices)
	}
	if data, err := b.Read("out"); err == nil {
		t.Errorf("read %q through a link", data)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "a.txt")); err != nil {
		t.Errorf("Close removed what it did not make: %v", err)
	}
}

// TestManifest: mistakes have their place, and what is not as the manifest says is told.
func TestManifest(t *testing.T) {
	head := `{"apiVersion": "winlab.dev/bundle/v1alpha1", "kind": "Bundle",` + "\n"
	for _, c := range []struct{ text, want string }{
		{head + ` "files": [{"path": "a`, "bundle.json:2:23: the manifest ends in the middle"},
		{head + ` "files": [{"path": "a"}}`, "bundle.json:2:25: not JSON"},
		{head + ` "files": [{"path": 7}]}`, "bundle.json:2:"},
		{`{"apiVersion": "winlab.dev/bundle/v2", "kind": "Bundle"}`, `this winlab reads winlab.dev/bundle/v1alpha1`},
		{head + ` "files": [{"path": "../a"}, {"path": "b"}, {"path": "b"}]}`, "leads out of the bundle\n"},
		{head + ` "files": [{"path": "../a"}, {"path": "b"}, {"path": "b"}]}`, "files[2]: b is listed twice"},
		{``, "bundle.json:1:1: the manifest ends in the middle"},
		{`[]`, "bundle.json:1:1"},
	} {
		_, err := open(t, zipped(t, entry{name: Name, text: c.text}), Limits{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\ngot  %v\nwant %s", c.text, err, c.want)
		}
	}
}

// TestWrite: what is written is read, as a folder and as a .zip, also when somebody puts the
// folder into a .zip; what was changed since is said.
func TestWrite(t *testing.T) {
	for _, name := range []string{"b", "b.zip"} {
		at := filepath.Join(t.TempDir(), name)
		w, err := Create(at, "winlab test", time.Unix(1, 0))
		if err != nil {
			t.Fatal(err)
		}
		add := func(path, text string) error {
			return w.Add(File{Path: path, What: "text", Node: "win1"}, []byte(text))
		}
		if err := errors.Join(add("nodes/win1/a.txt", "a"), add("cluster/b.json", "{}")); err != nil {
			t.Fatal(err)
		}
		for _, bad := range []string{"../x", "/x", "NODES/win1/A.txt", Name, "a//b", ""} {
			if add(bad, "") == nil {
				t.Errorf("%q can be added", bad)
			}
		}
		w.Step(Step{Name: "a", What: "reads a", Files: []string{"nodes/win1/a.txt"}})
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := Create(at, "", time.Time{}); err == nil {
			t.Error("it is written over")
		}
		if !Is(at) {
			t.Error("it is not a bundle")
		}
		b, err := open(t, at, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]string{"cluster/b.json", "nodes/win1/a.txt"}, b.Files); d != "" || len(b.Notices) > 0 || len(b.Manifest.Steps) != 1 {
			t.Errorf("%s %v %+v", d, b.Notices, b.Manifest)
		}
		if name == "b" {
			changed(t, b)
		}
	}
}

func changed(t *testing.T, b *Bundle) {
	manifest, err := os.ReadFile(b.File(Name))
	if err != nil {
		t.Fatal(err)
	}
	again, err := open(t, zipped(t, entry{name: "win1/" + Name, text: string(manifest)}, entry{name: "win1/nodes/win1/a.txt", text: "other"},
		entry{name: "win1/new.txt"}), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	want := []Notice{
		{Path: "win1/nodes/win1/a.txt", Why: "it was changed after it was collected: its SHA-256 differs from the manifest's"},
		{Path: "win1/cluster/b.json", Why: "the manifest lists it, and it is not there"},
		{Path: "win1/new.txt", Why: "the manifest does not list it: it was added afterwards"},
	}
	if d := cmp.Diff(want, again.Notices); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// FuzzOpen: no .zip panics, hangs, or leaves anything outside of its folder.
func FuzzOpen(f *testing.F) {
	for _, e := range [][]entry{{{name: "a", text: "a"}}, {{name: "../a"}, {name: `..\b`}},
		{{name: "x/" + Name, text: `{"apiVersion":"winlab.dev/bundle/v1alpha1","kind":"Bundle","files":[{"path":"a"}]}`}}} {
		data, err := os.ReadFile(zipped(f, e...))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := open(t, put(t, data), Limits{Files: 50, Total: 4 << 20, File: 1 << 20})
		if err != nil {
			return
		}
		onDisk(t, b)
	})
}

// FuzzName: a name that is taken stays below its folder.
func FuzzName(f *testing.F) {
	for _, s := range []string{"a/b", `a\b`, "../a", "/a", "c:a", "a/./../b", "a\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name, err := cleanName(s)
		if err != nil {
			if strings.ContainsFunc(err.Error(), unicode.IsControl) {
				t.Errorf("%q", err)
			}
			return
		}
		if !filepath.IsLocal(filepath.FromSlash(name)) || strings.ContainsFunc(name, unicode.IsControl) {
			t.Errorf("%q is taken as %q", s, name)
		}
		if again, err := cleanName(name); again != name || err != nil {
			t.Errorf("%q becomes %q, that %q %v", s, name, again, err)
		}
	})
}

// TestZipsInFolder: what was taken on several nodes lies as .zip files in a folder. A .zip in one
// of them is a file like others, and one that is not a bundle is reported.
func TestZipsInFolder(t *testing.T) {
	dir := t.TempDir()
	for _, node := range []string{"win1", "win2"} {
		w, err := Create(filepath.Join(dir, node+".ZIP"), "test", time.Unix(0, 0))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"hns.json", "inner.zip"} {
			if err := w.Add(File{Path: "nodes/" + node + "/" + name, Node: node}, []byte(node)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(dir, fstest.MapFS{"nodes.json": {Data: []byte("{}")}, "bad.zip": {Data: []byte("no zip")},
		"sub/deep.zip": {Data: []byte("PK\x03\x04")}}); err != nil {
		t.Fatal(err)
	}
	b, err := Open(t.Context(), dir, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"nodes.json", "sub/deep.zip", "win1/nodes/win1/hns.json", "win1/nodes/win1/inner.zip", "win2/nodes/win2/hns.json",
		"win2/nodes/win2/inner.zip"}
	if !slices.Equal(b.Files, want) {
		t.Errorf("%q", b.Files)
	}
	m, ok := b.Manifest.Find("win2/nodes/win2/hns.json")
	if data, err := b.Read(m.Path); !ok || m.Node != "win2" || err != nil || string(data) != "win2" {
		t.Errorf("%v %+v %q %v", ok, m, data, err)
	}
	if got := b.Shown(m.Path); got != filepath.ToSlash(dir)+"/win2.ZIP/nodes/win2/hns.json" {
		t.Errorf("shown as %s", got)
	}
	if data, err := os.ReadFile(b.File(m.Path)); err != nil || string(data) != "win2" || !b.Unpacked() {
		t.Errorf("%q %v", data, err)
	}
	var notes []string
	for _, n := range b.Notices {
		notes = append(notes, n.Path+": "+n.Why)
	}
	if all := strings.Join(notes, "\n"); !strings.Contains(all, "bad.zip: left out: ") || strings.Contains(all, "SHA-256") {
		t.Errorf("%s", all)
	}
	closes(t, b, m.Path)
	// The limits are of all together.
	for _, l := range []Limits{{Files: 6}, {Total: 12}} {
		if b, err := Open(t.Context(), dir, l); err == nil {
			t.Errorf("%+v: %d files are read", l, len(b.Files))
		}
	}
}

// closes closes a bundle, of which a file is not there any more then.
func closes(t *testing.T, b *Bundle, path string) {
	t.Helper()
	at := b.File(path)
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(at); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", at, err)
	}
}
