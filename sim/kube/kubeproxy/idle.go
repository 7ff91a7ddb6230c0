package kubeproxy

import (
	"slices"
	"strings"
)

// idleFlags are the flags of kube-proxy from which nothing follows on Windows: why, and
// whether a reader who gave one must be told.
var idleFlags = map[string]struct {
	why  string
	tell bool
}{
	"bind-address":             {"kube-proxy on Windows does not listen for Services in kernelspace mode", true},
	"cluster-cidr":             {"kube-proxy on Windows does not read it; that of Linux nodes is given the cluster's prefix", true},
	"masquerade-all":           {"kube-proxy on Windows does not read it; that of Linux nodes runs with its default", true},
	"config-sync-period":       {"when kube-proxy resyncs is not simulated: it always sees everything", true},
	"iptables-min-sync-period": {"kube-proxy on Windows does not use iptables; when it syncs is not simulated", true},
	"iptables-sync-period":     {"kube-proxy on Windows does not use iptables; when it syncs is not simulated", true},
	"kubeconfig":               {"how it reaches the API server", false}, "metrics-bind-address": {"numbers for people", false},
	"profiling": {"numbers for people", false},
	"v":         {"logs", false}, "logtostderr": {"logs", false}, "alsologtostderr": {"logs", false}, "log-dir": {"logs", false},
	"log-file":        {"logs", false},
	"windows-service": {"how the program is started", false},
}

// Idle lists, of a command line, the flags from which nothing follows and a reader
// must know it: name and why, in pairs.
func Idle(args []string) [][2]string {
	var all [][2]string
	for _, a := range args {
		name, _, _ := strings.Cut(strings.TrimLeft(strings.TrimSpace(a), "-"), "=")
		if f, ok := idleFlags[name]; ok && f.tell {
			all = append(all, [2]string{"--" + name, f.why})
		}
	}
	return all
}

// CountedFlags are the names of the flags that change what is programmed, sorted.
func CountedFlags() []string {
	var all []string
	for _, f := range flags {
		if f.set != nil {
			all = append(all, f.name)
		}
	}
	slices.Sort(all)
	return all
}
