package kubeproxy

import (
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/windows/builds"
)

func behaviourIn(t *testing.T, minor int) behaviour {
	t.Helper()
	b, err := behaviourOf(kube.Version{Major: 1, Minor: minor})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The rows follow each other, and the fact names every patch that was read.
func TestVersionsAgreeWithTheFact(t *testing.T) {
	for i, row := range versions {
		if row.minor != versions[0].minor+i {
			t.Errorf("row %d is 1.%d", i, row.minor)
		}
		if row.read != "" && !strings.Contains(factVersions.Says, row.read) {
			t.Errorf("%s does not name the patch %s", factVersions.ID, row.read)
		}
		if row.read == "" && row.change != nil {
			t.Errorf("1.%d was not read and changes something", row.minor)
		}
	}
}

// In which versions each behaviour holds: from the first one to the one before the second.
func TestBehaviourByVersion(t *testing.T) {
	const open = 38
	for _, c := range []struct {
		name   string
		has    func(behaviour) bool
		ranges [][2]int
	}{
		{"wildcard VIP", func(b behaviour) bool { return b.wildcardVIP }, [][2]int{{14, 15}}},
		{"asks HNS each time", func(b behaviour) bool { return b.recognise == recogniseLive }, [][2]int{{14, 22}}},
		{"recognises by hash", func(b behaviour) bool { return b.recognise == recogniseByHash }, [][2]int{{24, open}}},
		{"hashes ids as HNS writes them", func(b behaviour) bool { return b.listAsWritten }, [][2]int{{24, 31}}},
		{"takes the last endpoint", func(b behaviour) bool { return b.lookup == lookupLast }, [][2]int{{22, 36}}},
		{"takes the local endpoint", func(b behaviour) bool { return b.lookup == lookupLocal }, [][2]int{{36, open}}},
		{"source VIP at start", func(b behaviour) bool { return b.sourceVIPAtStart }, [][2]int{{14, 15}}},
		{"network changes", func(b behaviour) bool { return b.watchesNetwork }, [][2]int{{15, open}}},
		{"nodes as source", func(b behaviour) bool { return b.nodeSource }, [][2]int{{18, open}}},
		{"source on creation", func(b behaviour) bool { return b.nodeSourceOnCreation }, [][2]int{{14, 19}}},
		{"EndpointSlices", func(b behaviour) bool { return b.endpointSlices }, [][2]int{{21, open}}},
		{"LocalRoutedVIP", func(b behaviour) bool { return b.localRoutedVIP }, [][2]int{{15, open}}},
		{"VipExternalIP", func(b behaviour) bool { return b.vipExternalIP }, [][2]int{{24, open}}},
		{"load balancer addresses follow --enable-dsr", func(b behaviour) bool { return b.ingressDSR }, [][2]int{{15, 20}}},
		{"preserve-destination", func(b behaviour) bool { return b.preserve }, [][2]int{{15, open}}},
		{"affinity", func(b behaviour) bool { return b.affinity }, [][2]int{{19, open}}},
		{"externalTrafficPolicy", func(b behaviour) bool { return b.externalLocal }, [][2]int{{20, open}}},
		{"internalTrafficPolicy", func(b behaviour) bool { return b.internalLocal }, [][2]int{{24, open}}},
		{"deletes by source VIP", func(b behaviour) bool { return b.deletes == deleteBySourceVIP }, [][2]int{{24, 31}}},
		{"deletes the cluster IP by all backends", func(b behaviour) bool { return b.clusterIPDeletesByAll }, [][2]int{{24, 31}, {33, 35}}},
		{"family in the hash", func(b behaviour) bool { return b.familyInHash }, [][2]int{{35, open}}},
		{"addresses by family", func(b behaviour) bool { return b.vipsByFamily }, [][2]int{{35, open}}},
		{"last target port", func(b behaviour) bool { return b.lastTargetPort }, [][2]int{{34, open}}},
		{"dual-stack by gate", func(b behaviour) bool { return b.dualStack == dualStackByGate }, [][2]int{{19, 21}}},
		{"dual-stack by build", func(b behaviour) bool { return b.dualStack == dualStackByBuild }, [][2]int{{21, open}}},
		{"replaces", func(b behaviour) bool { return b.replaces }, [][2]int{{37, open}}},
	} {
		for minor := versions[0].minor; minor < open; minor++ {
			want := slices.ContainsFunc(c.ranges, func(r [2]int) bool { return r[0] <= minor && minor < r[1] })
			if got := c.has(behaviourIn(t, minor)); got != want {
				t.Errorf("%s in 1.%d: %t", c.name, minor, got)
			}
		}
	}
}

// Which HNS changes load balancers in place depends on the library (factUpdate).
func TestModifyByHNSVersion(t *testing.T) {
	for _, c := range []struct {
		minor int
		want  []bool // for HNS 15.3, 15.4, 15.5 and 16.0
	}{
		{30, []bool{false, false, false, false}},
		{31, []bool{false, true, true, true}},
		{32, []bool{false, false, true, false}},
		{33, []bool{false, true, true, true}},
		{34, []bool{false, false, true, false}},
		{35, []bool{false, false, true, true}},
		{37, []bool{false, false, true, true}},
	} {
		for i, v := range []builds.HNSVersion{{Major: 15, Minor: 3}, {Major: 15, Minor: 4}, {Major: 15, Minor: 5}, {Major: 16}} {
			if got := behaviourIn(t, c.minor).modify.has(v); got != c.want[i] {
				t.Errorf("1.%d with HNS %v: %t", c.minor, v, got)
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
		{gateIPv6DualStack, 15, "unknown"}, {gateIPv6DualStack, 20, "off"}, {gateIPv6DualStack, 21, "on"}, {gateIPv6DualStack, 23, "locked"}, {gateIPv6DualStack, 25, "unknown"},
		{gateTerminatingEndpoints, 21, "unknown"}, {gateTerminatingEndpoints, 25, "off"}, {gateTerminatingEndpoints, 26, "on"}, {gateTerminatingEndpoints, 28, "locked"}, {gateTerminatingEndpoints, 30, "unknown"},
	} {
		v := kube.Version{Major: 1, Minor: c.minor}
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
