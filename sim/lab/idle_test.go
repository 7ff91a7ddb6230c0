package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/lab/labfile"
)

// afterWait opens a connection in a cluster's lab, waits, sends on it, and returns the
// verdict.
func afterWait(t *testing.T, f *File, from, wait string) string {
	t.Helper()
	f.Lab.Spec.Flows = []labfile.Flow{{Name: "opened", Connection: "c", From: from, To: "host/internet:443"}}
	f.Lab.Spec.Steps = []labfile.Step{{Name: "later", Wait: wait, Flows: []labfile.Flow{{Name: "later", Connection: "c"}}}}
	c, err := Build(t.Context(), f, Options{})
	if err != nil {
		t.Fatal(err)
	}
	tr, err := c.TraceConnection(t.Context(), "c", "later")
	if err != nil {
		t.Fatal(err)
	}
	return string(tr.Verdict)
}

// The times of a NAT that Get-NetNat of a dump shows are those of its connections, and
// a value that is not a number of seconds is noted.
func TestDumpedNATTimeouts(t *testing.T) {
	t.Parallel()
	r := &roundTrip{name: "nat-winnat", orig: built(t, design(t, "nat-winnat"))}
	for _, c := range []struct{ shows, wait, want string }{
		{"1800", "3m", "delivered"},
		{"120", "1m", "delivered"},
		{"120", "2m", "unknown"}, // forgotten: no source says what WinNAT does with such a segment
		{"PT2M", "3m", "delivered"},
		{"0", "3m", "delivered"},
	} {
		d, err := r.reread(t, "win1", "text", func(dir string) {
			at := filepath.Join(dir, ".txt")
			data, err := os.ReadFile(at)
			const usual = "TcpEstablishedConnectionTimeout  : 1800"
			if err != nil || strings.Count(string(data), usual) != 1 {
				t.Fatalf("%v\n%s", err, data)
			}
			if err := os.WriteFile(at, []byte(strings.Replace(string(data), usual, "TcpEstablishedConnectionTimeout  : "+c.shows, 1)),
				0o644); err != nil {
				t.Fatal(err)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := afterWait(t, d.Plan.File, "pod/client", c.wait); got != c.want {
			t.Errorf("Get-NetNat shows %s: after %s %s, want %s", c.shows, c.wait, got, c.want)
		}
		noted := strings.Contains(fmt.Sprint(d.NotModelled), "TcpEstablishedConnectionTimeout: "+c.shows)
		if bad := c.shows == "PT2M" || c.shows == "0"; noted != bad {
			t.Errorf("Get-NetNat shows %s: noted %v in %v", c.shows, noted, d.NotModelled)
		}
	}
}

// A NAT that Get-NetNat shows as not active translates nothing, also that of HNS's own network.
func TestDumpedNATInactive(t *testing.T) {
	t.Parallel()
	r := &roundTrip{name: "nat-winnat", orig: built(t, design(t, "nat-winnat"))}
	for active, want := range map[string]bool{"True": true, "False": false} {
		d, err := r.reread(t, "win1", "text", func(dir string) {
			at := filepath.Join(dir, ".txt")
			data, err := os.ReadFile(at)
			const usual = "Active                           : True"
			if err != nil || strings.Count(string(data), usual) != 1 {
				t.Fatalf("%v\n%s", err, data)
			}
			if err := os.WriteFile(at, []byte(strings.Replace(string(data), usual, usual[:len(usual)-4]+active, 1)), 0o644); err != nil {
				t.Fatal(err)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		got, err := d.Trace(t.Context(), Request{From: "pod/client", To: "host/internet:443"})
		if err != nil {
			t.Fatal(err)
		}
		if delivered := got.Verdict == "delivered"; delivered != want || !delivered && !strings.Contains(got.Summary, "no route back") {
			t.Errorf("Active %s: %s, want delivered %v", active, got.Summary, want)
		}
	}
}

// kube-proxy on Linux shortens what the kernel keeps of an idle connection to a day.
func TestIdleOnLinux(t *testing.T) {
	t.Parallel()
	for wait, want := range map[string]string{"23h59m": "delivered", "24h": "rejected"} {
		if got := afterWait(t, design(t, hostGW), "pod/linux-client", wait); got != want {
			t.Errorf("after %s: %s, want %s", wait, got, want)
		}
	}
}
