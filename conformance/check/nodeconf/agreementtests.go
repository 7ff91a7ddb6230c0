package nodeconf

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/conformance/check/subject"
	"github.com/winlab-dev/winlab/internal/strict"
)

// agreementTests compare one piece of configuration with another.
var agreementTests = []subject.Test{
	{
		On: []string{"subnet-env"}, Name: "subnet-outside", Vars: []string{"value", "network"},
		Doc:  "FLANNEL_SUBNET is not a part of FLANNEL_NETWORK.",
		Find: subnetOutside,
	},
	{
		On: []string{"subnet-env"}, Name: "not-a-prefix", Vars: []string{"value", "field"},
		Doc:  "FLANNEL_NETWORK or FLANNEL_SUBNET is not an address with a length.",
		Find: notAPrefix,
	},
	{
		On: []string{"kube-proxy"}, Name: "cluster-range-differs", Vars: []string{"value", "other", "from"},
		Doc:  "The pods' network is another one than other files say.",
		Find: clusterRangeDiffers,
	},
	{
		On: []string{"kube-proxy", "flanneld"}, Name: "hostname-differs", Vars: []string{"value", "other"},
		Doc:  "kube-proxy or flanneld has another node name than the kubelet in the same file.",
		Find: hostnameDiffers,
	},
	{
		On: []string{"kube-proxy"}, Name: "network-name-differs", Vars: []string{"value", "other", "from"},
		Doc:  "kube-proxy is told to use a network that neither the CNI configuration nor net-conf.json names.",
		Find: networkNameDiffers,
	},
	{
		On: []string{"service-manager"}, Name: "mode-differs", Vars: []string{"value", "backend"},
		Doc:  "The network mode of the script does not fit flannel's backend in net-conf.json.",
		Find: modeDiffers,
	},
	{
		On: []string{"service-manager"}, Name: "default-differs", Vars: []string{"parameter", "default", "other", "from"},
		Doc:  "A parameter of the script is left out, and its default is not what other files say.",
		Find: defaultDiffers,
	},
	{
		On: []string{"flanneld"}, Name: "backend-differs", Vars: []string{"backend", "plugin"},
		Doc:  "flannel's backend in net-conf.json and the plugin that a CNI configuration delegates to belong to different networks.",
		Find: backendDiffers,
	},
}

func subnetOutside(_ *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
	n := nodeAt(s, "FLANNEL_SUBNET")
	subnet, network := prefixes(strict.Text(n)), prefixes(strict.Text(nodeAt(s, "FLANNEL_NETWORK")))
	if len(subnet) != 1 || len(network) == 0 || covered(network, subnet[0].Masked()) {
		return nil
	}
	return []subject.Hit{{At: n, Field: "FLANNEL_SUBNET", Vars: map[string]string{"value": strict.Text(n),
		"network": strict.Text(nodeAt(s, "FLANNEL_NETWORK"))}}}
}

func notAPrefix(_ *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
	var hits []subject.Hit
	for _, key := range []string{"FLANNEL_NETWORK", "FLANNEL_SUBNET"} {
		n := nodeAt(s, key)
		if n == nil {
			continue
		}
		for part := range strings.SplitSeq(strict.Text(n), ",") {
			if _, err := netip.ParsePrefix(strings.TrimSpace(part)); err != nil && literal(part) {
				hits = append(hits, subject.Hit{At: n, Field: key, Vars: map[string]string{"value": strict.Text(n), "field": key}})
			}
		}
	}
	return hits
}

// clusterRangeDiffers: a cluster may have several ranges; they differ when they have
// nothing in common.
func clusterRangeDiffers(c *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
	for _, mine := range clusterRanges([]*subject.Subject{s}) {
		for _, f := range clusterRanges(c.All) {
			if f.in == s || f.in.On == "cni" || f.prefix.Addr().Is4() != mine.prefix.Addr().Is4() || f.prefix.Overlaps(mine.prefix) {
				continue
			}
			return []subject.Hit{{At: mine.at, Vars: map[string]string{"value": rangeText(mine.prefix), "other": rangeText(f.prefix),
				"from": f.from}}}
		}
	}
	return nil
}

func hostnameDiffers(c *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
	key := "--hostname-override"
	if s.On == "flanneld" {
		key = "$NODE_NAME"
	}
	mine := strict.Text(nodeAt(s, key))
	for _, o := range c.All {
		other := strict.Text(nodeAt(o, "--hostname-override"))
		if o.On == "kubelet" && o.File == s.File && literal(mine) && literal(other) && !strings.EqualFold(mine, other) {
			return []subject.Hit{{At: nodeAt(s, key), Field: key, Vars: map[string]string{"value": mine, "other": other}}}
		}
	}
	return nil
}

func networkNameDiffers(c *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
	n := nodeAt(s, "--network-name")
	if n == nil {
		n = nodeAt(s, "$KUBE_NETWORK")
	}
	if !literal(strict.Text(n)) || strings.Contains(strict.Text(n), "*") {
		return nil
	}
	branch := ""
	if cmd, ok := s.Value.(*commandLine); ok {
		branch = cmd.branch
	}
	other, from := "", ""
	for _, o := range c.All {
		name := networkName(o, branch)
		if strings.EqualFold(name, strict.Text(n)) {
			return nil
		}
		if literal(name) && other == "" {
			other, from = name, o.Name
		}
	}
	if other == "" {
		return nil
	}
	return []subject.Hit{{At: n, Vars: map[string]string{"value": strict.Text(n), "other": other, "from": from}}}
}

// networkName is the HNS network that a configuration names, "" where it names none. A
// configuration for another network than the branch of the command line does not count.
func networkName(o *subject.Subject, branch string) string {
	switch o.On {
	case "cni":
		if v, ok := o.Value.(*CNI); ok && branch != "" && v.Network != branch || strings.Contains(strict.Text(nodeAt(o, "type")), "azure") {
			return ""
		}
		return strict.Text(nodeAt(o, "name"))
	case "net-conf":
		return strict.Text(nodeAt(o, "Backend", "Name"))
	}
	return ""
}

// startScript is the service of a start script that is seen as a whole, nil for other
// subjects.
func startScript(s *subject.Subject) *service {
	if v, ok := s.Value.(*service); ok && v.manager == "script" && !v.incomplete {
		return v
	}
	return nil
}

// backends are flannel's backends, by the network mode of the start script.
var backends = map[string]string{"l2bridge": "host-gw", "overlay": "vxlan"}

func modeDiffers(c *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
	if startScript(s) == nil {
		return nil
	}
	mode, n := "l2bridge", s.Root
	if given := nodeAt(s, "-NetworkMode"); given != nil {
		mode, n = strings.ToLower(strict.Text(given)), given
	}
	wants := backends[mode]
	if wants == "" {
		return nil
	}
	for _, o := range c.All {
		backend := strings.ToLower(strict.Text(nodeAt(o, "Backend", "Type")))
		if o.On == "net-conf" && slices.Contains([]string{"host-gw", "vxlan"}, backend) && backend != wants {
			return []subject.Hit{{At: n, Field: "-NetworkMode", Vars: map[string]string{"value": mode, "backend": backend}}}
		}
	}
	return nil
}

func defaultDiffers(c *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
	if startScript(s) == nil {
		return nil
	}
	var hits []subject.Hit
	for _, d := range []struct {
		parameter, value string
		known            []fact
	}{
		{"-ClusterCIDR", "10.244.0.0/16", clusterRanges(c.All)},
		{"-KubeDnsServiceIP", "10.96.0.10", facts(c.All, []string{"service-manager", "-ServiceCIDR"})},
	} {
		if nodeAt(s, d.parameter) != nil {
			continue
		}
		value := prefixes(d.value)[0]
		i := slices.IndexFunc(d.known, func(f fact) bool { return f.prefix.Addr().Is4() && !f.prefix.Overlaps(value) })
		if i >= 0 {
			f := d.known[i]
			hits = append(hits, subject.Hit{Field: d.parameter, Vars: map[string]string{"parameter": d.parameter, "default": d.value,
				"other": rangeText(f.prefix), "from": f.from}})
		}
	}
	return hits
}

func backendDiffers(c *subject.Context, _ *subject.Subject, _ map[string]string) []subject.Hit {
	for _, conf := range c.All {
		if conf.On != "net-conf" {
			continue
		}
		backend := strict.Text(nodeAt(conf, "Backend", "Type"))
		plugin := map[string]string{"host-gw": "win-bridge", "vxlan": "win-overlay"}[strings.ToLower(backend)]
		if plugin == "" {
			continue
		}
		for _, o := range c.All {
			if v, ok := o.Value.(*CNI); ok && v.Type == "flannel" && v.delegate != plugin {
				return []subject.Hit{{Vars: map[string]string{"backend": backend, "plugin": v.delegate}}}
			}
		}
	}
	return nil
}
