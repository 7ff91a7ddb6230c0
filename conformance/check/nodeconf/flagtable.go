package nodeconf

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/winlab-dev/winlab/internal/strict"
)

//go:embed flags.txt
var flagText string

// lifetime is the range of minor versions that have a flag.
type lifetime struct{ first, last int }

// flagTable has the flags of each program.
var flagTable = sync.OnceValue(func() map[string]map[string]lifetime {
	table := map[string]map[string]lifetime{}
	for line := range strings.Lines(flagText) {
		f := strings.Fields(line)
		if len(f) < 3 || len(f) > 4 || f[0] == "#" {
			continue
		}
		first, err := strconv.Atoi(f[2])
		last := newestMinor
		if len(f) == 4 && err == nil {
			last, err = strconv.Atoi(f[3])
		}
		if err != nil {
			continue
		}
		if table[f[0]] == nil {
			table[f[0]] = map[string]lifetime{}
		}
		table[f[0]]["--"+f[1]] = lifetime{first, last}
	}
	return table
})

// newestMinor is the last version that flags.txt was made from.
const newestMinor = 37

// knownFlag reports whether any version of a program has a flag.
func knownFlag(program, name string) bool {
	_, ok := flagTable()[program][plainFlag(name)]
	return ok
}

// plainFlag is a flag's name as the components compare it: underscores count
// as dashes (k8s.io/component-base cli/flag WordSepNormalizeFunc).
func plainFlag(name string) string { return strings.ReplaceAll(name, "_", "-") }

// nearestFlag suggests what an unknown flag may have meant.
func nearestFlag(program, name string) string {
	var names []string
	for n := range flagTable()[program] {
		names = append(names, n)
	}
	slices.Sort(names)
	hint := strict.DidYouMean(plainFlag(name), names)
	if i := strings.Index(hint, `"`); i >= 0 && strings.HasPrefix(hint, "; did you mean") {
		return strings.Trim(hint[i:], `"?`)
	}
	return ""
}

// gate is a feature gate that concerns Windows nodes: the minor version from
// which a component knows it, since when it is on, always on, and the last
// version that knows it; 0 is never (kubernetes/kubernetes
// pkg/features/kube_features.go, by version).
type gate struct{ first, on, locked, last int }

var gates = map[string]gate{
	"IPv6DualStack":                {16, 21, 23, 24},
	"WinDSR":                       {14, 33, 34, 0},
	"WinOverlay":                   {14, 20, 34, 0},
	"SupportPodPidsLimit":          {14, 14, 20, 22},
	"HyperVContainer":              {14, 0, 0, 20},
	"WindowsGMSA":                  {14, 16, 18, 20},
	"WindowsRunAsUserName":         {16, 17, 18, 20},
	"EndpointSliceProxying":        {18, 19, 22, 24},
	"WindowsEndpointSliceProxying": {19, 21, 22, 24},
	"WindowsHostProcessContainers": {22, 23, 26, 27},
}

// enabled reports whether a gate is on by default in a minor version.
func (g gate) enabled(minor int) bool { return g.on > 0 && minor >= g.on }

// known reports whether a version knows the gate.
func (g gate) known(minor int) bool { return minor >= g.first && (g.last == 0 || minor <= g.last) }
