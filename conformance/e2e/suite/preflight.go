package suite

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authorization "k8s.io/api/authorization/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// rights are what the specs do.
var rights = []authorization.ResourceAttributes{
	{Verb: "create", Resource: "namespaces"}, {Verb: "delete", Resource: "namespaces"}, {Verb: "list", Resource: "nodes"},
	{Verb: "create", Resource: "pods"}, {Verb: "create", Resource: "pods", Subresource: "exec"},
	{Verb: "get", Resource: "pods", Subresource: "log"},
	{Verb: "create", Resource: "services"}, {Verb: "create", Resource: "configmaps"}, {Verb: "create", Resource: "secrets"},
	{Verb: "create", Resource: "resourcequotas"},
	{Verb: "create", Group: "apps", Resource: "deployments"}, {Verb: "create", Group: "apps", Resource: "daemonsets"},
	{Verb: "create", Group: "apps", Resource: "statefulsets"},
	{Verb: "create", Group: "batch", Resource: "jobs"}, {Verb: "create", Group: "scheduling.k8s.io", Resource: "priorityclasses"},
	{Verb: "list", Group: "discovery.k8s.io", Resource: "endpointslices"}, {Verb: "get", Resource: "nodes", Subresource: "proxy"},
}

// Preflight lists, all at once, what keeps specs from being tried on a cluster; apiOnly
// says that none of them runs a pod. Each line says what to do about it.
func Preflight(ctx context.Context, client kubernetes.Interface, c *Cluster, apiOnly bool) ([]string, error) {
	var missing []string
	add := func(format string, args ...any) { missing = append(missing, fmt.Sprintf(format, args...)) }
	for _, r := range rights {
		if apiOnly && (r.Resource != "pods" || r.Subresource != "") {
			continue
		}
		review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorization.SelfSubjectAccessReview{
			Spec: authorization.SelfSubjectAccessReviewSpec{ResourceAttributes: &r}}, metav1.CreateOptions{})
		if err != nil {
			return nil, fmt.Errorf("asking for the rights of this user: %w", err)
		}
		if !review.Status.Allowed {
			add("RBAC: this user may not %s %s; give it a role that allows it", r.Verb,
				strings.TrimSuffix(r.Group+"/"+r.Resource+"/"+r.Subresource, "/"))
		}
	}
	if !apiOnly {
		missing = append(missing, c.missingNodes()...)
	}
	var builds []string
	for _, n := range c.Nodes {
		builds = append(builds, n.Build)
	}
	if err := checkTags(ImageList(builds)); err != nil {
		add("images: %v; correct the file given with --image-repo-list", err)
	}
	return missing, nil
}

// missingNodes says why no pod of a spec could run.
func (c *Cluster) missingNodes() []string {
	var missing []string
	windows, hollows := 0, 0
	for i := range c.nodes {
		n := &c.nodes[i]
		if hollow(n) {
			hollows++
			continue
		}
		if osOf(n) != "windows" {
			continue
		}
		windows++
		switch {
		case !ready(n):
			missing = append(missing, fmt.Sprintf("node %s is not Ready: look at kubectl describe node %s", n.Name, n.Name))
		case n.Spec.Unschedulable:
			missing = append(missing, fmt.Sprintf("node %s is cordoned: kubectl uncordon %s", n.Name, n.Name))
		}
		for _, t := range n.Spec.Taints {
			if t.Effect != v1.TaintEffectPreferNoSchedule && !isTolerated(t) && !strings.HasPrefix(t.Key, "node.kubernetes.io/") {
				missing = append(missing, fmt.Sprintf("node %s has the taint %s, which the specs' pods do not tolerate: kubectl taint node %s %s-",
					n.Name, t.ToString(), n.Name, t.ToString()))
			}
		}
	}
	if hollows > 0 {
		missing = append(missing,
			fmt.Sprintf("%d of the nodes are hollow (kwok), and say of every pod that it runs: try the specs on a cluster without them", hollows))
	}
	if windows == 0 {
		missing = append([]string{fmt.Sprintf("no Windows node among %d nodes: join one, or try what needs none with --areas or --claims",
			len(c.nodes))}, missing...)
	}
	return missing
}

// isTolerated reports whether the specs' pods tolerate a taint.
func isTolerated(t v1.Taint) bool {
	return slices.ContainsFunc(tolerated, func(x v1.Toleration) bool { return x.Key == t.Key && x.Value == t.Value })
}
