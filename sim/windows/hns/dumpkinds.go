package hns

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

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
		n.Origin, n.NotShown = p.origin(at, of), p.cut
		// Policies made from fields such as DrMacAddress come after those of the list.
		for i := range n.Policies {
			n.Policies[i].Origin = p.origin(at, string(n.Policies[i].typ)+" of "+of)
		}
		n.Policies = p.fit(p.policies(ps, n.Policies, of), at, of)
		p.fitSubnets(&n, at, of)
		p.dump.Networks = append(p.dump.Networks, n)
	})
}

// fitSubnets makes the policies of subnets fit.
func (p *dumpParser) fitSubnets(n *Network, at int, of string) {
	for _, i := range n.Ipams {
		for k, s := range i.Subnets {
			i.Subnets[k].Policies = p.fit(s.Policies, at, of)
		}
	}
}

func (p *dumpParser) networkV2(raw json.RawMessage, fields []field, at int) {
	if !p.policiesOK("network", "", raw, at) {
		return
	}
	decodeAs(p, "network", raw, fields, at, func(n Network) {
		of := label("network", n.Name, n.ID)
		n.Origin = p.origin(at, of)
		n.Policies = p.fit(p.policies(find(fields, "Policies"), n.Policies, of), at, of)
		p.fitSubnets(&n, at, of)
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
		e.Stated, e.NotShown = has(fields, "State"), p.cut
		p.stateOf(&e, at)
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
		e.Policies = p.fit(p.policies(ps, e.Policies, of), at, of)
		e.Compartment = compartmentOf(v, find(fields, "Resources"))
		p.dump.Endpoints = append(p.dump.Endpoints, e)
	})
}

// stateNames are the states of an endpoint (hcsshim internal/hns/hnsendpoint.go).
var stateNames = []string{"uninitialized", "created", "attached", "attached", "detached", "degraded", "destroyed"}

// stateOf says when an endpoint has no working port.
func (p *dumpParser) stateOf(e *Endpoint, at int) {
	if e.Stated && !e.Remote() && !e.Attached() {
		p.notice(at, label("endpoint", e.Name, e.ID), fmt.Sprintf(
			"its State is %d, %s: it has no port on the switch; a working endpoint has State 3", e.State, stateNames[e.State]))
	}
}

// ready says what a policy list tells of itself (hns.policy-list-state).
func (p *dumpParser) ready(l *LoadBalancer, v V1PolicyList, at int) {
	if v.State != 0 && v.State != readyState {
		l.NotReady = fmt.Sprintf(
			"policy list %s has State %d, and a policy list in force has %d; whether its rules are in VFP is not known; check with vfpctrl /port PORT /list-rule on the node", v.ID, v.State, readyState)
		p.notice(at, "policy list "+v.ID, l.NotReady)
	}
	if v.IsApplied != nil && !*v.IsApplied {
		p.notice(at, "policy list "+v.ID,
			"it has IsApplied: false. A published list in State 2 (ready) has that too (projectcalico/calico#8465), and its meaning is not documented, so it has no effect here")
	}
}

// readyState is the State of a policy list that is in force.
const readyState = 2

func (p *dumpParser) endpointV2(raw json.RawMessage, fields []field, at int) {
	if !p.policiesOK("endpoint", "", raw, at) {
		return
	}
	decodeAs(p, "endpoint", raw, fields, at, func(e Endpoint) {
		of := label("endpoint", e.Name, e.ID)
		e.State = StateAttachedSharing
		if id := normID(e.HostComputeNamespace); id == "" || id == noGUID {
			// An endpoint without a namespace: one without an attached container, such
			// as kube-proxy's source VIP, or a container's of Docker. HCN v2 does not
			// show which (Stated).
			e.State, e.HostComputeNamespace = StateCreated, ""
		}
		e.Origin = p.origin(at, of)
		e.Policies = p.fit(p.policies(find(fields, "Policies"), e.Policies, of), at, of)
		p.dump.Endpoints = append(p.dump.Endpoints, e)
	})
}

func (p *dumpParser) namespace(raw json.RawMessage, fields []field, at int) {
	decodeAs(p, "namespace", raw, fields, at, func(v Namespace) { p.dump.Namespaces = append(p.dump.Namespaces, v) })
}

// v1Namespace is a namespace as Get-HnsNamespace shows it
// (projectcalico/calico#8465).
type v1NamespaceObject struct {
	ID              string
	CompartmentId   uint32
	CompartmentGuid string
	IsDefault       bool
	ResourceList    []NamespaceResource
	Resources       json.RawMessage // of HNS itself, not those of the namespace
}

func (p *dumpParser) namespaceV1(raw json.RawMessage, fields []field, at int) {
	decodeAs(p, "namespace", raw, fields, at, func(v v1NamespaceObject) {
		n := Namespace{ID: v.ID, NamespaceId: v.CompartmentId, NamespaceGuid: v.CompartmentGuid, Type: NamespaceHost, Resources: v.ResourceList}
		if v.IsDefault || v.CompartmentId == hostCompartment {
			n.Type = NamespaceHostDefault
		}
		p.dump.Namespaces = append(p.dump.Namespaces, n)
	})
}

// hostCompartment is the compartment of the node itself.
const hostCompartment = 1

// compartmentOf is the compartment that an endpoint's port is in; 0 when the
// dump does not say. The name of the field is HNS's own spelling (microsoft/SDN
// Kubernetes/windows/debug/networkmonitor/networkhealth.ps1).
func compartmentOf(v V1Endpoint, resources *field) uint32 {
	if v.Namespace != nil && v.Namespace.CompartmentId != 0 {
		return v.Namespace.CompartmentId
	}
	var r struct {
		Allocators []struct {
			Tag                          string
			CompartmendId, CompartmentId uint32
		}
	}
	if resources == nil || json.Unmarshal(resources.raw, &r) != nil {
		return 0
	}
	for _, a := range r.Allocators {
		if a.Tag == "Endpoint Port" {
			return max(a.CompartmendId, a.CompartmentId)
		}
	}
	return 0
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
		for i, raw := range v.Policies {
			c := &coercer{words: p.Words}
			v.Policies[i] = c.coerce(c.coerce(raw, reflect.TypeFor[v1ELB]()), reflect.TypeFor[SDNRouteSettings]())
			if len(c.cut) > 0 {
				p.fail(at, "policy list %s: %s was cut off: %s", v.ID, strings.Join(c.cut, ", "),
					strings.ReplaceAll(CutHint, "HnsEndpoint", "HnsPolicyList"))
				return
			}
		}
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
			p.ready(lb, v, at)
			p.dump.LoadBalancers = append(p.dump.LoadBalancers, *lb)
		}
		if route != nil {
			route.Origin = p.origin(at, "policy list "+v.ID)
			p.dump.Routes = append(p.dump.Routes, *route)
		}
	})
}
