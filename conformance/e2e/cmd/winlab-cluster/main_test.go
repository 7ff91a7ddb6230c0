package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/lab"
)

func TestMistakes(t *testing.T) {
	for line, want := range map[string]string{
		"up":                    "write winlab-cluster up LAB",
		"up no-such.yaml":       "no-such.yaml",
		"status --name no-such": "no cluster named no-such is up",
		"status -o yaml":        "write text or json",
		"logs a b":              "accepts at most 1 arg",
		"exec node/linux1":      "write winlab-cluster exec MACHINE -- COMMAND",
		"exec node/linux1 --":   "there is no command after --",
		"down no-such":          "no cluster named no-such is up",
		"down NO":               "small letters",
		"up ../../cluster/testdata/lab.yaml --kubernetes 1.5":   "1.37.0",
		"up ../../cluster/testdata/lab.yaml --windows 10.0.1.1": "10.0.1.1",
	} {
		var out bytes.Buffer
		c := command()
		c.SetArgs(strings.Fields(line))
		c.SetOut(&out)
		c.SetErr(&out)
		if code := run(context.Background(), c); code != 2 || !strings.Contains(out.String(), want) {
			t.Errorf("%s: code %d, %s", line, code, out.String())
		}
	}
}

// TestSettingOf: the settings of a lab come with the release that is pinned.
func TestSettingOf(t *testing.T) {
	for _, c := range []struct {
		lab, kubernetes, windows, version, build string
		proxy                                    bool
	}{
		{"../../cluster/testdata/lab.yaml", "", "", "1.37.0", "", false},
		{"../../../../fixtures/labs/l2bridge-flannel-host-gw.yaml", "", "", "1.37.0", "10.0.20348.2762", true},
		{"../../../../fixtures/labs/l2bridge-flannel-host-gw.yaml", "1.33", "", "1.33.13", "", false},
		{"../../../../fixtures/labs/l2bridge-flannel-host-gw.yaml", "1.37", "10.0.17763.1432", "1.37.0", "10.0.17763.1432", false},
	} {
		f, err := lab.Load(filepath.FromSlash(c.lab))
		if err != nil {
			t.Fatal(err)
		}
		s, version, err := settingOf(f, upOptions{kubernetes: c.kubernetes, windows: c.windows})
		if err != nil {
			t.Fatal(err)
		}
		if version != c.version || s.Kubernetes != c.version || s.Build != c.build || (s.Proxy != nil) != c.proxy {
			t.Errorf("%+v: %s, %+v", c, version, s)
		}
	}
}
