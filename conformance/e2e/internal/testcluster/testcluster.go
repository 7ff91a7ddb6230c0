// Package testcluster brings a simulated cluster up inside a test, which can then let its
// parts fail, and sees that nothing is left of it. It must not know what is tried on it.
package testcluster

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/winlab-dev/winlab/conformance/e2e/cluster"
	"github.com/winlab-dev/winlab/conformance/e2e/cri/node"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/live/netns"
	"github.com/winlab-dev/winlab/sim/real/wine/winetest"
)

// Programs are those of a version of Kubernetes, "" for the newest that is pinned. The test
// is skipped where they are not built: that takes tens of minutes.
func Programs(t *testing.T, near, version string) *cluster.Programs {
	t.Helper()
	winetest.Need(t)
	p, err := cluster.CachedPrograms(t.Context(), near, version)
	switch {
	case err != nil:
		t.Fatal(err)
	case p == nil:
		t.Skip("the programs of a cluster are not built; make cluster-binaries builds them")
	}
	return p
}

// Up brings a cluster up on a lab. It is taken down when the test ends, which fails when a
// process, a mount or a folder of it is left.
func Up(t *testing.T, file, version string) *cluster.Cluster {
	t.Helper()
	p := Programs(t, file, version)
	l, err := lab.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Up(t.Context(), cluster.Options{Lab: l, Programs: p, Log: func(s string) { t.Log(s) },
		Runtime: func(ctx context.Context, n cluster.Node) (cluster.Runtime, error) {
			return node.Start(ctx, node.Options{Net: n.Net, Node: n.Node, Machine: n.Machine, Dir: n.Dir,
				Programs: func(_ context.Context, name string) (string, error) { return p.Path(name) }})
		}})
	if errors.Is(err, netns.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		for _, s := range leftovers(filepath.Dir(c.Kubeconfig())) {
			t.Errorf("this is left of the cluster: %s", s)
		}
	})
	return c
}

// leftovers lists what still uses a cluster's folder: the folder, mounts and processes.
func leftovers(dir string) (all []string) {
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		all = append(all, "the folder "+dir)
	}
	if mounts, _ := os.ReadFile("/proc/self/mounts"); bytes.Contains(mounts, []byte(dir)) {
		all = append(all, "a mount below "+dir)
	}
	commands, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range commands {
		text, _ := os.ReadFile(f)
		// Windows programs have such paths with the other slash.
		if bytes.Contains(text, []byte(dir)) || bytes.Contains(text, []byte(filepath.Base(dir)+`\`)) {
			all = append(all, "a process: "+string(bytes.ReplaceAll(text, []byte{0}, []byte{' '})))
		}
	}
	return all
}
