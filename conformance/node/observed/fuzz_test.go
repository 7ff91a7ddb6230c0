package observed

import (
	"github.com/winlab-dev/winlab/sim/windows/dump"

	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// seeds are the files of the folders in fixtures.
func seeds(f *testing.F, as func(string)) {
	f.Helper()
	files, _ := filepath.Glob("../../../fixtures/nodes/*/*")
	deeper, _ := filepath.Glob("../../../fixtures/nodes/healthy-*/*/*")
	for _, name := range append(files, deeper...) {
		if data, err := os.ReadFile(name); err == nil && len(data) < 20000 {
			if text, ok := dump.Decode(data); ok {
				as(text)
			}
		}
	}
}

// FuzzFile reads any file: nothing may panic, and every fact has a place in it.
func FuzzFile(f *testing.F) {
	for _, name := range []string{"x", "x.txt", "x.json", "x.log", "x.yaml", "cni.conf", "subnet.env"} {
		f.Add(name, []byte(network))
		f.Add(name, []byte(utf16le(network)))
	}
	seeds(f, func(s string) { f.Add("x.txt", []byte(s)); f.Add("y.log", []byte(s)) })
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		if strings.ContainsAny(name, "/\\") || name == "" || name == "." || name == ".." || len(data) > 1<<16 {
			return
		}
		n := readOneFile(name, string(data))
		last := 0
		if text, ok := dump.Decode(data); ok {
			last = len(dump.Split(name, text).Text)
		}
		for what, places := range placesOf(n) {
			for _, p := range places {
				if p.File != name || p.Line < 0 || p.Line > last {
					t.Errorf("%s has the place %q in a file of %d lines", what, p, last)
				}
			}
		}
	})
}

// placesOf are the places of all facts, by the kind of fact.
func placesOf(n *Node) map[string][]Place {
	return map[string][]Place{
		"a network":      places(n.Networks, func(x Network) Place { return x.Place }),
		"an endpoint":    places(n.Endpoints, func(x Endpoint) Place { return x.Place }),
		"an adapter":     places(n.Adapters, func(x Adapter) Place { return x.Place }),
		"a route":        places(n.routes, func(x route) Place { return x.place }),
		"a service":      places(n.Services, func(x Service) Place { return x.Place }),
		"a process":      places(n.Processes, func(x Process) Place { return x.place }),
		"a node":         places(n.Machines, func(x Machine) Place { return x.Place }),
		"a pod":          places(n.Pods, func(x Pod) Place { return x.Place }),
		"a source VIP":   places(n.SourceVIPs, func(x SourceVIP) Place { return x.Place }),
		"a variable":     places(n.Variables, func(x Variable) Place { return x.Place }),
		"a trial":        places(n.Trials, func(x Trial) Place { return x.Place }),
		"a sign":         places(n.signs, func(x Sign) Place { return x.Place }),
		"a command":      places(n.Commands, func(x Command) Place { return x.Place }),
		"a pause image":  places(n.Pause, func(x Text) Place { return x.Place }),
		"a kind of list": slices.Collect(maps.Values(n.listed)),
	}
}

func places[T any](list []T, place func(T) Place) []Place {
	var out []Place
	for _, x := range list {
		out = append(out, place(x))
	}
	return out
}

// FuzzTrials reads what people tried.
func FuzzTrials(f *testing.F) {
	seeds(f, func(s string) { f.Add(s) })
	f.Fuzz(func(t *testing.T, s string) {
		for _, x := range readOneFile("x", s).Trials {
			if x.Host == "" || x.Port < 0 || x.Tool == "" {
				t.Errorf("a trial without tool, host or port: %+v", x)
			}
		}
	})
}
