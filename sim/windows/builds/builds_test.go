package builds

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

func TestParse(t *testing.T) {
	for in, want := range map[string]string{
		"10.0.17763.1432":              "10.0.17763.1432",
		"17763.1432":                   "10.0.17763.1432",
		" 10.0.20348.2582 ":            "10.0.20348.2582",
		"2019":                         "10.0.17763.7314",
		"ltsc2019":                     "10.0.17763.7314",
		"ws2019":                       "10.0.17763.7314",
		"Windows Server 2019":          "10.0.17763.7314",
		"1809":                         "10.0.17763.7314",
		"17763":                        "10.0.17763.7314",
		"10.0.17763":                   "10.0.17763.7314",
		"ws2022":                       "10.0.20348.3692",
		"ltsc2022":                     "10.0.20348.3692",
		"windows-2022":                 "10.0.20348.3692",
		"2004":                         "10.0.19041.1415",
		"1709":                         "10.0.16299.2166",
		"2016":                         "10.0.14393.8066",
		"WS2025":                       "10.0.26100.4061",
		"Windows Server, version 1903": "10.0.18362.1256",
	} {
		v, err := Parse(in)
		if err != nil || v.String() != want {
			t.Errorf("Parse(%q) = %v, %v; want %s", in, v, err, want)
		}
	}
	for _, in := range []string{"", "2018", "ws", "10.0", "17763.x", "-1.0.17763.1", "1.2.3.4.5", "10.0.17763.99999999999999"} {
		if v, err := Parse(in); err == nil {
			t.Errorf("Parse(%q) = %v, want an error", in, v)
		} else if !strings.Contains(err.Error(), "10.0.17763.1432") {
			t.Errorf("Parse(%q): %q does not say what to write instead", in, err)
		}
	}
}

func TestLookupUnknownBuild(t *testing.T) {
	_, err := Lookup(Version{10, 0, 15063, 1})
	if err == nil || !strings.Contains(err.Error(), "17763 (Windows Server 2019)") {
		t.Errorf("got %v, want an error that lists the builds", err)
	}
	if _, err := Lookup(Version{6, 3, 17763, 1}); err == nil {
		t.Error("6.3.17763.1 was taken for Windows Server 2019")
	}
}

// TestFeatures walks each gate from both sides.
func TestFeatures(t *testing.T) {
	for _, tt := range []struct {
		build   string
		hns     string
		has     []Feature
		without []Feature
	}{
		{"14393.8066", "0.0", nil, []Feature{AclFeatures, V2API, DSR, LocalRoutedVIP, SharedNetworkNamespace, OverlayNetwork}},
		{"16299.2166", "0.0", []Feature{SharedNetworkNamespace}, []Feature{AclFeatures, V2API, DSR}},
		{"17134.2208", "7.2", []Feature{AclFeatures}, []Feature{V2API, RemoteSubnet}},
		{"17763.1", "9.1", nil, []Feature{V2API, RemoteSubnet, HostRoute, OverlayNetwork, DSR}},
		{"17763.437", "9.2", []Feature{V2API, RemoteSubnet, HostRoute, OverlayNetwork}, []Feature{DSR, LocalRoutedVIP, PortPoolSharing}},
		{"17763.1431", "9.2", []Feature{PortPoolSharing}, []Feature{DSR, LocalRoutedVIP, Slash32EndpointPrefixes}},
		{"17763.1432", "9.3", []Feature{DSR, LocalRoutedVIP, Slash32EndpointPrefixes},
			[]Feature{VxlanPort, SessionAffinity, PreserveDestination, LocalRoutedHostPort, IPv6DualStack, L4Proxy}},
		{"18362.1256", "10.2", []Feature{DSR, PreserveDestination}, []Feature{VxlanPort, Slash32EndpointPrefixes}},
		{"18363.1015", "10.2", []Feature{DSR}, []Feature{VxlanPort}},
		{"18363.1016", "10.3", []Feature{DSR, VxlanPort}, nil},
		{"19041.609", "11.0", []Feature{VxlanPort, AclSupportForProtocol252}, []Feature{IPv6DualStack, SessionAffinity}},
		{"19041.610", "11.10", []Feature{IPv6DualStack}, []Feature{SessionAffinity, L4Proxy}},
		{"20348.2762", "14.0", []Feature{SessionAffinity, SetPolicy, TierAcl, L4Proxy, L4WfpProxy, LocalRoutedHostPort},
			[]Feature{NetworkACL, ModifyLoadbalancer}},
		{"26100.4061", "15.4", []Feature{NetworkACL, NestedIpSet, DisableHostPort, ModifyLoadbalancer, Accelnet}, nil},
	} {
		b := MustLookup(tt.build)
		if got := b.HNSVersion.String(); got != tt.hns {
			t.Errorf("%s: HNS %s, want %s", tt.build, got, tt.hns)
		}
		for _, f := range tt.has {
			if !b.Has(f) {
				t.Errorf("%s lacks %s", tt.build, f)
			}
		}
		for _, f := range tt.without {
			if b.Has(f) {
				t.Errorf("%s has %s", tt.build, f)
			}
		}
	}
}

func TestQuirks(t *testing.T) {
	for build, want := range map[string]string{
		"17763.437":   "loopback-dsr-exhausts-ports",
		"17763.1217":  "loopback-dsr-exhausts-ports swarm-ingress-regression",
		"17763.1432":  "hns-restart-loses-decap",
		"17763.1577":  "",
		"20348.2581":  "",
		"20348.2582":  "",
		"20348.2762":  "",
		"26100.4061":  "modify-loadbalancer-ignored nat-network-acl-not-enforced",
		"26100.32689": "modify-loadbalancer-ignored nat-network-acl-not-enforced",
		"26100.32690": "lone-acl-denies-rest modify-loadbalancer-ignored",
		"ltsc2019":    "",
		"ltsc2022":    "",
		"19041.1415":  "",
		"18362.1256":  "",
		"14393.8066":  "",
		"17134.2208":  "",
	} {
		if got := strings.Trim(fmt.Sprint(MustLookup(build).Quirks()), "[]"); got != want {
			t.Errorf("%s: quirks %q, want %q", build, got, want)
		}
	}
}

// Of some bugs no source says exactly which updates have them.
func TestMay(t *testing.T) {
	for build, want := range map[string]string{
		"17763.1432":  "duplicate-base-exception-ignored",
		"17763.1553":  "duplicate-base-exception-ignored",
		"17763.1554":  "duplicate-base-exception-ignored hns-restart-loses-decap",
		"17763.1577":  "duplicate-base-exception-ignored",
		"17763.2366":  "duplicate-base-exception-ignored",
		"17763.2367":  "duplicate-base-exception-ignored empty-source-vip-uses-vip",
		"20348.202":   "client-ip-affinity-fails duplicate-base-exception-ignored hns-restart-loses-endpoints nodeport-fails-on-overlay",
		"20348.261":   "client-ip-affinity-fails dsr-breaks-l2bridge duplicate-base-exception-ignored hns-restart-loses-endpoints nodeport-fails-on-overlay",
		"20348.1249":  "client-ip-affinity-fails duplicate-base-exception-ignored hns-restart-loses-endpoints nodeport-fails-on-overlay",
		"20348.1906":  "client-ip-affinity-fails duplicate-base-exception-ignored hns-restart-loses-endpoints",
		"20348.2031":  "client-ip-affinity-fails duplicate-base-exception-ignored hns-restart-loses-endpoints l2bridge-breaks-host-network",
		"20348.2581":  "client-ip-affinity-fails duplicate-base-exception-ignored hns-restart-loses-endpoints l2bridge-breaks-host-network",
		"20348.2582":  "client-ip-affinity-fails containers-have-no-network duplicate-base-exception-ignored hns-restart-loses-endpoints l2bridge-breaks-host-network",
		"20348.2762":  "client-ip-affinity-fails duplicate-base-exception-ignored",
		"26100.4061":  "duplicate-base-exception-ignored lone-acl-denies-rest",
		"26100.32689": "duplicate-base-exception-ignored lone-acl-denies-rest",
		"26100.32690": "duplicate-base-exception-ignored",
	} {
		b := MustLookup(build)
		var open []string
		for _, id := range QuirkIDs() {
			if q := b.May(Quirk(id)); q != nil {
				open = append(open, id)
				on, err := b.WithQuirks([]string{id}, nil)
				if err != nil || on.May(Quirk(id)) != nil || !on.Quirk(Quirk(id)) || q.Param != "quirk-"+id {
					t.Errorf("%s: %s switched on is still open", build, id)
				}
			}
		}
		if got := strings.Join(open, " "); got != want {
			t.Errorf("%s: open %q, want %q", build, got, want)
		}
	}
}

func TestWithQuirks(t *testing.T) {
	b := MustLookup("26100.4061")
	c, err := b.WithQuirks([]string{"client-ip-affinity-fails"}, []string{"modify-loadbalancer-ignored"})
	if err != nil || !c.Quirk("client-ip-affinity-fails") || c.Quirk("modify-loadbalancer-ignored") {
		t.Errorf("got %v, %v", c.Quirks(), err)
	}
	if !b.Quirk("modify-loadbalancer-ignored") || b.Quirk("client-ip-affinity-fails") {
		t.Error("WithQuirks changed its receiver")
	}
	if _, err := b.WithQuirks([]string{"no-such"}, nil); err == nil {
		t.Error("an unknown quirk was taken")
	}
}

func TestLimits(t *testing.T) {
	for build, backends := range map[string]int{"17763.437": 64, "19041.610": 64, "20348.1": 1024, "26100.1": 1024} {
		l := MustLookup(build).Limits
		if l.LoadBalancerBackends != backends {
			t.Errorf("%s: %d backends, want %d", build, l.LoadBalancerBackends, backends)
		}
		if l.PortRangeFirst != 49152 || l.PortRangeLast != 65535 || l.PortBlockSize != 64 || l.VXLANPort != 4789 || l.VNIMin != 4096 {
			t.Errorf("%s: limits %+v", build, l)
		}
	}
}

func TestRange(t *testing.T) {
	for _, tt := range []struct {
		r, v string
		want bool
	}{
		{"", "17763.1", true},
		{">=10.0.17763.1432", "17763.1431", false},
		{">=10.0.17763.1432", "17763.1432", true},
		{">=10.0.17763.1432", "18362.1", true},
		{"<17763", "17134.99999", true},
		{"<17763", "17763.0", false},
		{"<=17763", "17763.99999", true},
		{">17763", "17763.99999", false},
		{">17763", "18362.0", true},
		{"17763", "17763.5", true},
		{"17763", "18362.5", false},
		{"=20348.2402", "20348.2402", true},
		{"=20348.2402", "20348.2403", false},
		{">=17763.1192 <=17763.1217", "17763.1218", false},
	} {
		r, err := parseRange(tt.r)
		if err != nil {
			t.Fatal(err)
		}
		v, err := Parse(tt.v)
		if err != nil {
			t.Fatal(err)
		}
		if tt.v == "17763.0" || tt.v == "18362.0" {
			v.UBR = 0
		}
		if got := r.Contains(v); got != tt.want {
			t.Errorf("%q contains %s: %v, want %v", tt.r, v, got, tt.want)
		}
	}
	for _, s := range []string{">=", "~17763", "9.3", ">=foo"} {
		if _, err := parseRange(s); err == nil {
			t.Errorf("range %q was taken", s)
		}
	}
	for _, s := range []string{"9.3-9.5", "9", "9.x+", "a-9.*", "9.3-x.*"} {
		if _, err := parseHNSRange(s); err == nil {
			t.Errorf("HNS range %q was taken", s)
		}
	}
}

// TestConstantsMatchData compares feature.go with features.yaml; every row must
// have a registered fact.
func TestConstantsMatchData(t *testing.T) {
	src, err := os.ReadFile("feature.go")
	if err != nil {
		t.Fatal(err)
	}
	var declared []string
	for _, m := range regexp.MustCompile(`Feature = "(\w+)"`).FindAllStringSubmatch(string(src), -1) {
		declared = append(declared, m[1])
	}
	var rows []string
	for f := range table().features {
		rows = append(rows, string(f))
		if f.Fact() == nil || evidence.Lookup("windows."+string(f)) != f.Fact() {
			t.Errorf("feature %s has no fact", f)
		}
	}
	slices.Sort(declared)
	slices.Sort(rows)
	if !slices.Equal(declared, rows) {
		t.Errorf("constants %v\nrows      %v", declared, rows)
	}
	if Feature("no-such").Fact() != nil {
		t.Error("a fact for a feature that does not exist")
	}
}

// TestQuirksAreAskedFor compares quirk.go, quirks.yaml and the rest of
// sim/windows: a bug is either declared and asked for, or its row says
// notModelled.
func TestQuirksAreAskedFor(t *testing.T) {
	src, err := os.ReadFile("quirk.go")
	if err != nil {
		t.Fatal(err)
	}
	code := sources(t, "../hns", "../node")
	asked := map[Quirk]bool{}
	for _, m := range regexp.MustCompile(`(\w+) +Quirk = "([\w-]+)"`).FindAllStringSubmatch(string(src), -1) {
		id := Quirk(m[2])
		if table().quirks[id] == nil {
			t.Errorf("quirk.go declares %s, which has no row in quirks.yaml", id)
		}
		if asked[id] = regexp.MustCompile(`[qQ]uirk\(builds\.` + m[1] + `[,)]`).MatchString(code); !asked[id] {
			t.Errorf("quirk.go declares %s, but no code asks Quirk(builds.%s): ask, or set notModelled in quirks.yaml", id, m[1])
		}
	}
	for id, q := range table().quirks {
		if q.fact == nil || id.Fact() != q.fact {
			t.Errorf("quirk %s has no fact", id)
		}
		if asked[id] == q.notModelled {
			t.Errorf("quirk %s: quirks.yaml says notModelled %v, and quirk.go declares it: %v", id, q.notModelled, asked[id])
		}
	}
	if Quirk("no-such").Fact() != nil {
		t.Error("a fact for a quirk that does not exist")
	}
}

// sources is the text of the Go files of folders, tests left out.
func sources(t *testing.T, dirs ...string) string {
	t.Helper()
	var all strings.Builder
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no Go files in %s: %v", dir, err)
		}
		for _, f := range files {
			if strings.HasSuffix(f, "_test.go") {
				continue
			}
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(b)
		}
	}
	return all.String()
}

func FuzzParse(f *testing.F) {
	for _, s := range append(Names(), "10.0.17763.1432", "17763.1", "x") {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := Parse(s)
		if err != nil {
			return
		}
		if w, err := Parse(v.String()); err != nil || w != v {
			t.Errorf("Parse(%q) = %v, which parses as %v, %v", s, v, w, err)
		}
	})
}
