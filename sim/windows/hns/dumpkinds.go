package hns

import "encoding/json"

func (p *dumpParser) networkV1(raw json.RawMessage, fields []field, at int) {
	decodeAs(p, "network", raw, fields, at, func(v V1Network) {
		ps := find(fields, "Policies")
		if !p.v1PoliciesOK(ps, "network") {
			return
		}
		n, err := FromNetworkV1(v)
		if err != nil {
			p.fail(at, "network: %v", err)
			return
		}
		of := label("network", n.Name, n.ID)
		n.Origin = p.origin(at, of)
		// Policies made from fields such as DrMacAddress come after those of the list.
		for i := range n.Policies {
			n.Policies[i].Origin = p.origin(at, string(n.Policies[i].typ)+" of "+of)
		}
		n.Policies = p.policies(ps, n.Policies, of)
		p.dump.Networks = append(p.dump.Networks, n)
	})
}

func (p *dumpParser) networkV2(raw json.RawMessage, fields []field, at int) {
	if !p.policiesOK("network", "", raw, at) {
		return
	}
	decodeAs(p, "network", raw, fields, at, func(n Network) {
		of := label("network", n.Name, n.ID)
		n.Origin = p.origin(at, of)
		n.Policies = p.policies(find(fields, "Policies"), n.Policies, of)
		p.dump.Networks = append(p.dump.Networks, n)
	})
}

func (p *dumpParser) endpointV1(raw json.RawMessage, fields []field, at int) {
	decodeAs(p, "endpoint", raw, fields, at, func(v V1Endpoint) {
		ps := find(fields, "Policies")
		if !p.v1PoliciesOK(ps, "endpoint") {
			return
		}
		if v.State > StateDestroyed {
			p.fail(find(fields, "State").at, "endpoint: State is %d; it must be 0 to 6", v.State)
			return
		}
		e, err := FromEndpointV1(v)
		if err != nil {
			p.fail(at, "endpoint: %v", err)
			return
		}
		// Get-HnsEndpoint prints a State; an endpoint without one was cut from a
		// longer listing and is taken for one that works.
		if !has(fields, "State") && !e.Remote() {
			e.State = StateAttachedSharing
		}
		of := label("endpoint", e.Name, e.ID)
		e.Origin = p.origin(at, of)
		for i := range e.Policies {
			e.Policies[i].Origin = p.origin(at, string(e.Policies[i].typ)+" of "+of)
		}
		e.Policies = p.policies(ps, e.Policies, of)
		p.dump.Endpoints = append(p.dump.Endpoints, e)
	})
}

func (p *dumpParser) endpointV2(raw json.RawMessage, fields []field, at int) {
	if !p.policiesOK("endpoint", "", raw, at) {
		return
	}
	decodeAs(p, "endpoint", raw, fields, at, func(e Endpoint) {
		of := label("endpoint", e.Name, e.ID)
		e.State = StateCreated
		if id := normID(e.HostComputeNamespace); id != "" && id != noGUID {
			e.State = StateAttachedSharing
		} else {
			e.HostComputeNamespace = ""
		}
		e.Origin = p.origin(at, of)
		e.Policies = p.policies(find(fields, "Policies"), e.Policies, of)
		p.dump.Endpoints = append(p.dump.Endpoints, e)
	})
}

func (p *dumpParser) namespace(raw json.RawMessage, fields []field, at int) {
	decodeAs(p, "namespace", raw, fields, at, func(v Namespace) { p.dump.Namespaces = append(p.dump.Namespaces, v) })
}

func (p *dumpParser) loadBalancer(raw json.RawMessage, fields []field, at int) {
	decodeAs(p, "load balancer", raw, fields, at, func(v LoadBalancer) {
		v.Origin = p.origin(at, "load balancer "+v.ID)
		p.dump.LoadBalancers = append(p.dump.LoadBalancers, v)
	})
}

func (p *dumpParser) route(raw json.RawMessage, fields []field, at int) {
	decodeAs(p, "route", raw, fields, at, func(v Route) {
		v.Origin = p.origin(at, "route "+v.ID)
		p.dump.Routes = append(p.dump.Routes, v)
	})
}

func (p *dumpParser) policyList(raw json.RawMessage, fields []field, at int) {
	decodeAs(p, "policy list", raw, fields, at, func(v V1PolicyList) {
		lb, route, err := FromPolicyListV1(v)
		if err != nil {
			p.failJSON(at, "policy list", err)
			return
		}
		if lb == nil && route == nil {
			p.fail(at, "policy list %s holds neither ELB nor ROUTE policies", v.ID)
			return
		}
		if lb != nil {
			lb.Origin = p.origin(at, "policy list "+v.ID)
			p.dump.LoadBalancers = append(p.dump.LoadBalancers, *lb)
		}
		if route != nil {
			route.Origin = p.origin(at, "policy list "+v.ID)
			p.dump.Routes = append(p.dump.Routes, *route)
		}
	})
}
