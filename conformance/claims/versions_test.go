package claims

import (
	"testing"

	"github.com/winlab-dev/winlab/reports/result"
)

func TestRangeHolds(t *testing.T) {
	for _, c := range []struct {
		rng, version string
		want         bool
	}{
		{"", "1.5", true},
		{">=1.14 <=1.20", "1.14", true},
		{">=1.14 <=1.20", "1.20", true},
		{">=1.14 <=1.20", "1.20.15", true}, // a bound looks at its own numbers only
		{">=1.14 <=1.20", "1.21", false},
		{">=1.14 <=1.20", "1.5", false}, // numbers, not text
		{">1.20", "1.20.4", false},
		{">1.20", "1.36", true},
		{"<1.19", "1.18.20", true},
		{"1.5", "1.5.2", true},
		{"=1.5", "1.50", false},
		{"1.5 || >=1.14", "1.16", true},
		{"1.5 || >=1.14", "1.9", false},
		{">=10.0.17763.1432", "10.0.17763.1", false},
		{">=10.0.17763.1432", "10.0.17763.2000", true},
		{">=10.0.17763.1432", "10.0.19041.1", true},
		{">=10.0.17763 <10.0.17763.379", "10.0.17763.348", true},
		{">=10.0.17763 <10.0.17763.379", "10.0.14393.5000", false},
		{"<0.12.0", "0.11", true},
		{">=1.14", "v1.14.1", true},
	} {
		r, err := ParseRange(c.rng)
		if err != nil {
			t.Errorf("%q: %v", c.rng, err)
			continue
		}
		v, err := ParseVersion(c.version)
		if err != nil {
			t.Errorf("%q: %v", c.version, err)
			continue
		}
		if got := r.Holds(v); got != c.want {
			t.Errorf("%s in %q: got %v, want %v", c.version, c.rng, got, c.want)
		}
	}
}

func TestParseRangeRefuses(t *testing.T) {
	for _, rng := range []string{"1.x", ">=", ">>1.2", "1.5 ||", "|| 1.5", ">=1.20 <1.14", "1.14 1.15", "~1.14", ">1.20 <=1.20", "1.", "+1.2"} {
		if r, err := ParseRange(rng); err == nil {
			t.Errorf("%q was read as %v; it should be refused", rng, r)
		}
	}
}

func TestRangesOverlap(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"", ">=1.14", true},
		{">=1.14 <=1.20", ">1.20", false},
		{">=1.14 <=1.20", ">=1.20", true},
		{">=1.14 <1.19", ">=1.19 <=1.20", false},
		{"1.5", ">=1.14", false},
		{"1.5 || 1.14", ">=1.14 <=1.20", true},
		{"1.20.4", "<=1.20", true},
		{">=10.0.17763 <10.0.17763.379", ">=10.0.17763.379", false},
		{"<10.0.19041.610", ">=10.0.19041", true},
		{"<10.0.19041", ">=10.0.19041", false},
		{">1.20", "<1.21", false}, // nothing lies between when both look at two numbers
		{"<1.0", ">=0.12.0", true},
	} {
		a, errA := ParseRange(c.a)
		b, errB := ParseRange(c.b)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if got := a.Overlaps(b); got != c.want {
			t.Errorf("%q and %q: got %v, want %v", c.a, c.b, got, c.want)
		}
		if got := b.Overlaps(a); got != c.want {
			t.Errorf("%q and %q: got %v, want %v", c.b, c.a, got, c.want)
		}
	}
}

func TestWhereMatches(t *testing.T) {
	hostGW := result.Setting{Design: "l2bridge-flannel-host-gw", Network: "l2bridge", Plugin: "flannel", Proxy: "kernelspace, DSR",
		Kubernetes: "1.20", Builds: []string{"10.0.19041.610"}}
	mixed := hostGW
	mixed.Builds = []string{"10.0.17763.1", "10.0.19041.610"}
	old := hostGW
	old.Plugin = "flannel 0.11.0"
	for _, c := range []struct {
		name    string
		where   Where
		setting result.Setting
		want    bool
	}{
		{"nothing asked", Where{}, hostGW, true},
		{"glob", Where{Designs: []string{"overlay-*", "l2bridge-*"}}, hostGW, true},
		{"another design", Where{Designs: []string{"overlay-*"}}, hostGW, false},
		{"network and plugin", Where{Networks: []string{"l2bridge"}, Plugins: []string{"flannel"}}, hostGW, true},
		{"another network", Where{Networks: []string{"overlay"}}, hostGW, false},
		{"DSR by its word", Where{Proxies: []string{"kernelspace-dsr"}}, hostGW, true},
		{"DSR is not plain kernelspace", Where{Proxies: []string{"kernelspace"}}, hostGW, false},
		{"version", Where{Kubernetes: ">1.20"}, hostGW, false},
		{"build", Where{Build: ">=10.0.19041"}, hostGW, true},
		{"every build must fit", Where{Build: ">=10.0.19041"}, mixed, false},
		{"plugin version unknown is newest", Where{PluginVersion: ">=0.12.0"}, hostGW, true},
		{"plugin version unknown is not old", Where{PluginVersion: "<0.12.0"}, hostGW, false},
		{"plugin version", Where{Plugins: []string{"flannel"}, PluginVersion: "<0.12.0"}, old, true},
		{"unreadable range", Where{Kubernetes: "new"}, hostGW, false},
	} {
		if got := c.where.Matches(c.setting); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}
