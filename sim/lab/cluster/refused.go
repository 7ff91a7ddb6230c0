package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

var factNoNetwork = evidence.New("lab.pod-without-network", evidence.Code,
	"When the network plugin refuses a pod (CNI ADD fails), the container runtime undoes it with CNI DEL, and the pod has no sandbox: its containers do not start, it has no address, no Service has it as an endpoint, and the kubelet retries for as long as the pod exists.",
	"kubernetes/kubernetes pkg/kubelet/kuberuntime/kuberuntime_manager.go (SyncPod, FailedCreatePodSandBox)",
	"containerd/containerd internal/cri/server/sandbox_run.go (RunPodSandbox, teardownPodNetwork)",
	"kubernetes/endpointslice utils.go (ShouldPodBeInEndpoints)")

// NoNetwork is a pod that a network plugin has refused.
type NoNetwork struct {
	// Pod is "namespace/name", Node where it is, Program the plugin, Text what that
	// said, in one line.
	Pod, Node, Program, Text string
	Fact                     *evidence.Fact
}

// leftOut is a pod without a network.
type leftOut struct {
	*pod
	NoNetwork
	// deleted: the kubelet no longer retries
	deleted bool
}

// pluginError is an error of a network plugin: what it says of one pod or node. The lab goes
// on, for that is what a cluster does. Any other error is one of winlab or of this
// machine, and ends the lab.
type pluginError struct{ err error }

func (e *pluginError) Error() string { return e.err.Error() }
func (e *pluginError) Unwrap() error { return e.err }

// refused marks an error as the plugin's; nil stays nil.
func refused(err error) error {
	if err == nil {
		return nil
	}
	return &pluginError{err}
}

// WithoutNetwork says why a pod ("namespace/name") has no network; ok is false for one
// that has, and for one that is not in the lab.
func (c *Cluster) WithoutNetwork(pod string) (n NoNetwork, ok bool) {
	i := slices.IndexFunc(c.without, func(l *leftOut) bool { return l.Key() == pod })
	if i < 0 {
		return NoNetwork{}, false
	}
	return c.without[i].NoNetwork, true
}

// leaveOut follows lab.pod-without-network.
func (b *builder) leaveOut(n *Node, p *pod, r *pluginError) {
	text := strings.TrimPrefix(r.Error(), "pod "+p.Key()+": ")
	l := &leftOut{pod: p, NoNetwork: NoNetwork{Pod: p.Key(), Node: n.Name, Program: b.pluginName(), Text: strings.ReplaceAll(text, "\n", "; "),
		Fact: factNoNetwork}}
	if n.unprepared != "" {
		l.Fact = factNodeWithoutNetwork
	}
	b.forgetRefusal(p.Key())
	b.without = append(b.without, l)
	b.log(fmt.Sprintf("%s on %s refuses pod %s: %s", l.Program, n.Name, p.Key(), l.Text))
	if err := b.undo(n, p); err != nil {
		b.log(fmt.Sprintf("%s on %s: DEL of pod %s: %v", l.Program, n.Name, p.Key(), err))
	}
}

// undo calls the plugin with DEL for a pod that it has refused.
func (b *builder) undo(n *Node, p *pod) error {
	if b.plugin == nil || b.real != nil && b.real.plugins != nil && n.windows != nil {
		return nil // the runtime has called the program with DEL
	}
	return b.plugin.Del(n.Node, &p.Pod.Pod, n.HNS)
}

func (b *builder) pluginName() string {
	if b.plugin == nil {
		return b.Plan.Network.Plugin
	}
	return string(b.plugin.Name())
}

// log adds a line for people, once.
func (c *Cluster) log(line string) {
	if c.logged.lines == nil {
		c.logged.lines = map[string]bool{}
	}
	for ; c.logged.seen < len(c.Log); c.logged.seen++ {
		c.logged.lines[c.Log[c.logged.seen]] = true
	}
	if !c.logged.lines[line] {
		c.Log = append(c.Log, line)
	}
}

// forgetRefusal removes a pod from the refused ones.
func (b *builder) forgetRefusal(pod string) {
	b.without = slices.DeleteFunc(b.without, func(l *leftOut) bool { return l.Key() == pod })
}

// unprepared notes that a node's network could not be set up. Its pods get none
// (lab.node-without-network).
func (b *builder) unprepared(n *Node, e error) {
	text := strings.ReplaceAll(strings.TrimPrefix(e.Error(), "node "+n.Name+": "), "\n", "; ")
	n.unprepared = "the node's network is not set up: " + text
	b.trouble(n, b.pluginName(), n.unprepared, factNodeWithoutNetwork, nil)
}

var factNodeWithoutNetwork = evidence.New("lab.node-without-network", evidence.Inferred,
	"Where the plugin's agent or start script cannot set a node's network up, the plugin has nothing to attach pods to and refuses every pod; the other nodes keep working, with their routes to that node.",
	"flannel-io/cni-plugin flannel.go (loadFlannelSubnetEnv: without the agent's subnet.env ADD fails)",
	"containernetworking/plugins plugins/main/windows/win-bridge/win-bridge.go (network not found)")

// tryAgain does what the kubelet does for pods without a network: CNI ADD again. Where
// programs have ended with the build, their pods stay as they are.
func (b *builder) tryAgain(ctx context.Context) error {
	before := slices.DeleteFunc(slices.Clone(b.without), func(l *leftOut) bool { return l.deleted })
	if len(before) == 0 || b.real != nil && b.real.plugins != nil && !b.Options.Keep {
		return nil
	}
	for _, l := range before {
		if err := b.addPod(&pod{Pod: l.pod.Pod}); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(before, func(l *leftOut) bool { return b.pod(l.Key()) != nil }) {
		return nil
	}
	b.sortPods()
	return b.follow(ctx)
}

// asRefusal is the plugin's refusal in an error, nil for none.
func asRefusal(err error) *pluginError {
	var r *pluginError
	if errors.As(err, &r) {
		return r
	}
	return nil
}
