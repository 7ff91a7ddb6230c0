package live

import (
	"errors"
	"io"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/spec"
	"github.com/winlab-dev/winlab/sim/real/wine/winetest"
)

// TestAStoryWithPrograms is the story with kube-proxy.exe and the plugin's program on the
// nodes, which follow each step, and 200 connections in all.
func TestAStoryWithPrograms(t *testing.T) {
	winetest.Need(t)
	f, err := lab.Load("../lab/testdata/story.yaml")
	if err != nil {
		t.Fatal(err)
	}
	n := playStory(t, f, lab.Options{Components: spec.Real, Keep: true, Setting: &spec.Setting{Kubernetes: "1.33.13"}}, 40)
	all := n.Programs()
	if len(all) != 2 {
		t.Fatalf("want kube-proxy on two nodes, there are %+v", all)
	}
	for _, p := range all {
		if p.Command != "kube-proxy 1.33.13" || p.Ended != "" {
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

// TestRunWindows: a pod's own program is one of Windows, which sees the build of its node.
func TestRunWindows(t *testing.T) {
	winetest.Need(t)
	n := upText(t, "  pods: [{name: own, node: win1, run: [cmd.exe, /c, ver]}]\n")
	p := program(t, n, "pod/default/own", func(p Program) bool { return p.Ended != "" && written(t, p) != "" })
	if p.Ended != "exit code 0" || !strings.Contains(written(t, p), "10.0.17763") {
		t.Errorf("%+v wrote %q", p, written(t, p))
	}
}
