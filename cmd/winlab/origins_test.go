package main

import (
	"archive/zip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestOriginsOfBundles: what a verb says of a bundle names files below what was given, never the
// folders that winlab unpacked it or made its lab in: those are removed when it ends.
func TestOriginsOfBundles(t *testing.T) {
	folder := filepath.Join(fixtures, "bundles", "load-balancer-gone")
	packed := filepath.Join(t.TempDir(), "posted.zip")
	zipFolder(t, packed, folder)
	for _, of := range []string{folder, packed} {
		for _, args := range [][]string{
			{"trace", of, "--from", "pod/client", "--to", "svc/win-webserver:80", "-v"},
			{"trace", of, "--from", "pod/client", "--to", "svc/win-webserver:80", "-o", "json"},
			{"trace", of, "--from", "pod/nobody", "--to", "svc/win-webserver:80"},
			{"resolve", of, "--from", "pod/client", "win-webserver"},
			{"hns", "export", of, "--node", "win1"},
			{"reach", of, "-o", "json"},
			{"whatif", of, "--set", "build=10.0.20348.1", "-o", "json"},
			{"whatif", of, "--delete", "svc/win-webserver"},
			{"doctor", of},
			{"doctor", of, "-o", "json"},
			{"compare", of},
			{"import", of, "-o", filepath.Join(t.TempDir(), "lab.yaml")},
		} {
			t.Run(filepath.Base(of)+" "+args[0], func(t *testing.T) {
				said, err := exec.Command("winlab", args...).CombinedOutput()
				if _, ended := err.(*exec.ExitError); err != nil && !ended {
					t.Fatal(err)
				}
				for line := range strings.Lines(string(said)) {
					if strings.Contains(line, "winlab-import-") || strings.Contains(line, "winlab-bundle-") {
						t.Errorf("%q names a folder that is gone: %s", args, line)
					}
				}
				if args[len(args)-1] == "-v" && !strings.Contains(string(said), filepath.ToSlash(of)+"/win1/hns.json:") {
					t.Errorf("no object comes from %s/win1/hns.json:\n%s", of, said)
				}
			})
		}
	}
}

// zipFolder packs the files of a folder.
func zipFolder(t *testing.T, name, folder string) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	w := zip.NewWriter(f)
	if err := w.AddFS(os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
