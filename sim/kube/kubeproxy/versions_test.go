package kubeproxy

import (
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/windows/builds"
)

func behaviourIn(t *testing.T, version string) behaviour {
	t.Helper()
	v, err := kube.ParseVersion(version)
	if err != nil {
		t.Fatal(err)
	}
	b, err := behaviourOf(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// patches are all patches of the versions that were read, in their order.
func patches() []kube.Version {
	var all []kube.Version
	for minor := oldest; minor <= newest; minor++ {
		for patch := range kube.Minor(minor).Patch + 1 {
			all = append(all, kube.Version{Major: 1, Minor: minor, Patch: patch})
		}
	}
	return all
}

// The table is sound: each change names branches that follow each other, in patches
// that exist, each once.
func TestChangesAreSound(t *testing.T) {
	known := patches()
	for i, c := range changes {
		spans := c.spans()
		if len(spans) == 0 || c.apply == nil {
			t.Errorf("row %d says nothing", i)
		}
		for j, s := range spans {
			if !slices.Contains(known, s.from) || !slices.Contains(known, s.to) || !s.from.SameMinor(s.to) || s.from.Compare(s.to) > 0 {
				t.Errorf("row %d: no patches %s to %s", i, s.from, s.to)
			}
			if j > 0 && s.from.Minor != spans[j-1].from.Minor+1 {
				t.Errorf("row %d: what of the branches between %s and %s?", i, spans[j-1].from, s.from)
			}
		}
	}
	for i, l := range libraries {
		if i > 0 && mustVersion(libraries[i-1].since).Compare(mustVersion(l.since)) >= 0 {
			t.Errorf("library %s is out of order", l.name)
		}
	}
}

// In which patches each behaviour holds: those of a range, its end not included; ""
// is for ever. Every patch is looked at.
func TestBehaviourByVersion(t *testing.T) {
	for _, c := range []struct {
		name   string
		has    func(behaviour) bool
		ranges []string
	}{
		{"wildcard VIP", func(b behaviour) bool { return b.wildcardVIP }, []string{"1.14.0 1.14.1"}},
		{"asks HNS each time", func(b behaviour) bool { return b.recognise == recogniseLive }, []string{"1.14.0 1.22.12", "1.23.0 1.23.9"}},
		{"recognises by number", func(b behaviour) bool { return b.recognise == recogniseByCount },
			[]string{"1.22.12 1.23.0", "1.23.9 1.24.9", "1.25.0 1.25.5"}},
		{"recognises by hash", func(b behaviour) bool { return b.recognise == recogniseByHash }, []string{"1.24.9 1.25.0", "1.25.5"}},
		{"hashes ids in two ways", func(b behaviour) bool { return b.hashesUpper != b.listsUpper },
			[]string{"1.24.10 1.25.0", "1.25.6 1.26.0", "1.26.1 1.31.0"}},
		{"takes the first endpoint", func(b behaviour) bool { return b.lookup == lookupFirst }, []string{"1.14.0 1.22.12", "1.23.0 1.23.9"}},
		{"takes the last endpoint", func(b behaviour) bool { return b.lookup == lookupLast },
			[]string{"1.22.12 1.23.0", "1.23.9 1.31.9", "1.32.0 1.32.5", "1.33.0 1.33.1"}},
		{"takes the remote endpoint", func(b behaviour) bool { return b.lookup == lookupRemote },
			[]string{"1.31.9 1.32.0", "1.32.5 1.33.0", "1.33.1 1.34.8", "1.35.0 1.35.5", "1.36.0 1.36.1"}},
		{"takes the local endpoint", func(b behaviour) bool { return b.lookup == lookupLocal },
			[]string{"1.34.8 1.35.0", "1.35.5 1.36.0", "1.36.1"}},
		{"looks at first addresses", func(b behaviour) bool { return b.firstAddress },
			[]string{"1.22.12 1.23.0", "1.23.9 1.24.12", "1.25.0 1.25.8", "1.26.0 1.26.3"}},
		{"makes endpoints twice", func(b behaviour) bool { return b.forgetsMade },
			[]string{"1.22.12 1.23.0", "1.23.9 1.24.10", "1.25.0 1.25.6", "1.26.0 1.26.1"}},
		{"deletes local endpoints", func(b behaviour) bool { return b.deletesLocal },
			[]string{"1.31.0 1.31.9", "1.32.0 1.32.5", "1.33.0 1.33.1"}},
		{"forgets what went away", func(b behaviour) bool { return b.forgetsGone },
			[]string{"1.31.0 1.32.10", "1.33.0 1.33.6", "1.34.0 1.34.2"}},
		{"source VIP at start", func(b behaviour) bool { return b.sourceVIPAtStart }, []string{"1.14.0 1.15.0"}},
		{"network changes", func(b behaviour) bool { return b.watchesNetwork }, []string{"1.15.0"}},
		{"nodes as source", func(b behaviour) bool { return b.nodeSource }, []string{"1.18.0"}},
		{"source on creation", func(b behaviour) bool { return b.nodeSourceOnCreation }, []string{"1.14.0 1.19.0"}},
		{"EndpointSlices", func(b behaviour) bool { return b.endpointSlices }, []string{"1.21.0"}},
		{"leaves empty ones out", func(b behaviour) bool { return b.skipsEmpty }, []string{"1.21.9 1.22.0", "1.22.6 1.23.0", "1.23.2"}},
		{"LocalRoutedVIP", func(b behaviour) bool { return b.localRoutedVIP }, []string{"1.15.5 1.16.0", "1.16.2"}},
		{"VipExternalIP", func(b behaviour) bool { return b.vipExternalIP }, []string{"1.24.10 1.25.0", "1.25.6 1.26.0", "1.26.1"}},
		{"load balancer addresses follow --enable-dsr", func(b behaviour) bool { return b.ingressDSR }, []string{"1.15.0 1.20.0"}},
		{"leaks load balancers", func(b behaviour) bool { return b.leaksIngress }, []string{"1.24.0 1.24.7", "1.25.0 1.25.3"}},
		{"preserve-destination", func(b behaviour) bool { return b.preserve }, []string{"1.15.0"}},
		{"affinity", func(b behaviour) bool { return b.affinity }, []string{"1.19.0"}},
		{"externalTrafficPolicy", func(b behaviour) bool { return b.externalLocal }, []string{"1.20.0"}},
		{"internalTrafficPolicy", func(b behaviour) bool { return b.internalLocal }, []string{"1.24.10 1.25.0", "1.25.6 1.26.0", "1.26.1"}},
		{"cluster IP needs available backends", func(b behaviour) bool { return b.clusterIPNeedsAvailable },
			[]string{"1.24.10 1.24.12", "1.25.6 1.25.8", "1.26.1 1.26.3"}},
		{"deletes by source VIP", func(b behaviour) bool { return b.deletes == deleteBySourceVIP },
			[]string{"1.24.10 1.25.0", "1.25.6 1.26.0", "1.26.1 1.31.0"}},
		{"deletes the cluster IP by all backends", func(b behaviour) bool { return b.clusterIPDeletesByAll },
			[]string{"1.24.10 1.25.0", "1.25.6 1.26.0", "1.26.1 1.31.14", "1.32.0 1.32.10", "1.33.0 1.33.6", "1.34.0 1.34.2"}},
		{"family in the hash", func(b behaviour) bool { return b.familyInHash }, []string{"1.33.8 1.34.0", "1.34.4 1.35.0", "1.35.1"}},
		{"addresses by family", func(b behaviour) bool { return b.vipsByFamily }, []string{"1.33.8 1.34.0", "1.34.4 1.35.0", "1.35.1"}},
		{"last target port", func(b behaviour) bool { return b.lastTargetPort }, []string{"1.34.0"}},
		{"dual-stack by gate", func(b behaviour) bool { return b.dualStack == dualStackByGate }, []string{"1.19.0 1.21.6"}},
		{"dual-stack by build", func(b behaviour) bool { return b.dualStack == dualStackByBuild }, []string{"1.21.6"}},
		{"replaces", func(b behaviour) bool { return b.replaces }, []string{"1.37.0"}},
		{"unsure", func(b behaviour) bool { return b.unsure }, []string{"1.14.1 1.14.10", "1.15.0 1.15.12", "1.18.0 1.18.20", "1.19.0 1.19.16",
			"1.20.0 1.20.15",
			"1.21.9 1.21.14", "1.23.2 1.23.8", "1.24.0 1.24.2"}},
	} {
		for _, v := range patches() {
			want := slices.ContainsFunc(c.ranges, func(r string) bool {
				from, to, open := strings.Cut(r, " ")
				return mustVersion(from).Compare(v) <= 0 && (!open || v.Compare(mustVersion(to)) < 0)
			})
			if got := c.has(behaviourIn(t, v.Full())); got != want {
				t.Errorf("%s in %s: %t", c.name, v, got)
			}
		}
	}
}

// Patches that come after the newest one that is known behave like it.
func TestLaterPatches(t *testing.T) {
	for minor := oldest; minor <= newest; minor++ {
		known, later := kube.Minor(minor), kube.Minor(minor)
		later.Patch += 7
		later.Assumed = false
		if a, b := behaviourIn(t, known.Full()), behaviourIn(t, later.Full()); a != b {
			t.Errorf("%s and %s differ", known.Full(), later)
		}
	}
}

// Which HNS changes load balancers in place depends on the library (factUpdate).
func TestModifyByHNSVersion(t *testing.T) {
	for _, c := range []struct {
		versions string
		want     []bool // for HNS 15.3, 15.4, 15.5 and 16.0
	}{
		{"1.14.0 1.20.15 1.30.14", []bool{false, false, false, false}},
		{"1.31.0 1.31.14 1.32.0 1.32.5 1.33.0 1.33.1", []bool{false, true, true, true}},
		{"1.32.6 1.32.13 1.33.2 1.33.13 1.34.0 1.34.11 1.35.0", []bool{false, false, true, false}},
		{"1.35.1 1.35.8 1.36.0 1.37.0 1.37.2", []bool{false, false, true, true}},
	} {
		for version := range strings.FieldsSeq(c.versions) {
			for i, v := range []builds.HNSVersion{{Major: 15, Minor: 3}, {Major: 15, Minor: 4}, {Major: 15, Minor: 5}, {Major: 16}} {
				if got := behaviourIn(t, version).modify.has(v); got != c.want[i] {
					t.Errorf("%s with HNS %v: %t", version, v, got)
				}
			}
		}
	}
}

// Feature gates: unknown, off, on, always on, gone (pkg/features/kube_features.go).
func TestGates(t *testing.T) {
	for _, c := range []struct {
		gate  featureGate
		minor int
		want  string
	}{
		{gateWinDSR, 32, "off"}, {gateWinDSR, 33, "on"}, {gateWinDSR, 34, "locked"},
		{gateWinOverlay, 19, "off"}, {gateWinOverlay, 20, "on"}, {gateWinOverlay, 34, "locked"},
		{gateIPv6DualStack, 15, "unknown"}, {gateIPv6DualStack, 20, "off"}, {gateIPv6DualStack, 21, "on"}, {gateIPv6DualStack, 23, "locked"},
		{gateIPv6DualStack, 25, "unknown"},
		{gateTerminatingEndpoints, 21, "unknown"}, {gateTerminatingEndpoints, 25, "off"}, {gateTerminatingEndpoints, 26, "on"},
		{gateTerminatingEndpoints, 28, "locked"}, {gateTerminatingEndpoints, 30, "unknown"},
	} {
		v := kube.Minor(c.minor)
		_, offErr := ParseFlags(ModeKernelspace, []string{"--feature-gates=" + string(c.gate) + "=false"}, v)
		_, onErr := ParseFlags(ModeKernelspace, []string{"--feature-gates=" + string(c.gate) + "=true"}, v)
		got := "off"
		switch {
		case onErr != nil:
			got = "unknown"
		case offErr != nil:
			got = "locked"
		case Config{}.enabled(c.gate, v):
			got = "on"
		}
		if got != c.want {
			t.Errorf("%s in 1.%d is %s, want %s", c.gate, c.minor, got, c.want)
		}
	}
}

// What a trace says of a version whose source was not read, and of one that nobody knew.
func TestNotRead(t *testing.T) {
	for version, want := range map[string]string{"1.36.4": "", "1.12": "",
		"1.24.1":  "a patch of 1.24 changed what kube-proxy does: it is assumed to behave like 1.24.17",
		"1.37.99": "newer than the newest patch known to winlab, 1.37.2"} {
		v, err := kube.ParseVersion(version)
		if err != nil {
			t.Fatal(err)
		}
		if got := NotRead(v); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", version, got, want)
		}
	}
}

// The versions of the table are whole, or the program does not start.
func TestVersionsOfTheTable(t *testing.T) {
	for _, text := range []string{"1.33", "1.x", ""} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q is taken for a version with a patch", text)
				}
			}()
			mustVersion(text)
		}()
	}
}
