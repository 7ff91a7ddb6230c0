package cli

import (
	"strings"

	"github.com/winlab-dev/winlab/conformance/claims"
)

// labVersions are versions that the labs have, in the order in which a sample
// of a check is looked for; the labs' own versions, which need no flag, are
// 1.20 and 1.5.
var labVersions = []string{"1.20", "1.5", "1.36", "1.19", "1.18", "1.17", "1.14"}

// command is what somebody types to try a check with packets in one of the
// labs that it selects; "" when no lab shows it. Conditions on builds and
// versions of plugins are left to the reader.
func command(k claims.Check) string {
	lab := ""
	for _, version := range labVersions {
		v, _ := claims.ParseVersion(version)
		for _, d := range claims.Designs {
			r, err := claims.ParseRange(d.Kubernetes)
			if err != nil || !r.Holds(v) || !k.Holds(claims.Target{Kubernetes: version, Network: d.Network, Plugin: d.Plugin}) {
				continue
			}
			lab = "fixtures/labs/" + d.Name + ".yaml"
			if version != "1.20" && version != "1.5" {
				lab += " --kubernetes " + version
			}
			break
		}
		if lab != "" {
			break
		}
	}
	f := k.Flow
	if k.Wire != nil {
		f = &k.Wire.Flow
	}
	switch {
	case lab == "":
		return ""
	case k.Resolve != nil:
		s := "winlab resolve " + lab + " --from " + k.Resolve.From + " " + k.Resolve.Name
		if k.Resolve.Tool != "" {
			s += " --tool " + k.Resolve.Tool
		}
		return s
	case f != nil:
		s := "winlab trace " + lab + " --from " + f.From + " --to " + f.To
		if f.Protocol == "udp" || f.Protocol == "ping" {
			s += " --" + f.Protocol
		}
		if f.Family == "ipv6" {
			s += " --ipv6"
		}
		return strings.TrimSpace(s)
	}
	return ""
}
