package nodedump

import (
	"github.com/winlab-dev/winlab/sim/windows/dump"

	"net/netip"
	"strings"

	"gopkg.in/yaml.v3"
)

// routePrint reads route print: five columns for IPv4, of which the third is
// an address or a word for "on the link".
func (r *reader) routePrint(l dump.Lines) {
	for i, text := range l.Text {
		f := strings.Fields(text)
		if len(f) < 4 || len(f) > 6 {
			continue
		}
		dst := dump.Addr(f[0])
		bits := maskBits(f[1])
		if f[1] == "0.0.0.0" {
			bits = 0
		}
		if !dst.IsValid() || !dst.Is4() || bits < 0 {
			continue
		}
		route := route{destination: netip.PrefixFrom(dst, bits), nextHop: dump.Addr(f[2]), link: f[len(f)-2], place: l.Place(i)}
		r.node.list(listRoutes, route.place)
		r.node.routes = append(r.node.routes, route)
		r.as(listRoutes)
	}
}

// netRoute takes what Get-NetRoute shows.
func (r *reader) netRoute(o *yaml.Node) bool {
	p := dump.Prefix(dump.Str(o, "DestinationPrefix"))
	if !p.IsValid() || !dump.Has(o, "NextHop") || !dump.Has(o, "ifIndex") && !dump.Has(o, "InterfaceIndex") && !dump.Has(o, "InterfaceAlias") {
		return false
	}
	route := route{destination: p, nextHop: dump.Addr(dump.Str(o, "NextHop")), link: dump.Str(o, "InterfaceAlias", "ifIndex", "InterfaceIndex"), place: r.at(o.Line)}
	if route.nextHop.IsUnspecified() {
		route.nextHop = netip.Addr{}
	}
	r.node.list(listRoutes, route.place)
	r.node.routes = append(r.node.routes, route)
	r.as(listRoutes)
	return true
}
