package observed

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/internal/lazyregexp"
	"github.com/winlab-dev/winlab/sim/windows/dump"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// NotRange is a value that stands where HNS wants a range of addresses, and is not one.
type NotRange struct {
	// Value is as it was written, Field where: "Exceptions of OutBoundNAT".
	Value, Field string
	// Endpoint is the name of the endpoint, Asked set where a log has what HNS was asked for.
	Endpoint string
	Asked    bool
	Place    Place
}

// NotOnNetwork is an endpoint that kube-proxy looked for in vain.
type NotOnNetwork struct {
	Address netip.Addr
	Network string
	// Count is the number of lines, Place the first.
	Count int
	Place Place
}

// ranges notes what of an endpoint's policies is not a range of addresses.
func (r *reader) ranges(endpoint string, asked bool, policies []hns.Policy, at Place) {
	note := func(field, value string) {
		value = strings.TrimSpace(value)
		if value == "" || dump.Prefix(value).IsValid() || dump.Addr(value).IsValid() {
			return
		}
		if slices.ContainsFunc(r.node.NotRanges, func(o NotRange) bool {
			return o.Value == value && o.Field == field &&
				o.Place.File == at.File
		}) {
			return // said once in a file
		}
		at.Text = field + ": " + value
		r.node.NotRanges = append(r.node.NotRanges, NotRange{Value: value, Field: field, Endpoint: endpoint, Asked: asked, Place: at})
	}
	for s := range hns.EachSettings[hns.OutBoundNATSettings](policies) {
		for _, v := range s.Exceptions {
			note("Exceptions of OutBoundNAT", v)
		}
		for _, v := range s.Destinations {
			note("Destinations of OutBoundNAT", v)
		}
	}
	for s := range hns.EachSettings[hns.SDNRouteSettings](policies) {
		note("DestinationPrefix of SDNRoute", s.DestinationPrefix)
	}
}

// createEndpoint is how hcsshim logs what it asks HNS for (hcn/hcnendpoint.go Create, with the
// settings as JSON behind it).
const createEndpoint = "hostcomputeendpoint::create"

// request takes an endpoint that a log says HNS was asked for.
func (r *reader) request(line int, text string) {
	begin := strings.IndexByte(text, '{')
	if begin < 0 {
		return
	}
	var asked struct {
		Name     string
		Policies []struct {
			Type     string
			Settings json.RawMessage
		}
	}
	// What stands behind the object is the rest of the log's line. A quoted one has its quotes
	// escaped, and one that was cut is incomplete: both say nothing here.
	if json.NewDecoder(strings.NewReader(text[begin:])).Decode(&asked) != nil {
		return
	}
	var policies []hns.Policy
	for _, p := range asked.Policies {
		for _, known := range []hns.PolicyType{hns.PolicyOutBoundNAT, hns.PolicySDNRoute} {
			if strings.EqualFold(p.Type, string(known)) {
				policies = append(policies, hns.ParsePolicy(known, p.Settings))
			}
		}
	}
	r.ranges(asked.Name, true, policies, r.placeOf(line))
	r.addKind("requests to HNS")
}

// kube-proxy on Windows says which address it looked for on which network
// (pkg/proxy/winkernel/hns.go getEndpointByIpAddress): the network is one word.
var notOnNetwork = lazyregexp.New(`(?i)\bEndpoint ([0-9a-f.:]+) not found on network ([^\s"\\]+)`)

// findNotOnNetwork takes the endpoints that kube-proxy did not find.
func (r *reader) findNotOnNetwork(line int, text string) {
	for _, m := range notOnNetwork.FindAllStringSubmatch(text, -1) {
		a := dump.Addr(m[1])
		if !a.IsValid() {
			continue
		}
		all := r.node.NotOnNetwork
		if i := slices.IndexFunc(all, func(o NotOnNetwork) bool { return o.Address == a && o.Network == m[2] }); i >= 0 {
			all[i].Count++
			continue
		}
		p := r.placeOf(line)
		p.Text = m[0]
		r.node.NotOnNetwork = append(all, NotOnNetwork{Address: a, Network: m[2], Count: 1, Place: p})
	}
}
