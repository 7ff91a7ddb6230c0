package consult

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/winlab-dev/winlab/conformance/known"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/trace"
)

// entry makes an entry of the lines that a case is about.
func entry(t *testing.T, lines string) *known.Entry {
	t.Helper()
	text := "id: 1\ntitle: t\nsources: [{url: \"https://example.com/\", who: docs, says: s}]\nsymptoms: {words: w}\ncertainty: fixed\nsimulated: none\n" +
		lines + "\n"
	r, err := known.LoadFS(fstest.MapFS{"0001-t.yaml": {Data: []byte(text)}}, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return r.Entries[0]
}

// Each case is what an entry says, what is known of the cluster, and what follows: "no" for an
// entry that is excluded, "yes" for one whose conditions are all met, else what stays open. A
// star says that something particular to the cluster selects it.
func TestMatches(t *testing.T) {
	proxy := func(version string) *Cluster { return &Cluster{Has: map[string]string{"kube-proxy": version}} }
	for _, c := range []struct {
		name, entry string
		cluster     *Cluster
		want        string
	}{
		{"in the range", `affected: [{component: kube-proxy, ranges: [{introduced: "0", fixed: "1.27.0"}]}]`, proxy("1.26.15"), "yes *"},
		{"the fix is in", `affected: [{component: kube-proxy, ranges: [{introduced: "0", fixed: "1.27.0"}]}]`, proxy("1.27.0"), "no"},
		{"before it was introduced", `affected: [{component: kube-proxy, ranges: [{introduced: "1.21.0"}]}]`, proxy("1.20.15"), "no"},
		{"a backport", `affected: [{component: kube-proxy, ranges: [{introduced: "1.25.0", fixed: "1.25.5"}, {introduced: "1.26.0", fixed: "1.26.1"}]}]`,
			proxy("1.25.6"), "no"},
		{"the version is not known", `affected: [{component: kube-proxy, ranges: [{introduced: "0", fixed: "1.27.0"}]}]`, proxy(""),
			"kube-proxy before 1.27.0"},
		{"unknown whether it is there", `affected: [{component: calico, ranges: [{introduced: "0", last-affected: "3.20.2"}]}]`, proxy("1.27.0"),
			"calico up to 3.20.2"},
		{"it is not there", `affected: [{component: calico}]`, &Cluster{Lacks: map[string]bool{"calico": true}}, "no"},
		{"another plugin is there", `affected: [{component: calico}]`, onePlugin("flannel"), "no"},
		{"the plugin is there", `affected: [{component: flannel}]`, onePlugin("flannel"), "yes *"},
		{"both must be there", `affected: [{component: kube-proxy}, {component: calico}]`, proxy("1.27.0"), "calico"},
		{"a setting that is made", `affected: [{component: kube-proxy, options: ["--enable-dsr=true"]}]`, with(proxy("1.27.0"), DSR, true), "yes"},
		{"a setting that is not made", `affected: [{component: kube-proxy, options: ["--enable-dsr=true"]}]`, with(proxy("1.27.0"), DSR, false), "no"},
		{"the opposite setting", `affected: [{component: kube-proxy, options: ["enableDSR=false"]}]`, with(proxy("1.27.0"), DSR, false), "yes"},
		{"a setting that is unknown", `affected: [{component: kube-proxy, options: ["--enable-dsr=true"]}]`, proxy("1.27.0"),
			"with --enable-dsr=true"},
		{"an option in words that are not known", `affected: [{component: kube-proxy, options: ["on Tuesdays"]}]`, proxy("1.27.0"), "with on Tuesdays"},
		{"a build without the update", `windows: [{build: 17763, introduced: "0", fixed: "1432", update: KB4571748}]`, windows("10.0.17763.1339"),
			"yes *"},
		{"a build with the update", `windows: [{build: 17763, introduced: "0", fixed: "1432", update: KB4571748}]`, windows("10.0.17763.1432"), "no"},
		{"another build", `windows: [{build: 17763}]`, windows("10.0.20348.1"), "no"},
		{"one node of two", `windows: [{build: 17763}]`, windows("10.0.20348.1", "10.0.17763.1"), "yes"},
		{"a release without its update", `windows: [{build: 17763, introduced: "0", fixed: "1432", update: KB4571748}]`, windows("10.0.17763"),
			"Windows 10.0.17763 before KB4571748 *"},
		{"builds are not known", `windows: [{build: 17763}]`, proxy("1.27.0"), "Windows 10.0.17763"},
		{"a fix that must be switched on", `windows: [{build: 17763, introduced: "0", fixed: "9999", update: KB1234567, switch: the key is set}]`,
			windows("10.0.17763.1"), "until the key is set *"},
		{"the network", `networks: [overlay]`, &Cluster{Network: "overlay"}, "yes"},
		{"another network", `networks: [overlay]`, &Cluster{Network: "l2bridge"}, "no"},
		{"a network that is unknown", `networks: [overlay, l2bridge]`, &Cluster{}, "on overlay or l2bridge"},
		{"a cloud that is unknown", `environments: [aks]`, &Cluster{}, "on aks"},
		{"the cloud", `environments: [eks, aks]`, &Cluster{Has: map[string]string{"aks": ""}}, "yes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := "no"
			if all := c.cluster.Matches([]*known.Entry{entry(t, c.entry)}); len(all) == 1 {
				if got = strings.Join(all[0].Open, ", "); got == "" {
					got = "yes"
				}
				if all[0].Selected {
					got += " *"
				}
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func onePlugin(name string) *Cluster {
	c := &Cluster{Has: map[string]string{name: ""}}
	c.OnePlugin()
	return c
}

func with(c *Cluster, setting string, value bool) *Cluster {
	c.Settings = map[string]bool{setting: value}
	return c
}

func windows(builds ...string) *Cluster { return &Cluster{Builds: builds} }

// The order: what applies before what may apply, what was fixed before what was only reported.
func TestOrder(t *testing.T) {
	e := func(id int, lines string) *known.Entry {
		x := entry(t, lines)
		x.ID = id
		return x
	}
	reported := e(2, `affected: [{component: kube-proxy}]`)
	reported.Certainty = "reported"
	all := []*known.Entry{e(1, `affected: [{component: calico}]`), reported, e(3, `affected: [{component: kube-proxy}]`),
		e(4, `affected: [{component: kube-proxy, ranges: [{introduced: "0", fixed: "1.27.0"}]}]`)}
	var got []int
	for _, m := range (&Cluster{Has: map[string]string{"kube-proxy": "1.20.0"}}).Matches(all) {
		got = append(got, m.Entry.ID)
	}
	if want := []int{4, 3, 2, 1}; !equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func equal(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// Every option of the register that names a setting in the table is read, and every spelling of
// the table is one of the register's: a spelling that nothing uses is a mistake.
func TestSpellingsAreUsed(t *testing.T) {
	r := known.Load()
	used := make([]bool, len(settings))
	for _, e := range r.Entries {
		for _, a := range e.Affected {
			for _, o := range a.Options {
				for i, s := range settings {
					used[i] = used[i] || s.spelling.MatchString(strings.ToLower(o))
				}
			}
		}
	}
	for i, s := range settings {
		if !used[i] {
			t.Errorf("no entry has an option that reads as %s = %v", s.setting, s.value)
		}
	}
}

// flows are all flows between two ends of a design, at a setting.
func flows(t *testing.T, design string, set *labfile.Setting, each func(c *lab.Cluster, tr *trace.Trace)) {
	t.Helper()
	f, err := lab.Load(filepath.Join("../../../fixtures/labs", design+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := lab.Build(t.Context(), f, lab.Options{Setting: set})
	if err != nil {
		t.Fatal(err)
	}
	from, to := c.Names()
	for _, a := range from {
		for _, b := range to {
			tr, err := c.Trace(t.Context(), lab.Request{From: a, To: b})
			if err != nil { // an end without a port of its own
				tr, err = c.Trace(t.Context(), lab.Request{From: a, To: b + ":80"})
			}
			if err == nil {
				each(c, tr)
			}
		}
	}
}

// At the newest versions known issues are the exception: at most one flow in ten shows one, and
// none more than three.
func TestSilence(t *testing.T) {
	r := known.Load()
	all, shown := 0, 0
	for _, design := range []string{"l2bridge-flannel-host-gw", "l2bridge-azure-cni", "l2bridge-win-bridge-udr", "l2tunnel-azure-cni", "nat-winnat",
		"overlay-flannel-vxlan", "overlay-win-overlay", "transparent-ovn-kubernetes", "ovs-l3", "l2bridge-sdnbridge"} {
		flows(t, design, &labfile.Setting{Kubernetes: "1.37", Build: "10.0.26100.1742"}, func(c *lab.Cluster, tr *trace.Trace) {
			all++
			if Trace(c, r.Entries, tr); len(tr.Known) > 0 {
				shown++
			}
			if len(tr.Known) > most {
				t.Errorf("%s: %s to %s shows %d", design, tr.Flow.From, tr.Flow.To, len(tr.Known))
			}
		})
	}
	if all < 1000 || shown*10 > all {
		t.Errorf("%d of %d flows show a known issue", shown, all)
	}
	t.Logf("%d of %d flows show a known issue", shown, all)
}

// What a trace shows is particular: to an old kube-proxy, and not to a new one.
func TestTraceShowsWhatTheVersionHas(t *testing.T) {
	e := entry(t, `affected: [{component: kube-proxy, ranges: [{introduced: "0", fixed: "1.27.0"}]}]
flow: {from: pod, to: service, where: any, protocol: tcp, family: ipv4, outcome: dropped}`)
	for version, want := range map[string]bool{"1.26": true, "1.28": false} {
		shown := map[bool]int{} // by whether the flow goes to a Service
		flows(t, "l2bridge-flannel-host-gw", &labfile.Setting{Kubernetes: version, Build: "10.0.20348.2762"}, func(c *lab.Cluster, tr *trace.Trace) {
			if Trace(c, []*known.Entry{e}, tr); len(tr.Known) > 0 {
				shown[strings.HasPrefix(tr.Flow.To, "svc/")]++
			}
		})
		if shown[false] > 0 || shown[true] > 0 != want {
			t.Errorf("Kubernetes %s: shown for %d flows to Services and %d others", version, shown[true], shown[false])
		}
	}
}

// An issue that lets through what should not pass stands beside a flow that fails, and beside no
// other: what is unknown is not made more unknown.
func TestUnexpectedDelivery(t *testing.T) {
	e := entry(t, `affected: [{component: kube-proxy, ranges: [{introduced: "0", fixed: "1.99.0"}]}]
flow: {from: any, to: any, outcome: unexpected-delivery}`)
	shown := map[trace.Verdict]int{}
	flows(t, "l2bridge-flannel-host-gw", &labfile.Setting{Kubernetes: "1.26", Build: "10.0.20348.2762"}, func(c *lab.Cluster, tr *trace.Trace) {
		for _, v := range trace.Verdicts {
			x := *tr
			x.Verdict = v.ID
			if Trace(c, []*known.Entry{e}, &x); len(x.Known) > 0 {
				shown[v.ID]++
			}
		}
	})
	for _, v := range trace.Verdicts {
		fails := v.ID != trace.Delivered && v.ID != trace.Unknown && v.ID != trace.Varies
		if shown[v.ID] > 0 != fails {
			t.Errorf("shown beside %d flows that are %s", shown[v.ID], v.ID)
		}
	}
}
