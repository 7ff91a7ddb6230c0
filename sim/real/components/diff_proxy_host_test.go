//go:build linux

package components

import (
	"errors"
	"os"
	"sync"
	"testing"

	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// sharedHost is the Wine of one build, for all tests that use it at the same time.
// Making one costs more than starting a kube-proxy.
type sharedHost struct {
	ready sync.Once
	host  *Host
	err   error
	dir   string
	users int
}

var sharedHosts = struct {
	sync.Mutex
	byBuild map[string]*sharedHost
}{byBuild: map[string]*sharedHost{}}

// hostOf returns the Wine of a build. The last test that uses it closes it, so a test
// with many parts calls it before them.
func hostOf(t *testing.T, build *builds.Build) *Host {
	t.Helper()
	name := build.String()
	sharedHosts.Lock()
	h := sharedHosts.byBuild[name]
	if h == nil {
		h = &sharedHost{}
		sharedHosts.byBuild[name] = h
	}
	h.users++
	sharedHosts.Unlock()
	t.Cleanup(func() {
		sharedHosts.Lock()
		h.users--
		last := h.users == 0
		if last {
			delete(sharedHosts.byBuild, name)
		}
		sharedHosts.Unlock()
		if last && h.host != nil {
			if err := errors.Join(h.host.Close(), os.RemoveAll(h.dir)); err != nil {
				t.Error(err)
			}
		}
	})
	h.ready.Do(func() {
		if h.dir, h.err = os.MkdirTemp("", "winlab-host-"); h.err == nil {
			h.host, h.err = newHost(t.Context(), h.dir, build)
		}
	})
	if h.err != nil {
		t.Fatal(h.err)
	}
	return h.host
}
