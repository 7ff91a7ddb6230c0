package components

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// Pool makes a host for each build that is asked for, and keeps it until Close:
// Wine needs seconds to come up. It can be used by several goroutines.
type Pool struct {
	dir string
	own bool // the pool removes dir

	mu    sync.Mutex
	hosts map[string]*pooled
}

type pooled struct {
	once sync.Once
	host *Host
	err  error
}

// NewPool makes a pool whose hosts live below dir; "" is a folder for the time of
// the pool. Logs stay in a dir that was named.
func NewPool(dir string) (*Pool, error) {
	p := &Pool{dir: dir, hosts: map[string]*pooled{}}
	if dir == "" {
		var err error
		if p.dir, err = os.MkdirTemp("", "winlab-components-"); err != nil {
			return nil, err
		}
		p.own = true
	}
	return p, nil
}

// Host returns the host of a build. The context is for making it.
func (p *Pool) Host(ctx context.Context, build *builds.Build) (*Host, error) {
	name := build.Version.String()
	p.mu.Lock()
	x := p.hosts[name]
	if x == nil {
		x = &pooled{}
		p.hosts[name] = x
	}
	p.mu.Unlock()
	x.once.Do(func() {
		dir := filepath.Join(p.dir, name)
		if x.err = os.MkdirAll(dir, 0o755); x.err == nil {
			x.host, x.err = newHost(ctx, dir, build)
		}
		if x.err != nil {
			x.err = fmt.Errorf("a node of build %s: %w", name, x.err)
		}
	})
	return x.host, x.err
}

// Close ends all programs and removes what a pool without a folder has written.
func (p *Pool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(p.hosts)) {
		if x := p.hosts[name]; x.host != nil {
			errs = append(errs, x.host.Close())
		}
	}
	clear(p.hosts)
	if p.own {
		errs = append(errs, os.RemoveAll(p.dir))
	}
	return errors.Join(errs...)
}
