package cni

import (
	"fmt"
	"strconv"
	"strings"
)

// version is a plugin's version; the zero value is the newest.
type version struct {
	n     [3]int
	known bool
}

func parseVersion(s string) (version, error) {
	if s == "" {
		return version{}, nil
	}
	bad := fmt.Errorf("version %q of the plugin: write it as 0.12.0", s)
	parts := strings.Split(strings.TrimPrefix(s, "v"), ".")
	if len(parts) < 2 || len(parts) > 3 {
		return version{}, bad
	}
	v := version{known: true}
	for i, p := range parts {
		n, err := strconv.Atoi(p)
		if err != nil || n < 0 {
			return version{}, bad
		}
		v.n[i] = n
	}
	return v, nil
}

// String is "0.12.0", or "of today".
func (v version) String() string {
	if !v.known {
		return "of today"
	}
	return fmt.Sprintf("%d.%d.%d", v.n[0], v.n[1], v.n[2])
}

func (v version) atLeast(major, minor, patch int) bool {
	if !v.known {
		return true
	}
	for i, want := range [3]int{major, minor, patch} {
		if v.n[i] != want {
			return v.n[i] > want
		}
	}
	return true
}
