package suite

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winlab-dev/winlab/conformance/claims"
)

// nodeSpecs look at nodes.
var nodeSpecs = []written{
	{name: "nodes-healthy", title: "all nodes are ready", claims: []string{"verify-nodes-healthy"}, try: nodesHealthy},
	{name: "version-skew", title: "no Windows node's kubelet is newer than the API server, or too old for it",
		claims: []string{"version-skew"}, try: versionSkew},
	{name: "node-log-query", title: "the kubelet answers a query for its own log", claims: []string{"node-log-query"}, kubernetes: "1.27",
		try: nodeLogQuery},
	{name: "node-programs", title: "each Windows node has a kubelet, a container runtime, and a kube-proxy that says that it is healthy",
		claims: []string{"processes-of-a-node"}, try: nodePrograms},
	{name: "pid-pressure", title: "a Windows node counts its processes, of which PIDPressure is made",
		claims: []string{"pid-pressure-condition"}, kubernetes: "1.31", try: pidPressure},
	{name: "windows-only", title: "all nodes of the cluster have Windows", claims: []string{"no-windows-only-cluster"}, try: windowsOnly},
	{name: "both-systems", title: "one image runs on Linux and on Windows nodes", claims: []string{"neutral-programs-on-both"},
		try: bothSystems},
}

// proxyHealth is the port on which kube-proxy says that it is healthy, on all addresses of
// its node unless somebody has changed that.
const proxyHealth = 10256

func nodePrograms(ctx context.Context, e *Env) error {
	nodes := e.needWindows(1)
	c, err := e.windowsClient(ctx, nil)
	if err != nil {
		return err
	}
	for i := range nodes {
		n := &nodes[i]
		if info := n.Status.NodeInfo; info.KubeletVersion == "" || info.ContainerRuntimeVersion == "" {
			return fmt.Errorf("node %s says that its kubelet is %q and its runtime %q", n.Name, info.KubeletVersion, info.ContainerRuntimeVersion)
		}
		if _, err := c.first(ctx, urlOf(nodeAddress(n), proxyHealth, "/healthz")); err != nil {
			return fmt.Errorf("kube-proxy of node %s: %w", n.Name, err)
		}
	}
	return nil
}

// pidPressure wants what the kubelet judges the condition by: without the number of its
// processes and how many there may be, the condition never becomes true
// (pkg/kubelet/eviction/helpers.go of Kubernetes, makeSignalObservations).
func pidPressure(ctx context.Context, e *Env) error {
	node := e.needWindows(1)[0]
	text, err := e.ClientSet.CoreV1().RESTClient().Get().Resource("nodes").Name(node.Name).SubResource("proxy").Suffix("stats/summary").DoRaw(
		ctx)
	if err != nil {
		return fmt.Errorf("the kubelet's summary: %w", err)
	}
	var summary struct {
		Node struct {
			NodeName string
			Rlimit   *struct{ MaxPID, CurProc *int64 }
		}
	}
	if err := json.Unmarshal(text, &summary); err != nil || summary.Node.NodeName == "" {
		skip("the summary of %s cannot be read (%v): %.200s", node.Name, err, text)
	}
	if r := summary.Node.Rlimit; r == nil || r.MaxPID == nil || r.CurProc == nil {
		return fmt.Errorf("the kubelet of %s does not say how many processes there are and may be", node.Name)
	}
	return nil
}

func windowsOnly(ctx context.Context, e *Env) error {
	list := must(e.ClientSet.CoreV1().Nodes().List(ctx, metav1.ListOptions{}))
	if all := nodeSystems(list.Items); len(all) != 1 || all[0] != "windows" {
		return fmt.Errorf("nodes have %s", strings.Join(all, " and "))
	}
	return nil
}

func bothSystems(ctx context.Context, e *Env) error {
	e.needWindows(1)
	if len(e.C.Linux()) == 0 {
		skip("needs a Linux node beside the Windows nodes")
	}
	for _, system := range []string{"linux", "windows"} {
		pod := windowsPod("on-"+system, "pause")
		pod.Spec.NodeSelector = map[string]string{v1.LabelOSStable: system}
		if system == "linux" {
			pod.Spec.Tolerations = []v1.Toleration{{Operator: v1.TolerationOpExists}}
		}
		if _, err := e.run(ctx, pod); err != nil {
			return orSkip(err)
		}
	}
	return nil
}

func nodesHealthy(ctx context.Context, e *Env) error {
	list := must(e.ClientSet.CoreV1().Nodes().List(ctx, metav1.ListOptions{}))
	var not []string
	for i := range list.Items {
		if !ready(&list.Items[i]) {
			not = append(not, list.Items[i].Name)
		}
	}
	if len(not) > 0 {
		return fmt.Errorf("not ready: %s", strings.Join(not, ", "))
	}
	return nil
}

func versionSkew(_ context.Context, e *Env) error {
	server, err := claims.ParseVersion(minorOf(e.C.Server))
	if err != nil || len(server) < 2 {
		skip("the API server reports version %q, which is not a semantic version", e.C.Server)
	}
	allowed := 2
	for _, n := range e.C.Nodes {
		if n.OS != "windows" {
			continue
		}
		kubelet, err := claims.ParseVersion(minorOf(n.Kubelet))
		if err != nil || len(kubelet) < 2 {
			return fmt.Errorf("the kubelet of %s has the version %q", n.Name, n.Kubelet)
		}
		if kubelet[1] >= 25 {
			allowed = 3
		}
		if behind := server[1] - kubelet[1]; behind < 0 || behind > allowed {
			return fmt.Errorf("the kubelet of %s is %s and the API server %s: %d minor versions apart, and up to %d behind is allowed", n.Name,
				n.Kubelet, e.C.Server, behind, allowed)
		}
	}
	return nil
}

func nodeLogQuery(ctx context.Context, e *Env) error {
	node := e.needWindows(1)[0]
	text, err := e.ClientSet.CoreV1().RESTClient().Get().Resource("nodes").Name(node.Name).SubResource("proxy").Suffix("logs/").Param("query",
		"kubelet").Param("tailLines", "5").DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("the kubelet does not answer the query: %w (%.200s)", err, text)
	}
	return nil
}
