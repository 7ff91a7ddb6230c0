package hns

import "net/netip"

// CreateRoute makes an SDN route object.
func (s *Service) CreateRoute(in Route) (*Route, error) {
	r, m := in.clone(), &mistakes{}
	if r.ID != "" && s.Route(r.ID) != nil {
		m.add(ErrAlreadyExists, "the id %s is taken", r.ID)
	}
	for i, id := range r.HostComputeEndpoints {
		if e := s.Endpoint(id); e == nil {
			m.add(ErrEndpointNotFound, "HostComputeEndpoints[%d]: no endpoint has the id %s", i, id)
		} else {
			r.HostComputeEndpoints[i] = e.ID
		}
	}
	if len(r.Setting) == 0 {
		m.add(ErrInvalidPolicy, "Setting must hold at least one route")
	}
	for i, v := range r.Setting {
		if _, err := parsePrefix(v.DestinationPrefix); err != nil {
			m.add(ErrInvalidPolicy, "Setting[%d]: DestinationPrefix %q is not a prefix", i, v.DestinationPrefix)
		}
		if _, err := netip.ParseAddr(v.NextHop); v.NextHop != "" && err != nil {
			m.add(ErrInvalidPolicy, "Setting[%d]: NextHop %q is not an address", i, v.NextHop)
		}
	}
	if err := m.err("hcnCreateRoute"); err != nil {
		return nil, err
	}
	if r.ID == "" {
		r.ID = s.newID(KindRoute)
	}
	r.ID = normID(r.ID)
	if r.SchemaVersion == (SchemaVersion{}) {
		r.SchemaVersion = SchemaVersion{Major: 2}
	}
	s.putRoute(r)
	return r, nil
}

// putRoute keeps a route and notifies listeners.
func (s *Service) putRoute(r *Route) {
	r.parse()
	s.routes.put(r.ID, r)
	s.changed(Change{Kind: KindRoute, ID: r.ID, What: Created})
}

// DeleteRoute deletes an SDN route object.
func (s *Service) DeleteRoute(id string) error {
	r := s.Route(id)
	if r == nil {
		return ErrElementNotFound.withf("hcnDeleteRoute", "no route has the id %s", id)
	}
	s.routes.remove(r.ID)
	s.changed(Change{Kind: KindRoute, ID: r.ID, What: Deleted})
	return nil
}
