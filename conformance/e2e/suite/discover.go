package suite

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/reports/result"
)

// What a simulated cluster says of itself on its nodes, as labels or annotations:
// that it is one, of which lab, and what a cluster cannot tell by itself.
const (
	simulatedKey = "winlab.dev/simulated"
	hollowKey    = "winlab.dev/hollow"
	labKey       = "winlab.dev/lab"
	networkKey   = "winlab.dev/network"
	pluginKey    = "winlab.dev/plugin"
	proxyKey     = "winlab.dev/proxy"
)

// Cluster is what was discovered.
type Cluster struct {
	result.ClusterInfo
	// Network, Plugin, PluginVersion and Proxy are "" where nothing visible says so.
	Network, Plugin, PluginVersion, Proxy string
	// Lab is the lab of a simulated cluster.
	Lab string

	nodes []v1.Node
}

// Given is what somebody says about a cluster that cannot be seen from outside.
type Given struct {
	Network, Plugin, Proxy string
	// Lab is that of a simulated cluster.
	Lab string
}

// Discover looks at the nodes and at the configuration of the network plugin and of
// kube-proxy, as far as they are visible. What it may not see it leaves open and notes.
func Discover(ctx context.Context, client kubernetes.Interface, provider string, given Given) (*Cluster, error) {
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("the API server does not answer: %w", err)
	}
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("nodes cannot be listed: %w", err)
	}
	c := &Cluster{ClusterInfo: result.ClusterInfo{Provider: provider, Server: version.GitVersion}, nodes: list.Items}
	slices.SortFunc(c.nodes, func(a, b v1.Node) int { return strings.Compare(a.Name, b.Name) })
	for i := range c.nodes {
		n := &c.nodes[i]
		info := n.Status.NodeInfo
		c.Nodes = append(c.Nodes, result.ClusterNode{Name: n.Name, OS: osOf(n), Build: buildOf(n), Kubelet: info.KubeletVersion,
			Runtime: info.ContainerRuntimeVersion, Image: info.OSImage})
		for _, kv := range []map[string]string{n.Labels, n.Annotations} {
			if _, ok := kv[simulatedKey]; ok {
				c.Simulated, c.Lab = true, cmp.Or(c.Lab, kv[labKey], given.Lab)
			}
			c.Network, c.Plugin, c.Proxy = cmp.Or(c.Network, kv[networkKey]), cmp.Or(c.Plugin, kv[pluginKey]), cmp.Or(c.Proxy, kv[proxyKey])
		}
	}
	if i := slices.IndexFunc(claims.Designs, func(d claims.Design) bool { return d.Name == c.Lab }); i >= 0 {
		c.Network, c.Plugin = cmp.Or(c.Network, claims.Designs[i].Network), cmp.Or(c.Plugin, claims.Designs[i].Plugin)
	}
	c.plugin(ctx, client)
	c.proxy(ctx, client)
	c.Network, c.Plugin, c.Proxy = cmp.Or(given.Network, c.Network), cmp.Or(given.Plugin, c.Plugin), cmp.Or(given.Proxy, c.Proxy)
	if c.Network == "" {
		c.note("the network mode is not visible; give it with --network (l2bridge, overlay, l2tunnel, transparent, nat)")
	}
	if c.Proxy == "" {
		c.note("whether kube-proxy uses DSR is not visible; give it with --proxy (kernelspace, kernelspace-dsr, none)")
	}
	return c, nil
}

func (c *Cluster) note(format string, args ...any) {
	if s := fmt.Sprintf(format, args...); !slices.Contains(c.Notes, s) {
		c.Notes = append(c.Notes, s)
	}
}

func osOf(n *v1.Node) string {
	return cmp.Or(n.Status.NodeInfo.OperatingSystem, n.Labels[v1.LabelOSStable])
}

// buildOf is the Windows build with its revision where the node tells it: the kubelet
// reports it as the version of the kernel. The label has no revision.
func buildOf(n *v1.Node) string {
	if osOf(n) != "windows" {
		return ""
	}
	if v, _, _ := strings.Cut(n.Status.NodeInfo.KernelVersion, " "); strings.HasPrefix(v, "10.0.") {
		return v
	}
	return n.Labels[v1.LabelWindowsBuild]
}

// text is a ConfigMap as one text; "" when it is not there or may not be read.
func (c *Cluster) text(ctx context.Context, client kubernetes.Interface, namespace, name string) string {
	cm, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		if !apierrors.IsNotFound(err) {
			c.note("the ConfigMap %s/%s cannot be read: %v", namespace, name, err)
		}
		return ""
	}
	var b strings.Builder
	for _, v := range cm.Data {
		b.WriteString(v + "\n")
	}
	return b.String()
}

var backendType = regexp.MustCompile(`"Type"\s*:\s*"(vxlan|host-gw)"`)

// plugin recognises the network plugins that the ledger's designs have by what they
// leave in a cluster.
func (c *Cluster) plugin(ctx context.Context, client kubernetes.Interface) {
	if c.Plugin != "" {
		return
	}
	for _, ns := range []string{"kube-flannel", "kube-system"} {
		if m := backendType.FindStringSubmatch(c.text(ctx, client, ns, "kube-flannel-cfg")); m != nil {
			c.Plugin = "flannel"
			c.Network = cmp.Or(c.Network, networkOfBackend[m[1]])
			return
		}
	}
	for _, find := range []func() (string, string){
		c.ofNodes,
		func() (string, string) { return calico(ctx, client) },
		func() (string, string) { return amazon(ctx, client) },
	} {
		if plugin, network := find(); plugin != "" {
			c.Plugin, c.Network = plugin, cmp.Or(c.Network, network)
			return
		}
	}
	for _, known := range []struct{ namespace, name, plugin, network string }{
		{"kube-system", "azure-cns", "azure-vnet", ""},
		{"ovn-kubernetes", "ovnkube-node", "ovn-kubernetes", "transparent"},
	} {
		if _, err := client.AppsV1().DaemonSets(known.namespace).Get(ctx, known.name, metav1.GetOptions{}); err == nil {
			c.Plugin, c.Network = known.plugin, cmp.Or(c.Network, known.network)
			return
		}
	}
}

var dsr = regexp.MustCompile(`(?i)enable-?dsr\W*(true|false)`)

// proxy looks for DSR in the configuration and the command line of kube-proxy.
func (c *Cluster) proxy(ctx context.Context, client kubernetes.Interface) {
	if c.Proxy != "" {
		return
	}
	text := c.text(ctx, client, "kube-system", "kube-proxy-windows") + c.text(ctx, client, "kube-system", "kube-proxy")
	if ds, err := client.AppsV1().DaemonSets("kube-system").Get(ctx, "kube-proxy-windows", metav1.GetOptions{}); err == nil {
		for _, container := range ds.Spec.Template.Spec.Containers {
			text += strings.Join(append(container.Command, container.Args...), " ")
		}
	}
	if m := dsr.FindStringSubmatch(text); m != nil {
		c.Proxy = map[string]string{"true": "kernelspace-dsr", "false": "kernelspace"}[strings.ToLower(m[1])]
	}
}

// Windows are the nodes with Windows that pods can be put on.
func (c *Cluster) Windows() []v1.Node { return c.nodesWithOS("windows") }

// Linux are those with Linux.
func (c *Cluster) Linux() []v1.Node { return c.nodesWithOS("linux") }

func (c *Cluster) nodesWithOS(os string) []v1.Node {
	return slices.DeleteFunc(slices.Clone(c.nodes), func(n v1.Node) bool { return osOf(&n) != os || n.Spec.Unschedulable || !ready(&n) })
}

// hollow reports whether a node has no kubelet: kwok says of its pods that they run.
func hollow(n *v1.Node) bool {
	return n.Labels[hollowKey] == "true" || n.Annotations["kwok.x-k8s.io/node"] != "" || n.Labels["type"] == "kwok"
}

func ready(n *v1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(x v1.NodeCondition) bool {
		return x.Type == v1.NodeReady && x.Status == v1.ConditionTrue
	})
}

var versionNumbers = regexp.MustCompile(`^v?(\d+\.\d+(\.\d+)?)`)

// plain is a version without what providers add to it: "v1.29.4-gke.1043" is 1.29.4.
func plain(version string) string {
	if m := versionNumbers.FindStringSubmatch(version); m != nil {
		return m[1]
	}
	return ""
}

// Targets are the settings of the Windows nodes, each once. Without one it is the
// version of the API server: claims about the API hold there.
func (c *Cluster) Targets() []claims.Target {
	base := claims.Target{Network: c.Network, Proxy: c.Proxy, PluginVersion: c.PluginVersion}
	// The ledger's designs have some plugins; of others it knows the network only.
	if slices.ContainsFunc(claims.Designs, func(d claims.Design) bool { return d.Plugin == c.Plugin }) {
		base.Plugin = c.Plugin
	}
	var all []claims.Target
	for _, n := range c.Nodes {
		if n.OS != "windows" {
			continue
		}
		t := base
		t.Kubernetes, t.Build = plain(n.Kubelet), n.Build
		if r, ok := claims.ReleaseNamed(n.Build); ok {
			t.Release = r.Name
		}
		runtime, version, _ := strings.Cut(n.Runtime, "://")
		t.Runtime, t.RuntimeVersion = runtime, plain(version)
		if !slices.Contains(all, t) {
			all = append(all, t)
		}
	}
	if len(all) == 0 {
		base.Kubernetes = plain(c.Server)
		all = append(all, base)
	}
	return all
}

// Setting is the cluster as a column of the matrix. A simulated cluster has the column
// of its lab, so that its results stand beside the model's.
func (c *Cluster) Setting() result.Setting {
	info := c.ClusterInfo
	s := result.Setting{Design: cmp.Or(c.Lab, "cluster"), Network: c.Network, Plugin: c.Plugin, Proxy: c.Proxy, Cluster: &info}
	s.Kubernetes = minorOf(c.Server)
	for _, n := range c.Nodes {
		if n.OS == "windows" {
			s.Kubernetes = minorOf(n.Kubelet)
			if n.Build != "" && !slices.Contains(s.Builds, n.Build) {
				s.Builds = append(s.Builds, n.Build)
			}
		}
	}
	s.Proxy = strings.Replace(s.Proxy, "-dsr", ", DSR", 1)
	s.Title = "a cluster with Windows nodes (" + c.Provider + ")"
	if c.Simulated {
		s.Title = "a simulated cluster"
		s.Design = cmp.Or(c.Lab, "simulated-cluster")
		if c.Lab != "" {
			s.File = "fixtures/labs/" + c.Lab + ".yaml"
		}
	}
	s.ID = s.Design + "/" + s.Kubernetes
	if len(s.Builds) > 0 {
		s.ID += "-" + strings.TrimPrefix(s.Builds[0], "10.0.")
	}
	if strings.Contains(s.Proxy, "DSR") {
		s.ID += "-dsr"
	}
	return s
}

func minorOf(version string) string {
	v := plain(version)
	if parts := strings.Split(v, "."); len(parts) > 2 {
		return parts[0] + "." + parts[1]
	}
	return v
}
