package cri

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// windows makes a runtime for a kubelet whose drive C: is a folder.
func windows(t *testing.T) *bed {
	var b *bed
	b = start(t, "windows", func(o *Options) {
		o.Path = func(_ context.Context, p string) (string, error) {
			return filepath.Join(b.prefix(), strings.ReplaceAll(strings.TrimPrefix(p, "C:"), `\`, "/")), nil
		}
	})
	return b
}

func (b *bed) prefix() string { return filepath.Join(b.dir, "drive_c") }

func (b *bed) windowsConfig(user string, host bool) *runtimeapi.PodSandboxConfig {
	c := b.config("web")
	c.LogDirectory = `C:\var\log\pods\web`
	c.Windows = &runtimeapi.WindowsPodSandboxConfig{SecurityContext: &runtimeapi.WindowsSandboxSecurityContext{RunAsUsername: user,
		HostProcess: host}}
	return c
}

func TestWindowsUsers(t *testing.T) {
	b := windows(t)
	b.pull()
	_, err := b.rt.RunPodSandbox(b.ctx, &runtimeapi.RunPodSandboxRequest{Config: b.windowsConfig("FooLish", false)})
	if err == nil || !strings.Contains(err.Error(), "The user name or password is incorrect.") {
		t.Errorf("a pod's unknown user: %v", err)
	}
	a, err := b.rt.RunPodSandbox(b.ctx, &runtimeapi.RunPodSandboxRequest{Config: b.windowsConfig("containeruser", false)})
	if err != nil {
		t.Fatal(err)
	}
	with := func(name, user string) string {
		return b.create(a.PodSandboxId, "web", name, "exit 0", func(c *runtimeapi.ContainerConfig) {
			c.Windows = &runtimeapi.WindowsContainerConfig{SecurityContext: &runtimeapi.WindowsContainerSecurityContext{RunAsUsername: user}}
		})
	}
	id := with("bad", "FooLish")
	if _, err = b.rt.StartContainer(b.ctx, &runtimeapi.StartContainerRequest{ContainerId: id}); err == nil {
		t.Error("a container of an unknown user started")
	}
	if s := b.status(id); s.Reason != "StartError" || !strings.Contains(s.Message, "The user name or password is incorrect.") {
		t.Errorf("%v", s)
	}
	for name, want := range map[string]string{"": "ContainerUser", "ContainerAdministrator": "ContainerAdministrator"} {
		id := with("user"+name, name)
		if got := b.host.last.Process.User; got != want {
			t.Errorf("user %q runs as %q", name, got)
		}
		b.begin(id)
	}
}

func TestWindowsContainer(t *testing.T) {
	b := windows(t)
	b.pull()
	a, err := b.rt.RunPodSandbox(b.ctx, &runtimeapi.RunPodSandboxRequest{Config: b.windowsConfig("", false)})
	if err != nil {
		t.Fatal(err)
	}
	id := b.createIn(a.PodSandboxId, b.windowsConfig("", false), "main", "echo hi", func(c *runtimeapi.ContainerConfig) {
		c.LogPath = `main/0.log`
		c.Envs = []*runtimeapi.KeyValue{{Key: "Path", Value: []byte(`C:\x`)}, {Key: "PATH", Value: []byte(`C:\y`)}}
		c.Windows = &runtimeapi.WindowsContainerConfig{
			Resources:       &runtimeapi.WindowsContainerResources{CpuMaximum: 2500, MemoryLimitInBytes: 1 << 30},
			SecurityContext: &runtimeapi.WindowsContainerSecurityContext{CredentialSpec: `{"DomainJoinConfig":{"DnsName":"acme.com"}}`},
		}
	})
	got := b.host.last
	if !slices.Equal(got.Process.Env, []string{`PATH=C:\y`}) || got.Limits.Memory != 1<<30 || got.Limits.CPU != int64(processors())*250 ||
		!strings.Contains(got.CredentialSpec, "acme.com") {
		t.Errorf("%+v", got)
	}
	b.begin(id)
	b.exited(id)
	if text := b.text(filepath.Join(b.prefix(), "var/log/pods/web/main/0.log")); !strings.Contains(text, "stdout F hi") {
		t.Errorf("the log in the prefix: %q", text)
	}
	if s := b.status(id); s.LogPath != `C:\var\log\pods\web\main\0.log` || s.Resources.Windows.CpuMaximum != 2500 {
		t.Errorf("%v", s)
	}
	// For a mount of what is not there a folder is made.
	_, err = b.rt.CreateContainer(b.ctx, &runtimeapi.CreateContainerRequest{PodSandboxId: a.PodSandboxId, Config: &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "lost"}, Image: &runtimeapi.ImageSpec{Image: image},
		Mounts: []*runtimeapi.Mount{{HostPath: `C:\none`, ContainerPath: `C:\v`}},
	}})
	if i, statErr := os.Stat(filepath.Join(b.prefix(), "none")); err != nil || statErr != nil || !i.IsDir() {
		t.Errorf("%v, %v", err, statErr)
	}
}

func TestHostProcess(t *testing.T) {
	b := windows(t)
	b.pull()
	a, err := b.rt.RunPodSandbox(b.ctx, &runtimeapi.RunPodSandboxRequest{Config: b.windowsConfig(`NT AUTHORITY\SYSTEM`, true)})
	if err != nil {
		t.Fatal(err)
	}
	if s := b.host.sandboxes[a.PodSandboxId]; !s.HostProcess || !s.HostNetwork {
		t.Errorf("%+v", s)
	}
	if s, err := b.rt.PodSandboxStatus(b.ctx, &runtimeapi.PodSandboxStatusRequest{PodSandboxId: a.PodSandboxId}); err != nil ||
		s.Status.Network.Ip != "" {
		t.Errorf("%v %v", s, err)
	}
	_, err = b.rt.CreateContainer(b.ctx, &runtimeapi.CreateContainerRequest{PodSandboxId: a.PodSandboxId, Config: &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "plain"}, Image: &runtimeapi.ImageSpec{Image: image},
	}})
	if err == nil || !strings.Contains(err.Error(), "HostProcess") {
		t.Errorf("a plain container in a HostProcess pod: %v", err)
	}
	b.create(a.PodSandboxId, "web", "host", "true", func(c *runtimeapi.ContainerConfig) {
		c.Windows = &runtimeapi.WindowsContainerConfig{SecurityContext: &runtimeapi.WindowsContainerSecurityContext{HostProcess: true,
			RunAsUsername: `NT AUTHORITY\SYSTEM`}}
	})
	if !b.host.last.HostProcess {
		t.Errorf("%+v", b.host.last)
	}
}
