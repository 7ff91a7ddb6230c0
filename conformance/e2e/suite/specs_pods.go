package suite

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// podSpecs look at single pods: what is in their status and what their containers see.
var podSpecs = []written{
	{name: "address-first", title: "the first container of a pod has the address that the pod keeps",
		claims: []string{"pause-container-first"}, try: addressFirst},
	{name: "pod-containers", title: "containers of a pod share their network and a volume, and not their processes' files",
		claims: []string{"several-containers-in-a-pod", "empty-dir", "storage-volumes"}, try: podContainers},
	{name: "pod-status", title: "phase, addresses and conditions of a pod are filled in", claims: []string{"pod-status-fields"},
		try: podStatus},
	{name: "probes", title: "a readiness probe takes a pod out, and a liveness probe restarts a container", claims: []string{"probes"},
		try: probes},
	{name: "lifecycle-hooks", title: "the hook after the start has run in a container", claims: []string{"lifecycle-events"}, try: hooks},
	{name: "config-in-pods", title: "ConfigMaps and Secrets are variables and files", claims: []string{"configmaps-and-secrets"},
		try: configs},
	{name: "exit-codes", title: "a container's exit code is in its status, and other than 0 is a failure", claims: []string{"os-exit-codes"},
		try: exitCodes},
	{name: "pause-keeps-the-network", title: "a container restarts, and the pod keeps its address",
		claims: []string{"pause-keeps-the-network"}, try: restartKeepsAddress},
	{name: "exec", title: "a command runs in a container, with its output and exit code", claims: []string{"kubectl-exec"}, try: execs},
	{name: "termination-message", title: "the message that a container leaves at the default path is in its status",
		claims: []string{"dispute-termination-message"}, try: terminationMessage},
	{name: "console-signal", title: "the control handler of a console program runs when its container is ended",
		claims: []string{"os-signals-console"}, try: consoleSignal},
}

// cmdPod is a pod whose container runs a line of cmd.exe.
func cmdPod(name, line string) *v1.Pod {
	pod := windowsPod(name)
	pod.Spec.Containers[0].Image = busybox()
	pod.Spec.Containers[0].Command = []string{"cmd.exe", "/c", line}
	return pod
}

// prints runs a line of cmd.exe in a container and wants a text in what it prints.
func (e *Env) prints(ctx context.Context, pod *v1.Pod, container, line, want string) error {
	o, err := e.exec(ctx, pod, container, "cmd.exe", "/c", line)
	if err != nil {
		return err
	}
	if o.code != 0 || !strings.Contains(o.stdout, want) {
		return fmt.Errorf("%q prints %q and ends with %d, not %q", line, o.all(), o.code, want)
	}
	return nil
}

func podContainers(ctx context.Context, e *Env) error {
	e.needWindows(1)
	pod := windowsPod("two", "netexec", "--http-port=8080")
	volume := v1.VolumeMount{Name: "shared", MountPath: `C:\shared`}
	pod.Spec.Volumes = []v1.Volume{{Name: "shared", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}}
	pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: "second", Image: agnhost(), Args: []string{"pause"},
		VolumeMounts: []v1.VolumeMount{volume}})
	pod.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{volume}
	pod.Spec.Containers[0].ReadinessProbe = listens(8080)
	p, err := e.run(ctx, pod)
	if err != nil {
		return orSkip(err)
	}
	for _, c := range []struct{ container, line, want string }{
		{"main", `echo from-main> C:\shared\file & type C:\shared\file`, "from-main"},
		{"second", `type C:\shared\file`, "from-main"},
	} {
		if err := e.prints(ctx, p, c.container, c.line, c.want); err != nil {
			return err
		}
	}
	if err := e.prints(ctx, p, "main", `echo x> C:\own & if exist C:\own echo here`, "here"); err != nil {
		return err
	}
	if o, err := e.exec(ctx, p, "second", "cmd.exe", "/c", `if exist C:\own echo here`); err != nil || strings.Contains(o.stdout, "here") {
		return fmt.Errorf("a file of one container is seen by the other: %q %v", o.all(), err)
	}
	x := &actor{windows: true}
	o, err := e.exec(ctx, p, "second", x.curl("http://127.0.0.1:8080/hostname")...)
	if err != nil {
		return err
	}
	if o.code != 0 {
		return fmt.Errorf("a container does not reach the other one's port: %s", o.all())
	}
	return nil
}

// orSkip makes an image that is not available a reason to skip, and nothing else.
func orSkip(err error) error {
	if strings.Contains(fmt.Sprint(err), errNotPulled.Error()) {
		skip("%v", err)
	}
	return err
}

// addressFirst looks at the address of a pod in its init container, before any other has
// begun: who holds it must have been there before.
func addressFirst(ctx context.Context, e *Env) error {
	e.needWindows(1)
	pod := windowsPod("address", "pause")
	pod.Spec.InitContainers = []v1.Container{{Name: "early", Image: agnhost(), Command: []string{"cmd", "/c", "ipconfig"}}}
	p, err := e.run(ctx, pod)
	if err != nil {
		return orSkip(err)
	}
	text, err := e.logs(ctx, p, "early")
	if err != nil {
		return fmt.Errorf("the log of the init container: %w", err)
	}
	if !slices.Contains(strings.Fields(text), p.Status.PodIP) {
		return fmt.Errorf("the pod has %s, and its init container had: %s", p.Status.PodIP, text)
	}
	return nil
}

func podStatus(ctx context.Context, e *Env) error {
	e.needWindows(1)
	p, err := e.run(ctx, windowsPod("status", "pause"))
	if err != nil {
		return orSkip(err)
	}
	s := p.Status
	switch {
	case s.Phase != v1.PodRunning, s.PodIP == "", s.HostIP == "", s.StartTime == nil, len(s.ContainerStatuses) != 1:
		return fmt.Errorf("the status lacks something: phase %s, pod address %q, node address %q, %d containers", s.Phase, s.PodIP, s.HostIP,
			len(s.ContainerStatuses))
	case s.ContainerStatuses[0].ContainerID == "", s.ContainerStatuses[0].ImageID == "":
		return fmt.Errorf("the container's identifiers are missing: %+v", s.ContainerStatuses[0])
	}
	for _, want := range []v1.PodConditionType{v1.PodScheduled, v1.PodInitialized, v1.ContainersReady, v1.PodReady} {
		found := false
		for _, c := range s.Conditions {
			found = found || c.Type == want && c.Status == v1.ConditionTrue
		}
		if !found {
			return fmt.Errorf("the condition %s is not there or not true", want)
		}
	}
	return nil
}

func probes(ctx context.Context, e *Env) error {
	e.needWindows(1)
	ready := windowsPod("ready", "netexec", "--http-port=8080")
	ready.Spec.Containers[0].ReadinessProbe = &v1.Probe{PeriodSeconds: 1,
		ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"cmd.exe", "/c", `if exist C:\gone exit 1`}}}}
	// It says that it is healthy for ten seconds, and no longer.
	live := windowsPod("live", "liveness")
	live.Spec.RestartPolicy = v1.RestartPolicyAlways
	live.Spec.Containers[0].LivenessProbe = &v1.Probe{PeriodSeconds: 1, FailureThreshold: 3,
		ProbeHandler: v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)}}}
	p, err := e.run(ctx, ready)
	if err != nil {
		return orSkip(err)
	}
	if err := e.prints(ctx, p, "main", `echo x> C:\gone & if exist C:\gone echo here`, "here"); err != nil {
		return err
	}
	if _, err := e.await(ctx, p, "taken out", func(p *v1.Pod) bool { return !podReady(p) }); err != nil {
		return err
	}
	l := must(e.create(ctx, live))
	_, err = e.await(ctx, l, "restarted", func(p *v1.Pod) bool {
		return len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].RestartCount > 0
	})
	return err
}

func hooks(ctx context.Context, e *Env) error {
	e.needWindows(1)
	pod := windowsPod("hooks", "pause")
	pod.Spec.Containers[0].Lifecycle = &v1.Lifecycle{PostStart: &v1.LifecycleHandler{
		Exec: &v1.ExecAction{Command: []string{"cmd.exe", "/c", `echo ran> C:\after-start`}}}}
	p, err := e.run(ctx, pod)
	if err != nil {
		return orSkip(err)
	}
	return e.prints(ctx, p, "main", `type C:\after-start`, "ran")
}

func configs(ctx context.Context, e *Env) error {
	e.needWindows(1)
	must(e.ClientSet.CoreV1().ConfigMaps(e.ns()).Create(ctx, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "config"},
		Data: map[string]string{"key": "of-a-configmap"}}, metav1.CreateOptions{}))
	must(e.ClientSet.CoreV1().Secrets(e.ns()).Create(ctx, &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "secret"},
		StringData: map[string]string{"key": "of-a-secret"}}, metav1.CreateOptions{}))
	pod := windowsPod("configs", "pause")
	c := &pod.Spec.Containers[0]
	c.Env = []v1.EnvVar{
		{Name: "FROM_CONFIG",
			ValueFrom: &v1.EnvVarSource{ConfigMapKeyRef: &v1.ConfigMapKeySelector{LocalObjectReference: v1.LocalObjectReference{Name: "config"},
				Key: "key"}}},
		{Name: "FROM_SECRET",
			ValueFrom: &v1.EnvVarSource{SecretKeyRef: &v1.SecretKeySelector{LocalObjectReference: v1.LocalObjectReference{Name: "secret"},
				Key: "key"}}},
	}
	c.VolumeMounts = []v1.VolumeMount{{Name: "config", MountPath: `C:\config`}, {Name: "secret", MountPath: `C:\secret`}}
	pod.Spec.Volumes = []v1.Volume{
		{Name: "config",
			VolumeSource: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: "config"}}}},
		{Name: "secret", VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "secret"}}},
	}
	p, err := e.run(ctx, pod)
	if err != nil {
		return orSkip(err)
	}
	for _, x := range []struct{ line, want string }{{"echo %FROM_CONFIG%", "of-a-configmap"}, {"echo %FROM_SECRET%", "of-a-secret"},
		{`type C:\config\key`, "of-a-configmap"}, {`type C:\secret\key`, "of-a-secret"}} {
		if err := e.prints(ctx, p, "main", x.line, x.want); err != nil {
			return err
		}
	}
	return nil
}

func exitCodes(ctx context.Context, e *Env) error {
	e.needWindows(1)
	for _, code := range []int32{0, 3} {
		p, err := e.toEnd(ctx, cmdPod(fmt.Sprintf("exit-%d", code), fmt.Sprintf("exit %d", code)))
		if err != nil {
			return orSkip(err)
		}
		want := v1.PodSucceeded
		if code != 0 {
			want = v1.PodFailed
		}
		t := p.Status.ContainerStatuses[0].State.Terminated
		if t == nil || t.ExitCode != code || p.Status.Phase != want {
			return fmt.Errorf("a container that ends with %d: phase %s%s", code, p.Status.Phase, ended(p))
		}
	}
	return nil
}

func restartKeepsAddress(ctx context.Context, e *Env) error {
	e.needWindows(1)
	pod := windowsPod("restarts", "pause")
	pod.Spec.RestartPolicy = v1.RestartPolicyAlways
	crashing := cmdPod("x", "ping -n 6 127.0.0.1 >NUL & exit 1").Spec.Containers[0]
	crashing.Name = "crashing"
	pod.Spec.Containers = append(pod.Spec.Containers, crashing)
	p, err := e.run(ctx, pod)
	if err != nil {
		return orSkip(err)
	}
	again, err := e.await(ctx, p, "restarted", func(p *v1.Pod) bool {
		for _, s := range p.Status.ContainerStatuses {
			if s.Name == "crashing" && s.RestartCount > 0 {
				return true
			}
		}
		return false
	})
	if err != nil {
		return err
	}
	if again.Status.PodIP != p.Status.PodIP {
		return fmt.Errorf("the pod had %s, and has %s after a container has restarted", p.Status.PodIP, again.Status.PodIP)
	}
	o, err := e.exec(ctx, again, "main", "ipconfig.exe")
	if err == nil && !strings.Contains(o.stdout, p.Status.PodIP) {
		err = fmt.Errorf("ipconfig does not show %s: %s", p.Status.PodIP, o.all())
	}
	return err
}

func execs(ctx context.Context, e *Env) error {
	e.needWindows(1)
	p, err := e.run(ctx, windowsPod("exec", "pause"))
	if err != nil {
		return orSkip(err)
	}
	if err := e.prints(ctx, p, "main", "echo hello", "hello"); err != nil {
		return err
	}
	o, err := e.exec(ctx, p, "main", "cmd.exe", "/c", "exit 7")
	if err == nil && o.code != 7 {
		err = fmt.Errorf("exit 7 ends with %d", o.code)
	}
	return err
}

func terminationMessage(ctx context.Context, e *Env) error {
	e.needWindows(1)
	// The default path is /dev/termination-log, on Windows too (pkg/apis/core).
	p, err := e.toEnd(ctx, cmdPod("message", `echo last-words> C:\dev\termination-log`))
	if err != nil {
		return orSkip(err)
	}
	deadline, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if t := p.Status.ContainerStatuses[0].State.Terminated; t == nil || !strings.Contains(t.Message, "last-words") {
		logs, _ := e.logs(deadline, p, "main")
		return fmt.Errorf("the message is not in the status%s; the container wrote %q", ended(p), logs)
	}
	return nil
}

// consoleSignal has a container ended by a probe: it starts again, and how its program ended
// stays to be seen. The program ends with 1 or 2 when its handler has been called.
func consoleSignal(ctx context.Context, e *Env) error {
	e.needWindows(1)
	pod := windowsPod("handler", "pause")
	pod.Spec.RestartPolicy, pod.Spec.TerminationGracePeriodSeconds = v1.RestartPolicyAlways, new(int64(30))
	pod.Spec.Containers[0].LivenessProbe = &v1.Probe{InitialDelaySeconds: 5, PeriodSeconds: 5, FailureThreshold: 1,
		ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"cmd.exe", "/c", "exit 1"}}}}
	p, err := e.create(ctx, pod)
	if err != nil {
		return err
	}
	p, err = e.await(ctx, p, "restarted", func(p *v1.Pod) bool {
		return len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].LastTerminationState.Terminated != nil
	})
	if err != nil {
		return orSkip(err)
	}
	if t := p.Status.ContainerStatuses[0].LastTerminationState.Terminated; t.ExitCode != 1 && t.ExitCode != 2 {
		return fmt.Errorf("the program ended with %d (%s), and not by its handler", t.ExitCode, t.Reason)
	}
	return nil
}
