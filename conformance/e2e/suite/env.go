package suite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	utilexec "k8s.io/client-go/util/exec"
	"k8s.io/kubernetes/test/e2e/framework"
	e2epod "k8s.io/kubernetes/test/e2e/framework/pod"
)

// Env is what a spec has while it runs: the framework of Kubernetes' e2e tests with a
// namespace of its own, and what is known of the cluster.
type Env struct {
	*framework.Framework
	C       *Cluster
	Options *Options
}

// ns is the namespace of the spec.
func (e *Env) ns() string { return e.Namespace.Name }

// skip ends the spec: it cannot be tried here, which says nothing about the claim.
func skip(format string, args ...any) {
	ginkgo.Skip(fmt.Sprintf(format, args...), 1)
}

// needWindows skips without n Windows nodes, and returns them.
func (e *Env) needWindows(n int) []v1.Node {
	nodes := e.C.Windows()
	if len(nodes) < n {
		skip("needs %d Windows nodes that are ready and schedulable; there are %d", n, len(nodes))
	}
	return nodes
}

// tolerated are the taints that people put on Windows nodes to keep other pods off.
var tolerated = []v1.Toleration{
	{Key: "os", Operator: v1.TolerationOpEqual, Value: "windows"},
	{Key: "node.kubernetes.io/os", Operator: v1.TolerationOpEqual, Value: "windows"},
	{Key: "kubernetes.io/os", Operator: v1.TolerationOpEqual, Value: "windows"},
}

// windowsPod is a pod of one container for some Windows node.
func windowsPod(name string, command ...string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}},
		Spec: v1.PodSpec{
			NodeSelector:  map[string]string{v1.LabelOSStable: "windows"},
			Tolerations:   tolerated,
			RestartPolicy: v1.RestartPolicyNever,
			Containers:    []v1.Container{{Name: "main", Image: agnhost(), Args: command}},
			// The pods of a run go when it ends; waiting for their grace has no use.
			TerminationGracePeriodSeconds: new(int64),
		},
	}
}

// pinToNode puts a pod on one node.
func pinToNode(pod *v1.Pod, node *v1.Node) *v1.Pod {
	pod.Spec.NodeSelector = map[string]string{v1.LabelHostname: node.Labels[v1.LabelHostname]}
	if node.Labels[v1.LabelHostname] == "" {
		pod.Spec.NodeSelector, pod.Spec.NodeName = nil, node.Name
	}
	return pod
}

// errNotPulled says that an image is not available, which no claim is about.
var errNotPulled = errors.New("the image cannot be pulled")

// errNotScheduled says that no node takes a pod, which is the cluster's affair: the claims
// are about pods that run.
var errNotScheduled = errors.New("no node takes the pod")

// must ends the spec with a failure of the cluster, not of the claim.
func must[T any](v T, err error) T {
	if errors.Is(err, errNotPulled) {
		skip("%v", err)
	}
	framework.ExpectNoError(err)
	return v
}

// create creates a pod in the spec's namespace.
func (e *Env) create(ctx context.Context, pod *v1.Pod) (*v1.Pod, error) {
	return e.ClientSet.CoreV1().Pods(e.ns()).Create(ctx, pod, metav1.CreateOptions{})
}

// run creates a pod and waits until it is ready; the error says what kept it.
func (e *Env) run(ctx context.Context, pod *v1.Pod) (*v1.Pod, error) {
	p, err := e.create(ctx, pod)
	if err != nil {
		return nil, err
	}
	return e.await(ctx, p, "ready", podReady)
}

// toEnd creates a pod and waits until its containers have ended.
func (e *Env) toEnd(ctx context.Context, pod *v1.Pod) (*v1.Pod, error) {
	p, err := e.create(ctx, pod)
	if err != nil {
		return nil, err
	}
	return e.await(ctx, p, "finished", podFinished)
}

func podReady(p *v1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.PodReady &&
			c.Status == v1.ConditionTrue
	})
}

func podFinished(p *v1.Pod) bool {
	return p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed
}

// await polls a pod until something holds. It gives up when the pod cannot get there,
// or after the time for pods to start.
func (e *Env) await(ctx context.Context, pod *v1.Pod, what string, holds func(*v1.Pod) bool) (*v1.Pod, error) {
	var last *v1.Pod
	var stuck error
	err := wait.PollUntilContextTimeout(ctx, time.Second, e.Options.PodStart, true, func(ctx context.Context) (bool, error) {
		p, err := e.ClientSet.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, err
		}
		if err != nil { // the API server may come back
			return false, nil
		}
		last = p
		if holds(p) {
			return true, nil
		}
		stuck = notStarting(p)
		return errors.Is(stuck, errNotPulled) || podFinished(p), nil
	})
	switch {
	case last != nil && holds(last):
		return last, nil
	case stuck != nil:
		return last, fmt.Errorf("pod %s is not %s: %w%s", pod.Name, what, stuck, e.lastEvent(ctx, pod))
	case err == nil:
		return last, fmt.Errorf("pod %s is not %s: its phase is %s%s", pod.Name, what, last.Status.Phase, ended(last))
	}
	return last, fmt.Errorf("pod %s is not %s: %w%s", pod.Name, what, err, e.lastEvent(ctx, pod))
}

// notStarting is why a pod has no node or its containers wait, nil when they do not or just
// start.
func notStarting(p *v1.Pod) error {
	for _, c := range p.Status.Conditions {
		if c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse && c.Reason == v1.PodReasonUnschedulable {
			return fmt.Errorf("%w: %s", errNotScheduled, c.Message)
		}
	}
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		w := s.State.Waiting
		switch {
		case s.State.Running != nil && !s.Ready && s.Started != nil && *s.Started:
			return fmt.Errorf("container %s runs and is not ready", s.Name)
		case w == nil || w.Reason == "ContainerCreating" || w.Reason == "PodInitializing":
		case slices.Contains([]string{"ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"}, w.Reason):
			return fmt.Errorf("%w: %s: %s", errNotPulled, s.Image, w.Message)
		default:
			return fmt.Errorf("container %s waits: %s %s", s.Name, w.Reason, w.Message)
		}
	}
	return nil
}

// ended says how the containers of a pod ended.
func ended(p *v1.Pod) string {
	var words []string
	for _, s := range p.Status.ContainerStatuses {
		if t := s.State.Terminated; t != nil {
			words = append(words, fmt.Sprintf("; container %s ended with exit code %d (%s %s)", s.Name, t.ExitCode, t.Reason, t.Message))
		}
	}
	return strings.Join(words, "")
}

// lastEvent is the last thing that the cluster said about a pod.
func (e *Env) lastEvent(ctx context.Context, pod *v1.Pod) string {
	list, err := e.ClientSet.CoreV1().Events(pod.Namespace).List(context.WithoutCancel(ctx),
		metav1.ListOptions{FieldSelector: "involvedObject.name=" + pod.Name, TimeoutSeconds: new(int64(10))})
	if err != nil || len(list.Items) == 0 {
		return ""
	}
	last := slices.MaxFunc(list.Items, func(a, b v1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
	return fmt.Sprintf("; the last event is %s: %s", last.Reason, last.Message)
}

// output is what a command in a container printed, and its exit code.
type output struct {
	stdout, stderr string
	code           int
}

func (o output) all() string { return strings.TrimSpace(o.stdout + "\n" + o.stderr) }

// exec runs a command in a container. An exit code is not an error: only a command that
// could not be run is.
func (e *Env) exec(ctx context.Context, pod *v1.Pod, container string, command ...string) (output, error) {
	options := e2epod.ExecOptions{Command: command, Namespace: pod.Namespace, PodName: pod.Name, ContainerName: container, CaptureStdout: true,
		CaptureStderr: true, Quiet: true}
	var o output
	err := patiently(ctx, func() (err error) {
		o.stdout, o.stderr, err = e2epod.Exec(e.TContext(ctx), options)
		return err
	})
	var exit utilexec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		o.code = exit.ExitStatus()
		return o, nil
	}
	if err != nil {
		return o, fmt.Errorf("%s in pod %s: %w", strings.Join(command, " "), pod.Name, err)
	}
	return o, nil
}

// logs are what a container wrote.
func (e *Env) logs(ctx context.Context, pod *v1.Pod, container string) (string, error) {
	text, err := e.ClientSet.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &v1.PodLogOptions{Container: container}).DoRaw(ctx)
	return strings.TrimSpace(string(text)), err
}

// eventually polls until try returns nil; the error is the last one. It does not wait for an
// image that cannot be pulled. An attempt that has
// begun is made to its end: one that is cut off would say nothing about what is tried.
func eventually(ctx context.Context, within time.Duration, try func(ctx context.Context) error) error {
	last := errors.New("it was not tried")
	err := wait.PollUntilContextTimeout(ctx, time.Second, within, true, func(context.Context) (bool, error) {
		last = try(ctx)
		return last == nil || errors.Is(last, errNotPulled), nil
	})
	if err != nil || errors.Is(last, errNotPulled) {
		return last
	}
	return nil
}
