package cni_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/conformance/check/nodeconf"
	"github.com/winlab-dev/winlab/conformance/check/source"
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

// Every field that a reader of this package knows is in nodeconf's list of spellings
// (pluginKeys): programs that read JSON with Go take "LoopbackDsr" for loopbackDSR, so the
// check must too. The fields are those that the warning of a misspelt one lists.
func TestFieldsAreSpelled(t *testing.T) {
	for _, name := range cni.Names() {
		confs := []string{`"type": "` + name + `", `}
		if name == string(cni.PluginFlannel) {
			for _, delegate := range cni.ProgramNames() {
				if delegate != name {
					confs = append(confs, `"type": "flannel", "delegate": {"type": "`+delegate+`", `)
				}
			}
		}
		for _, conf := range confs {
			end := strings.Repeat("}", strings.Count(conf, "{"))
			must := map[string]string{string(cni.PluginVPCBridge): `"eniName": "eth1", `}[name]
			c, err := cni.ParseConf("x.conf", []byte(`{"cniVersion": "0.3.0", "name": "net", `+conf+must+`"xyz": 1}`+end))
			if err != nil {
				t.Fatal(err)
			}
			if len(c.Warnings) != 1 {
				t.Fatalf("%s: warnings %q, want one", conf, c.Warnings)
			}
			_, fields, _ := strings.Cut(c.Warnings[0], "; it reads ")
			for _, field := range strings.Split(fields, ", ") {
				text := `{"cniVersion": "0.3.0", "name": "net", ` + conf + fmt.Sprintf("%q", strings.ToUpper(field)) + `: null}` + end
				subjects, _, _ := nodeconf.Read("10-net.conf", []byte(text))
				if len(subjects) != 1 {
					t.Fatalf("%s: %d subjects", text, len(subjects))
				}
				root := subjects[0].Root
				if end != "" {
					root = source.Child(root, "delegate")
				}
				if source.Child(root, field) == nil {
					t.Errorf("conformance/check/nodeconf does not know the field %s of %s: add it to pluginKeys (spelling.go)", field, name)
				}
			}
		}
	}
}
