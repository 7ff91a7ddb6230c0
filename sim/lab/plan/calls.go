package plan

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// Call is one call to a node's HNS: exactly one of its actions is set.
type Call struct {
	Node string
	// What says in words what it does.
	What    string
	Restart bool
	Delete  *Selector
	Policy  *PolicyCall
	Create  *Create
	// Code is the error code that it must fail with, as the lab writes it in
	// Error; Error "" is a call that must succeed.
	Code  uint32
	Error string
}

// Selector selects objects of HNS.
type Selector struct {
	Kind hns.Kind
	Name string
	// Pod is "namespace/name".
	Pod     string
	Address netip.Addr
	VIP     string
	Port    uint16
}

// String says what the selector asks for: "pod client, port 80".
func (s Selector) String() string {
	var all []string
	for _, f := range [][2]string{{"name", s.Name}, {"pod", s.Pod}, {"VIP", s.VIP}} {
		if f[1] != "" {
			all = append(all, f[0]+" "+f[1])
		}
	}
	if s.Address.IsValid() {
		all = append(all, "address "+s.Address.String())
	}
	if s.Port != 0 {
		all = append(all, fmt.Sprintf("port %d", s.Port))
	}
	if len(all) == 0 {
		return "any"
	}
	return strings.Join(all, ", ")
}

// Change says what a call does to policies.
type Change int

// What can be done to policies.
const (
	AddPolicies Change = iota
	RemovePolicies
	UpdatePolicies
)

// PolicyCall changes policies of the selected objects.
type PolicyCall struct {
	Selector
	Change Change
	Type   hns.PolicyType
	// Match narrows a removal by fields of the settings.
	Match map[string]any
	// Settings are those of the policy to add or set; nil sets again what is there.
	Settings map[string]any
}

// Create makes objects from HCN v2 JSON.
type Create struct {
	Kind   hns.Kind
	Object map[string]any
	Count  int
}

// calls reads the lab's own calls.
func (p *Plan) calls(s *labfile.Spec) error {
	var err error
	p.Calls, err = Calls(s.HNS)
	return err
}

// Calls reads calls as a lab writes them.
func Calls(list []labfile.HNSCall) ([]Call, error) {
	var all []Call
	for i, in := range list {
		c, err := call(in)
		if err != nil {
			return nil, fmt.Errorf("HNS call %d: %w", i+1, err)
		}
		all = append(all, c)
	}
	return all, nil
}

func call(in labfile.HNSCall) (Call, error) {
	var r reader
	c := Call{Node: in.Node, What: in.String(), Restart: in.Restart, Error: in.Error}
	switch {
	case in.Restart:
	case in.Delete != nil:
		sel := selector(&r, *in.Delete)
		c.Delete = &sel
	case in.RemovePolicy != nil:
		c.Policy = policyCall(&r, in.RemovePolicy, RemovePolicies)
	case in.AddPolicy != nil:
		c.Policy = policyCall(&r, in.AddPolicy, AddPolicies)
	case in.UpdatePolicy != nil:
		c.Policy = policyCall(&r, in.UpdatePolicy, UpdatePolicies)
	case in.Create != nil:
		c.Create = &Create{Kind: hns.Kind(in.Create.Kind), Object: in.Create.Object, Count: max(in.Create.Count, 1)}
	default:
		return c,
			fmt.Errorf(
				"an HNS call must have exactly one of delete, removePolicy, addPolicy, updatePolicy, create and restart; this one has none of them")
	}
	if in.Error != "" {
		code, err := labfile.ParseErrorCode(in.Error)
		r.note(err)
		c.Code = code
	}
	return c, r.err()
}

func policyCall(r *reader, in *labfile.HNSPolicyCall, change Change) *PolicyCall {
	return &PolicyCall{Selector: selector(r, in.HNSSelector), Change: change, Type: hns.PolicyType(in.Type), Match: in.Match,
		Settings: in.Settings}
}

func selector(r *reader, in labfile.HNSSelector) Selector {
	s := Selector{Kind: hns.Kind(in.Kind), Name: in.Name, Address: r.addr(in.Address), VIP: in.VIP, Port: in.Port}
	if in.Pod != "" {
		s.Pod = PodKey(in.Pod)
	}
	return s
}
