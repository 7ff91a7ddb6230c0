//go:build linux

package hcn_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/sim/real/wine"
	"github.com/winlab-dev/winlab/sim/real/wine/winetest"
	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hcn"
	"github.com/winlab-dev/winlab/sim/windows/hcn/shims"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// suiteProfile is one node that a library's suite runs on, and what fails there:
// test names with the reason.
type suiteProfile struct {
	Build   string
	Without []string
	Fails   map[string]string
}

// TestHNSLibSuite runs the integration suite of github.com/Microsoft/hnslib, the
// library of kube-proxy, and TestHcsshimSuite that of github.com/Microsoft/hcsshim, the
// library of containerd and of network plugins, as unmodified Windows programs under
// Wine against the service. testdata/NAME.yaml lists what fails on each build and why;
// all else must pass. A test that fails among the others is run once more on an HNS
// without objects: the suites' tests do not clean up after a failure.
func TestHNSLibSuite(t *testing.T)  { testSuite(t, "hnslib-0.1.2") }
func TestHcsshimSuite(t *testing.T) { testSuite(t, "hcsshim-0.15.0") }

// testSuite runs the suite of a folder of fixtures/windows-binaries.
func testSuite(t *testing.T, folder string) {
	w := winetest.Need(t)
	dlls := t.TempDir()
	if _, err := shims.Build(t.Context(), dlls); err != nil {
		t.Fatal(err)
	}
	bin := winetest.Binaries(t, folder)
	list := "testdata/" + folder + ".yaml"
	text, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	var profiles []suiteProfile
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&profiles); err != nil {
		t.Fatalf("%s: %v", list, err)
	}
	for _, p := range profiles {
		name := p.Build
		if len(p.Without) > 0 {
			name += " without " + strings.Join(p.Without, ",")
		}
		t.Run(name, func(t *testing.T) { runSuite(t, w, bin.Path("hcn.test.exe"), dlls, p) })
	}
}

func runSuite(t *testing.T, w *wine.Wine, program, dlls string, p suiteProfile) {
	v, err := builds.Parse(p.Build)
	if err != nil {
		t.Fatal(err)
	}
	b, err := builds.Lookup(v)
	if err != nil {
		t.Fatal(err)
	}
	if b, err = b.WithQuirks(nil, p.Without); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	prefix, err := w.Prefix(ctx, wine.Config{Dir: t.TempDir(), Build: b, DLLs: []string{dlls}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := prefix.Close(); err != nil {
			t.Error(err)
		}
	}()
	run := func(args ...string) string {
		s, err := hcn.Start(b, hns.Options{Node: "n1", ManagementIP: netip.MustParseAddr("192.168.1.11")},
			hcn.Options{Log: log.New(t.Output(), "", 0)})
		if err != nil {
			t.Fatal(err)
		}
		server, err := hcn.Listen(s, "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- server.Serve(ctx) }()
		res, err := prefix.Run(ctx, wine.Command{Path: program, Args: args, Env: []string{"WINLAB_HCN=" + server.Addr()}})
		if err := errors.Join(err, server.Close(), <-done); err != nil {
			t.Fatal(err)
		}
		return res.Stdout + res.Stderr
	}
	tests := regexp.MustCompile(`(?m)^Test\w+`).FindAllString(run("-test.list", "."), -1)
	if len(tests) < 70 {
		t.Fatalf("the suite has %d tests", len(tests))
	}
	all := run("-test.v")
	passed := 0
	for _, name := range tests {
		status := statusOf(all, name)
		output := all
		if status != "PASS" {
			output = run("-test.v", "-test.run", "^"+name+"$")
			status = statusOf(output, name)
		}
		reason, fails := p.Fails[name]
		if status == "PASS" {
			passed++
		}
		t.Run(name, func(t *testing.T) {
			switch {
			case status == "PASS" && fails:
				t.Errorf("passes, but the list says that it fails: %s", reason)
			case status != "PASS" && !fails:
				t.Errorf("%s:\n%s", cmp.Or(status, "did not end"), output)
			case fails:
				t.Logf("fails, as on Windows: %s", reason)
			}
		})
	}
	for name := range p.Fails {
		if !strings.Contains(" "+strings.Join(tests, " ")+" ", " "+name+" ") {
			t.Errorf("the list names %s; there is no such test", name)
		}
	}
	t.Logf("%d of %d tests pass on %s", passed, len(tests), b)
}

// statusOf reads PASS, FAIL or SKIP of a test from the output of a test program,
// "" when the test did not end.
func statusOf(output, name string) string {
	m := regexp.MustCompile(`(?m)^--- (\w+): ` + regexp.QuoteMeta(name) + ` \(`).FindStringSubmatch(output)
	if m == nil {
		return ""
	}
	return m[1]
}
