package components

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/winlab-dev/winlab/sim/hcn"
	"github.com/winlab-dev/winlab/sim/hcn/shims"
	"github.com/winlab-dev/winlab/sim/windows"
	"github.com/winlab-dev/winlab/sim/wine"
)

// Node is where the programs of one Windows node run.
type Node struct {
	*wine.Prefix
	// HNS is the loopback address of the node's HNS, "127.0.0.1:40123".
	HNS string

	server *hcn.Server
	served chan error
}

// Start makes a node: HNS listens, and Wine is ready. dir is the folder of this run;
// the programs' logs stay in dir/logs.
func Start(ctx context.Context, dir string, build *windows.Build, hns *hcn.Service) (*Node, error) {
	w, err := wine.Find()
	if err != nil {
		return nil, err
	}
	dlls, err := builtShims()
	if err != nil {
		return nil, err
	}
	n := &Node{served: make(chan error, 1)}
	if n.server, err = hcn.Listen(hns, "127.0.0.1:0"); err != nil {
		return nil, err
	}
	n.HNS = n.server.Addr()
	go func() { n.served <- n.server.Serve(context.WithoutCancel(ctx)) }()
	n.Prefix, err = w.Prefix(ctx, wine.Config{Dir: dir, Build: build, DLLs: []string{dlls}, Env: []string{"WINLAB_HCN=" + n.HNS}})
	if err != nil {
		return nil, errors.Join(err, n.stopHNS())
	}
	return n, nil
}

// Close ends all programs of the node and stops listening. The HNS and its objects
// are the caller's.
func (n *Node) Close() error { return errors.Join(n.Prefix.Close(), n.stopHNS()) }

func (n *Node) stopHNS() error { return errors.Join(n.server.Close(), <-n.served) }

// builtShims returns the folder with the DLLs, from the cache.
func builtShims() (string, error) {
	cache, err := wine.CacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "shims", shims.Key())
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", fmt.Errorf("the cache cannot be written: %w; set WINLAB_CACHE to another folder", err)
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".making-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	if _, err := shims.Build(tmp); err != nil {
		return "", err
	}
	// Another process may have been faster; its DLLs are the same.
	if err := os.Rename(tmp, dir); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	return dir, nil
}
