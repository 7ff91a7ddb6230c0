package cri

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestVersionAndStatus(t *testing.T) {
	down := error(nil)
	b := start(t, "windows", func(o *Options) { o.Network = func() error { return down } })
	v, err := b.rt.Version(b.ctx, &runtimeapi.VersionRequest{})
	if err != nil || v.RuntimeName != "containerd" || v.RuntimeVersion != runtimeVersion || v.RuntimeApiVersion != "v1" {
		t.Errorf("%v %v", v, err)
	}
	s, err := b.rt.Status(b.ctx, &runtimeapi.StatusRequest{Verbose: true})
	if err != nil || len(s.Status.Conditions) != 2 || !s.Status.Conditions[0].Status || !s.Status.Conditions[1].Status ||
		s.Info["info"] == "" || s.RuntimeHandlers[1].Name != "runhcs-wcow-process" {
		t.Errorf("%v %v", s, err)
	}
	down = errors.New("no network cbr0")
	if s, err = b.rt.Status(b.ctx, &runtimeapi.StatusRequest{}); err != nil || s.Status.Conditions[1].Status ||
		!strings.Contains(s.Status.Conditions[1].Message, "cbr0") {
		t.Errorf("%v %v", s, err)
	}
	if _, err := b.rt.UpdateRuntimeConfig(b.ctx, &runtimeapi.UpdateRuntimeConfigRequest{}); err != nil {
		t.Error(err)
	}
	if a, err := b.rt.RuntimeConfig(b.ctx, &runtimeapi.RuntimeConfigRequest{}); err != nil || a.Linux != nil {
		t.Errorf("%v %v", a, err)
	}
	for what, err := range map[string]error{
		"checkpoint": func() error {
			_, err := b.rt.CheckpointContainer(b.ctx, &runtimeapi.CheckpointContainerRequest{})
			return err
		}(),
		"restore": func() error { _, err := b.rt.RestorePod(b.ctx, &runtimeapi.RestorePodRequest{}); return err }(),
	} {
		if status.Code(err) != codes.Unimplemented {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestSandbox(t *testing.T) {
	b := start(t, "linux")
	c := b.config("web")
	c.PortMappings = []*runtimeapi.PortMapping{{ContainerPort: 80}, {Protocol: runtimeapi.Protocol_UDP, ContainerPort: 53, HostPort: 5353}}
	c.DnsConfig = &runtimeapi.DNSConfig{Servers: []string{"10.96.0.10"}}
	a, err := b.rt.RunPodSandbox(b.ctx, &runtimeapi.RunPodSandboxRequest{Config: c})
	if err != nil {
		t.Fatal(err)
	}
	id := a.PodSandboxId
	made := b.host.sandboxes[id]
	if made.Name != "web" || made.UID != "uid-web" || made.Hostname != "web" || len(made.Ports) != 1 ||
		made.Ports[0] != (Port{Protocol: "udp", HostPort: 5353, Container: 53}) || made.DNS.Servers[0] != "10.96.0.10" || made.HostNetwork {
		t.Errorf("the node was asked for %+v", made)
	}
	if _, err := b.rt.RunPodSandbox(b.ctx, &runtimeapi.RunPodSandboxRequest{Config: c}); err == nil ||
		!strings.Contains(err.Error(), "is reserved for") {
		t.Errorf("the same attempt again: %v", err)
	}
	s, err := b.rt.PodSandboxStatus(b.ctx, &runtimeapi.PodSandboxStatusRequest{PodSandboxId: id})
	if err != nil || s.Status.State != runtimeapi.PodSandboxState_SANDBOX_READY || s.Status.Network.Ip != "10.244.1.9" ||
		s.Status.Network.AdditionalIps[0].Ip != "fd00::9" || s.Status.Metadata.Name != "web" {
		t.Errorf("%v %v", s, err)
	}
	b.pull()
	run := b.create(id, "web", "main", "sleep 1000")
	b.begin(run)
	sandboxStops(t, b, id, run)
	sandboxGoes(t, b, id, run)
	b.sandbox("web") // the name is free again
}

// sandboxStops stops a sandbox in which a container runs.
func sandboxStops(t *testing.T, b *bed, id, run string) {
	t.Helper()
	for range 2 { // stopping twice is not an error
		if _, err := b.rt.StopPodSandbox(b.ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: id}); err != nil {
			t.Fatal(err)
		}
	}
	if s := b.status(run); s.State != runtimeapi.ContainerState_CONTAINER_EXITED || s.ExitCode != 137 {
		t.Errorf("the container after its sandbox was stopped: %v", s)
	}
	ready := &runtimeapi.PodSandboxStateValue{State: runtimeapi.PodSandboxState_SANDBOX_READY}
	for want, f := range map[int]*runtimeapi.PodSandboxFilter{0: {State: ready},
		1: {Id: id[:12], LabelSelector: map[string]string{"app": "web"}}} {
		l, err := b.rt.ListPodSandbox(b.ctx, &runtimeapi.ListPodSandboxRequest{Filter: f})
		if err != nil || len(l.Items) != want {
			t.Errorf("filter %v: %v %v", f, l, err)
		}
	}
	if s, err := b.rt.PodSandboxStatus(b.ctx, &runtimeapi.PodSandboxStatusRequest{PodSandboxId: id[:13]}); err != nil ||
		s.Status.State != runtimeapi.PodSandboxState_SANDBOX_NOTREADY || s.Status.Network.Ip != "" {
		t.Errorf("%v %v", s, err)
	}
	_, err := b.rt.CreateContainer(b.ctx, &runtimeapi.CreateContainerRequest{PodSandboxId: id,
		Config: &runtimeapi.ContainerConfig{Metadata: &runtimeapi.ContainerMetadata{Name: "late"}, Image: &runtimeapi.ImageSpec{Image: image}}})
	if err == nil || !strings.Contains(err.Error(), "not ready") {
		t.Errorf("a container in a stopped sandbox: %v", err)
	}
}

// sandboxGoes removes a sandbox that is stopped.
func sandboxGoes(t *testing.T, b *bed, id, run string) {
	t.Helper()
	for range 2 {
		if _, err := b.rt.RemovePodSandbox(b.ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: id}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.rt.PodSandboxStatus(b.ctx, &runtimeapi.PodSandboxStatusRequest{PodSandboxId: id}); status.Code(err) != codes.NotFound {
		t.Errorf("a sandbox that is removed: %v", err)
	}
	if _, err := b.rt.ContainerStatus(b.ctx, &runtimeapi.ContainerStatusRequest{ContainerId: run}); status.Code(err) != codes.NotFound {
		t.Errorf("its container: %v", err)
	}
}

func TestSandboxRefused(t *testing.T) {
	b := start(t, "linux")
	b.host.refuse = errors.New("no address is left")
	_, err := b.rt.RunPodSandbox(b.ctx, &runtimeapi.RunPodSandboxRequest{Config: b.config("web")})
	if err == nil || !strings.Contains(err.Error(), "no address is left") {
		t.Error(err)
	}
	b.host.refuse = nil
	for want, q := range map[string]*runtimeapi.RunPodSandboxRequest{
		`no runtime for "kata"`: {Config: b.config("web"), RuntimeHandler: "kata"},
		"metadata":              {},
		"ports are 1 to 65535": {Config: &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{Name: "x"},
			PortMappings: []*runtimeapi.PortMapping{{ContainerPort: 70000, HostPort: 1}}}},
	} {
		if _, err := b.rt.RunPodSandbox(b.ctx, q); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	b.sandbox("web") // what failed has left its name
}

func TestContainerEnds(t *testing.T) {
	b := start(t, "linux")
	b.pull()
	s := b.sandbox("web")
	for _, c := range []struct {
		script string
		code   int32
		reason string
	}{{"exit 0", 0, "Completed"}, {"exit 7", 7, "Error"}, {"kill -TERM $$", 143, "Error"}} {
		id := b.create(s, "web", "c-"+c.reason+fmt.Sprint(c.code), c.script)
		if got := b.status(id); got.State != runtimeapi.ContainerState_CONTAINER_CREATED || got.StartedAt != 0 || got.CreatedAt == 0 {
			t.Errorf("before its start: %v", got)
		}
		b.begin(id)
		got := b.exited(id)
		if got.ExitCode != c.code || got.Reason != c.reason || got.StartedAt == 0 || got.FinishedAt < got.StartedAt {
			t.Errorf("%s: %v", c.script, got)
		}
		if _, err := b.rt.StartContainer(b.ctx, &runtimeapi.StartContainerRequest{ContainerId: id}); err == nil {
			t.Error("a container was started twice")
		}
	}
	b.host.oom = true
	id := b.create(s, "web", "oom", "kill -KILL $$")
	b.begin(id)
	if got := b.exited(id); got.ExitCode != 137 || got.Reason != "OOMKilled" {
		t.Errorf("out of memory: %v", got)
	}
	// A program that is not there.
	id = b.create(s, "web", "lost", "", func(c *runtimeapi.ContainerConfig) { c.Command, c.Args = []string{"/no/such/program"}, nil })
	if _, err := b.rt.StartContainer(b.ctx, &runtimeapi.StartContainerRequest{ContainerId: id}); err == nil {
		t.Error("it started")
	}
	if got := b.status(id); got.State != runtimeapi.ContainerState_CONTAINER_EXITED || got.ExitCode != 128 || got.Reason != "StartError" ||
		!strings.Contains(got.Message, "/no/such/program") {
		t.Errorf("a program that is not there: %v", got)
	}
}

// TestMemoryLimit: a Linux container that has more than its limit is ended, one with enough
// goes on. Those of Windows are not ended: memory is refused to them.
func TestMemoryLimit(t *testing.T) {
	limit := func(bytes int64) func(*runtimeapi.ContainerConfig) {
		return func(c *runtimeapi.ContainerConfig) {
			c.Linux = &runtimeapi.LinuxContainerConfig{Resources: &runtimeapi.LinuxContainerResources{MemoryLimitInBytes: bytes}}
		}
	}
	b := start(t, "linux") // every container has 3 MiB
	b.pull()
	s := b.sandbox("web")
	small, enough := b.create(s, "web", "small", "sleep 1000", limit(2<<20)), b.create(s, "web", "enough", "sleep 1000", limit(4<<20))
	b.begin(small)
	b.begin(enough)
	if c := b.exited(small); c.Reason != "OOMKilled" || c.ExitCode != 137 {
		t.Errorf("%+v", c)
	}
	if c := b.status(enough); c.State != runtimeapi.ContainerState_CONTAINER_RUNNING {
		t.Errorf("%+v", c)
	}
}

func TestStopContainer(t *testing.T) {
	b := start(t, "linux")
	b.pull()
	s := b.sandbox("web")
	polite := b.create(s, "web", "polite", "trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.01; done")
	b.begin(polite)
	stop := func(id string, seconds int64) error {
		_, err := b.rt.StopContainer(b.ctx, &runtimeapi.StopContainerRequest{ContainerId: id, Timeout: seconds})
		return err
	}
	ready := b.create(s, "web", "ready", "trap '' TERM; echo ready; while :; do sleep 0.01; done")
	b.begin(ready)
	for _, name := range []string{"ready", "polite"} { // the traps are set then
		for !strings.Contains(b.log("web", name), "F ready") {
			time.Sleep(time.Millisecond)
		}
	}
	if err := stop(ready, 1); err != nil {
		t.Fatal(err)
	}
	if got := b.exited(ready); got.ExitCode != 137 {
		t.Errorf("one that ignores the request: %v", got)
	}
	if err := stop(polite, 30); err != nil {
		t.Fatal(err)
	}
	if got := b.exited(polite); got.ExitCode != 5 || !strings.Contains(b.log("web", "polite"), "bye") {
		t.Errorf("one that obeys: %v", got)
	}
	for _, id := range []string{polite, "unknown"} {
		if err := stop(id, 1); err != nil {
			t.Errorf("stopping %s: %v", id, err)
		}
	}
	for range 2 {
		if _, err := b.rt.RemoveContainer(b.ctx, &runtimeapi.RemoveContainerRequest{ContainerId: polite}); err != nil {
			t.Error(err)
		}
	}
}

func (b *bed) log(pod, name string) string {
	text, _ := os.ReadFile(filepath.Join(b.dir, "logs", pod, name+".log"))
	return string(text)
}

func TestSpec(t *testing.T) {
	b := start(t, "linux")
	b.pull()
	s := b.sandbox("web")
	volume := filepath.Join(b.dir, "volumes", "made")
	b.create(s, "web", "main", "true", func(c *runtimeapi.ContainerConfig) {
		c.Envs = []*runtimeapi.KeyValue{{Key: "COLOR", Value: []byte("pod=1")}}
		c.Mounts = []*runtimeapi.Mount{{HostPath: volume, ContainerPath: "/v", Readonly: true}}
		c.Linux = &runtimeapi.LinuxContainerConfig{
			Resources: &runtimeapi.LinuxContainerResources{CpuPeriod: 100000, CpuQuota: 50000, MemoryLimitInBytes: 1 << 20},
			SecurityContext: &runtimeapi.LinuxContainerSecurityContext{
				RunAsUser: &runtimeapi.Int64Value{Value: 7}, RunAsGroup: &runtimeapi.Int64Value{Value: 8}, ReadonlyRootfs: true,
			},
		}
	})
	got := b.host.last
	if !slices.Equal(got.Process.Args, []string{"/bin/sh", "-c", "true"}) ||
		!slices.Equal(got.Process.Env, []string{"COLOR=pod=1", "SIZE=1"}) ||
		got.Process.User != "7:8" || !got.ReadOnly || got.Limits != (Limits{CPU: 500, Memory: 1 << 20}) {
		t.Errorf("%+v", got)
	}
	if len(got.Mounts) != 2 || got.Mounts[0].Target != "/etc/x" || !got.Mounts[0].ReadOnly ||
		got.Mounts[1] != (Mount{Source: volume, Target: "/v", ReadOnly: true}) {
		t.Errorf("mounts %+v", got.Mounts)
	}
	if text, err := os.ReadFile(got.Mounts[0].Source); err != nil || string(text) != "hello" {
		t.Errorf("the image's file: %q %v", text, err)
	}
	if st, err := os.Stat(volume); err != nil || !st.IsDir() {
		t.Errorf("the source of a mount is made where it is missing: %v", err)
	}
	bad := func(want string, change func(*runtimeapi.ContainerConfig)) {
		t.Helper()
		c := &runtimeapi.ContainerConfig{Metadata: &runtimeapi.ContainerMetadata{Name: "bad"}, Image: &runtimeapi.ImageSpec{Image: image}}
		change(c)
		if _, err := b.rt.CreateContainer(b.ctx, &runtimeapi.CreateContainerRequest{PodSandboxId: s, Config: c}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	bad("not found", func(c *runtimeapi.ContainerConfig) { c.Image.Image = "example.org/other:1" })
	bad("without user", func(c *runtimeapi.ContainerConfig) {
		c.Linux = &runtimeapi.LinuxContainerConfig{SecurityContext: &runtimeapi.LinuxContainerSecurityContext{
			RunAsGroup: &runtimeapi.Int64Value{Value: 8}}}
	})
	bad("invalid target container", func(c *runtimeapi.ContainerConfig) {
		c.Linux = &runtimeapi.LinuxContainerConfig{SecurityContext: &runtimeapi.LinuxContainerSecurityContext{
			NamespaceOptions: &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_TARGET, TargetId: "x"},
		}}
	})
	bad("recursive_read_only", func(c *runtimeapi.ContainerConfig) {
		c.Mounts = []*runtimeapi.Mount{{HostPath: b.dir, ContainerPath: "/v", Readonly: true, RecursiveReadOnly: true}}
	})
}

func TestListContainersAndUpdate(t *testing.T) {
	b := start(t, "linux")
	b.pull()
	s := b.sandbox("web")
	one := b.create(s, "web", "one", "sleep 1000")
	two := b.create(s, "web", "two", "sleep 1000")
	b.begin(two)
	running := &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING}
	for _, c := range []struct {
		f    *runtimeapi.ContainerFilter
		want []string
	}{
		{nil, []string{two, one}},
		{&runtimeapi.ContainerFilter{State: running}, []string{two}},
		{&runtimeapi.ContainerFilter{LabelSelector: map[string]string{"container": "one"}}, []string{one}},
		{&runtimeapi.ContainerFilter{PodSandboxId: "0000"}, nil},
		{&runtimeapi.ContainerFilter{Id: one[:20], PodSandboxId: s}, []string{one}},
	} {
		l, err := b.rt.ListContainers(b.ctx, &runtimeapi.ListContainersRequest{Filter: c.f})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, i := range l.Containers {
			got = append(got, i.Id)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.f, got, c.want)
		}
	}
	if _, err := b.rt.UpdateContainerResources(b.ctx, &runtimeapi.UpdateContainerResourcesRequest{ContainerId: two,
		Linux: &runtimeapi.LinuxContainerResources{CpuShares: 77}}); err != nil {
		t.Fatal(err)
	}
	if got := b.status(two); got.Resources.Linux.CpuShares != 77 || got.ImageId == "" ||
		!strings.HasPrefix(got.ImageRef, "example.org/test@sha256:") || got.Image.Image != image {
		t.Errorf("%v", got)
	}
}

// The containers of a runtime outlive its server.
func TestServerAgain(t *testing.T) {
	b := start(t, "linux")
	b.pull()
	s := b.sandbox("web")
	id := b.create(s, "web", "main", "read x; echo $x", func(c *runtimeapi.ContainerConfig) { c.Stdin = true })
	b.begin(id)
	b.runtime.Disconnect()
	b.serve()
	for { // the client comes back by itself
		if a, err := b.rt.ContainerStatus(b.ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id}); err == nil {
			if a.Status.State != runtimeapi.ContainerState_CONTAINER_RUNNING {
				t.Errorf("%v", a)
			}
			break
		} else if b.ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

func TestManySandboxes(t *testing.T) {
	b := start(t, "linux")
	b.pull()
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			pod := fmt.Sprint("pod-", i)
			a, err := b.rt.RunPodSandbox(b.ctx, &runtimeapi.RunPodSandboxRequest{Config: b.config(pod)})
			if err != nil {
				t.Error(err)
				return
			}
			id := b.create(a.PodSandboxId, pod, "main", "echo "+pod)
			b.begin(id)
			b.exited(id)
			if !strings.Contains(b.log(pod, "main"), "stdout F "+pod+"\n") {
				t.Errorf("log of %s: %q", pod, b.log(pod, "main"))
			}
			if _, err := b.rt.RemovePodSandbox(b.ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: a.PodSandboxId}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if l, err := b.rt.ListContainers(b.ctx, &runtimeapi.ListContainersRequest{}); err != nil || len(l.Containers) > 0 {
		t.Errorf("%v %v", l, err)
	}
}
