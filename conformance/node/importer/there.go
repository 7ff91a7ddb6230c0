package importer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/windows/dump"
)

// describeUnusable says what a bundle has of which no lab can be made, and what each lacks for it: "" for
// nothing. It goes behind an error.
func (im *importing) describeUnusable() string {
	var all, nothing []string
	for _, f := range im.b.Files {
		shown := comment(im.b.Shown(f))
		d := im.dumped(f)
		data, _ := im.b.Read(f)
		switch {
		case im.cluster[f]:
			all = append(all, shown+" has objects of Kubernetes, and no node among them")
		case im.cniConf(f):
			all = append(all, shown+" is the configuration of "+comment(describeConf(data))+
				"; what it made is not there: Get-HnsNetwork and Get-HnsEndpoint | ConvertTo-Json -Depth 20, and kubectl get nodes -o json")
		case d == nil:
		case d.HNS != nil && len(d.HNS.Endpoints) > 0 && len(d.HNS.Networks) == 0:
			all = append(all, shown+" has endpoints of HNS and not their networks; add the output of: Get-HnsNetwork | ConvertTo-Json -Depth 20")
		case d.HNS == nil && slices.ContainsFunc(d.Files, func(x dump.File) bool { return len(x.As) == 0 }):
			nothing = append(nothing, shown)
		}
		if d != nil && d.HNS == nil {
			for _, m := range d.Mistakes {
				if strings.Contains(m.Message, "without their fields") {
					all = append(all, comment(m.String()))
				}
			}
		}
	}
	if len(nothing) > 0 {
		all = append(all, "nothing that a lab has was found in "+strings.Join(nothing, ", "))
	}
	if len(all) == 0 {
		return ""
	}
	return ". What is there: " + strings.Join(all, "; ")
}

// describeConf names the plugin of a CNI configuration, with the one that it delegates to.
func describeConf(data []byte) string {
	name := pluginOf(data)
	if to := delegateOf(data); to != "" {
		return fmt.Sprintf("%s, which delegates to %s", name, to)
	}
	return name
}
