package labfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winlab-dev/winlab/sim/trace"
)

// adminGroup is the API group of policies for whole clusters (kubernetes-sigs/network-policy-api).
const adminGroup = "policy.networking.k8s.io"

// The kinds of the group.
const (
	kindAdmin    = "AdminNetworkPolicy"
	kindBaseline = "BaselineAdminNetworkPolicy"
	kindCluster  = "ClusterNetworkPolicy"
)

// AdminPolicy is an AdminNetworkPolicy, a BaselineAdminNetworkPolicy or a ClusterNetworkPolicy: the
// cluster's administrator decides, before NetworkPolicies or where there are none.
type AdminPolicy struct {
	Kind, Name string
	// Baseline is set for one that decides about pods that no NetworkPolicy selects.
	Baseline bool
	// Priority is lower for one that is asked earlier.
	Priority int32
	// Subject picks the pods that it is for.
	Subject PolicyPeer
	In, Out []AdminRule
	Origin  *trace.Origin
}

// Action is what a rule of an [AdminPolicy] does.
type Action string

// The actions. Pass leaves the decision to NetworkPolicies and what comes after them. A
// ClusterNetworkPolicy writes Accept for Allow.
const (
	ActionAllow Action = "Allow"
	ActionDeny  Action = "Deny"
	ActionPass  Action = "Pass"
)

// AdminRule is a rule of an [AdminPolicy]. The first that holds decides.
type AdminRule struct {
	Name   string
	Action Action
	PolicyRule
	// Nodes are set where a peer is nodes by their labels, Domains where it is names: whether such
	// a peer holds is not known here.
	Nodes, Domains bool
	// Nobody is set when no peer that could hold is left.
	Nobody bool
}

// Key is the kind and the name.
func (p *AdminPolicy) Key() string { return p.Kind + " " + p.Name }

// Selects reports whether the policy is for a pod.
func (p *AdminPolicy) Selects(namespace string, pod map[string]string, namespaces map[string]map[string]string) bool {
	return p.Subject.Picks("", namespace, pod, namespaces)
}

// isAdminPolicy reports whether an object is one.
func isAdminPolicy(apiVersion, kind string) bool {
	group, _, _ := strings.Cut(apiVersion, "/")
	return group == adminGroup && slices.Contains([]string{kindAdmin, kindBaseline, kindCluster}, kind)
}

// The fields of all three kinds. Those that a kind does not have are mistakes in it.
type (
	adminObject struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			Tier     string     `json:"tier,omitempty"`
			Priority *int32     `json:"priority,omitempty"`
			Subject  adminPeer  `json:"subject"`
			Ingress  []adminIn  `json:"ingress,omitempty"`
			Egress   []adminOut `json:"egress,omitempty"`
		} `json:"spec"`
		Status any `json:"status,omitempty"`
	}
	adminIn struct {
		adminRule `json:",inline"`
		From      []adminPeer `json:"from"`
	}
	adminOut struct {
		adminRule `json:",inline"`
		To        []adminPeer `json:"to"`
	}
	adminRule struct {
		Name      string          `json:"name,omitempty"`
		Action    string          `json:"action"`
		Ports     []adminPort     `json:"ports,omitempty"`
		Protocols []adminProtocol `json:"protocols,omitempty"`
	}
	adminPeer struct {
		Namespaces *metav1.LabelSelector `json:"namespaces,omitempty"`
		Pods       *struct {
			NamespaceSelector metav1.LabelSelector `json:"namespaceSelector"`
			PodSelector       metav1.LabelSelector `json:"podSelector"`
		} `json:"pods,omitempty"`
		Nodes       *metav1.LabelSelector `json:"nodes,omitempty"`
		Networks    []string              `json:"networks,omitempty"`
		DomainNames []string              `json:"domainNames,omitempty"`
	}
	adminPort struct {
		PortNumber *struct {
			Protocol corev1.Protocol `json:"protocol"`
			Port     int32           `json:"port"`
		} `json:"portNumber,omitempty"`
		NamedPort string `json:"namedPort,omitempty"`
		PortRange *struct {
			Protocol corev1.Protocol `json:"protocol,omitempty"`
			Start    int32           `json:"start"`
			End      int32           `json:"end"`
		} `json:"portRange,omitempty"`
	}
	adminProtocol struct {
		TCP                  *adminDestination `json:"tcp,omitempty"`
		UDP                  *adminDestination `json:"udp,omitempty"`
		SCTP                 *adminDestination `json:"sctp,omitempty"`
		DestinationNamedPort string            `json:"destinationNamedPort,omitempty"`
	}
	adminDestination struct {
		DestinationPort *struct {
			Number int32 `json:"number,omitempty"`
			Range  *struct {
				Start int32 `json:"start"`
				End   int32 `json:"end"`
			} `json:"range,omitempty"`
		} `json:"destinationPort,omitempty"`
	}
)

// readAdminPolicy reads an object of the group.
func readAdminPolicy(doc *object, origin *trace.Origin) (*AdminPolicy, error) {
	var in adminObject
	if err := doc.decodeStrict(&in); err != nil {
		return nil, err
	}
	r := &adminReader{kind: in.Kind}
	p := &AdminPolicy{Kind: in.Kind, Name: in.Name, Baseline: in.Kind == kindBaseline, Origin: origin}
	r.head(&in, p)
	for i := range in.Spec.Ingress {
		x := &in.Spec.Ingress[i]
		for j := range x.From {
			if f := &x.From[j]; f.outside() {
				r.note(fmt.Errorf("ingress %d: from must have namespaces or pods, and nothing else", i+1))
			}
		}
		p.In = append(p.In, r.rule(fmt.Sprintf("ingress %d", i+1), &x.adminRule, x.From, p.Baseline))
	}
	for i := range in.Spec.Egress {
		x := &in.Spec.Egress[i]
		p.Out = append(p.Out, r.rule(fmt.Sprintf("egress %d", i+1), &x.adminRule, x.To, p.Baseline))
	}
	return p, errors.Join(r.mistakes...)
}

// outside reports whether a peer does not consist of pods.
func (p *adminPeer) outside() bool { return len(p.Networks)+len(p.DomainNames) > 0 || p.Nodes != nil }

// head reads what is not of a rule.
func (r *adminReader) head(in *adminObject, p *AdminPolicy) {
	switch {
	case in.Kind == kindBaseline && in.Name != "default":
		r.note(fmt.Errorf("its name is %q; a cluster has only one, and its name must be default", in.Name))
	case in.Kind == kindCluster && in.Spec.Tier != "Admin" && in.Spec.Tier != "Baseline":
		r.note(fmt.Errorf("tier is %q; write Admin or Baseline", in.Spec.Tier))
	case in.Kind != kindCluster && in.Spec.Tier != "":
		r.note(fmt.Errorf("%s has no tier", in.Kind))
	}
	p.Baseline = p.Baseline || in.Spec.Tier == "Baseline"
	switch v := in.Spec.Priority; {
	case in.Kind == kindBaseline && v != nil:
		r.note(fmt.Errorf("%s has no priority", in.Kind))
	case in.Kind != kindBaseline && (v == nil || *v < 0 || *v > 1000):
		r.note(errors.New("priority is missing; write 0 to 1000"))
	case v != nil:
		p.Priority = *v
	}
	if in.Spec.Subject.outside() {
		r.note(errors.New("subject must have namespaces or pods, and nothing else"))
	}
	if all := r.peer(&in.Spec.Subject); len(all) == 1 {
		p.Subject = all[0]
	}
	if n := max(len(in.Spec.Ingress), len(in.Spec.Egress)); n > maxAdminRules {
		r.note(fmt.Errorf("%d rules in one direction; the API accepts at most %d", n, maxAdminRules))
	}
}

type adminReader struct {
	policyReader
	kind string
}

// maxAdminRules is how many rules the API takes in a direction.
const maxAdminRules = 100

func (r *adminReader) rule(at string, in *adminRule, peers []adminPeer, baseline bool) AdminRule {
	out := AdminRule{Name: in.Name, Action: Action(in.Action)}
	allow := "Allow"
	if r.kind == kindCluster {
		if allow = "Accept"; in.Action == allow {
			out.Action = ActionAllow
		} else if out.Action == ActionAllow {
			out.Action = ""
		}
	}
	switch {
	case !slices.Contains([]Action{ActionAllow, ActionDeny, ActionPass}, out.Action):
		r.note(fmt.Errorf("%s: action is %q; write %s, Deny or Pass", at, in.Action, allow))
	case out.Action == ActionPass && r.kind == kindBaseline:
		r.note(fmt.Errorf("%s: %s cannot use Pass: nothing comes after it", at, r.kind))
	}
	if len(peers) == 0 {
		r.note(fmt.Errorf("%s: it has no peers; write namespaces: {} for all pods, or networks", at))
	}
	for i := range peers {
		p := &peers[i]
		out.Nodes, out.Domains = out.Nodes || p.Nodes != nil, out.Domains || len(p.DomainNames) > 0
		out.Peers = append(out.Peers, r.peer(p)...)
	}
	out.Nobody = len(out.Peers) == 0
	out.PolicyRule.Ports = r.ports(at, in)
	return out
}

// peer reads a peer; nodes and names are left out here.
func (r *adminReader) peer(in *adminPeer) (all []PolicyPeer) {
	set := 0
	if in.Namespaces != nil {
		set++
		all = append(all, PolicyPeer{Namespaces: r.selector(in.Namespaces)})
	}
	if in.Pods != nil {
		set++
		all = append(all, PolicyPeer{Namespaces: r.selector(&in.Pods.NamespaceSelector), Pods: r.selector(&in.Pods.PodSelector)})
	}
	if in.Nodes != nil {
		set++
		r.selector(in.Nodes)
	}
	if len(in.Networks) > 0 {
		set++
		for _, n := range in.Networks {
			all = append(all, PolicyPeer{Block: r.prefix(n)})
		}
	}
	if len(in.DomainNames) > 0 {
		set++
	}
	if set != 1 {
		r.note(fmt.Errorf("a subject or peer must have exactly one of namespaces, pods, nodes, networks and domainNames; this one has %d", set))
	}
	return all
}

func (r *adminReader) ports(at string, in *adminRule) (all []PolicyPort) {
	add := func(proto corev1.Protocol, lo, hi int32) {
		if lo < 1 || hi < lo || hi > 65535 {
			r.note(fmt.Errorf("%s: ports %d to %d: ports are 1 to 65535", at, lo, hi))
			return
		}
		all = append(all, PolicyPort{Proto: protoOf(proto), Lo: uint16(lo), Hi: uint16(hi)})
	}
	if r.kind == kindCluster && len(in.Ports) > 0 {
		r.note(fmt.Errorf("%s: %s takes protocols, not ports", at, r.kind))
	}
	if r.kind != kindCluster && len(in.Protocols) > 0 {
		r.note(fmt.Errorf("%s: %s takes ports, not protocols", at, r.kind))
	}
	for _, p := range in.Ports {
		switch {
		case p.PortNumber != nil:
			add(p.PortNumber.Protocol, p.PortNumber.Port, p.PortNumber.Port)
		case p.PortRange != nil:
			add(p.PortRange.Protocol, p.PortRange.Start, p.PortRange.End)
		case p.NamedPort != "":
			all = append(all, PolicyPort{Name: p.NamedPort})
		default:
			r.note(fmt.Errorf("%s: a port must have portNumber, portRange or namedPort", at))
		}
	}
	for _, p := range in.Protocols {
		some := false
		for proto, d := range map[corev1.Protocol]*adminDestination{corev1.ProtocolTCP: p.TCP, corev1.ProtocolUDP: p.UDP,
			corev1.ProtocolSCTP: p.SCTP} {
			if d == nil {
				continue
			}
			some = true
			switch to := d.DestinationPort; {
			case to == nil:
				all = append(all, PolicyPort{Proto: protoOf(proto)})
			case to.Range != nil:
				add(proto, to.Range.Start, to.Range.End)
			default:
				add(proto, to.Number, to.Number)
			}
		}
		switch {
		case p.DestinationNamedPort != "":
			all = append(all, PolicyPort{Name: p.DestinationNamedPort})
		case !some:
			r.note(fmt.Errorf("%s: a protocol must have tcp, udp, sctp or destinationNamedPort", at))
		}
	}
	slices.SortFunc(all, func(a, b PolicyPort) int {
		return strings.Compare(fmt.Sprint(a.Name, a.Proto, a.Lo), fmt.Sprint(b.Name, b.Proto, b.Lo))
	})
	return all
}
