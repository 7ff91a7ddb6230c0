package dump

import (
	"net/netip"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// routePrint reads route print. IPv4 has five columns, of which the third is an
// address or a word for "on the link" and the fourth the address of the
// interface; persistent routes have no interface. IPv6 has the number of the
// interface, the metric, the destination and the gateway, which stands on the
// next line when the destination is long.
func RoutePrint(l Lines) []Route {
	var out []Route
	for i, text := range l.Text {
		f := strings.Fields(text)
		switch len(f) {
		case 4, 5, 6:
			if r, ok := route4(f); ok {
				r.Place = l.Place(i)
				out = append(out, r)
			} else if r, ok := route6(f); ok && len(f) == 4 {
				r.Place = l.Place(i)
				out = append(out, r)
			}
		case 3:
			if i+1 < len(l.Text) {
				if next := strings.Fields(l.Text[i+1]); len(next) == 1 {
					if r, ok := route6(append(f, next[0])); ok {
						r.Place = l.Place(i)
						out = append(out, r)
					}
				}
			}
		}
	}
	return out
}

func route4(f []string) (Route, bool) {
	dst := Addr(f[0])
	bits := MaskBits(f[1])
	if f[1] == "0.0.0.0" {
		bits = 0
	}
	if !dst.IsValid() || !dst.Is4() || bits < 0 {
		return Route{}, false
	}
	r := Route{To: netip.PrefixFrom(dst, bits), Via: Addr(f[2]), Interface: f[len(f)-2]}
	if len(f) == 4 { // of the persistent routes, which have no interface
		r.Interface = ""
	}
	r.Metric, _ = strconv.Atoi(f[len(f)-1])
	return r, true
}

// route6 reads "If Metric Network-Destination Gateway".
func route6(f []string) (Route, bool) {
	_, err1 := strconv.Atoi(f[0])
	metric, err2 := strconv.Atoi(f[1])
	to := Prefix(f[2])
	if err1 != nil || err2 != nil || !to.IsValid() || !to.Addr().Is6() {
		return Route{}, false
	}
	return Route{To: to, Via: Addr(f[3]).WithZone(""), Interface: f[0], Metric: metric}, true
}

// NetRoute takes what Get-NetRoute shows, in any form.
func NetRoute(o *yaml.Node) (Route, bool) {
	p := Prefix(Str(o, "DestinationPrefix"))
	if !p.IsValid() || !Has(o, "NextHop") || Child(o, "ifIndex", "InterfaceIndex", "InterfaceAlias") == nil {
		return Route{}, false
	}
	r := Route{To: p, Via: Addr(Str(o, "NextHop")), Interface: Str(o, "InterfaceAlias", "ifIndex", "InterfaceIndex"),
		Place: Place{Line: o.Line}}
	r.Metric, _ = strconv.Atoi(Str(o, "RouteMetric"))
	if r.Via.IsUnspecified() {
		r.Via = netip.Addr{}
	}
	return r, true
}

func (r *reader) routePrint(l Lines) {
	if !HasAny(l.Join(), "255.255.255.255", "0.0.0.0") {
		return
	}
	for _, x := range RoutePrint(l) {
		x.Place.Text = ""
		r.n.Routes = append(r.n.Routes, x)
		r.n.printed = true
		r.addForm("routes")
	}
}

func (r *reader) netRoute(l Lines, o *yaml.Node) bool {
	x, ok := NetRoute(o)
	if !ok {
		return false
	}
	x.Place.File = l.File
	r.n.listed = append(r.n.listed, x)
	r.addForm("routes")
	return true
}

// MaskBits is the length of a mask such as 255.255.255.0, -1 for anything else.
func MaskBits(s string) int {
	a, err := netip.ParseAddr(s)
	if err != nil || !a.Is4() || !strings.HasPrefix(s, "255.") {
		return -1
	}
	b := a.As4()
	bits, ended := 0, false
	for _, octet := range b {
		for k := 7; k >= 0; k-- {
			if octet>>k&1 == 0 {
				ended = true
			} else if ended {
				return -1
			} else {
				bits++
			}
		}
	}
	return bits
}
