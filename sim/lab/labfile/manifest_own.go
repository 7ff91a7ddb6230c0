package labfile

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/winlab-dev/winlab/internal/lazyregexp"
	"github.com/winlab-dev/winlab/sim/trace"
)

// OwnPolicy is a policy of a network plugin's own kind, of which only is read whom it may select: a
// Calico NetworkPolicy or GlobalNetworkPolicy, an Antrea ClusterNetworkPolicy or NetworkPolicy.
type OwnPolicy struct {
	// Plugin is whose kind it is, "calico" or "antrea".
	Plugin, Kind, Name string
	// Namespace is "" for one of the whole cluster.
	Namespace string
	// In and Out are the directions about which it says something.
	In, Out bool
	Origin  *trace.Origin
	// may reports whether it may select a pod of a namespace in its scope.
	may func(namespace string, pod map[string]string, namespaces map[string]map[string]string) bool
}

// Key is the kind and the name.
func (p *OwnPolicy) Key() string {
	if p.Namespace == "" {
		return p.Kind + " " + p.Name
	}
	return p.Kind + " " + p.Namespace + "/" + p.Name
}

// MaySelect reports whether the policy may be for a pod. Where a selector is more than is read here,
// it may.
func (p *OwnPolicy) MaySelect(namespace string, pod map[string]string, namespaces map[string]map[string]string) bool {
	return (p.Namespace == "" || p.Namespace == namespace) && (p.may == nil || p.may(namespace, pod, namespaces))
}

// ownKind is the plugin whose own kind of policy an object is, "" for none.
func ownKind(apiVersion, kind string) string {
	group, _, _ := strings.Cut(apiVersion, "/")
	switch {
	case strings.HasSuffix(group, "projectcalico.org") && (kind == "NetworkPolicy" || kind == "GlobalNetworkPolicy"):
		return "calico"
	case group == "crd.antrea.io" && (kind == "NetworkPolicy" || kind == "ClusterNetworkPolicy"):
		return "antrea"
	}
	return ""
}

// readOwnPolicy reads as much of a policy as says whom it may select.
func readOwnPolicy(plugin string, doc *object, origin *trace.Origin) (*OwnPolicy, error) {
	var in struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			Selector  string   `json:"selector"`
			Types     []string `json:"types"`
			Ingress   []any    `json:"ingress"`
			Egress    []any    `json:"egress"`
			AppliedTo []struct {
				PodSelector       *metav1.LabelSelector `json:"podSelector"`
				NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector"`
			} `json:"appliedTo"`
		} `json:"spec"`
	}
	if err := doc.decode(&in); err != nil {
		return nil, err
	}
	p := &OwnPolicy{Plugin: plugin, Kind: in.Kind + " of " + plugin, Name: in.Name, Origin: origin}
	if !strings.HasPrefix(in.Kind, "Global") && !strings.HasPrefix(in.Kind, "Cluster") {
		p.Namespace = namespaceOr(in.Namespace)
	}
	p.In, p.Out = len(in.Spec.Ingress) > 0, len(in.Spec.Egress) > 0
	if plugin == "calico" {
		// Without types a policy is for what comes in, unless it has egress rules only
		// (projectcalico/api pkg/apis/projectcalico/v3 NetworkPolicySpec Types).
		p.In = p.In || !p.Out
		if len(in.Spec.Types) > 0 {
			p.In, p.Out = slices.Contains(in.Spec.Types, "Ingress"), slices.Contains(in.Spec.Types, "Egress")
		}
		p.may = calicoSelector(in.Spec.Selector)
		return p, nil
	}
	var r policyReader
	type to struct{ namespaces, pods labels.Selector }
	var all []to
	for _, a := range in.Spec.AppliedTo {
		all = append(all, to{r.selector(a.NamespaceSelector), r.selector(a.PodSelector)})
	}
	if len(all) == 0 || len(r.mistakes) > 0 {
		return p, nil // of single rules, or what is not read here
	}
	p.may = func(namespace string, pod map[string]string, namespaces map[string]map[string]string) bool {
		return slices.ContainsFunc(all, func(a to) bool {
			if a.namespaces == nil && a.pods == nil {
				return true // by something else than labels
			}
			peer := PolicyPeer{Namespaces: a.namespaces, Pods: a.pods}
			if a.namespaces == nil && p.Namespace == "" {
				peer.Namespaces = labels.Everything()
			}
			return peer.Picks(p.Namespace, namespace, pod, namespaces)
		})
	}
	return p, nil
}

var (
	calicoEquals = lazyregexp.New(`^([A-Za-z0-9_./-]+)\s*==\s*(?:'([^']*)'|"([^"]*)")$`)
	calicoHas    = lazyregexp.New(`^has\(\s*([A-Za-z0-9_./-]+)\s*\)$`)
)

// calicoSelector reads the commonest selectors of Calico: all(), has(k), k == 'v', and several with &&.
// nil is one that may select any pod.
func calicoSelector(text string) func(string, map[string]string, map[string]map[string]string) bool {
	equals, has := map[string]string{}, []string{}
	for _, term := range strings.Split(text, "&&") {
		term = strings.TrimSpace(term)
		if m := calicoEquals.FindStringSubmatch(term); m != nil {
			if strings.HasPrefix(m[1], "projectcalico.org/") { // labels that Calico makes
				return nil
			}
			equals[m[1]] = m[2] + m[3]
		} else if m := calicoHas.FindStringSubmatch(term); m != nil && !strings.HasPrefix(m[1], "projectcalico.org/") {
			has = append(has, m[1])
		} else if term != "" && term != "all()" {
			return nil
		}
	}
	return func(_ string, pod map[string]string, _ map[string]map[string]string) bool {
		for k, v := range equals {
			if w, ok := pod[k]; !ok || w != v {
				return false
			}
		}
		return !slices.ContainsFunc(has, func(k string) bool { _, ok := pod[k]; return !ok })
	}
}
