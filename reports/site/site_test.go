package site_test

import (
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/reports/result/resulttest"
	"github.com/winlab-dev/winlab/reports/site"
)

// files are the texts of a folder by name.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, p)
		all[filepath.ToSlash(name)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func write(t *testing.T, dir string, doc *result.Document) map[string]string {
	t.Helper()
	n, err := site.Write(dir, doc)
	if err != nil {
		t.Fatal(err)
	}
	all := files(t, dir)
	if n != len(all) {
		t.Errorf("%d files, said %d", len(all), n)
	}
	return all
}

// TestEveryThingHasAPage, and every link leads to a page.
func TestEveryThingHasAPage(t *testing.T) {
	doc := resulttest.Sample()
	all := write(t, filepath.Join(t.TempDir(), "site"), doc)
	for _, c := range doc.Claims {
		page, ok := all["claims/"+c.ID+".html"]
		if !ok {
			t.Errorf("claim %s has no page", c.ID)
			continue
		}
		for _, want := range []string{"<h1>", "What documents say", "Sources", `href="../report.html#claim=` + c.ID} {
			if !strings.Contains(page, want) {
				t.Errorf("claim %s: no %q", c.ID, want)
			}
		}
	}
	incidents := map[string]bool{}
	for _, f := range doc.Flows {
		if f.Incident != "" {
			incidents[f.Lab] = true
			page := all["incidents/"+f.Lab+".html"]
			if !strings.Contains(page, f.Name) {
				t.Errorf("the page of incident %s lacks the flow %s", f.Lab, f.Name)
			}
		}
	}
	if len(incidents) == 0 {
		t.Fatal("the sample has no incident")
	}
	link := regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	for name, text := range all {
		if !strings.HasSuffix(name, ".html") || name == site.ReportFile {
			continue
		}
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			u, err := url.Parse(m[1])
			if err != nil {
				t.Errorf("%s: %q: %v", name, m[1], err)
				continue
			}
			if u.IsAbs() || u.Path == "" {
				continue
			}
			if to := filepath.ToSlash(filepath.Join(filepath.Dir(name), u.Path)); all[to] == "" {
				t.Errorf("%s links to %s, which is not there", name, m[1])
			}
		}
	}
	if d := cmp.Diff(all, write(t, filepath.Join(t.TempDir(), "again"), resulttest.Sample())); d != "" {
		t.Errorf("two sites of one document differ:\n%s", d)
	}
}

// TestASiteIsReplaced, and no other folder is.
func TestASiteIsReplaced(t *testing.T) {
	dir := t.TempDir()
	doc := resulttest.Small()
	write(t, dir, doc)
	gone := "claims/" + doc.Claims[0].ID + ".html"
	doc.Claims[0].ID += "-new"
	for i := range doc.Cells {
		if doc.Cells[i].Claim+"-new" == doc.Claims[0].ID {
			doc.Cells[i].Claim = doc.Claims[0].ID
		}
	}
	for i := range doc.Statics {
		if doc.Statics[i].Claim+"-new" == doc.Claims[0].ID {
			doc.Statics[i].Claim = doc.Claims[0].ID
		}
	}
	for i := range doc.Systems {
		doc.Systems[i].Claims = nil
	}
	if all := write(t, dir, doc); all[gone] != "" || all["claims/"+doc.Claims[0].ID+".html"] == "" {
		t.Errorf("the page of a claim that was renamed is still %v", all[gone] != "")
	}
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "thesis.txt"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := site.Write(other, doc); err == nil || !strings.Contains(err.Error(), "has other files") {
		t.Errorf("a folder of somebody else: %v", err)
	}
	if all := files(t, other); len(all) != 1 {
		t.Errorf("%d files are in it now", len(all))
	}
}

// TestHostileNames: what a document from elsewhere names cannot leave the folder, nor break
// a page.
func TestHostileNames(t *testing.T) {
	doc := resulttest.Small()
	for i := range doc.Flows {
		doc.Flows[i].Lab, doc.Flows[i].Incident = "../../etc/<script>alert(1)</script>", "javascript:alert(1)"
		doc.Flows[i].Title = "<img src=x onerror=alert(1)>"
	}
	doc.Claims[0].Title = "</title><script>alert(2)</script>"
	doc.Claims[0].Sources = []result.Source{{Doc: "x", URL: "javascript:alert(3)"}}
	dir := filepath.Join(t.TempDir(), "a", "site")
	all := write(t, dir, doc)
	for name, text := range all {
		if strings.Contains(name, "..") || strings.Contains(name, "<") {
			t.Errorf("a file is called %q", name)
		}
		if name == site.ReportFile || !strings.HasSuffix(name, ".html") {
			continue
		}
		for _, bad := range []string{"<script>alert", "<img src=x", `href="javascript:`} {
			if strings.Contains(text, bad) {
				t.Errorf("%s has %q", name, bad)
			}
		}
	}
	if up := files(t, filepath.Dir(dir)); len(up) != len(all) {
		t.Errorf("%d files beside those of the site", len(up)-len(all))
	}
}
