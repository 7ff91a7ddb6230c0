package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/winlab-dev/winlab/sim/lab/plan"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// wanted says with what a call must fail.
func wanted(call plan.Call) string {
	if call.Code == 0 {
		return "any error of HNS"
	}
	return call.Error
}

// Call makes calls to the HNS of nodes, in order. A call that must fail with
// an error code and does not is an error, and the other way round.
func (c *Cluster) Call(calls []plan.Call) error {
	c.changes()
	defer c.changes()
	for i, call := range calls {
		svc := c.HNS(call.Node)
		if svc == nil {
			return fmt.Errorf("HNS call %d: node %s has no HNS in this lab", i+1, call.Node)
		}
		if c.node(call.Node).antrea != nil {
			return fmt.Errorf(
				"HNS call %d: the switch of node %s is Open vSwitch programmed by Antrea, and what HNS does with a call there is not known", i+1,
				call.Node)
		}
		c.settle()
		err := c.call(svc, call)
		if call.Error == "" {
			if err != nil {
				return fmt.Errorf("HNS call %d on %s: %w", i+1, call.Node, err)
			}
			continue
		}
		var he *hns.Error
		switch {
		case err == nil:
			return fmt.Errorf("HNS call %d on %s succeeded, but should fail with %s", i+1, call.Node, wanted(call))
		case !errors.As(err, &he) || call.Code != 0 && !he.Is(&hns.Error{Code: call.Code}):
			return fmt.Errorf("HNS call %d on %s should fail with %s, but: %w", i+1, call.Node, wanted(call), err)
		}
		c.Log = append(c.Log, fmt.Sprintf("HNS of %s, as expected: %v", call.Node, err))
	}
	for _, n := range c.Nodes {
		if n.windows != nil && !n.HNS.Waits() {
			n.windows.Refresh()
		}
	}
	c.disputed()
	return nil
}

// disputed notes error codes that programs of a node or the lab got and that sources
// do not agree on.
func (c *Cluster) disputed() {
	for _, n := range c.Nodes {
		if n.HNS == nil {
			continue
		}
		for _, d := range n.HNS.Disputed() {
			c.notice(fmt.Sprintf("error code 0x%x of HNS on %s", d.Err.Code, n.Name),
				fmt.Sprintf("%s The call that failed: %s. The lab parameter %s pins the code.", d.Question.Fact.Says,
					strings.TrimSuffix(d.Err.Error(), "."), d.Question.Param), nil)
		}
	}
}

func (c *Cluster) call(svc *hns.Service, call plan.Call) error {
	switch {
	case call.Restart:
		svc.Restart()
	case call.Delete != nil:
		return c.delete(svc, *call.Delete)
	case call.Create != nil:
		return c.create(svc, *call.Create)
	case call.Policy != nil && call.Policy.Change == plan.UpdatePolicies:
		return c.update(svc, *call.Policy)
	case call.Policy != nil:
		return c.policy(svc, *call.Policy)
	}
	return nil
}

// endpoints finds the endpoints that a selector means.
func (c *Cluster) endpoints(svc *hns.Service, s plan.Selector) []*hns.Endpoint {
	return svc.ListEndpoints(func(e *hns.Endpoint) bool {
		switch {
		case s.Pod != "":
			p := c.Machine(Ref{PodKind, s.Pod})
			return p != nil && strings.EqualFold(p.Endpoint, e.ID)
		case s.Address.IsValid():
			return slices.Contains(e.Addresses(), s.Address)
		case s.Name != "":
			return e.Name == s.Name
		}
		return true
	})
}

// networks finds the networks that a selector means.
func networks(svc *hns.Service, s plan.Selector) []*hns.Network {
	return svc.ListNetworks(func(nw *hns.Network) bool { return s.Name == "" || nw.Name == s.Name })
}

func loadBalancers(svc *hns.Service, s plan.Selector) []*hns.LoadBalancer {
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

func (c *Cluster) delete(svc *hns.Service, s plan.Selector) error {
	n := 0
	var errs []error
	switch s.Kind {
	case hns.KindLoadBalancer:
		for _, l := range loadBalancers(svc, s) {
			n++
			errs = append(errs, svc.DeleteLoadBalancer(l.ID))
		}
	case hns.KindEndpoint:
		for _, e := range c.endpoints(svc, s) {
			n++
			errs = append(errs, svc.DeleteEndpoint(e.ID))
		}
	case hns.KindNetwork:
		for _, nw := range networks(svc, s) {
			n++
			errs = append(errs, svc.DeleteNetwork(nw.ID))
		}
	default:
		return fmt.Errorf("there is no kind %q to delete; write network, endpoint or loadBalancer", s.Kind)
	}
	if n == 0 {
		return fmt.Errorf("nothing to delete: no %s matches %s", s.Kind, s)
	}
	return errors.Join(errs...)
}

// policyHolder is an object of HNS that has policies.
type policyHolder struct {
	id       string
	policies []hns.Policy
	add      func(id string, ps ...hns.Policy) error
	remove   func(id string, ps ...hns.Policy) error
}

// holders finds the objects whose policies a call changes: remote endpoints only
// when they are named by their address.
func (c *Cluster) holders(svc *hns.Service, s plan.Selector) ([]policyHolder, error) {
	var all []policyHolder
	switch s.Kind {
	case hns.KindEndpoint:
		for _, e := range c.endpoints(svc, s) {
			if !e.Remote() || s.Address.IsValid() {
				all = append(all, policyHolder{e.ID, e.Policies, svc.AddEndpointPolicies, svc.RemoveEndpointPolicies})
			}
		}
	case hns.KindNetwork:
		for _, nw := range networks(svc, s) {
			all = append(all, policyHolder{nw.ID, nw.Policies, svc.AddNetworkPolicies, svc.RemoveNetworkPolicies})
		}
	default:
		return nil, fmt.Errorf("policies are on a network or an endpoint, not on %q", s.Kind)
	}
	return all, nil
}

// policy adds a policy to the selected objects, or removes those that match.
func (c *Cluster) policy(svc *hns.Service, p plan.PolicyCall) error {
	holders, err := c.holders(svc, p.Selector)
	if err != nil {
		return err
	}
	n := 0
	var errs []error
	for _, h := range holders {
		if p.Change == plan.AddPolicies {
			added, err := c.hnsPolicy(p, "added")
			n++
			errs = append(errs, err, h.add(h.id, added))
			continue
		}
		var hit []hns.Policy
		for _, q := range hns.PoliciesOf(h.policies, p.Type) {
			if matches(q, p.Match) {
				hit = append(hit, q)
			}
		}
		if n += len(hit); len(hit) > 0 {
			errs = append(errs, h.remove(h.id, hit...))
		}
	}
	if n == 0 {
		return fmt.Errorf("no policy %s of %s matches", p.Type, p.Kind)
	}
	return errors.Join(errs...)
}

// hnsPolicy is the policy of a call, for HNS.
func (c *Cluster) hnsPolicy(p plan.PolicyCall, how string) (hns.Policy, error) {
	settings, err := json.Marshal(p.Settings)
	if err != nil {
		return hns.Policy{}, fmt.Errorf("settings of policy %s: %w", p.Type, err)
	}
	origin := &trace.Origin{What: string(p.Type) + " " + how + " by the lab", File: c.Plan.File.Path}
	return hns.ParsePolicy(p.Type, settings).From(origin), nil
}

// update replaces the selected endpoints' policies of a type. Without settings
// it sets the same ones again.
func (c *Cluster) update(svc *hns.Service, p plan.PolicyCall) error {
	if p.Kind != hns.KindEndpoint {
		return fmt.Errorf("updatePolicy is for an endpoint, not for %q", p.Kind)
	}
	holders, err := c.holders(svc, p.Selector)
	if err != nil {
		return err
	}
	var errs []error
	n := 0
	for _, h := range holders {
		ps := hns.PoliciesOf(h.policies, p.Type)
		if p.Settings != nil {
			set, err := c.hnsPolicy(p, "set")
			if err != nil {
				return err
			}
			ps = []hns.Policy{set}
		}
		if len(ps) > 0 {
			n++
			errs = append(errs, svc.UpdateEndpointPolicies(h.id, ps...))
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
func (c *Cluster) create(svc *hns.Service, cr plan.Create) error {
	for i := 1; i <= cr.Count; i++ {
		obj := map[string]any{}
		for k, v := range cr.Object {
			obj[k] = expand(v, i)
		}
		switch cr.Kind {
		case hns.KindLoadBalancer:
			if err := c.backendIDs(svc, obj); err != nil {
				return err
			}
		case hns.KindEndpoint:
			networkID(svc, obj)
		case hns.KindNetwork:
		default:
			return fmt.Errorf("there is no kind %q to create; write network, endpoint or loadBalancer", cr.Kind)
		}
		data, err := json.Marshal(obj)
		if err != nil {
			return err
		}
		if _, err := svc.Create(cr.Kind, data); err != nil {
			err = fmt.Errorf("object %d of %d: %w", i, cr.Count, err)
			c.refused(svc, cr, i, err)
			return err
		}
	}
	return nil
}

// refused notes the load balancers that a lab asked for and that are not there because
// HNS refused one of them: that one, and those that came after it.
func (c *Cluster) refused(svc *hns.Service, cr plan.Create, first int, err error) {
	if cr.Kind != hns.KindLoadBalancer {
		return
	}
	at := slices.IndexFunc(c.Nodes, func(n *Node) bool { return n.HNS == svc })
	for i := first; i <= cr.Count; i++ {
		var lb hns.LoadBalancer
		object := expand(cr.Object, i).(map[string]any)
		delete(object, "HostComputeEndpoints") // names of pods
		if data, bad := json.Marshal(object); bad == nil && json.Unmarshal(data, &lb) == nil {
			c.Nodes[at].refused = append(c.Nodes[at].refused, refusal{lb, err})
		}
	}
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
			es = c.endpoints(svc, plan.Selector{Pod: plan.PodKey(p)})
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
func networkID(svc *hns.Service, obj map[string]any) {
	name := fmt.Sprint(obj["HostComputeNetwork"])
	if nw := svc.NetworkByName(name); nw != nil {
		obj["HostComputeNetwork"] = nw.ID
	} else if obj["HostComputeNetwork"] == nil {
		if all := svc.ListNetworks(nil); len(all) > 0 {
			obj["HostComputeNetwork"] = all[0].ID
		}
	}
}
