package consult

import (
	"strings"

	"github.com/winlab-dev/winlab/internal/lazyregexp"
)

// The settings that a cluster can say of itself, by name.
const (
	Kernelspace   = "kernelspace"
	Userspace     = "userspace"
	DSR           = "DSR"
	Overlay       = "overlay"
	DualStack     = "dual-stack"
	Affinity      = "sessionAffinity ClientIP"
	ExternalLocal = "externalTrafficPolicy Local"
	InternalLocal = "internalTrafficPolicy Local"
	LoadBalancer  = "Service type LoadBalancer"
	OtherTarget   = "port and targetPort differ"
)

// settings are the spellings of options in entries, in the words of each component, and which
// setting is meant. What is not here is a condition that stays open.
var settings = []struct {
	spelling *lazyregexp.Regexp
	setting  string
	value    bool
}{
	{lazyregexp.New(`^proxy-mode kernelspace$`), Kernelspace, true},
	{lazyregexp.New(`^proxy-mode userspace$`), Userspace, true},
	{lazyregexp.New(`^(kube-proxy )?(--)?enable-?dsr[ =]true$`), DSR, true},
	{lazyregexp.New(`^(--)?enable-?dsr[ =]false$`), DSR, false},
	{lazyregexp.New(`^(winoverlay|vxlan|backend[. ]type=vxlan|--?feature-gates=winoverlay=true)$`), Overlay, true},
	{lazyregexp.New(`^(backend[. ]type=host-gw|no encapsulation)$`), Overlay, false},
	{lazyregexp.New(`dual-?stack`), DualStack, true},
	{lazyregexp.New(`^sessionaffinity clientip`), Affinity, true},
	{lazyregexp.New(`^externaltrafficpolicy local$`), ExternalLocal, true},
	{lazyregexp.New(`^externaltrafficpolicy cluster$`), ExternalLocal, false},
	{lazyregexp.New(`^internaltrafficpolicy local$`), InternalLocal, true},
	{lazyregexp.New(`^service type loadbalancer$`), LoadBalancer, true},
	{lazyregexp.New(`^port and targetport differ$`), OtherTarget, true},
}

// setting says whether an option of an entry is set in the cluster; known is false where the
// option or its value is not known.
func (c *Cluster) setting(option string) (value, known bool) {
	option = strings.ToLower(option)
	for _, s := range settings {
		if !s.spelling.MatchString(option) {
			continue
		}
		have, said := c.Settings[s.setting]
		return have == s.value, said
	}
	return false, false
}
