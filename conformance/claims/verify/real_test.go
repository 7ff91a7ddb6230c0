//go:build linux

package verify

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/winlab-dev/winlab/internal/dev/full"
	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/sim/kube/kubeproxy"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/real/components"
	"github.com/winlab-dev/winlab/sim/real/wine/winetest"
)

// fewLabs are the labs in which real programs are compared where not everything is tried:
// each pinned plugin on its network, and kube-proxy for two families on a cloud's network.
var fewLabs = []string{"l2bridge-flannel-host-gw", "overlay-win-overlay", "l2bridge-azure-cni-dual-stack"}

// In every design and version of the labs whose programs are pinned, the real plugin
// and the real kube-proxy lead to the verdicts that their models lead to, and leave
// the same objects in HNS.
func TestRealComponents(t *testing.T) {
	winetest.Need(t)
	paths := []string{"../../../fixtures/labs"}
	if !full.Run() {
		paths = nil
		for _, name := range fewLabs {
			paths = append(paths, "../../../fixtures/labs/"+name+".yaml")
		}
	}
	doc, err := Run(t.Context(), Options{Paths: paths, Components: both})
	if err != nil {
		t.Fatal(err)
	}
	var programs []string
	objects := 0
	for _, s := range doc.Settings {
		for _, p := range s.Components {
			if !slices.Contains(programs, p) {
				programs = append(programs, p)
			}
		}
		objects += s.Objects
		for _, o := range s.ObjectsApart {
			t.Errorf("%s, %s, only with %s: %s", s.ID, o.Node, o.Only, o.Line)
		}
	}
	slices.Sort(programs)
	checks := map[result.Level]int{}
	for _, c := range doc.Cells {
		for _, k := range c.Checks {
			checks[k.Level]++
		}
		for _, pair := range c.Apart() {
			t.Errorf("%s in %s: %+v", c.Claim, c.Setting, pair)
		}
	}
	t.Logf("%s; checks: %v; %d fields of HNS objects compared", strings.Join(programs, ", "), checks, objects)
	if got := strings.Join(programs, ", "); got != "kube-proxy 1.20.15, kube-proxy 1.36.3, win-bridge 1.9.1, win-overlay 1.9.1" {
		t.Errorf("programs: %s", got)
	}
	if checks[result.Components] < 100 || objects < 1000 {
		t.Errorf("only %d checks and %d fields", checks[result.Components], objects)
	}
}

// withoutDualStackGate leaves out the gate IPv6DualStack, which is gone since 1.25
// (kubernetes/kubernetes CHANGELOG-1.25): both families are always on there.
func withoutDualStackGate(p labfile.Proxy) *labfile.Proxy {
	const flag, gate = "--feature-gates=", "IPv6DualStack=true"
	var flags []string
	for _, f := range p.Flags {
		if gates, ok := strings.CutPrefix(f, flag); ok {
			kept := slices.DeleteFunc(strings.Split(gates, ","), func(g string) bool { return g == gate })
			if len(kept) == 0 {
				continue
			}
			f = flag + strings.Join(kept, ",")
		}
		flags = append(flags, f)
	}
	p.Flags = flags
	return &p
}

// The objects are the same, too, with the kube-proxies that no document's lab has, on
// the builds that have them: each design with kube-proxy 1.25 and 1.29.
func TestRealObjects(t *testing.T) {
	full.Only(t, "")
	winetest.Need(t)
	files, err := find([]string{"../../../fixtures/labs"})
	if err != nil {
		t.Fatal(err)
	}
	pool, err := components.NewPool("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	})
	type design struct {
		name, version string
		file          *lab.File
		setting       labfile.Setting

		err      error
		programs []string
		apart    []result.ObjectDifference
		compared int
	}
	var all []*design
	for _, path := range files {
		f, err := lab.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, base := range f.Lab.Spec.Settings {
			// Both feature gates are needed up to 1.33, as the settings of 1.20 have them.
			if base.Kubernetes != "1.20" || f.Lab.Spec.Proxy.Mode != kubeproxy.ModeKernelspace {
				continue
			}
			for version, build := range map[string]string{"1.25": "10.0.20348.2762", "1.29": "10.0.26100"} {
				d := &design{name: strings.TrimSuffix(filepath.Base(path), ".yaml") + "/" + version, version: version, file: f, setting: base}
				d.setting.Kubernetes, d.setting.Build = version, build
				if base.Proxy != nil {
					d.name += "-dsr"
					d.setting.Proxy = withoutDualStackGate(*base.Proxy)
				}
				all = append(all, d)
			}
		}
	}
	// They mostly wait: on an overlay network kube-proxy sleeps for ten
	// seconds. So there are more at a time than t.Parallel has on a small machine.
	var wg sync.WaitGroup
	room := make(chan struct{}, 8)
	for _, d := range all {
		wg.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			var both [2]*objects
			for i, kind := range []string{labfile.Model, labfile.Real} {
				var c *lab.Cluster
				if c, d.err = lab.Build(t.Context(), d.file, lab.Options{Setting: &d.setting, Components: kind, Pool: pool}); d.err != nil {
					return
				}
				both[i], d.programs = objectsOf(c), c.Components
			}
			d.apart, d.compared = both[1].apart(both[0])
		})
	}
	wg.Wait()
	compared := 0
	for _, d := range all {
		t.Run(d.name, func(t *testing.T) {
			if d.err != nil {
				t.Fatal(d.err)
			}
			if !slices.ContainsFunc(d.programs, func(p string) bool { return strings.HasPrefix(p, "kube-proxy "+d.version+".") }) {
				t.Errorf("ran with %v", d.programs)
			}
			for _, o := range d.apart {
				t.Errorf("%s, only with %s: %s", o.Node, o.Only, o.Line)
			}
		})
		compared += d.compared
	}
	t.Logf("%d designs, %d fields of HNS objects compared", len(all), compared)
	if compared < 1000 {
		t.Errorf("only %d fields of HNS objects were compared", compared)
	}
}

// A field that only one side has is reported, whatever the sandbox is called.
func TestObjectsApart(t *testing.T) {
	cluster := func(change string) *objects {
		t.Helper()
		f, err := lab.Load("../../../fixtures/labs/l2bridge-flannel-host-gw.yaml")
		if err != nil {
			t.Fatal(err)
		}
		c, err := lab.Build(t.Context(), f, lab.Options{})
		if err != nil {
			t.Fatal(err)
		}
		o := objectsOf(c)
		for i := range o.nodes["win1"].Endpoints {
			e := &o.nodes["win1"].Endpoints[i].V2
			if e.Name == o.names["default/client"] && change != "" {
				e.Name = "default.client.2_cbr0"
				o.names["default/client"] = e.Name
				e.Dns.Domain = change
			}
		}
		return o
	}
	if d, n := cluster("").apart(cluster("")); len(d) != 0 || n < 50 {
		t.Errorf("%d fields compared, apart: %v", n, d)
	}
	d, _ := cluster("x.test").apart(cluster(""))
	want := []result.ObjectDifference{{Node: "win1", Only: result.Components, Line: "endpoint client_cbr0: Dns.Domain = x.test"}}
	if !slices.Equal(d, want) {
		t.Errorf("apart: %v", d)
	}
}

// A lab whose objects come from a dump has nothing for a program to do: its flows are
// the model's, once.
func TestNothingForPrograms(t *testing.T) {
	winetest.Need(t)
	paths := []string{"../../../fixtures/incidents/106-flannel-network-of-a-thread.yaml"}
	model, err := Run(t.Context(), Options{Paths: paths, Components: labfile.Model})
	if err != nil {
		t.Fatal(err)
	}
	beside, err := Run(t.Context(), Options{Paths: paths, Components: both})
	if err != nil {
		t.Fatal(err)
	}
	if len(model.Flows) == 0 || len(beside.Flows) != len(model.Flows) || beside.Flows[0].Level != result.Model {
		t.Errorf("%d flows with the models, %d with both", len(model.Flows), len(beside.Flows))
	}
}
