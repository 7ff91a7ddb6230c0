package claims

import (
	"fmt"
	"slices"
	"testing"

	"github.com/winlab-dev/winlab/reports/result"
)

// theTenDesigns are written here a second time on purpose: a design that
// disappears from [Designs] must break this test.
var theTenDesigns = []string{
	"ovs-l3", "rras-l3",
	"l2bridge-flannel-host-gw", "l2bridge-win-bridge-udr", "l2bridge-azure-cni",
	"l2tunnel-azure-cni",
	"overlay-win-overlay", "overlay-flannel-vxlan",
	"transparent-ovn-kubernetes", "nat-winnat",
}

// dualStackDesigns are l2bridge designs whose pods have addresses of both families; the
// documents' table has no column for them.
var dualStackDesigns = []string{"l2bridge-sdnbridge", "l2bridge-azure-cni-dual-stack"}

// What the documents say about a flow in a design: ok and no are stated, ok*
// and no* implied; ? is silent.
//
// The columns are the documents' groups: Open vSwitch, host routing, l2bridge
// (all three), l2tunnel, win-overlay, flannel VXLAN, OVN; WinNAT is outside
// the documents' scope.
var flowTable = []struct {
	claim string
	cells [8]string // OVS, RRAS, L2B, L2T, win-overlay, flannel VXLAN, OVN, NAT
}{
	{"flow-pod-pod-same-node", [8]string{"ok", "ok", "ok", "ok", "ok", "ok", "ok", "?"}},
	{"flow-pod-pod-cross-node", [8]string{"ok", "cond", "cond", "ok", "ok", "ok", "ok", "?"}},
	{"flow-udp", [8]string{"no", "no", "ok", "ok", "ok", "ok", "ok", "?"}},
	{"flow-pod-pod-ping", [8]string{"?", "?", "ok", "ok", "ok", "ok", "?", "?"}},
	{"flow-pod-external", [8]string{"ok", "?", "ok", "ok", "ok", "ok", "ok", "?"}},
	{"flow-pod-external-ping", [8]string{"?", "?", "no", "no", "no", "no", "?", "?"}},
	{"flow-pod-cluster-ip", [8]string{"ok*", "ok", "ok", "ok", "ok", "ok", "ok", "?"}},
	{"flow-pod-service-single-label", [8]string{"?", "cond", "ok", "ok", "ok", "ok", "ok*", "?"}},
	{"flow-pod-service-partial-name", [8]string{"?", "?", "no", "no", "no", "no", "no*", "?"}},
	{"flow-pod-service-fqdn", [8]string{"?", "?", "ok", "ok", "ok", "ok", "ok*", "?"}},
	// The limit of flannel VXLAN excepts local pods with 0.12.0 or later, so nothing
	// contradicts the list here.
	{"flow-node-local-pod", [8]string{"?", "ok*", "ok", "ok", "ok", "cond", "ok", "?"}},
	{"flow-node-remote-pod", [8]string{"?", "ok*", "ok", "ok", "disputed", "no", "ok", "?"}},
	{"flow-pod-node", [8]string{"?", "?", "ok", "ok", "ok", "disputed", "ok", "?"}},
	// A later document of the vendor says that KB4571748 lifts the limit; before
	// it all sources say no (TestOwnNodePortBeforeTheUpdate).
	{"flow-node-own-nodeport", [8]string{"?", "?", "disputed", "disputed", "disputed", "disputed", "no", "?"}},
	{"flow-other-nodeport", [8]string{"?", "?", "ok", "ok", "ok", "ok", "ok", "?"}},
	// ovn-kubernetes gives the node a route for Services, against the general rule.
	{"flow-windows-node-cluster-ip", [8]string{"?", "ok*", "no", "no", "no", "no", "disputed", "?"}},
	{"flow-linux-node-cluster-ip", [8]string{"?", "?", "ok", "ok", "ok", "ok", "ok", "?"}},
	{"flow-external-load-balancer", [8]string{"?", "?", "ok", "ok", "ok", "ok", "ok", "?"}},
	{"flow-container-localhost", [8]string{"no", "no", "ok*", "ok*", "ok*", "ok*", "ok*", "?"}},
	{"flow-ipv6-pod-pod", [8]string{"?", "?", "cond", "no", "no", "no", "?", "?"}},
}

var columnOf = map[string]int{
	"ovs-l3": 0, "rras-l3": 1,
	"l2bridge-flannel-host-gw": 2, "l2bridge-win-bridge-udr": 2, "l2bridge-azure-cni": 2,
	"l2bridge-sdnbridge": 2, "l2bridge-azure-cni-dual-stack": 2,
	"l2tunnel-azure-cni": 3, "overlay-win-overlay": 4, "overlay-flannel-vxlan": 5,
	"transparent-ovn-kubernetes": 6, "nat-winnat": 7,
}

func loadLedger(t *testing.T) *Ledger {
	t.Helper()
	l, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func setting(t *testing.T, design, kubernetes, build string) result.Setting {
	t.Helper()
	i := slices.IndexFunc(Designs, func(d Design) bool { return d.Name == design })
	if i < 0 {
		t.Fatalf("no design %s", design)
	}
	d := Designs[i]
	return result.Setting{ID: design + "/" + kubernetes, Design: design, Network: d.Network, Plugin: d.Plugin, Proxy: d.Proxies[0],
		Kubernetes: kubernetes, Builds: []string{build}}
}

// settingsOf are versions in which a design is evaluated.
func settingsOf(t *testing.T, design string) []result.Setting {
	t.Helper()
	if design == "ovs-l3" || design == "rras-l3" {
		return []result.Setting{setting(t, design, "1.5", "10.0.14393.447")}
	}
	var all []result.Setting
	for _, k := range []string{"1.14", "1.17", "1.18", "1.19", "1.20"} {
		for _, b := range []string{"10.0.17763.1", "10.0.17763.1339", "10.0.17763.1432"} {
			all = append(all, setting(t, design, k, b))
		}
	}
	dsr := setting(t, design, "1.20", "10.0.19041.610")
	if dsr.Proxy == "kernelspace" {
		dsr.Proxy = "kernelspace, DSR"
	}
	newest := dsr
	newest.ID, newest.Kubernetes, newest.Builds = design+"/1.36", "1.36", []string{"10.0.26100.1742"}
	return append(all, dsr, setting(t, design, "1.36", "10.0.20348.2031"), newest)
}

// TestTwentyFlowsInTenDesigns: every flow of the documents is tried in every
// design and every version, expecting or observing.
func TestTwentyFlowsInTenDesigns(t *testing.T) {
	l := loadLedger(t)
	if len(flowTable) != 20 || len(theTenDesigns) != 10 {
		t.Fatalf("%d flows and %d designs; the documents' table has 20 and 10", len(flowTable), len(theTenDesigns))
	}
	for _, row := range flowTable {
		c := l.Claim(row.claim)
		if c == nil {
			t.Errorf("no claim %s", row.claim)
			continue
		}
		for _, design := range theTenDesigns {
			for _, s := range settingsOf(t, design) {
				if checks := c.ChecksAt(s); len(checks) == 0 {
					t.Errorf("%s: nothing is tried in %s on %s", row.claim, s.ID, s.Builds[0])
				}
				if _, ok := c.SupportAt(s); !ok && s.Network != "nat" {
					t.Errorf("%s: no documented status in %s on %s", row.claim, s.ID, s.Builds[0])
				}
			}
		}
	}
}

// TestFlowTableCellByCell compares the ledger with the table above.
func TestFlowTableCellByCell(t *testing.T) {
	l := loadLedger(t)
	for _, row := range flowTable {
		c := l.Claim(row.claim)
		if c == nil {
			t.Errorf("no claim %s", row.claim)
			continue
		}
		for _, design := range theTenDesigns {
			s := setting(t, design, "1.20", "10.0.19041.610")
			if columnOf[design] < 2 {
				s = setting(t, design, "1.5", "10.0.14393.447")
			}
			if got, want := cell(c, s), row.cells[columnOf[design]]; got != want {
				t.Errorf("%s in %s: the documents say %q, the ledger %q", row.claim, design, want, got)
			}
		}
	}
}

func cell(c *Claim, s result.Setting) string {
	says, basis := c.Documented(c.ChecksAt(s))
	word := map[string]string{saysWorks: "ok", saysFails: "no", saysConditional: "cond", saysDisputed: "disputed", saysSilent: "?"}[says]
	if basis == "implied" && (word == "ok" || word == "no") {
		word += "*"
	}
	return word
}

// TestConditionsOfTheTable: the cells that depend on versions.
func TestConditionsOfTheTable(t *testing.T) {
	l := loadLedger(t)
	with := func(s result.Setting, plugin string) result.Setting { s.Plugin = plugin; return s }
	for _, c := range []struct {
		claim   string
		setting result.Setting
		expect  string
	}{
		{"flow-ipv6-pod-pod", setting(t, "l2bridge-azure-cni", "1.18", "10.0.19041.610"), notDelivered},
		{"flow-ipv6-pod-pod", setting(t, "l2bridge-azure-cni", "1.19", "10.0.17763.1432"), notDelivered},
		// The documents make it depend on a dual-stack cluster; the labs have one family.
		{"flow-ipv6-pod-pod", setting(t, "l2bridge-azure-cni", "1.19", "10.0.19041.610"), ""},
		{"flow-node-local-pod", with(setting(t, "overlay-flannel-vxlan", "1.20", "10.0.17763.1432"), "flannel 0.11.0"), notDelivered},
		{"flow-node-local-pod", with(setting(t, "overlay-flannel-vxlan", "1.20", "10.0.17763.1432"), "flannel 0.12.0"), "delivered"},
		{"flow-linux-node-cluster-ip", setting(t, "overlay-flannel-vxlan", "1.14", "10.0.17763.1432"), ""},
		{"flow-pod-external-ping", setting(t, "l2bridge-azure-cni", "1.20", "10.0.17763.1432"), "no-reply"},
		{"flow-pod-external-ping", setting(t, "l2bridge-azure-cni", "1.36", "10.0.20348.2031"), "no-reply"},
		// From the 1.22 edition on the limit on IPv6 names overlay only.
		{"flow-ipv6-pod-pod", setting(t, "l2tunnel-azure-cni", "1.20", "10.0.17763.1432"), notDelivered},
		{"flow-ipv6-pod-pod", setting(t, "l2tunnel-azure-cni", "1.36", "10.0.20348.2031"), ""},
		{"flow-ipv6-pod-pod", setting(t, "overlay-win-overlay", "1.36", "10.0.20348.2031"), notDelivered},
	} {
		checks := l.Claim(c.claim).ChecksAt(c.setting)
		if len(checks) != 1 || checks[0].Expect != c.expect {
			t.Errorf("%s in %s, %s, %s: got %v, want one check that expects %q", c.claim, c.setting.ID, c.setting.Builds[0], c.setting.Plugin,
				expectations(checks), c.expect)
		}
	}
}

func expectations(checks []Check) []string {
	var words []string
	for _, k := range checks {
		words = append(words, fmt.Sprintf("%s: %q", k, k.Expect))
	}
	return words
}

// TestNoCheckTwice: in one setting a claim does not try the same thing with
// two different expectations, and not the same thing twice.
func TestNoCheckTwice(t *testing.T) {
	l := loadLedger(t)
	for _, c := range l.Claims() {
		for _, design := range append(slices.Clone(theTenDesigns), dualStackDesigns...) {
			for _, s := range settingsOf(t, design) {
				seen := map[string]bool{}
				for _, k := range c.ChecksAt(s) {
					if k.Flow == nil && k.Resolve == nil {
						continue
					}
					what := k.String()
					if k.Flow != nil {
						what += k.Flow.SeenAs
					}
					if seen[what] {
						t.Errorf("%s in %s: %s twice", c.ID, s.ID, what)
					}
					seen[what] = true
				}
			}
		}
	}
}

// TestEveryCheckIsTriedSomewhere: a check whose Where fits no setting of the
// labs would never run. The builds are more than the labs have now.
func TestEveryCheckIsTriedSomewhere(t *testing.T) {
	l := loadLedger(t)
	var settings []result.Setting
	for _, design := range append(slices.Clone(theTenDesigns), dualStackDesigns...) {
		settings = append(settings, settingsOf(t, design)...)
		if columnOf[design] > 1 {
			settings = append(settings,
				setting(t, design, "1.20", "10.0.17763.350"), // between the two overlay updates
				setting(t, design, "1.20", "10.0.19603.1000"))
			dsr := setting(t, design, "1.20", "10.0.17763.1432")
			if dsr.Proxy == "kernelspace" {
				dsr.Proxy = "kernelspace, DSR"
				settings = append(settings, dsr)
			}
			if design == "overlay-flannel-vxlan" {
				old := setting(t, design, "1.20", "10.0.17763.1432")
				old.Plugin = "flannel 0.11.0"
				settings = append(settings, old)
			}
		}
	}
	for _, l := range Labs {
		for _, s := range settingsOf(t, l.Of) {
			s.Design = l.Name
			settings = append(settings, s)
		}
	}
	first := setting(t, "l2bridge-flannel-host-gw", "1.20", "10.0.18362.1256") // the first build with preserve-destination
	first.Design, first.Proxy = "preserve-destination", "kernelspace, DSR"
	settings = append(settings, first)
	for _, c := range l.Claims() {
		for _, k := range c.Checks {
			if !k.Static() && !slices.ContainsFunc(settings, k.Matches) {
				t.Errorf("%s: no setting fits %q (%s)", c.ID, k, k.Words())
			}
		}
	}
}

// TestOwnNodePortBeforeTheUpdate: without KB4571748 the documents agree.
func TestOwnNodePortBeforeTheUpdate(t *testing.T) {
	c := loadLedger(t).Claim("flow-node-own-nodeport")
	for _, design := range theTenDesigns {
		if col := columnOf[design]; col < 2 || col == 7 {
			continue
		}
		if got := cell(c, setting(t, design, "1.20", "10.0.17763.1217")); got != "no" {
			t.Errorf("%s: the documents say no, the ledger %q", design, got)
		}
	}
}
