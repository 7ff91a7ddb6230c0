package suite

import (
	"context"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/winlab-dev/winlab/conformance/claims"
)

// LeaveOut takes specs away that are about some networks only, where it is unknown whether the
// cluster's is one of these, and says so in a note; "" when there are none.
func (c *Cluster) LeaveOut(specs []Spec) (sure []Spec, note string) {
	targets := c.Targets()
	var ids []string
	for _, s := range specs {
		if !s.restsOnNetwork(targets) {
			sure = append(sure, s)
		} else if !slices.Contains(ids, s.Claim.ID) {
			ids = append(ids, s.Claim.ID)
		}
	}
	if len(ids) == 0 {
		return sure, ""
	}
	slices.Sort(ids)
	what, flags := "network", "--network and --plugin"
	if c.Network != "" {
		what, flags = "network plugin", "--plugin"
		if c.Plugin != "" {
			what = "network plugin as the ledger names it"
		}
	}
	note = fmt.Sprintf(
		"%d checks are left out, since they are about some networks only and the %s is not known (%s); they are of the claims %s",
		len(specs)-len(sure), what, flags, strings.Join(ids, ", "))
	c.note("%s", note)
	return sure, note
}

// restsOnNetwork reports whether a spec applies with some of the ledger's designs that the
// targets could be, and not with others.
func (s *Spec) restsOnNetwork(targets []claims.Target) bool {
	if len(targets) == 0 || targets[0].Network != "" && targets[0].Plugin != "" {
		return false
	}
	applies, not := false, false
	for _, d := range claims.Designs {
		if d.Network == "nat" {
			continue // of one machine: the documents do not speak of it
		}
		var as []claims.Target
		for _, t := range targets {
			if t.Network != "" && t.Network != d.Network || t.Plugin != "" && t.Plugin != d.Plugin ||
				!(claims.Where{Kubernetes: d.Kubernetes}).Applies(t) {
				continue
			}
			t.Network, t.Plugin = d.Network, d.Plugin
			as = append(as, t)
		}
		if len(as) == 0 {
			continue
		}
		if s.Documented(as).Applies {
			applies = true
		} else {
			not = true
		}
	}
	return applies && not
}

// flannelBackend is an annotation of every node that flannel has (flannel-io/flannel
// pkg/subnet/kube/annotations.go).
const flannelBackend = "flannel.alpha.coreos.com/backend-type"

// networkOfBackend are the HNS networks of flannel's backends.
var networkOfBackend = map[string]string{"vxlan": "overlay", "host-gw": "l2bridge"}

// ofNodes recognises a plugin by annotations of the Windows nodes.
func (c *Cluster) ofNodes() (plugin, network string) {
	for i := range c.nodes {
		if n := &c.nodes[i]; osOf(n) == "windows" {
			if network, ok := networkOfBackend[strings.ToLower(n.Annotations[flannelBackend])]; ok {
				return "flannel", network
			}
		}
	}
	return "", ""
}

// networkOfCalico are the HNS networks of Calico's backends for Windows, which a variable of
// its DaemonSet names.
var networkOfCalico = map[string]string{"vxlan": "overlay", "windows-bgp": "l2bridge"}

// calico looks for Calico's DaemonSet for Windows and its backend.
func calico(ctx context.Context, client kubernetes.Interface) (plugin, network string) {
	for _, namespace := range []string{"calico-system", "kube-system"} {
		ds, err := client.AppsV1().DaemonSets(namespace).Get(ctx, "calico-node-windows", metav1.GetOptions{})
		if err != nil {
			continue
		}
		plugin = "calico"
		for _, container := range slices.Concat(ds.Spec.Template.Spec.InitContainers, ds.Spec.Template.Spec.Containers) {
			if i := slices.IndexFunc(container.Env, func(e v1.EnvVar) bool { return e.Name == "CALICO_NETWORKING_BACKEND" }); i >= 0 &&
				network == "" {
				network = networkOfCalico[container.Env[i].Value]
			}
		}
		return plugin, network
	}
	return "", ""
}

// amazon looks for the configuration of Amazon's plugin: with Windows support on, it makes
// l2bridge networks (aws/amazon-vpc-cni-plugins plugins/vpc-bridge).
func amazon(ctx context.Context, client kubernetes.Interface) (plugin, network string) {
	cm, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, "amazon-vpc-cni", metav1.GetOptions{})
	if err != nil || cm.Data["enable-windows-ipam"] != "true" {
		return "", ""
	}
	return "amazon-vpc-cni", "l2bridge"
}
