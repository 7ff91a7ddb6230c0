package components

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/real/pinned"
)

// Programs is a folder of pinned programs, like fixtures/windows-binaries.
type Programs struct {
	dir string
	// all are the folders in it: name and version.
	all []program
}

type program struct{ name, version string }

// Program is a pinned program, or several of one release, built for Windows.
type Program struct {
	*pinned.Binaries
	Version string

	name string
}

// String is name and version: "kube-proxy 1.36.3".
func (p *Program) String() string { return p.name + " " + p.Version }

// errNotPinned says that a program is not pinned in a version.
var errNotPinned = errors.New("not pinned")

// FindPrograms looks for the folder: that of WINLAB_BINARIES, or else
// fixtures/windows-binaries or windows-binaries in near or a folder above it, or in
// the current folder.
func FindPrograms(near string) (*Programs, error) {
	if dir := os.Getenv("WINLAB_BINARIES"); dir != "" {
		return openPrograms(dir)
	}
	for _, dir := range []string{near, "."} {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		for {
			for _, sub := range []string{"fixtures/windows-binaries", "windows-binaries"} {
				if p, err := openPrograms(filepath.Join(dir, sub)); err == nil {
					return p, nil
				}
			}
			up := filepath.Dir(dir)
			if up == dir {
				break
			}
			dir = up
		}
	}
	return nil,
		fmt.Errorf(
			"real components need the pinned Windows programs: there is no folder fixtures/windows-binaries above %s; set WINLAB_BINARIES to it",
			near)
}

func openPrograms(dir string) (*Programs, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("the pinned Windows programs: %w", err)
	}
	p := &Programs{dir: dir}
	for _, e := range entries {
		i := strings.LastIndexByte(e.Name(), '-')
		if _, err := os.Stat(filepath.Join(dir, e.Name(), "binaries.yaml")); err != nil || i < 0 {
			continue
		}
		p.all = append(p.all, program{e.Name()[:i], e.Name()[i+1:]})
	}
	slices.SortFunc(p.all, func(a, b program) int {
		return cmp.Or(strings.Compare(a.name, b.name), compareVersions(a.version, b.version))
	})
	if len(p.all) == 0 {
		return nil, fmt.Errorf("no program is pinned in %s", dir)
	}
	return p, nil
}

// compareVersions compares dotted numbers.
func compareVersions(a, b string) int {
	number := func(s string) []int {
		var all []int
		for part := range strings.SplitSeq(s, ".") {
			n := 0
			for _, c := range part {
				n = n*10 + int(c-'0')
			}
			all = append(all, n)
		}
		return all
	}
	return slices.Compare(number(a), number(b))
}

// Versions are the versions of a program, from old to new.
func (p *Programs) Versions(name string) []string {
	var all []string
	for _, x := range p.all {
		if x.name == name {
			all = append(all, x.version)
		}
	}
	return all
}

// HasKubeProxy reports whether a kube-proxy is pinned for a version, see [Programs.KubeProxy].
func (p *Programs) HasKubeProxy(v kube.Version) bool { return p.kubeProxy(v) != "" }

func (p *Programs) kubeProxy(v kube.Version) string {
	found := ""
	for _, x := range p.Versions("kube-proxy") {
		xv, err := kube.ParseVersion(x)
		switch {
		case err != nil || !xv.SameMinor(v):
		case xv.Patch == v.Patch:
			return x
		case v.Assumed:
			found = x
		}
	}
	return found
}

// KubeProxy builds the pinned kube-proxy of a version, or takes it from the cache; for a
// version whose patch is assumed it is the newest that is pinned of the minor version if
// that patch is not. It is an error when there is none.
func (p *Programs) KubeProxy(ctx context.Context, v kube.Version) (*Program, error) {
	found := p.kubeProxy(v)
	if found == "" {
		return nil, fmt.Errorf("kube-proxy %s is %w in %s, which has %s; kube-proxy.sh there adds one", v, errNotPinned, p.dir,
			strings.Join(p.Versions("kube-proxy"), ", "))
	}
	return p.build(ctx, "kube-proxy", found)
}

// HasPlugins reports whether the CNI plugins are pinned in a version; "" is any.
func (p *Programs) HasPlugins(version string) bool { return p.plugins(version) != "" }

func (p *Programs) plugins(version string) string {
	all := p.Versions("cni-plugins")
	switch {
	case len(all) == 0:
		return ""
	case version == "":
		return all[len(all)-1]
	case slices.Contains(all, version):
		return version
	}
	return ""
}

// Plugins builds the CNI plugins of a version, the newest pinned one for "", or takes
// them from the cache. It is an error when there are none.
func (p *Programs) Plugins(ctx context.Context, version string) (*Program, error) {
	found := p.plugins(version)
	if found == "" {
		return nil, fmt.Errorf("the CNI plugins %s are %w in %s, which has %s", version, errNotPinned, p.dir,
			strings.Join(p.Versions("cni-plugins"), ", "))
	}
	return p.build(ctx, "cni-plugins", found)
}

func (p *Programs) build(ctx context.Context, name, version string) (*Program, error) {
	b, err := pinned.Build(ctx, filepath.Join(p.dir, name+"-"+version))
	if err != nil {
		return nil, err
	}
	return &Program{b, version, name}, nil
}
