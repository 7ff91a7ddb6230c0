package live

import (
	"errors"
	"io"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/live/netns"
	"github.com/winlab-dev/winlab/sim/real/wine/winetest"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// TestAStoryWithPrograms is the story with kube-proxy.exe and the plugin's program on the
// nodes, which follow each step, and 200 connections in all.
func TestAStoryWithPrograms(t *testing.T) {
	winetest.Need(t)
	f, err := lab.Load("../lab/testdata/story.yaml")
	if err != nil {
		t.Fatal(err)
	}
	n := playStory(t, f, lab.Options{Components: labfile.Real, Keep: true, Setting: &labfile.Setting{Kubernetes: "1.36.3"}}, 40)
	all := n.Programs()
	if len(all) != 2 {
		t.Fatalf("want kube-proxy on two nodes, there are %+v", all)
	}
	for _, p := range all {
		if p.Command != "kube-proxy 1.36.3" || p.Ended != "" {
			t.Errorf("%+v", p)
		}
	}
	if !all[0].Since.After(all[1].Since) {
		t.Errorf("the one of win1 was started again with its node: %v", all)
	}
	for _, p := range all {
		c, err := n.Dial(t.Context(), p.Machine, "tcp", netip.MustParseAddrPort("127.0.0.1:10256"), 15*time.Second)
		if err != nil {
			t.Errorf("kube-proxy is not in the network of %s: %v", p.Machine, err)
			continue
		}
		_, _ = io.WriteString(c, "GET /healthz HTTP/1.0\r\n\r\n")
		if answer, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.0 200") {
			t.Errorf("%s says %q, error %v", p.Machine, answer, err)
		}
		_ = c.Close()
	}
	log := all[0].Log
	if _, err := os.Stat(log); err != nil {
		t.Error(err)
	}
	n.Close()
	if _, err := os.Stat(log); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what a program wrote is still there: %s, %v", log, err)
	}
}

// TestAPIServerInTheLab: kube-proxy.exe asks its API server through the lab's network. It
// follows nothing while a cable is cut, all of it when the cable is joined, and the API
// server of a node that has started again.
func TestAPIServerInTheLab(t *testing.T) {
	winetest.Need(t)
	f, err := lab.Load("../../fixtures/labs/l2bridge-flannel-host-gw.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := lab.Build(t.Context(), f, lab.Options{Components: labfile.Real, Keep: true})
	if err != nil {
		t.Fatal(err)
	}
	n, err := Up(t.Context(), c, Options{Log: func(s string) { t.Error(s) }})
	if errors.Is(err, netns.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	has := func(node, vip string) (has bool) {
		_ = n.Do(func(c *lab.Cluster) error {
			has = len(c.HNS(node).ListLoadBalancers(func(l *hns.LoadBalancer) bool { return slices.Contains(l.FrontendVIPs, vip) })) > 0
			return nil
		})
		return has
	}
	change := func(s labfile.Step) {
		t.Helper()
		if err := n.Change(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	add := func(name, vip string) {
		t.Helper()
		change(labfile.Step{Objects: []map[string]any{{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"clusterIP": vip, "selector": map[string]any{"app": "win-webserver"},
				"ports": []any{map[string]any{"port": 80}}}}}})
	}
	troubles := func(vip string) string {
		var all []string
		_ = n.Do(func(c *lab.Cluster) error {
			for _, x := range c.Troubles(netip.MustParseAddrPort(vip+":80"), packet.TCP) {
				all = append(all, x.Node+": "+x.Text)
			}
			return nil
		})
		return strings.Join(all, ", ")
	}
	change(labfile.Step{Links: []labfile.Link{{Of: "node/win1", Down: true}}})
	add("one", "10.96.7.1")
	if has("win1", "10.96.7.1") || !has("win2", "10.96.7.1") {
		t.Errorf("win1, which is cut off, has it %v, and win2 has it %v", has("win1", "10.96.7.1"), has("win2", "10.96.7.1"))
	}
	if got := troubles("10.96.7.1"); !strings.Contains(got, "win1") || !strings.Contains(got, "it cannot reach the API server") ||
		strings.Contains(got, "win2") {
		t.Errorf("troubles: %s", got)
	}
	change(labfile.Step{Links: []labfile.Link{{Of: "node/win1"}}})
	for end := time.Now().Add(2 * time.Minute); !has("win1", "10.96.7.1"); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("kube-proxy of win1 has not followed")
		}
	}
	change(labfile.Step{Restart: []string{"node/linux1"}})
	add("two", "10.96.7.2")
	for end := time.Now().Add(3 * time.Minute); !has("win1", "10.96.7.2") || !has("win2", "10.96.7.2"); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("kube-proxies have not followed the API server that has started again: %s", troubles("10.96.7.2"))
		}
	}
	if got := troubles("10.96.7.1"); got != "" {
		t.Errorf("troubles in the end: %s", got)
	}
}

// TestRunWindows: a pod's own program is one of Windows, which sees the build of its node.
func TestRunWindows(t *testing.T) {
	winetest.Need(t)
	n := upText(t, "  pods: [{name: own, node: win1, run: [cmd.exe, /c, ver]}]\n")
	p := program(t, n, "pod/default/own", func(p Program) bool { return p.Ended != "" && written(t, p) != "" })
	if p.Ended != "exit code 0" || !strings.Contains(written(t, p), "10.0.17763") {
		t.Errorf("%+v wrote %q", p, written(t, p))
	}
}
