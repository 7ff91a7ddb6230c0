package claims

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/winlab-dev/winlab/reports/result"
)

func TestHistoryInWords(t *testing.T) {
	c := Claim{Support: []Support{
		{Where: Where{Kubernetes: ">1.20"}, Status: "undocumented"},
		{Where: Where{Kubernetes: ">=1.14 <=1.20", Networks: []string{"overlay"}, Build: ">=10.0.17763.379"}, Status: "alpha",
			Says: "with the update"},
		{Where: Where{Kubernetes: ">=1.14 <=1.20", Networks: []string{"l2bridge", "l2tunnel", "transparent"}}, Status: "stable"},
		{Where: Where{Kubernetes: "1.5"}, Status: "unsupported"},
		{Where: Where{Proxies: []string{"none"}, Plugins: []string{"flannel"}, PluginVersion: "<0.12.0"}, Status: "beta"},
		{Status: "stable"},
	}}
	want := []result.Status{
		{Where: "plugin version before 0.12.0, flannel, proxy none", Status: "beta"},
		{Where: "everywhere", Status: "stable"},
		{Where: "Kubernetes 1.5", Status: "unsupported"},
		{Where: "Kubernetes 1.14 to 1.20, l2bridge, l2tunnel or transparent", Status: "stable"},
		{Where: "Kubernetes 1.14 to 1.20, Windows build 10.0.17763.379 and later, overlay", Status: "alpha", Says: "with the update"},
		{Where: "Kubernetes after 1.20", Status: "undocumented"},
	}
	got := c.History()
	if s := got[4].Scope; s == nil || s.Build != ">=10.0.17763.379" || s.Kubernetes != ">=1.14 <=1.20" || len(s.Networks) != 1 {
		t.Errorf("the scope of the overlay is %+v", s)
	}
	for i := range got {
		got[i].Scope = nil
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
}
