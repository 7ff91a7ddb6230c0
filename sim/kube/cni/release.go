package cni

import (
	"fmt"

	"github.com/winlab-dev/winlab/internal/strict"
)

// warnPolicies warns of policies in the member that win-bridge's release does not
// read (cni.win-bridge-old-v2).
func (b *base) warnPolicies() {
	c := b.o.Conf
	if c.apiVersion != 2 {
		if len(c.hcnPolicyArgs) > 0 {
			at := c.hcnPolicyArgs[0].Origin
			b.warnings = append(b.warnings, strict.Mistake{File: at.File, Line: at.Line,
				Message: "with apiVersion 1 win-bridge ignores HcnPolicyArgs; it reads policies"})
		}
		return
	}
	for _, m := range []struct {
		list      []confPolicy
		old       bool
		name, use string
	}{
		{c.policies, true, "policies", "HcnPolicyArgs"},
		{c.hcnPolicyArgs, false, "HcnPolicyArgs", "policies"},
	} {
		if len(m.list) > 0 && m.old != b.release.atLeast(1, 0, 0) {
			at := m.list[0].Origin
			b.warnings = append(b.warnings, strict.Mistake{File: at.File, Line: at.Line,
				Message: fmt.Sprintf("with apiVersion 2 win-bridge %s ignores %s; it reads %s", b.release, m.name, m.use)})
		}
	}
}
