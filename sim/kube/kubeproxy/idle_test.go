package kubeproxy

import (
	"slices"
	"strings"
	"testing"
)

// A flag either changes what is programmed, or it is said why it does not.
func TestFlagsWithoutEffect(t *testing.T) {
	t.Parallel()
	for _, f := range flags {
		if i, idle := idleFlags[f.name]; idle == (f.set != nil) || idle && i.why == "" {
			t.Errorf("--%s: it is read: %v, in idleFlags: %v", f.name, f.set != nil, idle)
		}
	}
	if got := Idle([]string{"--v=4", " --masquerade-all", "--enable-dsr=true", "--cluster-cidr=10.0.0.0/8"}); len(got) != 2 ||
		got[0][0] != "--masquerade-all" || got[1][0] != "--cluster-cidr" {
		t.Errorf("%q", got)
	}
	if all := CountedFlags(); !slices.Contains(all, "enable-dsr") || slices.Contains(all, "v") {
		t.Errorf("%q", all)
	}
}

// Which flags a reader must be told of, and which only say where logs go.
func TestWhichFlagsAreTold(t *testing.T) {
	for names, told := range map[string]bool{
		"bind-address cluster-cidr masquerade-all config-sync-period iptables-min-sync-period iptables-sync-period":                               true,
		"kubeconfig metrics-bind-address profiling v logtostderr alsologtostderr log-dir log-file windows-service enable-dsr source-vip nonsense": false,
	} {
		for name := range strings.FieldsSeq(names) {
			got := Idle([]string{" --" + name + "=x"})
			if (len(got) == 1) != told || told && (got[0][0] != "--"+name || got[0][1] == "") {
				t.Errorf("--%s: %v", name, got)
			}
		}
	}
}
