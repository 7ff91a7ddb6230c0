package check

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/reports/result"
)

// Compiles reads every rule of the ledger; the error names those that cannot be read.
func Compiles(l *claims.Ledger) error {
	_, err := compile(l)
	return err
}

// Example tries a rule of the ledger on its own examples: the bad one must be found, by
// this claim, in a setting that the rule is for; the good one must not. A rule on the
// setting must hold in some setting.
func Example(c *claims.Claim, k *claims.Check) result.Static {
	r, err := newRule(c, k)
	if err != nil {
		return result.Static{Claim: c.ID, Kind: "rule", Where: k.Words(),
			Check: result.Check{Level: result.Model, What: k.Rule.String(), Expect: "found", Got: "error", Summary: oneLine(err)}}
	}
	return r.tryExamples()
}

func (r *rule) tryExamples() result.Static {
	s := result.Static{Claim: r.claim.ID, Kind: "rule", Where: r.check.Words(),
		Rule: &result.Rule{On: r.On, Pods: r.Pods, Field: r.Field, Unless: r.Unless, When: r.When, Level: r.Level,
			Effect: r.Effect, Says: r.Says, Write: r.Write, Bad: r.Bad, Good: r.Good}}
	if r.Test != "" {
		s.Rule.Field = r.Test
	}
	s.Check = result.Check{Level: result.Model, What: r.Rule.String(), Expect: "found"}
	targets := ends(r.check.Where)
	if len(targets) == 0 {
		s.Got, s.Summary = "error", "The rule covers no documented setting."
		return s
	}
	if r.On == "setting" {
		r.trySettings(&s.Check)
		return s
	}
	s.Pass = true
	for _, t := range slices.Backward(targets) { // the newest decides what is said
		if r.tryIn(&s.Check, t); !s.Pass {
			return s
		}
	}
	return s
}

// tryIn tries both examples in one setting.
func (r *rule) tryIn(k *result.Check, t claims.Target) {
	k.Pass = false
	bad, err := r.count(r.Bad, t)
	switch {
	case err != nil:
		k.Got, k.Summary = "error", "The example cannot be read: "+oneLine(err)
		return
	case len(bad) == 0:
		k.Got, k.Summary = "not found", "The example is not found in "+t.String()+"."
		return
	}
	k.Got, k.Summary = "found", bad[0]
	if r.Good != "" {
		good, err := r.count(r.Good, t)
		switch {
		case err != nil:
			k.Got, k.Summary = "error", "The counterexample cannot be read: "+oneLine(err)
			return
		case len(good) > 0:
			k.Got, k.Summary = "found in the counterexample", "In "+t.String()+": "+good[0]
			return
		}
	}
	k.Pass = true
}

// trySettings holds the settings that a rule on settings names against those that it is
// for. They are written beside the range, so that a later change of either is found; the
// first ones were taken from the ranges, so a range that was wrong then is not.
func (r *rule) trySettings(k *result.Check) {
	bad, err1 := claims.ParseTargets(r.Bad)
	good, err2 := claims.ParseTargets(r.Good)
	if err := errors.Join(err1, err2); err != nil || len(bad) == 0 {
		k.Got, k.Summary = "error", "The examples cannot be read or there is none: "+oneLine(cmp.Or(err, errNoExample))
		return
	}
	for _, t := range bad {
		if !r.check.Holds(t) {
			k.Got, k.Summary = "not found", "It is not found in "+t.String()+"."
			return
		}
	}
	for _, t := range good {
		if r.check.Holds(t) {
			k.Got, k.Summary = "found in the counterexample", "It is found in "+t.String()+"."
			return
		}
	}
	k.Got, k.Pass, k.Summary = "found", true, fmt.Sprintf("Found in %d settings and not in %d others.", len(bad), len(good))
}

// count checks an example with this rule only and returns what it says.
func (r *rule) count(text string, t claims.Target) ([]string, error) {
	name, data, err := r.example(text)
	if err != nil {
		return nil, err
	}
	in := Input{name: name, listed: true, open: func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(data)), nil
	}}
	doc, err := run(context.Background(), []Input{in}, []*rule{r}, Options{Targets: []claims.Target{t}, NetworkGiven: true})
	if err != nil {
		return nil, err
	}
	if err := mistakes(doc); err != nil {
		return nil, err
	}
	if doc.Documents == 0 {
		return nil, errors.New("there is no document in it")
	}
	var says []string
	for _, f := range doc.Findings {
		says = append(says, f.Message)
	}
	return says, nil
}

// files are the names that examples of node configuration have.
var exampleFiles = map[string]string{
	"cni": "cni.conf", "net-conf": "net-conf.json", "subnet-env": "subnet.env", "antrea-agent": "antrea-agent.conf", "kubelet": "start.ps1",
	"kube-proxy": "start.ps1", "flanneld": "start.ps1",
	"service-manager": "services.ps1", "kubelet-config": "kubelet.yaml", "kube-proxy-config": "kube-proxy.yaml",
}

// skeletons are the small objects that parts of manifests are merged into.
var skeletons = map[string]string{
	"pod":                   "apiVersion: v1\nkind: Pod\nmetadata: {name: example}\nspec:\n  nodeSelector: {kubernetes.io/os: windows}\n  containers:\n  - {name: app, image: example/app}\n",
	"pod/undecided":         "apiVersion: v1\nkind: Pod\nmetadata: {name: example}\nspec:\n  containers:\n  - {name: app, image: example/app}\n",
	"pod/linux":             "apiVersion: v1\nkind: Pod\nmetadata: {name: example}\nspec:\n  nodeSelector: {kubernetes.io/os: linux}\n  containers:\n  - {name: app, image: example/app}\n",
	"pod/hostprocess":       "apiVersion: v1\nkind: Pod\nmetadata: {name: example}\nspec:\n  nodeSelector: {kubernetes.io/os: windows}\n  hostNetwork: true\n  securityContext:\n    windowsOptions: {hostProcess: true, runAsUserName: 'NT AUTHORITY\\SYSTEM'}\n  containers:\n  - {name: app, image: example/app}\n",
	"workload":              "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: example}\nspec:\n  selector: {matchLabels: {app: example}}\n  template:\n    metadata: {labels: {app: example}}\n    spec:\n      nodeSelector: {kubernetes.io/os: windows}\n      containers:\n      - {name: app, image: example/app}\n",
	"service":               "apiVersion: v1\nkind: Service\nmetadata: {name: example}\nspec:\n  selector: {app: example}\n  ports:\n  - {port: 80}\n",
	"runtimeclass":          "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: example}\nhandler: runhcs-wcow-process\n",
	"networkpolicy":         "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: example}\nspec:\n  podSelector: {}\n",
	"persistentvolume":      "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: example}\nspec:\n  capacity: {storage: 1Gi}\n",
	"persistentvolumeclaim": "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: example}\nspec:\n  accessModes: [ReadWriteOnce]\n",
	"node":                  "apiVersion: v1\nkind: Node\nmetadata: {name: example, labels: {kubernetes.io/os: windows, kubernetes.io/arch: amd64}}\n",
	"object":                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: example}\n",
}

// example turns the text of an example into a file.
func (r *rule) example(text string) (name string, data []byte, err error) {
	if name, ok := exampleFiles[r.On]; ok {
		return name, []byte(text), nil
	}
	skeleton := skeletons[r.On]
	if s, ok := skeletons[r.On+"/"+r.Pods]; ok {
		skeleton = s
	}
	data, err = complete(skeleton, text)
	return "example.yaml", data, err
}

// WholeExample is an example of a rule on Kubernetes objects as a manifest, for those who
// send it to an API server.
func WholeExample(r *claims.Rule, text string) ([]byte, error) {
	if _, ok := exampleFiles[r.On]; ok || r.On == "setting" {
		return nil, fmt.Errorf("the examples of a rule on %s are not manifests", r.On)
	}
	_, data, err := (&rule{Rule: r}).example(text)
	return data, err
}

// complete merges a part of a manifest into a small whole one: maps key by
// key, lists entry by entry. A text that has a kind is whole already.
func complete(skeleton, part string) ([]byte, error) {
	dec := yaml.NewDecoder(strings.NewReader(part))
	var first yaml.Node
	if err := dec.Decode(&first); errors.Is(err, io.EOF) {
		return []byte(skeleton), nil
	} else if err != nil {
		return nil, err
	}
	if first.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("an example is a manifest or a part of one, a map such as spec: {hostNetwork: true}; this is %q", clip(part))
	}
	for i := 0; i+1 < len(first.Content[0].Content); i += 2 {
		if first.Content[0].Content[i].Value == "kind" {
			return []byte(part), nil
		}
	}
	var base yaml.Node
	if err := yaml.Unmarshal([]byte(skeleton), &base); err != nil {
		return nil, err
	}
	merge(base.Content[0], first.Content[0])
	out, err := yaml.Marshal(&base)
	if err != nil {
		return nil, err
	}
	// What follows the part stays as it is: further documents.
	for {
		var more yaml.Node
		if err := dec.Decode(&more); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		text, err := yaml.Marshal(&more)
		if err != nil {
			return nil, err
		}
		out = append(append(out, "---\n"...), text...)
	}
}

func merge(base, part *yaml.Node) {
	switch {
	case base.Kind == yaml.MappingNode && part.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(part.Content); i += 2 {
			key, value := part.Content[i], part.Content[i+1]
			j := 0
			for j < len(base.Content) && base.Content[j].Value != key.Value {
				j += 2
			}
			switch {
			case j >= len(base.Content):
				base.Content = append(base.Content, key, value)
			case value.ShortTag() == "!!null": // null takes a field of the skeleton away
				base.Content = slices.Delete(base.Content, j, j+2)
			default:
				merge(base.Content[j+1], value)
			}
		}
	case base.Kind == yaml.SequenceNode && part.Kind == yaml.SequenceNode:
		for i, e := range part.Content {
			if i < len(base.Content) {
				merge(base.Content[i], e)
			} else {
				base.Content = append(base.Content, e)
			}
		}
	default:
		*base = *part
	}
}

// ends are settings that Where selects: one in its newest version of Kubernetes, and one in
// its oldest where that is another. What a rule looks at can depend on the version.
func ends(w claims.Where) []claims.Target {
	newest, ok := representative(w)
	if !ok {
		return nil
	}
	all := []claims.Target{newest}
	for _, minor := range claims.Minors() {
		if minor == newest.Kubernetes {
			break
		}
		if (claims.Where{Kubernetes: w.Kubernetes}).Holds(claims.Target{Kubernetes: minor}) {
			old := w
			old.Kubernetes = minor
			if t, ok := representative(old); ok {
				return append(all, t)
			}
		}
	}
	return all
}

// representative returns a setting that Where selects, the newest one.
func representative(w claims.Where) (claims.Target, bool) {
	for t := range everySetting(w) {
		if w.Holds(t) {
			return t, true
		}
	}
	return claims.Target{}, false
}

// everySetting yields settings, newest first, with the builds and versions that
// occur in Where and their neighbours, so that one of them fits if any does.
func everySetting(w claims.Where) func(func(claims.Target) bool) {
	builds := append([]string{""}, near(w.Build)...)
	plugins := append([]string{""}, near(w.PluginVersion)...)
	runtimes := append([]string{""}, near(w.RuntimeVersion)...)
	minors := claims.Minors()
	slices.Reverse(minors)
	minors = append(minors, near(w.Kubernetes)...)
	releases := slices.Clone(claims.Releases())
	slices.Reverse(releases)
	releases = append(releases, claims.Release{}) // a build of no release here
	return func(yield func(claims.Target) bool) {
		for _, minor := range minors {
			if !(claims.Where{Kubernetes: w.Kubernetes}).Holds(claims.Target{Kubernetes: minor}) {
				continue
			}
			for _, r := range releases {
				for _, build := range builds {
					if build != "" && !strings.HasPrefix(build, r.Build) || build == "" && r.Name == "" {
						continue
					}
					for _, d := range append(slices.Clone(claims.Designs), claims.Design{}) {
						proxies := d.Proxies
						if d.Name == "" {
							proxies = Proxies
						}
						for _, proxy := range proxies {
							for _, pv := range plugins {
								for _, rt := range []string{"containerd", "docker"} {
									for _, rv := range runtimes {
										if !yield(claims.Target{Kubernetes: minor, Release: r.Name, Build: build, Network: d.Network, Plugin: d.Plugin, PluginVersion: pv,
											Proxy: proxy, Runtime: rt, RuntimeVersion: rv}) {
											return
										}
									}
								}
							}
						}
					}
				}
			}
		}
	}
}

// near are the versions in a range's bounds and those just below them.
func near(rng string) []string {
	r, err := claims.ParseRange(rng)
	if err != nil {
		return nil
	}
	var out []string
	for _, bounds := range r {
		for _, b := range bounds {
			v := slices.Clone(b.Version)
			out = append(out, v.String())
			if v[len(v)-1] > 0 {
				v[len(v)-1]--
				out = append(out, v.String())
			}
			v = append(slices.Clone(b.Version), 1)
			out = append(out, v.String())
		}
	}
	return out
}

// errNoExample is for a rule on settings without a setting.
var errNoExample = errors.New("bad is empty")
