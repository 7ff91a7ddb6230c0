package lab

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestCompareVFP: the rules of a node are compared with those that the model
// makes of the same HNS state; tags that HNS makes up do not count.
func TestCompareVFP(t *testing.T) {
	r := &roundTrip{name: hostGW, orig: built(t, design(t, hostGW))}
	about := func(edit func(string) string) []string {
		t.Helper()
		c, err := r.reread(t, "win1", "collectlogs", func(dir string) {
			at := filepath.Join(dir, "vfpOutput.txt")
			data, err := os.ReadFile(at)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(at, []byte(edit(string(data))), 0o644); err != nil {
				t.Fatal(err)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, n := range c.NotModelled {
			if strings.Contains(n.What, "VFP rule") {
				all = append(all, n.What+": "+n.Why)
			}
		}
		return all
	}
	if got := about(func(s string) string { return s }); len(got) > 0 {
		t.Errorf("nothing was changed: %q", got)
	}
	tag := regexp.MustCompile(`SNAT_TCP_OUTBOUNDNAT_1_`)
	if got := about(func(s string) string { return tag.ReplaceAllString(s, "SNAT_TCP_OUTBOUNDNAT_54194_") }); len(got) > 0 {
		t.Errorf("another number: %q", got)
	}
	got := about(func(s string) string { return strings.Replace(s, "SNAT_TCP_OUTBOUNDNAT_1_", "OTHER_", 1) })
	if len(got) != 2 || !strings.Contains(got[0], "OTHER_192.168.1.11: the node has it") ||
		!strings.Contains(got[1], "SNAT_TCP_OUTBOUNDNAT_1_192.168.1.11: the model has it") {
		t.Errorf("one rule is another: %q", got)
	}
}

// TestDumpFacts: what a node says of routes, forwarding and ports takes effect, and
// what it does not say is unknown.
func TestDumpFacts(t *testing.T) {
	r := &roundTrip{name: hostGW, orig: built(t, design(t, hostGW))}
	build := func(edit func(dir string)) *Cluster {
		t.Helper()
		c, err := r.reread(t, "win1", "collectlogs", edit)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	remove := func(names ...string) func(string) {
		return func(dir string) {
			for _, n := range names {
				if err := os.Remove(filepath.Join(dir, n)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	expect(t, build(func(string) {}), "as it is", "pod/client > pod/linux-client:80: delivered ok")
	expect(t, build(remove("adapters/vEthernet_int.txt")), "without netsh", "pod/client > pod/linux-client:80: unknown model-hole")
	off := func(dir string) {
		text := "Interface vEthernet (Ethernet) Parameters\nForwarding                         : disabled\nInterface vEthernet (cbr0_ep) Parameters\nForwarding                         : disabled\n"
		if err := os.WriteFile(filepath.Join(dir, "adapters/vEthernet_int.txt"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, build(off), "forwarding is off", "pod/client > pod/linux-client:80: dropped not-forwarding")
	excluded := build(func(dir string) {
		text := "Protocol tcp Port Exclusion Ranges\n\nStart Port    End Port\n----------    --------\n     49152       49999     *\n     50000       50099\n\n"
		if err := os.WriteFile(filepath.Join(dir, "excludedportrange.txt"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	})
	for _, l := range excluded.HNS("win1").ListLoadBalancers(nil) {
		if !l.Ports.IsZero() && l.Ports.First < 50000 {
			t.Errorf("load balancer %s has the excluded ports %s", l.ID, l.Ports)
		}
	}
}

// TestEndpointWithoutPod: which programs are behind an endpoint that no pod of the
// lab has is not known, so nothing is said of a flow to it.
func TestEndpointWithoutPod(t *testing.T) {
	r := &roundTrip{name: hostGW, orig: built(t, design(t, hostGW))}
	c, err := r.reread(t, "win1", "v1", func(dir string) {
		data, err := os.ReadFile(filepath.Join(dir, ".txt"))
		if err != nil {
			t.Fatal(err)
		}
		more := `{"ID":"0b4c7d4e-1c77-4f9c-9a34-0d7f6b0c9e11","Name":"other","IPAddress":"10.244.1.77","PrefixLength":24,"MacAddress":"00-15-5D-F4-01-77","VirtualNetwork":"` + r.orig.HNS("win1").NetworkByName("cbr0").ID + `","State":3}`
		if err := os.WriteFile(filepath.Join(dir, ".txt"), append(data, more...), 0o644); err != nil {
			t.Fatal(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	tr, err := c.Trace(t.Context(), Request{From: "pod/peer", To: "10.244.1.77:80"})
	if err != nil || tr.Verdict != "unknown" || !strings.Contains(tr.Summary, "address: 10.244.1.77") {
		t.Errorf("%v %+v", err, tr)
	}
}
