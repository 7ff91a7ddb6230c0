package builds

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Version is a Windows version as `cmd /c ver` prints it: 10.0.17763.1432. The
// last number, the update build revision (UBR), says which cumulative update is
// installed.
type Version struct {
	Major, Minor, Build, UBR int
}

// String returns "10.0.17763.1432".
func (v Version) String() string {
	return fmt.Sprintf("%d.%d.%d.%d", v.Major, v.Minor, v.Build, v.UBR)
}

// Compare orders versions; it returns -1, 0 or 1.
func (v Version) Compare(w Version) int {
	return cmp.Or(cmp.Compare(v.Major, w.Major), cmp.Compare(v.Minor, w.Minor),
		cmp.Compare(v.Build, w.Build), cmp.Compare(v.UBR, w.UBR))
}

// parseNumbers reads "10.0.17763.1432", "17763.1432", "10.0.17763" or "17763".
// hasUBR tells whether the revision was given.
func parseNumbers(s string) (v Version, hasUBR bool, err error) {
	parts := strings.Split(s, ".")
	nums := make([]int, len(parts))
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 10, 31)
		if err != nil {
			return v, false, fmt.Errorf("%q is not a Windows version: write it like 10.0.17763.1432 or 17763.1432", s)
		}
		nums[i] = int(n)
	}
	// 6.0 and 10.0 are the only major.minor pairs that a reader could mean by a
	// small first number; anything else of two numbers is build.UBR.
	switch {
	case len(nums) == 4:
		return Version{nums[0], nums[1], nums[2], nums[3]}, true, nil
	case len(nums) == 3:
		return Version{nums[0], nums[1], nums[2], 0}, false, nil
	case len(nums) == 2 && nums[0] >= 1000:
		return Version{10, 0, nums[0], nums[1]}, true, nil
	case len(nums) == 1 && nums[0] >= 10000:
		return Version{10, 0, nums[0], 0}, false, nil
	}
	return v, false, fmt.Errorf("%q is not a Windows version: write it like 10.0.17763.1432 or 17763.1432", s)
}

// HNSVersion is the version of the Host Networking Service, as GET
// /globals/version answers it. The zero value means that the build does not say.
type HNSVersion struct {
	Major, Minor int
}

// String returns "9.5".
func (v HNSVersion) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// Compare orders versions; it returns -1, 0 or 1.
func (v HNSVersion) Compare(w HNSVersion) int {
	return cmp.Or(cmp.Compare(v.Major, w.Major), cmp.Compare(v.Minor, w.Minor))
}

func parseHNS(s string) (HNSVersion, error) {
	major, minor, ok := strings.Cut(s, ".")
	a, err1 := strconv.ParseUint(major, 10, 16)
	b, err2 := strconv.ParseUint(minor, 10, 16)
	if !ok || err1 != nil || err2 != nil {
		return HNSVersion{}, fmt.Errorf("%q is not a version: write it like 9.5", s)
	}
	return HNSVersion{int(a), int(b)}, nil
}
