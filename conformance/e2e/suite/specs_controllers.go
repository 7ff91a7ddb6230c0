package suite

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// controllerSpecs let each controller make Windows pods, and make them again.
var controllerSpecs = []written{
	{name: "controller-replicaset", title: "a ReplicaSet keeps two Windows pods, also after one was deleted",
		claims: []string{"controller-replicaset"}, try: replicaSet},
	{name: "controller-replicationcontroller", title: "a ReplicationController keeps two Windows pods",
		claims: []string{"controller-replicationcontroller"}, try: replicationController},
	{name: "controller-deployment", title: "a Deployment runs two Windows pods and rolls a change out",
		claims: []string{"controller-deployment", "verify-two-pods"}, try: deployment},
	{name: "controller-statefulset", title: "a StatefulSet runs two Windows pods with names of their own",
		claims: []string{"controller-statefulset"}, try: statefulSet},
	{name: "controller-daemonset", title: "a DaemonSet puts a pod on each Windows node", claims: []string{"controller-daemonset"},
		try: daemonSet},
	{name: "controller-job", title: "a Job runs a Windows pod to its end", claims: []string{"controller-job"}, try: job},
	{name: "controller-cronjob", title: "a CronJob starts a Job of a Windows pod", claims: []string{"controller-cronjob"}, slow: true,
		try: cronJob},
}

// template is that of a Windows pod which stays.
func template(name string) (v1.PodTemplateSpec, *metav1.LabelSelector) {
	pod := windowsPod(name, "pause")
	pod.Spec.RestartPolicy = v1.RestartPolicyAlways
	return v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: pod.Spec},
		&metav1.LabelSelector{MatchLabels: pod.Labels}
}

// readyPods waits until so many pods of an app are ready, and no other is left.
func (e *Env) readyPods(ctx context.Context, app string, n int) ([]v1.Pod, error) {
	var pods []v1.Pod
	var waits *v1.Pod
	err := eventually(ctx, e.Options.PodStart, func(ctx context.Context) error {
		list, err := e.ClientSet.CoreV1().Pods(e.ns()).List(ctx, metav1.ListOptions{LabelSelector: "app=" + app})
		if err != nil {
			return err
		}
		pods = pods[:0]
		var why error
		for _, p := range list.Items {
			if podReady(&p) && p.DeletionTimestamp == nil {
				pods = append(pods, p)
			} else if err := notStarting(&p); err != nil {
				why, waits = err, &p
			}
		}
		switch {
		case len(pods) == n:
			return nil
		case why != nil:
			return fmt.Errorf("%d of %d pods are ready: %w", len(pods), n, why)
		}
		return fmt.Errorf("%d of %d pods are ready", len(pods), n)
	})
	if err != nil && waits != nil {
		err = fmt.Errorf("%w%s", err, e.lastEvent(ctx, waits))
	}
	return pods, err
}

// madeAgain deletes a pod and waits until there are as many again, with another one.
func (e *Env) madeAgain(ctx context.Context, app string, n int) error {
	pods, err := e.readyPods(ctx, app, n)
	if err != nil {
		return err
	}
	if err := e.ClientSet.CoreV1().Pods(e.ns()).Delete(ctx, pods[0].Name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return eventually(ctx, e.Options.PodStart, func(ctx context.Context) error {
		again, err := e.readyPods(ctx, app, n)
		if err != nil {
			return err
		}
		for _, p := range again {
			if p.UID == pods[0].UID {
				return fmt.Errorf("the pod %s that was deleted is still there", p.Name)
			}
		}
		return nil
	})
}

func replicaSet(ctx context.Context, e *Env) error {
	e.needWindows(1)
	t, selector := template("replicas")
	must(e.ClientSet.AppsV1().ReplicaSets(e.ns()).Create(ctx, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "replicas"},
		Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(2)), Selector: selector, Template: t}}, metav1.CreateOptions{}))
	return e.madeAgain(ctx, "replicas", 2)
}

func replicationController(ctx context.Context, e *Env) error {
	e.needWindows(1)
	t, selector := template("rc")
	must(e.ClientSet.CoreV1().ReplicationControllers(e.ns()).Create(ctx, &v1.ReplicationController{ObjectMeta: metav1.ObjectMeta{Name: "rc"},
		Spec: v1.ReplicationControllerSpec{Replicas: new(int32(2)), Selector: selector.MatchLabels, Template: &t}}, metav1.CreateOptions{}))
	return e.madeAgain(ctx, "rc", 2)
}

func deployment(ctx context.Context, e *Env) error {
	e.needWindows(1)
	t, selector := template("web")
	in := e.ClientSet.AppsV1().Deployments(e.ns())
	d := must(in.Create(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{Replicas: new(int32(2)), Selector: selector, Template: t}}, metav1.CreateOptions{}))
	if _, err := e.readyPods(ctx, "web", 2); err != nil {
		return err
	}
	// A change of the template makes new pods. The controller writes to the object, too.
	must(d, eventually(ctx, time.Minute, func(ctx context.Context) error {
		d, err := in.Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		d.Spec.Template.Annotations = map[string]string{"winlab.dev/change": "1"}
		_, err = in.Update(ctx, d, metav1.UpdateOptions{})
		return err
	}))
	return eventually(ctx, e.Options.PodStart, func(ctx context.Context) error {
		d, err := in.Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if s := d.Status; s.ObservedGeneration < d.Generation || s.UpdatedReplicas != 2 || s.Replicas != 2 || s.AvailableReplicas != 2 {
			return fmt.Errorf("the change is not rolled out: of %d pods %d are new and %d available", s.Replicas, s.UpdatedReplicas,
				s.AvailableReplicas)
		}
		return nil
	})
}

func statefulSet(ctx context.Context, e *Env) error {
	e.needWindows(1)
	t, selector := template("state")
	must(e.ClientSet.AppsV1().StatefulSets(e.ns()).Create(ctx, &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "state"},
		Spec: appsv1.StatefulSetSpec{Replicas: new(int32(2)), Selector: selector, Template: t, ServiceName: "state"}}, metav1.CreateOptions{}))
	pods, err := e.readyPods(ctx, "state", 2)
	if err != nil {
		return err
	}
	for _, p := range pods {
		if p.Name != "state-0" && p.Name != "state-1" {
			return fmt.Errorf("a pod is called %s", p.Name)
		}
	}
	return e.madeAgain(ctx, "state", 2)
}

func daemonSet(ctx context.Context, e *Env) error {
	nodes := e.needWindows(1)
	t, selector := template("daemon")
	must(e.ClientSet.AppsV1().DaemonSets(e.ns()).Create(ctx, &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "daemon"},
		Spec: appsv1.DaemonSetSpec{Selector: selector, Template: t}}, metav1.CreateOptions{}))
	pods, err := e.readyPods(ctx, "daemon", len(nodes))
	if err != nil {
		return err
	}
	on := map[string]bool{}
	for _, p := range pods {
		on[p.Spec.NodeName] = true
	}
	if len(on) != len(nodes) {
		return fmt.Errorf("%d pods are on %d of %d nodes", len(pods), len(on), len(nodes))
	}
	return nil
}

// jobOf is a Job whose pod prints something and ends.
func jobOf() batchv1.JobSpec {
	pod := windowsPod("job")
	pod.Spec.Containers[0].Image = busybox()
	pod.Spec.Containers[0].Command = []string{"cmd.exe", "/c", "echo done"}
	return batchv1.JobSpec{BackoffLimit: new(int32(0)), Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels},
		Spec: pod.Spec}}
}

func job(ctx context.Context, e *Env) error {
	e.needWindows(1)
	in := e.ClientSet.BatchV1().Jobs(e.ns())
	must(in.Create(ctx, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job"}, Spec: jobOf()}, metav1.CreateOptions{}))
	return eventually(ctx, e.Options.PodStart, func(ctx context.Context) error {
		j, err := in.Get(ctx, "job", metav1.GetOptions{})
		if err == nil && j.Status.Succeeded != 1 {
			err = fmt.Errorf("the Job has %d pods that run, %d that failed and none that ended well", j.Status.Active, j.Status.Failed)
		}
		return err
	})
}

func cronJob(ctx context.Context, e *Env) error {
	e.needWindows(1)
	must(e.ClientSet.BatchV1().CronJobs(e.ns()).Create(ctx, &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "cron"},
		Spec: batchv1.CronJobSpec{Schedule: "* * * * *", JobTemplate: batchv1.JobTemplateSpec{Spec: jobOf()}}}, metav1.CreateOptions{}))
	return eventually(ctx, e.Options.PodStart+2*time.Minute, func(ctx context.Context) error {
		list, err := e.ClientSet.BatchV1().Jobs(e.ns()).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, j := range list.Items {
			if j.Status.Succeeded > 0 {
				return nil
			}
		}
		return fmt.Errorf("of %d Jobs none has ended well", len(list.Items))
	})
}
