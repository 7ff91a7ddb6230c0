package suite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	autoscaling "k8s.io/api/autoscaling/v2"
	v1 "k8s.io/api/core/v1"
	scheduling "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1 "k8s.io/api/apps/v1"
)

// workloadSpecs look at what the cluster makes of many pods: quotas, priorities, metrics.
var workloadSpecs = []written{
	{name: "quota", title: "a quota of a namespace refuses one Windows pod too many", claims: []string{"resource-quotas"}, try: quota},
	{name: "preemption", title: "a pod of a higher priority takes the place of another one", claims: []string{"scheduler-preemption"},
		serial: true, try: preemption},
	{name: "pod-metrics", title: "the kubelet measures CPU and memory of a Windows pod", claims: []string{"pod-metrics"}, try: podMetrics},
	{name: "autoscaling", title: "the autoscaler makes more Windows pods when they are busy", claims: []string{"horizontal-autoscaling"},
		slow: true, try: autoscaleCPU},
	{name: "autoscaling-memory", title: "the autoscaler makes more Windows pods when they have much memory",
		claims: []string{"horizontal-autoscaling"}, slow: true, try: autoscaleMemory},
}

func quota(ctx context.Context, e *Env) error {
	in := e.ClientSet.CoreV1().ResourceQuotas(e.ns())
	must(in.Create(ctx, &v1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "one"},
		Spec: v1.ResourceQuotaSpec{Hard: v1.ResourceList{v1.ResourcePods: resource.MustParse("1")}}}, metav1.CreateOptions{}))
	// Until the controller has counted for the first time, no pod is taken at all.
	if err := eventually(ctx, e.Options.Settle, func(ctx context.Context) error {
		q, err := in.Get(ctx, "one", metav1.GetOptions{})
		if err == nil && len(q.Status.Hard) == 0 {
			err = fmt.Errorf("the quota has no status yet")
		}
		return err
	}); err != nil {
		return err
	}
	if _, err := e.create(ctx, windowsPod("first", "pause")); err != nil {
		return fmt.Errorf("the first pod: %w", err)
	}
	_, err := e.create(ctx, windowsPod("second", "pause"))
	if !apierrors.IsForbidden(err) {
		return fmt.Errorf("the second pod is not refused: %v", err)
	}
	return nil
}

func preemption(ctx context.Context, e *Env) error {
	node := &e.needWindows(1)[0]
	class := must(e.ClientSet.SchedulingV1().PriorityClasses().Create(ctx,
		&scheduling.PriorityClass{ObjectMeta: metav1.ObjectMeta{GenerateName: "winlab-high-"}, Value: 1000}, metav1.CreateOptions{}))
	e.CleanupCtx(func(ctx context.Context) {
		_ = e.ClientSet.SchedulingV1().PriorityClasses().Delete(ctx, class.Name, metav1.DeleteOptions{})
	})
	// Nothing else on the node asks for this resource, so nothing else is in the way.
	const scarce = "winlab.dev/scarce"
	patch := func(ctx context.Context, value string) error {
		text,
			err := json.Marshal(map[string]any{"status": map[string]any{"capacity": map[string]any{scarce: value},
			"allocatable": map[string]any{scarce: value}}})
		if err != nil {
			return err
		}
		_, err = e.ClientSet.CoreV1().Nodes().Patch(ctx, node.Name, "application/strategic-merge-patch+json", text, metav1.PatchOptions{},
			"status")
		return err
	}
	must(node, patch(ctx, "1"))
	e.CleanupCtx(func(ctx context.Context) { _ = patch(ctx, "0") })
	asks := func(name string) *v1.Pod {
		pod := pinToNode(windowsPod(name, "pause"), node)
		list := v1.ResourceList{scarce: resource.MustParse("1")}
		pod.Spec.Containers[0].Resources = v1.ResourceRequirements{Limits: list, Requests: list}
		return pod
	}
	low, err := e.run(ctx, asks("low"))
	if err != nil {
		return orSkip(err)
	}
	high := asks("high")
	high.Spec.PriorityClassName = class.Name
	if _, err := e.run(ctx, high); errors.Is(err, errNotScheduled) {
		return fmt.Errorf("the pod of the higher priority: %v", err) // that is what the claim is about
	} else if err != nil {
		return orSkip(err)
	}
	p, err := e.ClientSet.CoreV1().Pods(e.ns()).Get(ctx, low.Name, metav1.GetOptions{})
	if err == nil && p.DeletionTimestamp == nil && !podFinished(p) {
		return fmt.Errorf("both pods run")
	}
	return nil
}

func podMetrics(ctx context.Context, e *Env) error {
	e.needWindows(1)
	p, err := e.run(ctx, windowsPod("measured", "netexec", "--http-port=8080"))
	if err != nil {
		return orSkip(err)
	}
	return eventually(ctx, e.Options.Settle, func(ctx context.Context) error {
		text, err := e.ClientSet.CoreV1().RESTClient().Get().Resource("nodes").Name(p.Spec.NodeName).SubResource("proxy").Suffix(
			"stats/summary").DoRaw(ctx)
		if err != nil {
			return fmt.Errorf("the kubelet's summary: %w", err)
		}
		// k8s.io/kubelet/pkg/apis/stats/v1alpha1 Summary.
		var summary struct {
			Pods []struct {
				PodRef struct{ Name, Namespace string }
				CPU    *struct{ UsageCoreNanoSeconds *uint64 }
				Memory *struct{ WorkingSetBytes *uint64 }
			}
		}
		if err := json.Unmarshal(text, &summary); err != nil {
			return err
		}
		for _, x := range summary.Pods {
			if x.PodRef.Name != p.Name || x.PodRef.Namespace != p.Namespace {
				continue
			}
			if x.CPU == nil || x.CPU.UsageCoreNanoSeconds == nil || x.Memory == nil || x.Memory.WorkingSetBytes == nil ||
				*x.Memory.WorkingSetBytes == 0 {
				return fmt.Errorf("the pod's CPU or memory is not measured")
			}
			return nil
		}
		return fmt.Errorf("the pod is not among %d in the summary", len(summary.Pods))
	})
}

// autoscaleCPU has a pod that takes all the CPU it gets, which is more than a fifth of a
// tenth of a processor.
func autoscaleCPU(ctx context.Context, e *Env) error {
	return e.autoscale(ctx, func(c *v1.Container) {
		c.Image, c.Args = busybox(), nil
		c.Command = []string{"cmd.exe", "/c", "for /L %i in (0,0,1) do @rem"}
		c.Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse("100m")}
	}, autoscaling.ResourceMetricSource{Name: v1.ResourceCPU, Target: autoscaling.MetricTarget{Type: autoscaling.UtilizationMetricType,
		AverageUtilization: new(int32(20))}})
}

// autoscaleMemory has a pod with more than 64 KiB in memory, as any process of Windows has.
func autoscaleMemory(ctx context.Context, e *Env) error {
	return e.autoscale(ctx, func(*v1.Container) {},
		autoscaling.ResourceMetricSource{Name: v1.ResourceMemory, Target: autoscaling.MetricTarget{Type: autoscaling.AverageValueMetricType,
			AverageValue: resource.NewQuantity(64<<10, resource.BinarySI)}})
}

// autoscale wants the autoscaler to make a second pod of a Deployment that is above the
// target of a metric.
func (e *Env) autoscale(ctx context.Context, change func(*v1.Container), metric autoscaling.ResourceMetricSource) error {
	e.needWindows(1)
	if _, err := e.ClientSet.Discovery().ServerResourcesForGroupVersion("metrics.k8s.io/v1beta1"); err != nil {
		skip("the cluster has no metrics API, which the autoscaler asks: %v", err)
	}
	const name = "busy"
	t, selector := template(name)
	change(&t.Spec.Containers[0])
	must(e.ClientSet.AppsV1().Deployments(e.ns()).Create(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{Replicas: new(int32(1)), Selector: selector, Template: t}}, metav1.CreateOptions{}))
	if _, err := e.readyPods(ctx, name, 1); err != nil {
		return orSkip(err)
	}
	scalers := e.ClientSet.AutoscalingV2().HorizontalPodAutoscalers(e.ns())
	must(scalers.Create(ctx, &autoscaling.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: autoscaling.HorizontalPodAutoscalerSpec{MaxReplicas: 2,
			ScaleTargetRef: autoscaling.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name},
			Metrics:        []autoscaling.MetricSpec{{Type: autoscaling.ResourceMetricSourceType, Resource: &metric}}}}, metav1.CreateOptions{}))
	if err := eventually(ctx, 3*e.Options.PodStart, func(ctx context.Context) error {
		d, err := e.ClientSet.AppsV1().Deployments(e.ns()).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if d.Spec.Replicas == nil || *d.Spec.Replicas < 2 {
			return fmt.Errorf("the Deployment still has one replica%s", saysOf(ctx, scalers.Get, name))
		}
		return nil
	}); err != nil {
		return err
	}
	_, err := e.readyPods(ctx, name, 2)
	return orSkip(err)
}

// saysOf is what the autoscaler says in its conditions of why it does nothing.
func saysOf(ctx context.Context, get func(context.Context, string, metav1.GetOptions) (*autoscaling.HorizontalPodAutoscaler, error),
	name string) string {
	h, err := get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return ""
	}
	for _, c := range h.Status.Conditions {
		if c.Status == v1.ConditionFalse {
			return ": " + c.Message
		}
	}
	return ""
}
