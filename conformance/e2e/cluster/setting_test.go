package cluster

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/winlab-dev/winlab/sim/lab"
)

// TestSettingOf: the settings of a lab come with the release that is pinned.
func TestSettingOf(t *testing.T) {
	for _, c := range []struct {
		lab, kubernetes, windows, version, build string
		proxy                                    bool
	}{
		{"testdata/lab.yaml", "", "", "1.37.0", "", false},
		{"../../../fixtures/labs/l2bridge-flannel-host-gw.yaml", "", "", "1.37.0", "10.0.20348.2762", true},
		{"../../../fixtures/labs/l2bridge-flannel-host-gw.yaml", "1.33", "", "1.33.13", "", false},
		{"../../../fixtures/labs/l2bridge-flannel-host-gw.yaml", "1.37", "10.0.17763.1432", "1.37.0", "10.0.17763.1432", false},
	} {
		f, err := lab.Load(filepath.FromSlash(c.lab))
		if err != nil {
			t.Fatal(err)
		}
		s, version, err := SettingOf(f, c.kubernetes, c.windows)
		if err != nil {
			t.Fatal(err)
		}
		if version != c.version || s.Kubernetes != c.version || s.Build != c.build || (s.Proxy != nil) != c.proxy {
			t.Errorf("%+v: %s, %+v", c, version, s)
		}
	}
}

// TestLabels: nodes say which lab they are of, in the words of winlab run; what cannot be
// a label's value is left out.
func TestLabels(t *testing.T) {
	f, err := lab.Load("../../../fixtures/labs/l2bridge-flannel-host-gw.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s, _, err := SettingOf(f, "", "")
	if err != nil {
		t.Fatal(err)
	}
	b, err := lab.Build(t.Context(), f, lab.Options{Setting: s})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	want := map[string]string{"winlab.dev/simulated": "true", "winlab.dev/lab": "l2bridge-flannel-host-gw", "winlab.dev/network": "l2bridge",
		"winlab.dev/plugin": "flannel", "winlab.dev/proxy": "kernelspace-dsr"}
	if d := cmp.Diff(want, labelsOf(b)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	b.Plan.File.Lab.Metadata.Name = "-"
	delete(want, labLabel)
	if d := cmp.Diff(want, labelsOf(b)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
