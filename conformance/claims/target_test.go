package claims

import "testing"

func TestWhereHoldsInATarget(t *testing.T) {
	for _, c := range []struct {
		what   string
		where  Where
		target Target
		want   bool
	}{
		{"nothing asked", Where{}, Target{}, true},
		{"open fields", Where{Kubernetes: "1.20", Releases: []string{"2019"}, Networks: []string{"overlay"}}, Target{}, true},
		{"one field differs", Where{Kubernetes: "1.20", Releases: []string{"2019"}}, Target{Kubernetes: "1.20", Release: "2004"}, false},
		{"two releases of one build", Where{Releases: []string{"2019"}}, Target{Release: "1809"}, false},
		{"the build of a release", Where{Build: ">=10.0.17763 <10.0.18362"}, Target{Release: "1809"}, true},
		{"a build without a revision is patched", Where{Build: "<10.0.17763.379"}, Target{Release: "2019"}, false},
		{"a build with a revision", Where{Build: "<10.0.17763.379"}, Target{Release: "2019", Build: "10.0.17763.1"}, true},
		{"a runtime without a version is new", Where{Runtimes: []string{"containerd"}, RuntimeVersion: "<1.6"}, Target{Runtime: "containerd"},
			false},
		{"a runtime without a version meets a lower bound", Where{RuntimeVersion: ">=1.4.0"}, Target{Runtime: "containerd"}, true},
		{"an old runtime", Where{Runtimes: []string{"containerd"}, RuntimeVersion: "<1.6"},
			Target{Runtime: "containerd", RuntimeVersion: "1.5.8"}, true},
		{"another runtime", Where{Runtimes: []string{"containerd"}, RuntimeVersion: "<1.6"}, Target{Runtime: "docker", RuntimeVersion: "1.5.8"},
			false},
		{"a plugin without a version is new", Where{PluginVersion: "<0.12.0"}, Target{Plugin: "flannel"}, false},
		{"an old plugin", Where{PluginVersion: "<0.12.0"}, Target{Plugin: "flannel", PluginVersion: "0.11.0"}, true},
	} {
		if got := c.where.Holds(c.target); got != c.want {
			t.Errorf("%s: %s in %s is %v", c.what, c.where.Words(), c.target, got)
		}
	}
}

func TestAfterDocuments(t *testing.T) {
	for kubernetes, want := range map[string]bool{"": false, "1.5": false, "1.36": false, "1.36.4": false, "v1.37": true, "1.37.1": true,
		"2": true, "x": false} {
		if got := (Target{Kubernetes: kubernetes}).AfterDocuments(); got != want {
			t.Errorf("%q is after the documents, which go up to %s: %v", kubernetes, Newest(), got)
		}
	}
}

// TestALabIsNoCluster: what a check asks of a lab of its own is asked of no cluster.
func TestALabIsNoCluster(t *testing.T) {
	c := loadLedger(t).Claim("azure-cni-joins-the-vnet")
	for _, k := range c.Checks {
		d := c.DocumentedOn(k.String(), "", []Target{{Kubernetes: "1.36", Release: "2022", Network: "l2tunnel", Plugin: "azure-vnet"}})
		if k.Lab == "" || d.Applies {
			t.Errorf("%s is asked of a cluster: %+v", k, d)
		}
	}
}
