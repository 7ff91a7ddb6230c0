package resources

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// kubelet holds those flags of a kubelet that matter for resources.
type kubelet struct {
	kubeReserved, systemReserved map[string]resource.Quantity
	// evictionHard and evictionSoft are thresholds by signal. Setting the flag
	// replaces all defaults, also those of other signals
	// (pkg/kubelet/apis/config/v1beta1/defaults.go).
	evictionHard, evictionSoft []threshold
	// enforceNodeAllocatable is [pods] and cgroupsPerQOS true by default, on
	// Windows too.
	enforceNodeAllocatable []string
	cgroupsPerQOS          bool
	// ignoreEviction keeps thresholds out of Node Allocatable.
	ignoreEviction bool
	// reservedCPUs is set when --reserved-cpus is: it overrides what the other
	// flags reserve.
	reservedCPUs bool
	maxPods      int64
	// priority is a Windows priority class.
	priority string
	// refused are flags that the kubelet does not know or cannot use.
	refused []string
}

// The flags that documents name and no kubelet has, with the real ones.
var misspelt = map[string]string{
	"--kubelet-reserve":          "--kube-reserved",
	"--system-reserve":           "--system-reserved",
	"--enforce-node-allocable":   "--enforce-node-allocatable",
	"--kubelet-reserved":         "--kube-reserved",
	"--enforce-node-allocateble": "--enforce-node-allocatable",
}

// priorities are the classes that the kubelet takes (cmd/kubelet/app/init_windows.go).
var priorities = []string{
	"IDLE_PRIORITY_CLASS", "BELOW_NORMAL_PRIORITY_CLASS", "NORMAL_PRIORITY_CLASS",
	"ABOVE_NORMAL_PRIORITY_CLASS", "HIGH_PRIORITY_CLASS", "REALTIME_PRIORITY_CLASS",
}

// parseKubelet reads a command line. Flags that have nothing to do with
// resources are skipped. The error holds every mistake: a value that cannot be
// read, a flag that only the documents have.
func parseKubelet(v minor, commandLine string) (*kubelet, error) {
	k := &kubelet{
		enforceNodeAllocatable: []string{"pods"},
		cgroupsPerQOS:          true,
		evictionHard:           defaultEvictionHard(v),
		maxPods:                110,
		priority:               "NORMAL_PRIORITY_CLASS",
	}
	var mistakes []error
	words := splitCommand(commandLine)
	for i := 0; i < len(words); i++ {
		name, value, joined := strings.Cut(words[i], "=")
		if !strings.HasPrefix(name, "--") {
			continue
		}
		if right, ok := misspelt[name]; ok {
			mistakes = append(mistakes, fmt.Errorf("the kubelet does not have the flag %s; write %s", name, right))
			continue
		}
		take, known := k.flag(v, name)
		if !known {
			continue
		}
		if !joined {
			switch isBool := name == "--cgroups-per-qos" || name == "--experimental-allocatable-ignore-eviction"; {
			case isBool:
				value = "true"
			case i+1 == len(words) || strings.HasPrefix(words[i+1], "--"):
				mistakes = append(mistakes, fmt.Errorf("%s needs a value", name))
				continue
			default:
				i++
				value = words[i]
			}
		}
		if err := take(value); err != nil {
			mistakes = append(mistakes, fmt.Errorf("%s: %w", name, err))
		}
	}
	return k, errors.Join(mistakes...)
}

// flag returns what to do with the value of a flag.
func (k *kubelet) flag(v minor, name string) (take func(string) error, known bool) {
	switch name {
	case "--kube-reserved":
		return func(s string) (err error) { k.kubeReserved, err = parseReserved(s); return }, true
	case "--system-reserved":
		return func(s string) (err error) { k.systemReserved, err = parseReserved(s); return }, true
	case "--eviction-hard":
		return func(s string) (err error) { k.evictionHard, err = parseThresholds(s); return }, true
	case "--eviction-soft":
		return func(s string) (err error) { k.evictionSoft, err = parseThresholds(s); return }, true
	case "--enforce-node-allocatable":
		return func(s string) error {
			k.enforceNodeAllocatable = slices.DeleteFunc(strings.Split(s, ","), func(s string) bool { return s == "" })
			return nil
		}, true
	case "--cgroups-per-qos":
		return func(s string) (err error) { k.cgroupsPerQOS, err = parseBool(s); return }, true
	case "--experimental-allocatable-ignore-eviction":
		return func(s string) (err error) { k.ignoreEviction, err = parseBool(s); return }, true
	case "--reserved-cpus":
		return func(s string) error { k.reservedCPUs = s != ""; return nil }, true
	case "--max-pods":
		return func(s string) (err error) {
			if k.maxPods, err = strconv.ParseInt(s, 10, 32); err != nil || k.maxPods < 0 {
				return fmt.Errorf("%q is not a number of pods", s)
			}
			return nil
		}, true
	case "--windows-priorityclass":
		return func(s string) error { k.setPriority(v, s); return nil }, true
	}
	return nil, false
}

func (k *kubelet) setPriority(v minor, class string) {
	k.priority = class
	// The flag came with 1.17 (cmd/kubelet/app/options/osflags_windows.go).
	if v < 17 || !slices.Contains(priorities, class) {
		k.refused = append(k.refused, "--windows-priorityclass")
	}
}

func parseBool(s string) (bool, error) {
	b, err := strconv.ParseBool(s)
	if err != nil {
		return false, fmt.Errorf("%q is neither true nor false", s)
	}
	return b, nil
}

// parseReserved reads "cpu=500m,memory=2Gi", as parseResourceList of
// cmd/kubelet/app/server.go does.
func parseReserved(s string) (map[string]resource.Quantity, error) {
	reserved := map[string]resource.Quantity{}
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return nil, fmt.Errorf("%q: write resource=quantity, such as memory=2Gi", part)
		}
		name = strings.TrimSpace(name)
		if !slices.Contains([]string{"cpu", "memory", "ephemeral-storage", "pid"}, name) {
			return nil, fmt.Errorf("%q cannot be reserved; write cpu, memory, ephemeral-storage or pid", name)
		}
		q, err := parseQuantity(strings.TrimSpace(value))
		if err != nil {
			return nil, err
		}
		reserved[name] = q
	}
	return reserved, nil
}

// parseQuantity reads a quantity that is not negative.
func parseQuantity(s string) (resource.Quantity, error) {
	q, err := resource.ParseQuantity(s)
	if err != nil {
		return q, fmt.Errorf("%q is not a quantity such as 500m or 2Gi", s)
	}
	if q.Sign() < 0 {
		return q, fmt.Errorf("%q is negative", s)
	}
	return q, nil
}

// splitCommand cuts a command line into words, as cmd, PowerShell and shells
// do where kubelets are concerned: quotes hold words together, and a line may
// go on after `, ^ or \.
func splitCommand(s string) []string {
	var words []string
	var word strings.Builder
	in, any := rune(0), false
	flush := func() {
		if w := word.String(); any && w != "`" && w != "^" && w != `\` {
			words = append(words, w)
		}
		word.Reset()
		any = false
	}
	for _, r := range s {
		switch {
		case in != 0 && r == in:
			in = 0
		case in != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			in, any = r, true
		case r == ' ' || r == '\t' || r == '\n' || r == '\r':
			flush()
		default:
			word.WriteRune(r)
			any = true
		}
	}
	flush()
	return words
}
