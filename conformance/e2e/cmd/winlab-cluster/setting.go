package main

import (
	"path/filepath"

	"github.com/winlab-dev/winlab/conformance/e2e/cluster"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/spec"
	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// settingOf decides on the versions of a cluster: that of Kubernetes is one whose programs
// are pinned, and whatever the lab says for it (spec.settings) comes with it.
func settingOf(f *lab.File, o upOptions) (*spec.Setting, string, error) {
	version, err := cluster.PinnedVersion(filepath.Dir(f.Path), o.kubernetes)
	if err != nil {
		return nil, "", err
	}
	s := &f.Lab.Spec
	t := spec.Setting{Build: o.windows}
	if !sameMinor(s.Kubernetes, version) {
		for _, l := range s.Settings {
			if sameMinor(l.Kubernetes, version) && (o.windows == "" || l.Build == o.windows) {
				t = l
				break
			}
		}
	}
	t.Kubernetes = version
	if o.windows != "" {
		b, err := builds.Parse(o.windows)
		if err == nil {
			_, err = builds.Lookup(b)
		}
		if err != nil {
			return nil, "", err
		}
	}
	return &t, version, nil
}

// sameMinor reports whether two versions are patches of one release.
func sameMinor(a, b string) bool {
	x, err1 := kube.ParseVersion(a)
	y, err2 := kube.ParseVersion(b)
	return err1 == nil && err2 == nil && x.SameMinor(y)
}
