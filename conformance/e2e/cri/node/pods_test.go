package node_test

import (
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
)

// TestPods: what pods are on this runtime, by the eyes of the API server, with the real
// kubelets between. What upstream's Windows suite wants to see is as it has it
// (kubernetes/kubernetes test/e2e/windows).
func TestPods(t *testing.T) {
	b := up(t)
	for name, f := range map[string]func(*bed, *testing.T){
		"web server": webServer, "ends": ends, "users": users, "volumes": volumes, "read-only": readOnly,
		"lifecycle": lifecycle, "images": pulls, "init containers": initContainers, "host process": hostProcess, "node logs": nodeLogs,
		"statistics": statistics, "names": names,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(&bed{T: t, c: b.c, ctx: t.Context()}, t)
		})
	}
}

// webServer: a Linux and a Windows pod serve, are probed, and reach each other.
func webServer(b *bed, t *testing.T) {
	for _, n := range []string{"linux1", "win1"} {
		p := pod("web-"+n, n, agnhost)
		p.Spec.Containers[0].Args = []string{"netexec", "--http-port=80"}
		p.Spec.Containers[0].ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 5,
			ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(80)}}}
		p.Spec.Containers[0].LivenessProbe = &corev1.Probe{PeriodSeconds: 5, TimeoutSeconds: 30,
			ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"hostname"}}}}
		b.create(p)
	}
	for from, to := range map[string]string{"linux1": "win1", "win1": "linux1"} {
		ip := b.wait("web-"+to, ready).Status.PodIP
		b.wait("web-"+from, ready)
		program := map[string]string{"linux1": "/agnhost", "win1": `C:\agnhost.exe`}[from]
		if out, code := b.exec("web-"+from, program, "connect", "--timeout=10s", ip+":80"); code != 0 || out != "" {
			t.Errorf("from %s to %s: exit code %d, %q", from, to, code, out)
		}
		if out, code := b.exec("web-"+from, program, "connect", "--timeout=10s", ip+":81"); code == 0 ||
			!strings.Contains(strings.ToLower(out), "refused") {
			t.Errorf("from %s to a closed port of %s: exit code %d, %q", from, to, code, out)
		}
		if out, _ := b.exec("web-"+from, "hostname"); strings.TrimSpace(strings.ToLower(out)) != "web-"+from {
			t.Errorf("hostname in web-%s: %q", from, out)
		}
		if log := b.log("web-"+from, "main"); !strings.Contains(log, "Started HTTP server on port 80") {
			t.Errorf("log of web-%s: %q", from, log)
		}
		if got := b.forward("web-"+from, "80", "/hostname"); strings.ToLower(got) != "web-"+from {
			t.Errorf("by port-forward from web-%s: %q", from, got)
		}
	}
	b.gone("web-win1")
	b.gone("web-linux1")
}

// forward gets a page of a pod as kubectl port-forward does.
func (b *bed) forward(name, port, path string) string {
	b.Helper()
	u := b.c.Client.CoreV1().RESTClient().Post().Resource("pods").Namespace("default").Name(name).SubResource("portforward").URL()
	c := b.reachable()
	u.Host = strings.TrimPrefix(c.Host, "https://")
	trip, upgrade, err := spdy.RoundTripperFor(c)
	if err != nil {
		b.Fatal(err)
	}
	stop, ready, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	f, err := portforward.New(spdy.NewDialer(upgrade, &http.Client{Transport: trip}, http.MethodPost, u), []string{"0:" + port}, stop, ready,
		io.Discard, io.Discard)
	if err != nil {
		b.Fatal(err)
	}
	go func() { ended <- f.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-ended:
		b.Fatal(err)
	}
	defer func() { close(stop); <-ended }()
	ports, err := f.GetPorts()
	if err != nil {
		b.Fatal(err)
	}
	r, err := http.Get("http://127.0.0.1:" + strconv.Itoa(int(ports[0].Local)) + path)
	if err != nil {
		b.Error(err)
		return ""
	}
	defer func() { _ = r.Body.Close() }()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		b.Error(err)
	}
	return string(text)
}

// ends: how containers end is what their program says.
func ends(b *bed, t *testing.T) {
	for _, c := range []struct {
		name, on, image string
		command         []string
		code            int32
		reason          string
	}{
		{"done-linux", "linux1", agnhost, []string{"sh", "-c", "echo hi"}, 0, "Completed"},
		{"done-windows", "win1", nonroot, []string{"cmd", "/c", "echo hi"}, 0, "Completed"},
		{"failed-linux", "linux1", agnhost, []string{"sh", "-c", "echo hi; exit 42"}, 42, "Error"},
		{"failed-windows", "win1", nonroot, []string{"cmd", "/c", "echo hi& exit 42"}, 42, "Error"},
	} {
		b.create(pod(c.name, c.on, c.image, c.command...))
		s := b.wait(c.name, ended).Status.ContainerStatuses[0].State.Terminated
		if s == nil || s.ExitCode != c.code || s.Reason != c.reason {
			t.Errorf("%s: %+v", c.name, s)
		}
		if log := b.log(c.name, "main"); log != "hi\n" {
			t.Errorf("log of %s: %q", c.name, log)
		}
		b.gone(c.name)
	}
	for _, n := range []string{"linux1", "win1"} {
		p := pod("none-"+n, n, agnhost, "/no/such/program")
		b.create(p)
		b.wait(p.Name, func(p *corev1.Pod) bool {
			return len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].State.Terminated != nil &&
				p.Status.ContainerStatuses[0].State.Terminated.Reason == "StartError"
		})
		b.gone(p.Name)
	}
}

// user sets the user name of a pod and of its container.
func user(p *corev1.Pod, ofPod, ofContainer string) *corev1.Pod {
	p.Spec.SecurityContext = &corev1.PodSecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{}}
	if ofPod != "" {
		p.Spec.SecurityContext.WindowsOptions.RunAsUserName = &ofPod
	}
	if ofContainer != "" {
		p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{
			WindowsOptions: &corev1.WindowsSecurityContextOptions{RunAsUserName: &ofContainer}}
	}
	return p
}

// users are the cases of security_context.go.
func users(b *bed, t *testing.T) {
	echo := []string{"cmd", "/S", "/C", "echo %username%"}
	for name, c := range map[string]struct{ pod, container, want string }{
		"default": {"", "", "ContainerUser"}, "pod": {"ContainerAdministrator", "", "ContainerAdministrator"},
		"override": {"ContainerAdministrator", "ContainerUser", "ContainerUser"},
	} {
		p := user(pod("user-"+name, "win1", nonroot, echo...), c.pod, c.container)
		b.create(p)
		b.wait(p.Name, ended)
		if log := b.log(p.Name, "main"); strings.TrimSpace(log) != c.want {
			t.Errorf("%s: %q, want %s", name, log, c.want)
		}
	}
	b.create(user(pod("user-unknown-pod", "win1", nonroot, echo...), "FooLish", ""))
	b.wait("user-unknown-pod", func(*corev1.Pod) bool {
		return strings.Contains(b.events("user-unknown-pod"), "FailedCreatePodSandBox") &&
			strings.Contains(b.events("user-unknown-pod"), "The user name or password is incorrect.")
	})
	b.create(user(pod("user-unknown", "win1", nonroot, echo...), "ContainerUser", "FooLish"))
	if s := b.wait("user-unknown", ended).Status.ContainerStatuses[0].State.Terminated; s == nil || s.Reason != "StartError" {
		t.Errorf("an unknown user of a container: %+v", s)
	}
	yes := true
	p := user(pod("user-root", "win1", nonroot, echo...), "CONTAINERADMINISTRATOR", "")
	p.Spec.SecurityContext.RunAsNonRoot = &yes
	b.create(p)
	b.wait("user-root", func(*corev1.Pod) bool {
		return strings.Contains(b.events("user-root"),
			"container's runAsUserName (CONTAINERADMINISTRATOR) which will be regarded as root identity and will break non-root policy")
	})
	for _, name := range []string{"user-unknown-pod", "user-root"} {
		b.gone(name)
	}
}

// volumes: ConfigMap, Secret, emptyDir, subPath (Linux) and the downward API.
func volumes(b *bed, t *testing.T) {
	if _, err := b.c.Client.CoreV1().ConfigMaps("default").Create(b.ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "map"}, Data: map[string]string{"key": "from-map", "sub": "from-sub"}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.c.Client.CoreV1().Secrets("default").Create(b.ctx,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "secret"}, StringData: map[string]string{"key": "from-secret"}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{"linux1", "win1"} {
		c := []string{"sh", "-c",
			"cat /map/key /secret/key /one; cat /down/name; echo; echo x > /empty/file && cat /empty/file; echo bye > /dev/termination-log; cat /var/run/secrets/kubernetes.io/serviceaccount/namespace"}
		image := agnhost
		if n == "win1" {
			image = nonroot
			c = []string{"cmd", "/c",
				`type C:\map\key& type C:\secret\key& type C:\one& type C:\down\name& echo.& echo x> C:\empty\file& type C:\empty\file& echo bye> C:\dev\termination-log& type C:\var\run\secrets\kubernetes.io\serviceaccount\namespace`}
		}
		p := pod("volumes-"+n, n, image, c...)
		p.Spec.Volumes = []corev1.Volume{
			{Name: "map",
				VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
					LocalObjectReference: corev1.LocalObjectReference{Name: "map"}}}},
			{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "secret"}}},
			{Name: "down",
				VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
					Items: []corev1.DownwardAPIVolumeFile{{Path: "name", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}}}},
			{Name: "empty", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		}
		p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{
			{Name: "map", MountPath: "/map"}, {Name: "secret", MountPath: "/secret"}, {Name: "down", MountPath: "/down"},
			{Name: "empty", MountPath: "/empty"}, {Name: "map", MountPath: "/one", SubPath: "sub"},
		}
		wants := []string{"from-map", "from-secret", "from-sub", p.Name, "x\n", "default"}
		if n == "win1" {
			// For a subPath kubelet.exe asks PowerShell what (Get-Item PATH).LinkType is
			// (pkg/volume/util/subpath/subpath_windows.go), which ours does not know.
			p.Spec.Containers[0].VolumeMounts = p.Spec.Containers[0].VolumeMounts[:4]
			wants[2] = "from-map"
		}
		b.create(p)
		s := b.wait(p.Name, ended).Status.ContainerStatuses[0].State.Terminated
		for _, want := range wants {
			if log := b.log(p.Name, "main"); !strings.Contains(log, want) {
				t.Errorf("%s: no %q in %q", p.Name, want, log)
			}
		}
		if s == nil || strings.TrimSpace(s.Message) != "bye" {
			t.Errorf("%s: the termination message: %+v", p.Name, s)
		}
		b.gone(p.Name)
	}
}

// readOnly are the cases of volumes.go: two containers share a folder, and one may only
// read it.
func readOnly(b *bed, t *testing.T) {
	p := pod("read-only", "win1", "registry.k8s.io/pause:3.10.2")
	p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: `C:\v`, ReadOnly: true}}
	b.create(p)
	b.wait(p.Name, ready)
	if out, code := b.exec(p.Name, "cmd.exe", "/c", `echo hello > C:\v\file`); strings.TrimSpace(out) != "Access is denied." {
		t.Errorf("writing: exit code %d, %q", code, out)
	}
	if out, _ := b.exec(p.Name, "cmd.exe", "/c", `dir /b C:\v`); strings.Contains(out, "file") {
		t.Errorf("it was written: %q", out)
	}
	b.gone(p.Name)
}

// lifecycle: hooks run in the container, and a program is asked to end first.
func lifecycle(b *bed, t *testing.T) {
	p := pod("hooks", "linux1", agnhost, "sh", "-c", "trap 'echo asked; exit 0' TERM; while :; do sleep 0.1; done")
	p.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{
		PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", "echo started > /proc/1/fd/1"}}},
		PreStop:   &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", "echo stopping > /proc/1/fd/1"}}},
	}
	b.create(p)
	b.wait(p.Name, ready)
	w, err := b.c.Client.CoreV1().Pods("default").GetLogs(p.Name, &corev1.PodLogOptions{Follow: true}).Stream(b.ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	b.gone(p.Name)
	text, _ := io.ReadAll(w)
	if got := string(text); got != "started\nstopping\nasked\n" {
		t.Errorf("%q", got)
	}
}

// pulls: an image that no registry has, and one of another Windows.
func pulls(b *bed, t *testing.T) {
	for name, c := range map[string]struct{ image, says string }{
		"pull-none":  {"registry.example.org/none:1", "not found"},
		"pull-other": {"mcr.microsoft.com/windows/servercore:ltsc2019", "no match for platform in manifest"},
	} {
		b.create(pod(name, "win1", c.image, "cmd"))
		b.wait(name, func(p *corev1.Pod) bool {
			s := p.Status.ContainerStatuses
			return len(s) > 0 && s[0].State.Waiting != nil && (s[0].State.Waiting.Reason == "ErrImagePull" ||
				s[0].State.Waiting.Reason == "ImagePullBackOff") && strings.Contains(b.events(name), c.says)
		})
		b.gone(name)
	}
}

// initContainers run one after the other before the rest.
func initContainers(b *bed, t *testing.T) {
	p := pod("init", "win1", nonroot, "cmd", "/c", `type C:\v\file`)
	p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	mounts := []corev1.VolumeMount{{Name: "v", MountPath: `C:\v`}}
	p.Spec.Containers[0].VolumeMounts = mounts
	for _, n := range []string{"one", "two"} {
		p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: n, Image: nonroot,
			Command: []string{"cmd", "/c", `echo ` + n + `>> C:\v\file`}, VolumeMounts: mounts})
	}
	b.create(p)
	b.wait(p.Name, ended)
	if log := b.log(p.Name, "main"); log != "one\ntwo\n" {
		t.Errorf("%q", log)
	}
	b.gone(p.Name)
}

// names: Windows completes a name without a dot, and takes one with a dot for complete,
// whatever program asks.
func names(b *bed, t *testing.T) {
	p := pod("names", "win1", agnhost)
	p.Spec.Containers[0].Args = []string{"pause"}
	b.create(p)
	b.wait(p.Name, ready)
	deadline := time.Now().Add(2 * time.Minute)
	for { // the name server is a pod, too
		_, code := b.exec(p.Name, `C:\agnhost.exe`, "connect", "--timeout=10s", "kubernetes.default.svc.cluster.local:443")
		if code == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the name of the API server is not found")
		}
		time.Sleep(time.Second)
	}
	for name, found := range map[string]bool{"kubernetes": true, "names": true, "10.96.0.1": true, "kubernetes.default": false,
		"kubernetes.default.svc": false} {
		out, code := b.exec(p.Name, `C:\agnhost.exe`, "connect", "--timeout=10s", name+":443")
		if strings.HasPrefix(out, "DNS:") == found || (code == 0) != (found && name != "names") {
			t.Errorf("%s: exit code %d, %q", name, code, out)
		}
	}
}

// hostProcess: a program of the node itself, with volumes of its own.
func hostProcess(b *bed, t *testing.T) {
	yes := true
	system := `NT AUTHORITY\SYSTEM`
	p := pod("host-process", "win1", agnhost, "cmd", "/c",
		`hostname& ipconfig& echo made> C:\host-file& dir /b C:\host-file& ping -n 60 127.0.0.1`)
	p.Spec.HostNetwork = true
	p.Labels = map[string]string{"a": "b"}
	p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
		DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{
			{Path: "name", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}}}}}
	p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/etc/pod"}}
	p.Spec.SecurityContext = &corev1.PodSecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{HostProcess: &yes,
		RunAsUserName: &system}}
	b.create(p)
	if ip := b.wait(p.Name, ready).Status.PodIP; ip != "192.168.1.11" {
		t.Errorf("its address is %s", ip)
	}
	deadline := time.Now().Add(time.Minute)
	for !strings.Contains(b.log(p.Name, "main"), "192.168.1.11") && time.Now().Before(deadline) {
		time.Sleep(100 * time.Millisecond)
	}
	if log := strings.ToLower(b.log(p.Name, "main")); !strings.HasPrefix(log, "win1\n") || !strings.Contains(log, "192.168.1.11") {
		t.Errorf("%q", log)
	}
	// A volume is at its place and below the container's folder; the image is below that only.
	for _, c := range []struct {
		command []string
		want    string
	}{
		{[]string{"cmd", "/c", `cd`}, `C:\hpc`},
		{[]string{"cmd", "/c", `type C:\etc\pod\name`}, "host-process"},
		{[]string{"cmd", "/c", `type C:\hpc\etc\pod\name`}, "host-process"},
		{[]string{"powershell", "-c", `Get-Content $env:CONTAINER_SANDBOX_MOUNT_POINT\etc\pod\name`}, "host-process"},
		{[]string{"powershell", "-c", `if (-not(Test-Path C:\host-file)) { throw 'no file of the node' }; echo there`}, "there"},
		{[]string{`%CONTAINER_SANDBOX_MOUNT_POINT%\agnhost.exe`, "mounttest", "--file_content=/etc/pod/name"},
			`content of file "/etc/pod/name": host-process`},
	} {
		if out, code := b.exec(p.Name, c.command...); code != 0 || strings.TrimSpace(out) != c.want {
			t.Errorf("%q: exit code %d, %q, want %q", c.command, code, out, c.want)
		}
	}
	if out, _ := b.exec(p.Name, "cmd", "/c", `C:\agnhost.exe --version`); strings.Contains(out, "agnhost version") {
		t.Errorf("the image is on the node's drive: %q", out)
	}
	b.gone(p.Name)
}

// nodeLogs: what kubelet.exe has written can be asked for.
func nodeLogs(b *bed, t *testing.T) {
	text, err := b.c.Client.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes/win1/proxy/logs/").Param("query", "kubelet").DoRaw(b.ctx)
	if err != nil || !strings.Contains(string(text), "Kubelet version") {
		t.Errorf("%.500s, error %v", text, err)
	}
}

// statistics of a node reach the API server.
func statistics(b *bed, t *testing.T) {
	p := pod("busy", "win1", agnhost)
	p.Spec.Containers[0].Args = []string{"pause"}
	b.create(p)
	b.wait(p.Name, ready)
	number := regexp.MustCompile(`(?s)"name": "busy".*?"usageNanoCores": (\d+).*?"workingSetBytes": (\d+)`)
	deadline := time.Now().Add(time.Minute)
	for {
		text, err := b.c.Client.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes/win1/proxy/stats/summary").DoRaw(b.ctx)
		if m := number.FindSubmatch(text); err == nil && m != nil && string(m[1]) != "0" && string(m[2]) != "0" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no statistics: %v\n%s", err, text)
		}
		time.Sleep(time.Second)
	}
	b.gone(p.Name)
}
