package claims

import (
	"testing"

	"github.com/winlab-dev/winlab/reports/result"
)

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
