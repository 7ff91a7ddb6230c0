package importer_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode"

	"github.com/winlab-dev/winlab/conformance/node/bundle"
	"github.com/winlab-dev/winlab/conformance/node/importer"
	"github.com/winlab-dev/winlab/sim/lab"
)

// made is a .zip of files; a name that ends in @ is a link.
func made(files ...string) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i+1 < len(files); i += 2 {
		h := &zip.FileHeader{Name: strings.TrimSuffix(files[i], "@"), Method: zip.Deflate}
		if strings.HasSuffix(files[i], "@") {
			h.SetMode(os.ModeSymlink | 0o777)
		}
		w, err := z.CreateHeader(h)
		if err == nil {
			_, err = io.WriteString(w, files[i+1])
		}
		if err != nil {
			panic(err) // into memory: a mistake of this test
		}
	}
	_ = z.Close()
	return b.Bytes()
}

const (
	oneNode = `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Node","metadata":{"name":"win1"},"status":{"addresses":[{"type":"InternalIP","address":"192.168.1.11"}],"nodeInfo":{"operatingSystem":"windows","kernelVersion":"10.0.17763.1432","kubeletVersion":"v1.30.4"}}}]}`
	oneHNS  = `[{"ID":"11111111-1111-1111-1111-111111111111","Name":"cbr0","Type":"L2Bridge","ManagementIP":"192.168.1.11","Subnets":[{"AddressPrefix":"10.244.1.0/24","GatewayAddress":"10.244.1.1"}]}]`
)

// FuzzImportZip gives a .zip of a stranger to all that winlab import does with it: unpack, read,
// make a lab, load the lab. Whatever is in it: no panic, nothing that a terminal obeys in what is
// said, each file of it read or named as left out, nothing outside of the folders that Close
// removes, and a lab that is YAML.
func FuzzImportZip(f *testing.F) {
	f.Add(made("cluster.json", oneNode, "win1/hns.json", oneHNS))
	f.Add(made("win1/hns.json", oneHNS[:60], "cluster.json", oneNode[:120]))
	f.Add(made("../evil.json", oneNode, "a\x1b[2Jb.json", oneHNS, "/etc/passwd", "x", "link@", "/etc/passwd", `c:\x`, "y"))
	f.Add(made("bundle.json",
		`{"apiVersion":"winlab.dev/bundle/v1alpha1","kind":"Bundle","files":[{"path":"nodes/win1/hns.json","node":"win1"},{"path":"x","node":"\u001b[2J"}],"steps":[{"name":"a","error":"\u001b]0;x\u0007"}]}`, "nodes/win1/hns.json", oneHNS))
	f.Add(made("cluster.yaml", "apiVersion: v1\nkind: NodeList\nitems: [{metadata: {name: \"a\\nb: c\"}}]\n", "inner.zip",
		string(made("a", "b"))))
	f.Add(made("bomb.json", strings.Repeat(" ", 3<<20), "deep.json", strings.Repeat("[", 20000)))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<20 {
			t.Skip()
		}
		temp := t.TempDir()
		t.Setenv("TMPDIR", temp)
		t.Setenv("TMP", temp)
		at := filepath.Join(t.TempDir(), "x.zip")
		if err := os.WriteFile(at, data, 0o600); err != nil {
			t.Fatal(err)
		}
		shows := func(s string) {
			if strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) {
				t.Errorf("it says %q", s)
			}
		}
		defer func() {
			if left, _ := os.ReadDir(temp); len(left) > 0 {
				t.Errorf("%d folders are left", len(left))
			}
		}()
		b, err := bundle.Open(t.Context(), at, bundle.Limits{Files: 60, Total: 8 << 20, File: 2 << 20})
		if err != nil {
			return
		}
		defer func() { _ = b.Close() }()
		if z, err := zip.NewReader(bytes.NewReader(data), int64(len(data))); err == nil {
			files := 0
			for _, e := range z.File {
				if !strings.HasSuffix(e.Name, "/") && !strings.HasSuffix(e.Name, `\`) && !e.Mode().IsDir() {
					files++
				}
			}
			if kept := len(b.Files) + len(b.Notices); kept+manifests(b) < files {
				t.Errorf("%d files, of which %d are read and %d named", files, len(b.Files), len(b.Notices))
			}
		}
		r, err := importer.Import(t.Context(), b, "fuzz", b.File, func(s string) string { return s })
		if err != nil {
			shows(err.Error())
			return
		}
		for _, s := range r.LeftOut {
			shows(s)
		}
		for _, m := range r.Missing {
			shows(m.What + m.Leaves + m.Settle)
		}
		for _, d := range r.Drift {
			shows(d.Node + d.Kubernetes + d.HNS + d.Means)
		}
		out := t.TempDir()
		for extra, data := range r.Extra {
			if err := os.WriteFile(filepath.Join(out, extra), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := lab.Parse(filepath.Join(out, "lab.yaml"), r.Lab); err != nil && strings.Contains(err.Error(), "yaml:") {
			t.Errorf("%v\n%s", err, r.Lab)
		}
	})
}

// manifests is how many files of a bundle are its manifests, which are not among its files.
func manifests(b *bundle.Bundle) int {
	if b.Manifest == nil {
		return 0
	}
	return 60
}

// TestLargeFiles: what is large and no state of a node is not read into memory, wherever it lies.
// Of what may be state and is too large, the node is not imported in part.
func TestLargeFiles(t *testing.T) {
	dir := t.TempDir()
	put := func(name, head string, size int64) {
		t.Helper()
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(head), 0o600); err != nil {
			t.Fatal(err)
		}
		if size > 0 {
			if err := os.Truncate(at, size); err != nil { // sparse
				t.Fatal(err)
			}
		}
	}
	put("cluster.json", oneNode, 0)
	put("win1/hns.json", oneHNS, 0)
	line := "I0101 10:00:00.000001    1 proxier.go:1] a line\n"
	for i := range 4 {
		put(fmt.Sprintf("win1/kubelet%d.log", i), line+line+line, 100<<20)
	}
	put("win1/trace.etl", "\x00\x01", 200<<20)
	take := func() (*importer.Result, uint64) {
		t.Helper()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		b, err := bundle.Open(t.Context(), dir, bundle.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := importer.Import(t.Context(), b, "large", b.File, func(s string) string { return s })
		if err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return r, after.TotalAlloc - before.TotalAlloc
	}
	r, bytes := take()
	t.Logf("600 MB of logs: %d KB were allocated", bytes>>10)
	if bytes > 32<<20 {
		t.Errorf("%d MB were allocated for files that say nothing", bytes>>20)
	}
	left := strings.Join(r.LeftOut, "\n")
	for _, name := range []string{"kubelet0.log", "kubelet3.log", "trace.etl"} {
		if !strings.Contains(left, name+": not read; it has ") {
			t.Errorf("%s is not named:\n%s", name, left)
		}
	}
	if !strings.Contains(string(r.Lab), "hnsDump") {
		t.Errorf("the node is left out\n%s", r.Lab)
	}
	put("win1/endpoints.json", "[{\"ID\":", 100<<20)
	if r, _ = take(); strings.Contains(string(r.Lab), "hnsDump") {
		t.Errorf("a node is imported of which a file was not read\n%s", r.Lab)
	}
}
