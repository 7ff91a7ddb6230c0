package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/winlab-dev/winlab/sim/real/pinned"
	winprograms "github.com/winlab-dev/winlab/sim/real/programs"
)

// Programs are a cluster's programs: those of one release of Kubernetes, etcd, CoreDNS, and
// what images have.
type Programs struct {
	dirs []string
	from string
}

// readyPrograms is a folder of programs that are built already.
const readyPrograms = "WINLAB_CLUSTER_BINARIES"

// BuildPrograms builds the pinned programs of a version of Kubernetes, or takes them from
// the cache; "" is the newest. They are those of fixtures/cluster-binaries in the folder
// near or in one above it. Where the variable WINLAB_CLUSTER_BINARIES names a folder, they
// are there. Cold, building takes tens of minutes.
func BuildPrograms(ctx context.Context, near, version string) (*Programs, error) {
	build := func(dir string) (*pinned.Binaries, error) { return pinned.Build(ctx, dir) }
	return findPrograms(near, version, build, build)
}

// CachedPrograms is BuildPrograms without building what takes long; nil when that is
// needed. The programs of Unix are built, which takes seconds: they are this module's own,
// and make cluster-binaries does not have them.
func CachedPrograms(ctx context.Context, near, version string) (*Programs, error) {
	return findPrograms(near, version,
		func(dir string) (*pinned.Binaries, error) { return pinned.Cached(ctx, dir) },
		func(dir string) (*pinned.Binaries, error) { return pinned.Build(ctx, dir) })
}

// findPrograms gets pinned programs by from, and those of Unix by unix.
func findPrograms(near, version string, from, unix func(dir string) (*pinned.Binaries, error)) (*Programs, error) {
	if dir := os.Getenv(readyPrograms); dir != "" {
		return &Programs{dirs: []string{dir}, from: readyPrograms}, nil
	}
	root, err := pinnedFolder(near)
	if err != nil {
		return nil, err
	}
	p := &Programs{from: root}
	for _, of := range []struct {
		program, version string
		spare            bool // a cluster comes up without it
	}{{"kubernetes", version, false}, {"etcd", "", false}, {"coredns", "", false}, {"metrics-server", "", true}, {"kwok", "", true},
		{"resource-consumer", "", true}} {
		v, err := pick(root, of.program, of.version)
		if err != nil {
			return nil, err
		}
		b, err := from(filepath.Join(root, of.program+"-"+v))
		if b == nil && err == nil && of.spare {
			continue
		}
		if b == nil || err != nil {
			return nil, err
		}
		p.dirs = append(p.dirs, b.Dir)
	}
	b, err := unixPrograms(unix)
	if b == nil || err != nil {
		return nil, err
	}
	p.dirs = append(p.dirs, b.Dir)
	return p, nil
}

// unixPrograms has the programs of Unix in test images for Windows.
func unixPrograms(from func(dir string) (*pinned.Binaries, error)) (*pinned.Binaries, error) {
	tmp, err := os.MkdirTemp("", "winlab-unixbox-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	dir := filepath.Join(tmp, "unixbox") // the name is part of the cache's key
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	if err := winprograms.WriteUnix(dir); err != nil {
		return nil, err
	}
	return from(dir)
}

// PinnedVersion is the version of Kubernetes that [BuildPrograms] builds for one, in full;
// "" is the newest.
func PinnedVersion(near, version string) (string, error) {
	root, err := pinnedFolder(near)
	if err != nil {
		return "", err
	}
	return pick(root, "kubernetes", version)
}

// pick picks the folder of a program's version, the newest for "".
func pick(root, program, version string) (string, error) {
	all, err := filepath.Glob(filepath.Join(root, program+"-*"))
	if err != nil || len(all) == 0 {
		return "", errors.Join(err, fmt.Errorf("no %s is pinned in %s", program, root))
	}
	for i := range all {
		all[i] = strings.TrimPrefix(filepath.Base(all[i]), program+"-")
	}
	slices.SortFunc(all, func(a, b string) int { return semver.Compare("v"+a, "v"+b) })
	if version == "" {
		return all[len(all)-1], nil
	}
	if !slices.Contains(all, version) {
		for _, v := range slices.Backward(all) { // "1.37" is its newest patch
			if strings.HasPrefix(v, version+".") {
				return v, nil
			}
		}
		return "", fmt.Errorf("%s %s is not pinned in %s, which has %s", program, version, root, strings.Join(all, ", "))
	}
	return version, nil
}

// pinnedFolder looks for fixtures/cluster-binaries.
func pinnedFolder(near string) (string, error) {
	at, err := filepath.Abs(near)
	if err != nil {
		return "", err
	}
	for {
		dir := filepath.Join(at, "fixtures", "cluster-binaries")
		if s, err := os.Stat(dir); err == nil && s.IsDir() {
			return dir, nil
		}
		up := filepath.Dir(at)
		if up == at {
			return "", fmt.Errorf("there is no fixtures/cluster-binaries in %s or above; set %s to a folder with the programs", near, readyPrograms)
		}
		at = up
	}
}

// Path is the file of a program: "etcd", "kubelet.exe".
func (p *Programs) Path(name string) (string, error) {
	for _, dir := range p.dirs {
		file := filepath.Join(dir, name)
		if _, err := os.Stat(file); err == nil {
			return file, nil
		}
	}
	return "", fmt.Errorf("there is no %s in %s", name, p.from)
}
