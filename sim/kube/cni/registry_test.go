package cni_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/conformance/check/nodeconf"
	"github.com/winlab-dev/winlab/sim/kube/cni"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
)

// A plugin in the registry is known to lab files, to the check of configuration files
// and to the package comment.
func TestRegistryAgrees(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range cni.Names() {
		if !slices.Contains(labfile.Plugins, name) {
			t.Errorf("a lab cannot name the plugin %s: add it to sim/lab/labfile", name)
		}
		if !strings.Contains(string(doc), fmt.Sprintf("//\t%-12s ", name)) {
			t.Errorf("doc.go does not list the plugin %s", name)
		}
		// Of a plugin that it knows nodeconf passes on why the file is refused.
		subjects, _, mistakes := nodeconf.Read("10-net.conf", fmt.Appendf(nil, `{"cniVersion": "0.3.0", "type": %q}`, name))
		if len(subjects) != 1 || len(mistakes) > 0 {
			t.Fatalf("%s: %d subjects, mistakes %v", name, len(subjects), mistakes)
		}
		if c, ok := subjects[0].Value.(*nodeconf.CNI); !ok || len(c.Refused) == 0 {
			t.Errorf("conformance/check/nodeconf does not know the plugin %s", name)
		}
	}
}
