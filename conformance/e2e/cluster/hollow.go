package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/winlab-dev/winlab/sim/real/wine"
	"github.com/winlab-dev/winlab/sim/windows/builds"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Hollow are Windows nodes of one build without kubelet, network and wires: kwok says of
// them that they are Ready, and of their pods that they run. They are for questions of
// scheduling.
type Hollow struct {
	Count int
	// Build is theirs, nil for that of the lab's first Windows node.
	Build *builds.Build
}

// HollowLabel is that of a hollow node, with the value "true".
const HollowLabel = "winlab.dev/hollow"

const (
	kwok = "kwok"
	// maxHollow is the number of nodes that Kubernetes is designed for.
	maxHollow = 5000
	// hollowPods are the addresses of pods on hollow nodes, those for benchmarks (RFC 2544):
	// no lab has them, and nothing answers there.
	hollowPods = "198.18.0.0/15"
	// creators is how many nodes are made at once.
	creators = 10
)

// ParseHollow reads "300", or "300:10.0.26100.1742" for nodes of a build.
func ParseHollow(text string) (Hollow, error) {
	count, of, named := strings.Cut(text, ":")
	n, err := strconv.Atoi(count)
	if err != nil || n < 1 || n > maxHollow {
		return Hollow{}, fmt.Errorf("%q: write a number of nodes from 1 to %d, as 300, or with their build, as 300:10.0.26100.1742", text,
			maxHollow)
	}
	if !named {
		return Hollow{Count: n}, nil
	}
	v, err := builds.Parse(of)
	if err != nil {
		return Hollow{}, fmt.Errorf("%q: %w", text, err)
	}
	b, err := builds.Lookup(v)
	if err != nil {
		return Hollow{}, fmt.Errorf("%q: %w", text, err)
	}
	return Hollow{n, b}, nil
}

// windowsBuild is the build of the lab's first Windows node, nil without one.
func (c *Cluster) windowsBuild() *builds.Build {
	for _, n := range c.lab.Nodes {
		if n.Windows != nil {
			return n.Windows
		}
	}
	return nil
}

// hollow starts kwok, makes the hollow nodes and waits until they are Ready.
func (c *Cluster) hollow(ctx context.Context) error {
	if len(c.o.Hollow) == 0 {
		return nil
	}
	start := time.Now()
	if err := c.apply(ctx, "kwok.yaml", nil); err != nil {
		return err
	}
	if err := c.startKwok(ctx); err != nil {
		return err
	}
	var nodes []*corev1.Node
	for _, h := range c.o.Hollow {
		for range h.Count {
			nodes = append(nodes, c.hollowNode(fmt.Sprintf("hollow%d", len(nodes)+1), cmp.Or(h.Build, c.windowsBuild())))
		}
	}
	if err := c.create(ctx, nodes); err != nil {
		return err
	}
	p, err := c.named(kwok)
	if err != nil {
		return err
	}
	err = p.ready(ctx, c.o.NodesWithin, func(ctx context.Context) error {
		list, err := c.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: HollowLabel, ResourceVersion: "0"})
		if err != nil {
			return err
		}
		ready := 0
		for i := range list.Items {
			if seen(&list.Items[i]).Ready == string(corev1.ConditionTrue) {
				ready++
			}
		}
		if ready < len(nodes) {
			return fmt.Errorf("%d of %d hollow nodes are Ready", ready, len(nodes))
		}
		return nil
	})
	if err == nil {
		c.say(fmt.Sprintf("%d hollow nodes are Ready after %v", len(nodes), time.Since(start).Round(100*time.Millisecond)))
	}
	return err
}

// startKwok starts kwok beside the control plane, with the stages of its release.
func (c *Cluster) startKwok(ctx context.Context) error {
	path, err := c.o.Programs.Path("kwok-stages")
	if err != nil {
		return err
	}
	stages, err := exec.CommandContext(ctx, path).Output()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	config := filepath.Join(c.dir, "kwok.yaml")
	if err := os.WriteFile(config, stages, 0o644); err != nil {
		return err
	}
	return c.onControlPlane(ctx, c.get(c.host, "http://127.0.0.1:10247/healthz"), kwok, "--config="+config, "--kubeconfig="+c.kubeconfig(kwok),
		"--manage-all-nodes=false", "--manage-nodes-with-label-selector="+HollowLabel+"=true", "--cidr="+hollowPods,
		// Without leases their Nodes are not heard of after the controller's 50 s.
		"--node-lease-duration-seconds=40", "--server-address=127.0.0.1:10247", "--v=WARN")
}

// hollowNode is what kubelet.exe on a node of that build would say of it, and the taint by
// which pods for Linux stay away (Kubernetes' documentation, "Windows containers in
// Kubernetes", taints and tolerations).
func (c *Cluster) hollowNode(name string, b *builds.Build) *corev1.Node {
	labels := maps.Clone(c.labels)
	maps.Copy(labels, map[string]string{HollowLabel: "true", corev1.LabelHostname: name, corev1.LabelOSStable: "windows",
		corev1.LabelArchStable:   "amd64",
		corev1.LabelWindowsBuild: fmt.Sprintf("10.0.%d", b.Version.Build)})
	has := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"),
		corev1.ResourceMemory: *resource.NewQuantity(int64(c.o.WindowsMemory), resource.BinarySI),
		corev1.ResourcePods:   resource.MustParse("110"), corev1.ResourceEphemeralStorage: resource.MustParse("100Gi")}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "os", Value: "windows", Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{Capacity: has, Allocatable: has, NodeInfo: corev1.NodeSystemInfo{
			OperatingSystem: "windows", Architecture: "amd64", OSImage: wine.ProductName(b), KernelVersion: b.Version.String()}},
	}
}

// create makes nodes; one that is there is left, as of a control plane that starts again.
func (c *Cluster) create(ctx context.Context, nodes []*corev1.Node) error {
	next, errs := make(chan *corev1.Node), make([]error, creators)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			for n := range next {
				if _, err := c.Client.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
					errs[i] = errors.Join(errs[i], fmt.Errorf("node %s: %w", n.Name, err))
				}
			}
		})
	}
	for _, n := range nodes {
		next <- n
	}
	close(next)
	all.Wait()
	return errors.Join(errs...)
}
