package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/winlab-dev/winlab/conformance/e2e/cri/images"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/live"
	"github.com/winlab-dev/winlab/sim/live/netns"
	"github.com/winlab-dev/winlab/sim/real/wine/winetest"
)

// table has an image of this machine's own programs.
const table = `
images:
- repositories: [example.org/machine]
  tags: ["*"]
  linux: {cmd: [sh], files: {/image/text: {text: hello}}}
- repositories: [mcr.microsoft.com/windows/nanoserver]
  tags: ["*"]
  windows: {cmd: [cmd.exe], user: ContainerUser, builds: [20348], files: {'C:\text.txt': {text: hello}}}
`

// bed is a lab that runs, and the runtime of one of its machines.
type bed struct {
	*testing.T
	net  *live.Net
	r    *Runtime
	rt   runtimeapi.RuntimeServiceClient
	im   runtimeapi.ImageServiceClient
	logs string
	img  string
	ctx  context.Context
}

func up(t *testing.T) (*live.Net, *lab.Cluster) {
	t.Helper()
	f, err := lab.Load("../../cluster/testdata/lab.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := lab.Build(t.Context(), f, lab.Options{Components: "model", Objects: cluster.Outside, Proxies: cluster.Outside})
	if err != nil {
		t.Fatal(err)
	}
	n, err := live.Up(t.Context(), c, live.Options{Silent: true, Log: func(s string) { t.Log(s) }})
	if errors.Is(err, netns.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return n, c
}

func start(t *testing.T, n *live.Net, c *lab.Cluster, name string) *bed {
	t.Helper()
	tb, err := images.ReadTable([]byte(table))
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "winlab-cri-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	var node *kube.Node
	for _, k := range c.Kube.Nodes {
		if k.Name == name {
			node = k
		}
	}
	b := &bed{T: t, net: n, ctx: t.Context(), img: "example.org/machine:1", logs: filepath.Join(dir, "logs")}
	b.r, err = Start(t.Context(), Options{Net: n, Node: node, Machine: "node/" + name, Dir: dir, Table: tb, Programs: images.Folder(dir),
		Log: func(s string) { t.Log(s) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.r.Close(); err != nil {
			t.Error(err)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "cri-*")); len(left) > 0 {
			t.Errorf("files are left: %v", left)
		}
	})
	at, dial := b.r.Endpoint(), grpc.WithTransportCredentials(insecure.NewCredentials())
	opts := []grpc.DialOption{dial}
	if node.Windows != nil {
		b.img, b.logs = "mcr.microsoft.com/windows/nanoserver:ltsc2022", `C:\var\log\pods`
		addr := netip.MustParseAddrPort(strings.TrimPrefix(at, "tcp://"))
		opts = append(opts, grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return n.Dial(ctx, "node/"+name, "tcp", addr, 10*time.Second)
		}))
		at = "passthrough:///cri"
	}
	cc, err := grpc.NewClient(at, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cc.Close() })
	b.rt, b.im = runtimeapi.NewRuntimeServiceClient(cc), runtimeapi.NewImageServiceClient(cc)
	if _, err := b.im.PullImage(b.ctx, &runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{Image: b.img}}); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bed) config(pod string) *runtimeapi.PodSandboxConfig {
	return &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{Name: pod, Namespace: "default", Uid: pod}, Hostname: pod,
		LogDirectory: b.logs}
}

// sandbox adds a pod and returns its ID and address.
func (b *bed) sandbox(c *runtimeapi.PodSandboxConfig) (string, string) {
	b.Helper()
	a, err := b.rt.RunPodSandbox(b.ctx, &runtimeapi.RunPodSandboxRequest{Config: c})
	if err != nil {
		b.Fatal(err)
	}
	s, err := b.rt.PodSandboxStatus(b.ctx, &runtimeapi.PodSandboxStatusRequest{PodSandboxId: a.PodSandboxId})
	if err != nil {
		b.Fatal(err)
	}
	return a.PodSandboxId, s.Status.Network.Ip
}

func (b *bed) run(sandbox string, pod *runtimeapi.PodSandboxConfig, name string, cmd []string,
	change ...func(*runtimeapi.ContainerConfig)) string {
	b.Helper()
	c := &runtimeapi.ContainerConfig{Metadata: &runtimeapi.ContainerMetadata{Name: name}, Image: &runtimeapi.ImageSpec{Image: b.img},
		Command: cmd, LogPath: pod.Metadata.Name + "-" + name + ".log"}
	for _, f := range change {
		f(c)
	}
	a, err := b.rt.CreateContainer(b.ctx, &runtimeapi.CreateContainerRequest{PodSandboxId: sandbox, Config: c, SandboxConfig: pod})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := b.rt.StartContainer(b.ctx, &runtimeapi.StartContainerRequest{ContainerId: a.ContainerId}); err != nil {
		b.Fatal(err)
	}
	return a.ContainerId
}

// ended waits for the end of a container and returns its log without times.
func (b *bed) ended(id string) (*runtimeapi.ContainerStatus, string) {
	b.Helper()
	for b.ctx.Err() == nil {
		a, err := b.rt.ContainerStatus(b.ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id})
		if err != nil {
			b.Fatal(err)
		}
		if a.Status.State == runtimeapi.ContainerState_CONTAINER_EXITED {
			return a.Status, b.log(a.Status.LogPath)
		}
		time.Sleep(5 * time.Millisecond)
	}
	b.Fatal("the container does not end")
	return nil, ""
}

func (b *bed) log(path string) string {
	if strings.HasPrefix(path, "C:") {
		var err error
		if path, err = b.net.NodePath(b.ctx, b.r.o.Machine, path); err != nil {
			b.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	var out string
	for line := range strings.Lines(string(text)) {
		if _, rest, ok := strings.Cut(line, " "); ok {
			out += strings.ReplaceAll(rest, "\r", "")
		}
	}
	return out
}

func (b *bed) exec(id string, cmd ...string) (string, int32) {
	b.Helper()
	a, err := b.rt.ExecSync(b.ctx, &runtimeapi.ExecSyncRequest{ContainerId: id, Cmd: cmd, Timeout: 60})
	if err != nil {
		b.Fatal(err)
	}
	return strings.ReplaceAll(string(a.Stdout)+string(a.Stderr), "\r\n", "\n"), a.ExitCode
}

func TestLinuxNode(t *testing.T) {
	n, c := up(t)
	b := start(t, n, c, "linux1")
	pod := b.config("web")
	pod.DnsConfig = &runtimeapi.DNSConfig{Servers: []string{"10.96.0.10"}, Searches: []string{"default.svc.cluster.local"},
		Options: []string{"ndots:5"}}
	s, ip := b.sandbox(pod)
	volume := t.TempDir()
	if err := os.WriteFile(filepath.Join(volume, "key"), []byte("value"), 0o644); err != nil {
		t.Fatal(err)
	}
	id := b.run(s, pod, "main",
		[]string{"sh", "-c",
			"hostname; cat /image/text /v/key; echo; echo x > /v/key || echo read-only; cat /etc/resolv.conf; echo $COLOR; id -u; exit 4"},
		func(c *runtimeapi.ContainerConfig) {
			c.Mounts = []*runtimeapi.Mount{{HostPath: volume, ContainerPath: "/v", Readonly: true}}
			c.Envs = []*runtimeapi.KeyValue{{Key: "COLOR", Value: []byte("red")}}
			c.Linux = &runtimeapi.LinuxContainerConfig{SecurityContext: &runtimeapi.LinuxContainerSecurityContext{
				RunAsUser: &runtimeapi.Int64Value{Value: 1234}}}
		})
	st, log := b.ended(id)
	for _, want := range []string{"stdout F web\n", "stdout F hellovalue\n", "read-only", "nameserver 10.96.0.10",
		"search default.svc.cluster.local", "ndots:5", "F red", "F 1234"} {
		if !strings.Contains(log, want) {
			t.Errorf("no %q in the log:\n%s", want, log)
		}
	}
	if st.ExitCode != 4 || ip == "" {
		t.Errorf("%v, address %q", st, ip)
	}
	// A server, reached from another pod by the lab's wires, and by the way of port-forward.
	server := b.run(s, pod, "server", []string{"sleep", "1000"})
	l, err := n.Listen(t.Context(), "pod/default/web", netip.MustParseAddrPort("0.0.0.0:80"))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = fmt.Fprint(c, "hi")
			_ = c.Close()
		}
	}()
	other := b.config("client")
	s2, _ := b.sandbox(other)
	client := b.run(s2, other, "main", []string{"sleep", "1000"})
	if out, code := b.exec(client, "bash", "-c", "cat < /dev/tcp/"+ip+"/80"); out != "hi" || code != 0 {
		t.Errorf("from another pod: %q, exit code %d", out, code)
	}
	m := &machine{net: n, sandboxes: map[string]attached{"x": {at: "pod/default/web"}}}
	if conn, err := m.Dial(t.Context(), "x", 80); err != nil {
		t.Error(err)
	} else {
		_ = conn.Close()
	}
	u, err := b.rt.ContainerStats(b.ctx, &runtimeapi.ContainerStatsRequest{ContainerId: server})
	if err != nil || u.Stats.Memory.WorkingSetBytes.Value == 0 {
		t.Errorf("%v %v", u, err)
	}
	if _, err := b.rt.StopContainer(b.ctx, &runtimeapi.StopContainerRequest{ContainerId: server, Timeout: 0}); err != nil {
		t.Fatal(err)
	}
	if st, _ := b.ended(server); st.ExitCode != 137 {
		t.Errorf("%v", st)
	}
	// The runtime's server ends and comes back; the pods do not notice.
	if err := b.r.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	for b.ctx.Err() == nil {
		if a, err := b.rt.ListPodSandbox(b.ctx, &runtimeapi.ListPodSandboxRequest{}); err == nil {
			if len(a.Items) != 2 {
				t.Errorf("%v", a)
			}
			break
		}
	}
	if out, _ := b.exec(client, "echo", "still here"); out != "still here\n" {
		t.Errorf("%q", out)
	}
	if _, err := b.rt.StopPodSandbox(b.ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: s2}); err != nil {
		t.Fatal(err)
	}
	// Another attempt of the pod while the old sandbox is still known.
	other.Metadata.Attempt = 1
	s3, _ := b.sandbox(other)
	if _, err := b.rt.RemovePodSandbox(b.ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: s2}); err != nil {
		t.Fatal(err)
	}
	if out, _ := b.exec(b.run(s3, other, "again", []string{"sleep", "1000"}), "echo", "new"); out != "new\n" {
		t.Errorf("after the old sandbox was removed: %q", out)
	}
}

func TestHostNetwork(t *testing.T) {
	n, c := up(t)
	b := start(t, n, c, "linux1")
	pod := b.config("agent")
	pod.Hostname = ""
	pod.Linux = &runtimeapi.LinuxPodSandboxConfig{SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{
		NamespaceOptions: &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_NODE}}}
	s, ip := b.sandbox(pod)
	if _, log := b.ended(b.run(s, pod, "main", []string{"ip", "-4", "addr"})); ip != "" || !strings.Contains(log, "192.168.1.10/") {
		t.Errorf("address %q, log:\n%s", ip, log)
	}
}

func TestWindowsNode(t *testing.T) {
	winetest.Need(t)
	n, c := up(t)
	b := start(t, n, c, "win1")
	pod := b.config("web")
	pod.Windows = &runtimeapi.WindowsPodSandboxConfig{SecurityContext: &runtimeapi.WindowsSandboxSecurityContext{}}
	s, ip := b.sandbox(pod)
	volume := `C:\var\lib\kubelet\pods\web\volumes\v`
	at, err := n.NodePath(t.Context(), "node/win1", volume)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(at, "key"), []byte("value"), 0o644); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	id := b.run(s, pod, "main", []string{"cmd", "/S", "/C", `echo %username%& type C:\v\key& type C:\text.txt& echo %COLOR%& exit 7`},
		func(c *runtimeapi.ContainerConfig) {
			c.Mounts = []*runtimeapi.Mount{{HostPath: volume, ContainerPath: `C:\v`, Readonly: true}}
			c.Envs = []*runtimeapi.KeyValue{{Key: "COLOR", Value: []byte("red")}}
		})
	st, log := b.ended(id)
	t.Logf("the first Windows container took %v", time.Since(began))
	for _, want := range []string{"stdout F ContainerUser\n", "value", "hello", "red"} {
		if !strings.Contains(log, want) {
			t.Errorf("no %q in the log:\n%s", want, log)
		}
	}
	if st.ExitCode != 7 || ip == "" {
		t.Errorf("%v, address %q", st, ip)
	}
	for _, none := range []string{`C:\no\such\program`, "nosuchprogram"} {
		a, err := b.rt.CreateContainer(b.ctx, &runtimeapi.CreateContainerRequest{PodSandboxId: s, SandboxConfig: pod,
			Config: &runtimeapi.ContainerConfig{
				Metadata: &runtimeapi.ContainerMetadata{Name: "none"}, Image: &runtimeapi.ImageSpec{Image: b.img}, Command: []string{none},
			}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = b.rt.StartContainer(b.ctx, &runtimeapi.StartContainerRequest{ContainerId: a.ContainerId}); err == nil ||
			!strings.Contains(err.Error(), "cannot find the file") {
			t.Errorf("%s: %v", none, err)
		}
		if _, err = b.rt.RemoveContainer(b.ctx, &runtimeapi.RemoveContainerRequest{ContainerId: a.ContainerId}); err != nil {
			t.Error(err)
		}
	}
	long := b.run(s, pod, "long", []string{"ping", "-n", "1000", "127.0.0.1"}, func(c *runtimeapi.ContainerConfig) {
		c.Windows = &runtimeapi.WindowsContainerConfig{SecurityContext: &runtimeapi.WindowsContainerSecurityContext{
			CredentialSpec: `{"DomainJoinConfig":{"DnsName":"acme.com"}}`}}
	})
	if out, code := b.exec(long, "nltest", "/PARENTDOMAIN"); !strings.HasPrefix(out, "acme.com") || code != 0 {
		t.Errorf("nltest: %q, exit code %d", out, code)
	}
	if out, code := b.exec(long, "cmd", "/c", "echo %username%& exit 3"); out != "ContainerUser\n" || code != 3 {
		st, err := b.rt.ContainerStatus(b.ctx, &runtimeapi.ContainerStatusRequest{ContainerId: long})
		t.Errorf("exec: %q, exit code %d; the container: %v %v, log:\n%s", out, code, st, err, b.log(st.Status.LogPath))
	}
}
