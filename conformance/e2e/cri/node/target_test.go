package node

import (
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestTarget: an ephemeral container with a target, as kubectl debug --target makes it,
// sees the processes of that; what it writes is told.
func TestTarget(t *testing.T) {
	n, c := up(t)
	b := start(t, n, c, "linux1")
	cfg := b.config("web")
	pod, _ := b.sandbox(cfg)
	target := b.run(pod, cfg, "web", []string{"sleep", "1001"})
	debug := b.run(pod, cfg, "debug",
		[]string{"sh", "-c", "head -c 1000000 /dev/zero > /var/log/much; tr '\\0' ' ' < /proc/1/cmdline; sleep 1000"},
		func(c *runtimeapi.ContainerConfig) {
			c.Linux = &runtimeapi.LinuxContainerConfig{SecurityContext: &runtimeapi.LinuxContainerSecurityContext{
				NamespaceOptions: &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_TARGET, TargetId: target}}}
		})
	if out, code := b.exec(debug, "sh", "-c", "until test -s /var/log/much; do sleep 0.01; done; tr '\\0' ' ' < /proc/1/cmdline"); code != 0 ||
		strings.TrimSpace(out) != "sleep 1001" {
		t.Errorf("code %d: %s", code, out)
	}
	s, err := b.rt.ContainerStats(b.ctx, &runtimeapi.ContainerStatsRequest{ContainerId: debug})
	if err != nil || s.Stats.WritableLayer.GetUsedBytes().GetValue() < 1000000 {
		t.Errorf("%v, error %v", s, err)
	}
	if _, err := b.rt.StopContainer(b.ctx, &runtimeapi.StopContainerRequest{ContainerId: target}); err != nil {
		t.Fatal(err)
	}
	if st, _ := b.ended(debug); st.ExitCode != 137 {
		t.Errorf("%v", st)
	}
}
