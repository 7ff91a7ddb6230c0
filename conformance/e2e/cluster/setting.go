package cluster

import (
	"path/filepath"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// SettingOf decides on the versions of a cluster: that of Kubernetes is one whose programs
// are pinned ("" is the newest), and whatever the lab says for it (spec.settings) comes
// with it; windows is the build of its Windows nodes, "" for the lab's own.
func SettingOf(f *lab.File, kubernetes, windows string) (*labfile.Setting, string, error) {
	version, err := PinnedVersion(filepath.Dir(f.Path), kubernetes)
	if err != nil {
		return nil, "", err
	}
	s := &f.Lab.Spec
	t := labfile.Setting{Build: windows}
	if !sameMinor(s.Kubernetes, version) {
		for _, l := range s.Settings {
			if sameMinor(l.Kubernetes, version) && (windows == "" || l.Build == windows) {
				t = l
				break
			}
		}
	}
	t.Kubernetes = version
	if windows != "" {
		b, err := builds.Parse(windows)
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
