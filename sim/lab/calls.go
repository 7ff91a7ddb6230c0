package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// hnsCalls makes the lab's own calls to HNS, after plugin and proxy.
func (b *builder) hnsCalls() error {
	return b.Cluster.Call(b.spec.HNS)
}

// Call makes calls to the HNS of nodes, in order. A call that must fail with
// an error code and does not is an error, and the other way round.
func (c *Cluster) Call(calls []HNSCall) error {
	for i, call := range calls {
		svc := c.hns[call.Node]
		if svc == nil {
			return fmt.Errorf("HNS call %d: node %s has no HNS in this lab", i+1, call.Node)
		}
		err := c.call(svc, call)
		if call.Error == "" {
			if err != nil {
				return fmt.Errorf("HNS call %d on %s: %w", i+1, call.Node, err)
			}
			continue
		}
		want, perr := strconv.ParseUint(strings.TrimPrefix(strings.ToLower(call.Error), "0x"), 16, 32)
		if perr != nil {
			return fmt.Errorf("HNS call %d: %q is not an error code; write it as 0x803b0013", i+1, call.Error)
		}
		var he *hns.Error
		switch {
		case err == nil:
			return fmt.Errorf("HNS call %d on %s succeeded, but should fail with %s", i+1, call.Node, call.Error)
		case !errors.As(err, &he) || uint64(he.Code) != want:
			return fmt.Errorf("HNS call %d on %s should fail with %s, but: %w", i+1, call.Node, call.Error, err)
		}
		c.Log = append(c.Log, fmt.Sprintf("HNS of %s, as expected: %v", call.Node, err))
	}
	for _, w := range c.windows {
		w.Refresh()
	}
	return nil
}

func (c *Cluster) call(svc *hns.Service, call HNSCall) error {
	switch {
	case call.Restart:
		svc.Restart()
		return nil
	case call.Delete != nil:
		return c.delete(svc, *call.Delete)
	case call.RemovePolicy != nil:
		return c.policy(svc, *call.RemovePolicy, false)
	case call.AddPolicy != nil:
		return c.policy(svc, *call.AddPolicy, true)
	case call.UpdatePolicy != nil:
		return c.update(svc, *call.UpdatePolicy)
	case call.Create != nil:
		return c.create(svc, *call.Create)
	}
	return nil
}

// endpoints finds the endpoints that a selector means.
func (c *Cluster) endpoints(svc *hns.Service, s HNSSelector) []*hns.Endpoint {
	pod := s.Pod
	if pod != "" && !strings.Contains(pod, "/") {
		pod = "default/" + pod
	}
	return svc.ListEndpoints(func(e *hns.Endpoint) bool {
		switch {
		case pod != "":
			p := c.pods[pod]
			return p != nil && strings.EqualFold(p.Endpoint, e.ID)
		case s.Address != "":
			return slices.Contains(e.Addresses(), mustAddr(s.Address))
		case s.Name != "":
			return e.Name == s.Name
		}
		return true
	})
}

func loadBalancers(svc *hns.Service, s HNSSelector) []*hns.LoadBalancer {
	return svc.ListLoadBalancers(func(l *hns.LoadBalancer) bool {
		if s.Port != 0 && !slices.ContainsFunc(l.PortMappings, func(m hns.LBPortMapping) bool { return m.ExternalPort == s.Port }) {
			return false
		}
		if s.VIP == "" {
			return s.Port == 0 || len(l.FrontendVIPs) == 0
		}
		return slices.Contains(l.FrontendVIPs, s.VIP)
	})
}

func (c *Cluster) delete(svc *hns.Service, s HNSSelector) error {
	n := 0
	var errs []error
	switch s.Kind {
	case "loadBalancer":
		for _, l := range loadBalancers(svc, s) {
			n++
			errs = append(errs, svc.DeleteLoadBalancer(l.ID))
		}
	case "endpoint":
		for _, e := range c.endpoints(svc, s) {
			n++
			errs = append(errs, svc.DeleteEndpoint(e.ID))
		}
	case "network":
		for _, nw := range svc.ListNetworks(func(nw *hns.Network) bool { return s.Name == "" || nw.Name == s.Name }) {
			n++
			errs = append(errs, svc.DeleteNetwork(nw.ID))
		}
	default:
		return fmt.Errorf("there is no kind %q to delete; write network, endpoint or loadBalancer", s.Kind)
	}
	if n == 0 {
		return fmt.Errorf("nothing to delete: no %s matches %+v", s.Kind, s)
	}
	return errors.Join(errs...)
}

// policy adds a policy to the selected objects, or removes those that match.
func (c *Cluster) policy(svc *hns.Service, p HNSPolicyCall, add bool) error {
	var added hns.Policy
	if add {
		var err error
		if added, err = c.hnsPolicy(p, "added"); err != nil {
			return err
		}
	}
	n := 0
	pick := func(ps []hns.Policy) []hns.Policy {
		var hit []hns.Policy
		for _, q := range hns.PoliciesOf(ps, hns.PolicyType(p.Type)) {
			if matches(q, p.Match) {
				hit = append(hit, q)
			}
		}
		n += len(hit)
		return hit
	}
	var errs []error
	switch p.Kind {
	case "endpoint":
		for _, e := range c.endpoints(svc, p.HNSSelector) {
			if e.Remote() && p.Address == "" {
				continue
			}
			if add {
				n++
				errs = append(errs, svc.AddEndpointPolicies(e.ID, added))
			} else if hit := pick(e.Policies); len(hit) > 0 {
				errs = append(errs, svc.RemoveEndpointPolicies(e.ID, hit...))
			}
		}
	case "network":
		for _, nw := range svc.ListNetworks(func(nw *hns.Network) bool { return p.Name == "" || nw.Name == p.Name }) {
			if add {
				n++
				errs = append(errs, svc.AddNetworkPolicies(nw.ID, added))
			} else if hit := pick(nw.Policies); len(hit) > 0 {
				errs = append(errs, svc.RemoveNetworkPolicies(nw.ID, hit...))
			}
		}
	default:
		return fmt.Errorf("policies are on a network or an endpoint, not on %q", p.Kind)
	}
	if n == 0 {
		return fmt.Errorf("no policy %s of %s matches", p.Type, p.Kind)
	}
	return errors.Join(errs...)
}

// hnsPolicy is the policy of a call, for HNS.
func (c *Cluster) hnsPolicy(p HNSPolicyCall, how string) (hns.Policy, error) {
	settings, err := json.Marshal(p.Settings)
	if err != nil {
		return hns.Policy{}, fmt.Errorf("settings of policy %s: %w", p.Type, err)
	}
	origin := &trace.Origin{What: p.Type + " " + how + " by the lab", File: c.File.Path}
	return hns.ParsePolicy(hns.PolicyType(p.Type), settings).From(origin), nil
}

// update replaces the selected endpoints' policies of a type, by themselves when
// no settings are given.
func (c *Cluster) update(svc *hns.Service, p HNSPolicyCall) error {
	if p.Kind != "endpoint" {
		return fmt.Errorf("updatePolicy is for an endpoint, not for %q", p.Kind)
	}
	var given []hns.Policy
	if p.Settings != nil {
		set, err := c.hnsPolicy(p, "set")
		if err != nil {
			return err
		}
		given = []hns.Policy{set}
	}
	var errs []error
	n := 0
	for _, e := range c.endpoints(svc, p.HNSSelector) {
		if e.Remote() && p.Address == "" {
			continue
		}
		ps := hns.PoliciesOf(e.Policies, hns.PolicyType(p.Type))
		if given != nil {
			ps = given
		}
		if len(ps) > 0 {
			n++
			errs = append(errs, svc.UpdateEndpointPolicies(e.ID, ps...))
		}
	}
	if n == 0 {
		return fmt.Errorf("no endpoint with a policy %s matches", p.Type)
	}
	return errors.Join(errs...)
}

// matches reports whether a policy's settings hold the wanted values. A list
// matches when it holds all wanted elements.
func matches(p hns.Policy, want map[string]any) bool {
	if len(want) == 0 {
		return true
	}
	have, ok := p.Fields()
	if !ok {
		return false
	}
	for k, w := range want {
		h, ok := have[k]
		if !ok {
			return false
		}
		wl, isList := w.([]any)
		if !isList {
			if fmt.Sprint(h) != fmt.Sprint(w) {
				return false
			}
			continue
		}
		hl, _ := h.([]any)
		for _, x := range wl {
			if !slices.ContainsFunc(hl, func(y any) bool { return fmt.Sprint(y) == fmt.Sprint(x) }) {
				return false
			}
		}
	}
	return true
}

// create makes objects from HCN v2 JSON.
func (c *Cluster) create(svc *hns.Service, cr HNSCreate) error {
	count := max(cr.Count, 1)
	for i := 1; i <= count; i++ {
		obj := expand(cr.Object, i).(map[string]any)
		if cr.Kind == "loadBalancer" {
			if err := c.backendIDs(svc, obj); err != nil {
				return err
			}
		}
		if cr.Kind == "endpoint" {
			c.networkID(svc, obj)
		}
		data, err := json.Marshal(obj)
		if err != nil {
			return err
		}
		kind, ok := map[string]hns.Kind{"network": hns.KindNetwork, "endpoint": hns.KindEndpoint, "loadBalancer": hns.KindLoadBalancer}[cr.Kind]
		if !ok {
			return fmt.Errorf("there is no kind %q to create; write network, endpoint or loadBalancer", cr.Kind)
		}
		if _, err := svc.Create(kind, data); err != nil {
			return fmt.Errorf("object %d of %d: %w", i, count, err)
		}
	}
	return nil
}

// expand puts the number of a repeated object into its texts: "%d", or
// "%port" for a number that counts up from a base written as "8000+%d".
func expand(v any, i int) any {
	switch v := v.(type) {
	case map[string]any:
		m := map[string]any{}
		for k, x := range v {
			m[k] = expand(x, i)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for j, x := range v {
			l[j] = expand(x, i)
		}
		return l
	case string:
		if base, ok := strings.CutSuffix(v, "+%d"); ok {
			if n, err := strconv.Atoi(base); err == nil {
				return n + i
			}
		}
		return strings.ReplaceAll(v, "%d", strconv.Itoa(i))
	}
	return v
}

// backendIDs replaces addresses among a load balancer's endpoints by their ids.
func (c *Cluster) backendIDs(svc *hns.Service, obj map[string]any) error {
	list, _ := obj["HostComputeEndpoints"].([]any)
	for i, x := range list {
		text := fmt.Sprint(x)
		var es []*hns.Endpoint
		if a, err := netip.ParseAddr(text); err == nil {
			es = svc.EndpointsByAddress(a)
		} else if p, ok := strings.CutPrefix(text, "pod/"); ok {
			es = c.endpoints(svc, HNSSelector{Pod: p})
		} else {
			continue
		}
		if len(es) == 0 {
			return fmt.Errorf("no endpoint of this HNS has %s", text)
		}
		list[i] = es[0].ID
	}
	return nil
}

// networkID lets an endpoint name its network.
func (c *Cluster) networkID(svc *hns.Service, obj map[string]any) {
	name := fmt.Sprint(obj["HostComputeNetwork"])
	if nw := svc.NetworkByName(name); nw != nil {
		obj["HostComputeNetwork"] = nw.ID
	} else if obj["HostComputeNetwork"] == nil {
		if all := svc.ListNetworks(nil); len(all) > 0 {
			obj["HostComputeNetwork"] = all[0].ID
		}
	}
}
