package hns

import (
	"slices"

	"github.com/winlab-dev/winlab/sim/trace"
)

// Route is a HostComputeRoute: SDN routes for a set of endpoints.
type Route struct {
	ID                   string             `json:"ID,omitempty"`
	HostComputeEndpoints []string           `json:"HostComputeEndpoints,omitempty"`
	Setting              []SDNRouteSettings `json:"Setting,omitempty"`
	SchemaVersion        SchemaVersion      `json:"SchemaVersion,omitzero"`

	// Origin is the configuration behind the route.
	Origin *trace.Origin `json:"-"`

	toHost []toHost // Setting, parsed when HNS admits the route
}

// parse is what the compiler needs of Setting.
func (r *Route) parse() {
	r.toHost = nil
	for _, s := range r.Setting {
		if t, ok := s.toHost(); ok {
			r.toHost = append(r.toHost, t)
		}
	}
}

func (r Route) clone() *Route {
	r.HostComputeEndpoints = slices.Clone(r.HostComputeEndpoints)
	r.Setting = slices.Clone(r.Setting)
	return &r
}
