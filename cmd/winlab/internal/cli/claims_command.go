package cli

import (
	"cmp"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/conformance/claims"
)

// labSettings are settings that the labs have, in the order in which a sample
// of a check is looked for, with the flags that choose them; the labs' own, 1.20
// and 1.5, need none.
var labSettings = []struct{ kubernetes, build, proxy, flags string }{
	{"1.20", "10.0.17763.1432", "kernelspace", ""},
	{"1.5", "", "", ""},
	{"1.20", "10.0.19041.610", "kernelspace-dsr", " --windows 10.0.19041.610"},
	{"1.36", "10.0.20348.2762", "kernelspace-dsr", " --kubernetes 1.36"},
	{"1.19", "10.0.17763.1432", "kernelspace", " --kubernetes 1.19"},
	{"1.18", "10.0.17763.1217", "kernelspace", " --kubernetes 1.18"},
	{"1.17", "10.0.17763.1217", "kernelspace", " --kubernetes 1.17"},
	{"1.14", "10.0.17763.379", "kernelspace", " --kubernetes 1.14"},
}

// command is what somebody types to try a check with packets in one of the
// labs that it selects; "" when no lab shows it. Conditions on versions of
// plugins are left to the reader.
func command(k claims.Check) string {
	lab := labOf(k)
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

// labOf is a lab in which the check is tried, with the flags of a setting that it is for;
// "" when there is none.
func labOf(k claims.Check) string {
	folder, name, of := "fixtures/labs/", "", ""
	for _, l := range claims.Labs {
		if l.Name == k.Lab {
			folder, name, of = "fixtures/labs/for-claims/", l.Name, l.Of
		}
	}
	for _, set := range labSettings {
		v, _ := claims.ParseVersion(set.kubernetes)
		for _, d := range claims.Designs {
			r, err := claims.ParseRange(d.Kubernetes)
			if err != nil || !r.Holds(v) || of != "" && d.Name != of {
				continue
			}
			t := claims.Target{Kubernetes: set.kubernetes, Build: set.build, Network: d.Network, Plugin: d.Plugin}
			// A lab without kube-proxy is another design, which the check names.
			if slices.ContainsFunc(k.Proxies, func(p string) bool { return strings.HasPrefix(p, "kernelspace") }) {
				t.Proxy = set.proxy
			}
			if k.Holds(t) {
				return folder + cmp.Or(name, d.Name) + ".yaml" + set.flags
			}
		}
	}
	return ""
}
