package suite

import (
	"context"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// securitySpecs look at who a container is, and at who may ask for what.
var securitySpecs = []written{
	{name: "run-as-user-name", title: "the user is that of windowsOptions, of the pod and of a container",
		claims: []string{"dispute-run-as-user-name", "dispute-pod-security-context"}, try: runAsUserName},
	{name: "no-root", title: "the strongest user of a container is ContainerAdministrator", claims: []string{"security-no-root"}, try: noRoot},
	{name: "hostprocess-pod-security", title: "baseline and restricted refuse a HostProcess pod, and privileged takes it",
		claims: []string{"hostprocess-pod-security"}, kubernetes: "1.23", try: hostProcessPodSecurity},
	{name: "hostprocess-volumes", title: "a HostProcess container finds its volumes below its own folder",
		claims: []string{"hostprocess-volumes"}, kubernetes: "1.22", try: hostProcessVolumes},
}

// userOf is a pod that prints who it is.
func userOf(name string) *v1.Pod { return cmdPod(name, "echo user=%username%") }

func (e *Env) user(ctx context.Context, pod *v1.Pod, container string) (string, error) {
	p, err := e.toEnd(ctx, pod)
	if err != nil {
		return "", orSkip(err)
	}
	text, err := e.logs(ctx, p, container)
	_, user, _ := strings.Cut(text, "user=")
	return strings.TrimSpace(user), err
}

func runAsUserName(ctx context.Context, e *Env) error {
	e.needWindows(1)
	admin, user := "ContainerAdministrator", "ContainerUser"
	ofPod := userOf("of-pod")
	ofPod.Spec.SecurityContext = &v1.PodSecurityContext{WindowsOptions: &v1.WindowsSecurityContextOptions{RunAsUserName: &user}}
	ofContainer := userOf("of-container")
	ofContainer.Spec.SecurityContext = ofPod.Spec.SecurityContext
	ofContainer.Spec.Containers[0].SecurityContext = &v1.SecurityContext{
		WindowsOptions: &v1.WindowsSecurityContextOptions{RunAsUserName: &admin}}
	for _, c := range []struct {
		pod  *v1.Pod
		want string
	}{{ofPod, user}, {ofContainer, admin}} {
		got, err := e.user(ctx, c.pod, "main")
		if err != nil {
			return err
		}
		if !strings.EqualFold(got, c.want) {
			return fmt.Errorf("pod %s: the user is %q, not %s", c.pod.Name, got, c.want)
		}
	}
	return nil
}

func noRoot(ctx context.Context, e *Env) error {
	e.needWindows(1)
	admin := "ContainerAdministrator"
	pod := userOf("admin")
	pod.Spec.SecurityContext = &v1.PodSecurityContext{WindowsOptions: &v1.WindowsSecurityContextOptions{RunAsUserName: &admin}}
	got, err := e.user(ctx, pod, "main")
	if err == nil && !strings.EqualFold(got, admin) {
		err = fmt.Errorf("the user is %q", got)
	}
	return err
}

// hostProcessPodSecurity asks the API server only: no node is needed.
func hostProcessPodSecurity(ctx context.Context, e *Env) error {
	for level, taken := range map[string]bool{"privileged": true, "baseline": false, "restricted": false} {
		ns := must(e.ClientSet.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "winlab-" + level +
			"-",
			Labels: map[string]string{"pod-security.kubernetes.io/enforce": level, runLabel: e.Options.Run}}}, metav1.CreateOptions{}))
		e.AddNamespacesToDelete(ns)
		pod := windowsPod("host")
		asHost(&pod.Spec)
		_, err := e.ClientSet.CoreV1().Pods(ns.Name).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		switch {
		case err != nil && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "PodSecurity") && !taken):
			return fmt.Errorf("level %s: %w", level, err)
		case (err == nil) != taken:
			return fmt.Errorf("level %s: a HostProcess pod is taken: %t (%v)", level, err == nil, err)
		}
	}
	return nil
}

func hostProcessVolumes(ctx context.Context, e *Env) error {
	e.needWindows(1)
	must(e.ClientSet.CoreV1().ConfigMaps(e.ns()).Create(ctx, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "config"},
		Data: map[string]string{"key": "of-a-volume"}}, metav1.CreateOptions{}))
	pod := windowsPod("host")
	asHost(&pod.Spec)
	pod.Spec.Volumes = []v1.Volume{{Name: "config", VolumeSource: v1.VolumeSource{
		ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: "config"}}}}}
	pod.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "config", MountPath: `C:\winlab-config`}}
	p, err := e.run(ctx, pod)
	if err != nil {
		return orSkip(err)
	}
	return e.prints(ctx, p, "shell", `type %CONTAINER_SANDBOX_MOUNT_POINT%\winlab-config\key`, "of-a-volume")
}
