package observed

import (
	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/sim/windows/dump"
)

// routePrint takes what route print shows.
func (r *reader) routePrint(l dump.Lines) {
	for _, x := range dump.RoutePrint(l) {
		r.addRoute(x)
	}
}

// netRoute takes what Get-NetRoute shows.
func (r *reader) netRoute(o *yaml.Node) bool {
	x, ok := dump.NetRoute(o)
	if ok {
		x.Place = r.placeOf(x.Place.Line)
		r.addRoute(x)
	}
	return ok
}

func (r *reader) addRoute(x dump.Route) {
	r.node.list(listRoutes, x.Place)
	r.node.routes = append(r.node.routes, route{destination: x.To, nextHop: x.Via, link: x.Interface, place: x.Place})
	r.addKind(listRoutes)
}
