package main

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTar: what an archive has is below the folder, also a file without its folder's entry; what would
// be outside, a link, an unknown flag and a cut archive are errors.
func TestTar(t *testing.T) {
	archive := func(entries ...tar.Header) string {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, h := range entries {
			h.Mode = 0o755
			if h.Typeflag == tar.TypeReg {
				h.Size = 5
			}
			if err := w.WriteHeader(&h); err != nil {
				t.Fatal(err)
			}
			if h.Typeflag == tar.TypeReg {
				if _, err := w.Write([]byte("hello")); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	good := archive(tar.Header{Name: "./a/", Typeflag: tar.TypeDir}, tar.Header{Name: "./a/x.exe", Typeflag: tar.TypeReg},
		tar.Header{Name: "b/y.exe", Typeflag: tar.TypeReg})
	for _, c := range []struct {
		name, in string
		args     []string
		says     string
	}{
		{"good", good, []string{"-xf", "-"}, ""},
		{"outside", archive(tar.Header{Name: "../x.exe", Typeflag: tar.TypeReg}), []string{"-xf", "-"}, "escapes"},
		{"link", archive(tar.Header{Name: "l", Linkname: "/", Typeflag: tar.TypeSymlink}), []string{"-xf", "-"}, "is neither"},
		{"cut", good[:len(good)/2+100], []string{"-xf", "-"}, "unexpected EOF"},
		{"no archive", "", []string{"-C", "."}, "Must specify one of"},
		{"unknown", "", []string{"-czf", "x"}, "tar here knows"},
		{"no file", "", []string{"-xf", "missing.tar"}, "Failed to open 'missing.tar'"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			var out, errs strings.Builder
			s := &system{in: strings.NewReader(c.in), out: &out, err: &errs}
			code, known := run(t.Context(), s, append([]string{`C:\Windows\System32\tar.exe`}, append(c.args, "-C", dir)...))
			if !known || (code == 0) != (c.says == "") || !strings.Contains(errs.String(), c.says) {
				t.Fatalf("%v %d %q, want %q", known, code, &errs, c.says)
			}
			if c.says != "" {
				return
			}
			for _, name := range []string{"a/x.exe", "b/y.exe"} {
				if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != "hello" {
					t.Errorf("%s: %q, %v", name, got, err)
				}
			}
		})
	}
}
