package kube

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// Version is a Kubernetes version. The zero value stands for no version.
type Version struct {
	Major, Minor, Patch int
	// Assumed: the text named no patch, and Patch is the newest that is known of the
	// minor version (kube.patch-assumed).
	Assumed bool
}

var _ = evidence.New("kube.patch-assumed", evidence.Inferred,
	"A Kubernetes version without a patch (\"1.21\") is read as the newest patch of that minor version that is known (1.21.14); fixes are often backported, so patches of one minor version differ.",
	"kubernetes/kubernetes CHANGELOG/CHANGELOG-1.14.md to CHANGELOG-1.37.md")

// newestPatch is the newest patch of each minor version, from 1.14 on
// (CHANGELOG/README.md of kubernetes/kubernetes).
var newestPatch = map[int]int{
	14: 10, 15: 12, 16: 15, 17: 17, 18: 20, 19: 16, 20: 15, 21: 14, 22: 17, 23: 17, 24: 17, 25: 16,
	26: 15, 27: 16, 28: 15, 29: 15, 30: 14, 31: 14, 32: 13, 33: 13, 34: 11, 35: 8, 36: 4, 37: 2,
}

// Minor is minor version 1.minor in its newest patch that is known.
func Minor(minor int) Version {
	return Version{Major: 1, Minor: minor, Patch: newestPatch[minor], Assumed: true}
}

// ParseVersion reads "1.20", "v1.20", "1.20.15" or "v1.20.15-eks-1"; what follows the
// patch after a "-" or "+" is the vendor's and has no meaning here. Without a patch it
// is the newest one that is known of the minor version.
func ParseVersion(s string) (Version, error) {
	bad := func() error {
		return fmt.Errorf("there is no Kubernetes version %q; write one such as 1.20 or 1.20.15", s)
	}
	number, _, _ := strings.Cut(strings.TrimPrefix(s, "v"), "+")
	number, _, _ = strings.Cut(number, "-")
	parts := strings.Split(number, ".")
	if len(parts) < 2 || len(parts) > 3 {
		return Version{}, bad()
	}
	var n [3]int
	for i, part := range parts {
		v, err := strconv.ParseUint(part, 10, 16)
		if err != nil {
			return Version{}, bad()
		}
		n[i] = int(v)
	}
	if n[0] != 1 {
		return Version{}, bad()
	}
	if len(parts) == 2 {
		return Minor(n[1]), nil
	}
	return Version{Major: n[0], Minor: n[1], Patch: n[2]}, nil
}

// String returns the version as it was written: "1.20.15", or "1.20" where the patch
// is assumed.
func (v Version) String() string {
	if v.Assumed {
		return fmt.Sprintf("%d.%d", v.Major, v.Minor)
	}
	return v.Full()
}

// Full returns the version with its patch: "1.20.15".
func (v Version) Full() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch) }

// Newer reports whether the patch is newer than the newest that is known of the minor
// version.
func (v Version) Newer() bool {
	newest, known := newestPatch[v.Minor]
	return known && v.Patch > newest
}

// AtLeast reports whether v is minor version 1.minor or later.
func (v Version) AtLeast(minor int) bool { return v.Minor >= minor }

// Compare orders versions by major, minor and patch, as [cmp.Compare] does.
func (v Version) Compare(w Version) int {
	return cmp.Or(cmp.Compare(v.Major, w.Major), cmp.Compare(v.Minor, w.Minor), cmp.Compare(v.Patch, w.Patch))
}

// SameMinor reports whether v and w are patches of one minor version.
func (v Version) SameMinor(w Version) bool { return v.Major == w.Major && v.Minor == w.Minor }
