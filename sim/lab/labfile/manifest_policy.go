package labfile

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Policy is a NetworkPolicy: which connections the pods that it selects may have.
type Policy struct {
	Namespace, Name string
	Pods            labels.Selector
	// RestrictsIn and RestrictsOut are its policyTypes; In and Out what it admits.
	RestrictsIn, RestrictsOut bool
	In, Out                   []PolicyRule
	Origin                    *trace.Origin
}

// PolicyRule admits connections with one of the peers to one of the ports.
type PolicyRule struct {
	Peers []PolicyPeer // empty: all
	Ports []PolicyPort // empty: all
}

// PolicyPeer is a block of addresses, or the pods that two selectors pick.
type PolicyPeer struct {
	Block  netip.Prefix // the zero Prefix: pods
	Except []netip.Prefix
	// Namespaces is nil for the policy's own namespace, Pods for all pods there.
	Namespaces, Pods labels.Selector
}

// PolicyPort is a range of ports or the name of one.
type PolicyPort struct {
	Proto  packet.Proto
	Lo, Hi uint16 // 0: all
	Name   string // "": a range
}

// Key is "namespace/name".
func (p *Policy) Key() string { return p.Namespace + "/" + p.Name }

// Selects reports whether the policy is for a pod.
func (p *Policy) Selects(namespace string, l map[string]string) bool {
	return p.Namespace == namespace && p.Pods.Matches(labels.Set(l))
}

// Picks reports whether the peer of a policy in a namespace is a pod; namespaces has
// the labels of those that a manifest describes.
func (p PolicyPeer) Picks(policy, pod string, podLabels map[string]string, namespaces map[string]map[string]string) bool {
	if p.Namespaces == nil && pod != policy {
		return false
	}
	ns := maps.Clone(namespaces[pod])
	if ns == nil {
		ns = map[string]string{}
	}
	ns[corev1.LabelMetadataName] = pod // the API server sets it
	if p.Namespaces != nil && !p.Namespaces.Matches(labels.Set(ns)) {
		return false
	}
	return p.Pods == nil || p.Pods.Matches(labels.Set(podLabels))
}

// RequiredLabel is a label that every pod has which a selector selects, where it asks for
// one with one value. The selector may be nil.
func RequiredLabel(s labels.Selector) (key, value string, ok bool) {
	if s == nil {
		return "", "", false
	}
	all, _ := s.Requirements()
	for i := range all {
		switch all[i].Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
			if vs := all[i].ValuesUnsorted(); len(vs) == 1 {
				return all[i].Key(), vs[0], true
			}
		}
	}
	return "", "", false
}

// Negative reports whether a selector of the policy is negative.
func (p *Policy) Negative() bool {
	return Negative(p.Pods) || slices.ContainsFunc(slices.Concat(p.In, p.Out), func(r PolicyRule) bool {
		return slices.ContainsFunc(r.Peers, func(q PolicyPeer) bool { return Negative(q.Pods) || Negative(q.Namespaces) })
	})
}

// Negative reports whether a selector requires that a label is absent, or that it does not have
// certain values.
func Negative(s labels.Selector) bool {
	if s == nil {
		return false
	}
	all, _ := s.Requirements()
	return slices.ContainsFunc(all, func(r labels.Requirement) bool {
		return slices.Contains([]selection.Operator{selection.NotIn, selection.DoesNotExist, selection.NotEquals}, r.Operator())
	})
}

// readPolicy reads a NetworkPolicy.
func readPolicy(doc *object, origin *trace.Origin) (*Policy, error) {
	var in networkingv1.NetworkPolicy
	if err := doc.decodeStrict(&in); err != nil {
		return nil, err
	}
	return policyOf(&in, origin)
}

func policyOf(in *networkingv1.NetworkPolicy, origin *trace.Origin) (*Policy, error) {
	p := &Policy{Namespace: namespaceOr(in.Namespace), Name: in.Name, Origin: origin, RestrictsIn: len(in.Spec.PolicyTypes) == 0,
		RestrictsOut: len(in.Spec.PolicyTypes) == 0 && len(in.Spec.Egress) > 0}
	for _, t := range in.Spec.PolicyTypes {
		switch t {
		case networkingv1.PolicyTypeIngress:
			p.RestrictsIn = true
		case networkingv1.PolicyTypeEgress:
			p.RestrictsOut = true
		default:
			return nil, fmt.Errorf("there is no policy type %q; write Ingress or Egress", t)
		}
	}
	var r policyReader
	p.Pods = r.selector(&in.Spec.PodSelector)
	for _, rule := range in.Spec.Ingress {
		p.In = append(p.In, PolicyRule{r.peers(rule.From), r.ports(rule.Ports)})
	}
	for _, rule := range in.Spec.Egress {
		p.Out = append(p.Out, PolicyRule{r.peers(rule.To), r.ports(rule.Ports)})
	}
	return p, errors.Join(r.mistakes...)
}

// policyReader keeps the mistakes of one policy.
type policyReader struct{ mistakes []error }

func (r *policyReader) note(err error) {
	if err != nil {
		r.mistakes = append(r.mistakes, err)
	}
}

// selector reads a selector; nil for none.
func (r *policyReader) selector(in *metav1.LabelSelector) labels.Selector {
	if in == nil {
		return nil
	}
	s, err := metav1.LabelSelectorAsSelector(in)
	if r.note(err); err != nil {
		return labels.Nothing()
	}
	return s
}

func (r *policyReader) peers(in []networkingv1.NetworkPolicyPeer) []PolicyPeer {
	var all []PolicyPeer
	for _, p := range in {
		peer := PolicyPeer{Namespaces: r.selector(p.NamespaceSelector), Pods: r.selector(p.PodSelector)}
		if p.IPBlock != nil {
			peer.Block = r.prefix(p.IPBlock.CIDR)
			for _, e := range p.IPBlock.Except {
				peer.Except = append(peer.Except, r.prefix(e))
			}
		}
		all = append(all, peer)
	}
	return all
}

func (r *policyReader) prefix(text string) netip.Prefix {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		r.note(fmt.Errorf("%q is not a prefix", text))
	}
	return p
}

func (r *policyReader) ports(in []networkingv1.NetworkPolicyPort) []PolicyPort {
	var all []PolicyPort
	for _, p := range in {
		port := PolicyPort{Proto: packet.TCP}
		if p.Protocol != nil && *p.Protocol != corev1.ProtocolTCP {
			port.Proto = protoOf(*p.Protocol)
		}
		if p.Port != nil {
			port.Name = p.Port.StrVal
			if n := p.Port.IntValue(); port.Name == "" {
				if n < 1 || n > 65535 {
					r.note(fmt.Errorf("port %d: ports are 1 to 65535", n))
				}
				port.Lo, port.Hi = uint16(n), uint16(n)
			}
		}
		if p.EndPort != nil {
			if n := *p.EndPort; n < int32(port.Lo) || n > 65535 || port.Lo == 0 {
				r.note(fmt.Errorf("endPort %d: write a port from %d to 65535, with a number as port", n, port.Lo))
			}
			port.Hi = uint16(*p.EndPort)
		}
		all = append(all, port)
	}
	return all
}
