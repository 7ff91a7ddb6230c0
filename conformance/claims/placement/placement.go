// Package placement answers the ledger's checks on placements: on which nodes
// of a small cast a pod can land at a version of Kubernetes, and where its
// containers start. It joins the pods of the ledger (manifests, or parts of
// them) with the scheduling model and with what is known of images.
//
// It must not know rules, files or the claim that a check belongs to.
package placement

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	nodev1alpha1 "k8s.io/api/node/v1alpha1"
	kjson "sigs.k8s.io/json"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/winlab-dev/winlab/conformance/check/manifest"
	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/sim/kube/schedule"
)

// Evaluate places the pod of p on its nodes in Kubernetes of a version, "1.20"
// or "1.20.4". It returns the nodes that the scheduler may choose, those of
// them where the containers start for certain, both in the order of p.Nodes,
// and for every other node why not. A pod that the API server refuses fits
// nowhere. An error is a pod or a version that cannot be read.
func Evaluate(version string, p *claims.Placement) (fits, runs []string, why map[string]string, err error) {
	minor, err := minorOf(version)
	if err != nil {
		return nil, nil, nil, err
	}
	pod, classes, err := decode(minor, p.Pod)
	if err != nil {
		return nil, nil, nil, err
	}
	nodes, err := cast(minor, p.Nodes)
	if err != nil {
		return nil, nil, nil, err
	}
	// The annotation that asked Docker for Hyper-V isolation had no effect
	// without the gate HyperVContainer, which was off by default until it went
	// with 1.21 (kubernetes: pkg/features/kube_features.go).
	r := schedule.Request{Pod: pod, Classes: classes}
	for _, c := range (&manifest.Pod{Meta: &pod.ObjectMeta, Spec: &pod.Spec}).Containers() {
		if c.Image != "" {
			r.Images = append(r.Images, schedule.Image{Container: c.Name, Name: c.Image, Platforms: platforms(imageOf(c.Image))})
		}
	}
	result := schedule.Evaluate(minor, r, nodes)
	why = map[string]string{}
	if result.Rejected != "" {
		for _, name := range p.Nodes {
			why[name] = "the API server refuses the pod: " + result.Rejected
		}
		return nil, nil, why, nil
	}
	for _, v := range result.Verdicts {
		if v.Fits {
			fits = append(fits, v.Node)
		}
		if v.Runs == schedule.Yes {
			runs = append(runs, v.Node)
		} else {
			why[v.Node] = v.Why()
		}
	}
	return fits, runs, why, nil
}

var imageOf = manifest.ImageOf

// platforms turns what is known of an image into what the model asks for. An
// image of many platforms, of which nothing else is known, says nothing about
// a build.
func platforms(i manifest.Image) []schedule.Platform {
	switch {
	case i.MultiArch && i.OS == "" || i.OS == "":
		return nil
	case i.OS == "windows":
		return []schedule.Platform{{System: "windows", Build: i.Build}}
	}
	return []schedule.Platform{{System: i.OS}}
}

func minorOf(version string) (int, error) {
	v, err := claims.ParseVersion(version)
	if err != nil {
		return 0, err
	}
	if len(v) < 2 || v[0] != 1 {
		return 0, fmt.Errorf("%q is not a version of Kubernetes; write 1.20", version)
	}
	return v[1], nil
}

// decode reads the pod and the RuntimeClasses after it. A part without a kind
// is a part of a pod.
func decode(minor int, text string) (*corev1.Pod, []*nodev1.RuntimeClass, error) {
	pod := &corev1.Pod{}
	pod.Name = "pod"
	var classes []*nodev1.RuntimeClass
	dec := yaml.NewDecoder(strings.NewReader(text))
	found := false
	for n := 1; ; n++ {
		var doc any
		if err := dec.Decode(&doc); err == io.EOF {
			break
		} else if err != nil {
			return nil, nil, fmt.Errorf("document %d: %w", n, err)
		}
		if doc == nil {
			continue
		}
		raw, err := yaml.Marshal(doc)
		if err != nil {
			return nil, nil, fmt.Errorf("document %d: %w", n, err)
		}
		data, err := sigsyaml.YAMLToJSON(raw)
		if err != nil {
			return nil, nil, fmt.Errorf("document %d: %w", n, err)
		}
		var head struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
		}
		_ = kjson.UnmarshalCaseSensitivePreserveInts(data, &head)
		switch head.Kind {
		case "", "Pod":
			if found {
				return nil, nil, fmt.Errorf("document %d: a second pod; a placement has one pod, and RuntimeClasses", n)
			}
			found, err = true, strictly(data, pod)
		case "RuntimeClass":
			var c *nodev1.RuntimeClass
			if c, err = runtimeClass(minor, head.APIVersion, data); c != nil {
				classes = append(classes, c)
			}
		default:
			err = fmt.Errorf("a %s; a placement has a Pod, or a part of one, and RuntimeClasses", head.Kind)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("document %d: %w", n, err)
		}
	}
	if !found {
		return nil, nil, fmt.Errorf("there is no pod")
	}
	if len(pod.Spec.Containers) == 0 {
		pod.Spec.Containers = []corev1.Container{{Name: "app"}} // an image as it may be
	}
	return pod, classes, nil
}

// runtimeClass reads a class, or returns nil when this version of Kubernetes
// does not serve its API version: it cannot be created then.
func runtimeClass(minor int, apiVersion string, data []byte) (*nodev1.RuntimeClass, error) {
	first, last, ok := served(apiVersion)
	if !ok {
		return nil, fmt.Errorf("a RuntimeClass of %q; write node.k8s.io/v1, v1beta1 or v1alpha1", apiVersion)
	}
	c := &nodev1.RuntimeClass{}
	if apiVersion == "node.k8s.io/v1alpha1" {
		old := &nodev1alpha1.RuntimeClass{}
		if err := strictly(data, old); err != nil {
			return nil, err
		}
		c.ObjectMeta, c.Handler = old.ObjectMeta, old.Spec.RuntimeHandler
		if s := old.Spec.Scheduling; s != nil {
			c.Scheduling = &nodev1.Scheduling{NodeSelector: s.NodeSelector, Tolerations: s.Tolerations}
		}
		if o := old.Spec.Overhead; o != nil {
			c.Overhead = &nodev1.Overhead{PodFixed: o.PodFixed}
		}
	} else if err := strictly(data, c); err != nil { // v1beta1 has the fields of v1
		return nil, err
	}
	if minor < first || last != 0 && minor > last {
		return nil, nil
	}
	return c, nil
}

// served says from which to which minor version Kubernetes serves an API
// version of RuntimeClass; last is 0 when it still does (kubernetes:
// pkg/controlplane/storageversionhashdata/data.go; Deprecated API Migration
// Guide). v1alpha1 is older than the ledger's versions and never on by default.
func served(apiVersion string) (first, last int, ok bool) {
	switch apiVersion {
	case "node.k8s.io/v1":
		return 20, 0, true
	case "node.k8s.io/v1beta1":
		return 14, 24, true
	case "node.k8s.io/v1alpha1":
		return 12, 23, true
	}
	return 0, 0, false
}

// strictly decodes an object; fields that it does not have are an error.
func strictly(data []byte, into any) error {
	unknown, err := kjson.UnmarshalStrict(data, into)
	if err != nil {
		return err
	}
	if len(unknown) > 0 {
		var all []string
		for _, u := range unknown {
			all = append(all, u.Error())
		}
		slices.Sort(all)
		return fmt.Errorf("%s", strings.Join(all, ", "))
	}
	return nil
}
