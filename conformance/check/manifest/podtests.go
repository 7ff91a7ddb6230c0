package manifest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
	corev1 "k8s.io/api/core/v1"

	"github.com/winlab-dev/winlab/conformance/check/subject"
	"github.com/winlab-dev/winlab/internal/strict"
)

// podTests are conditions on the fields of a pod that need two of them at
// once: the volume behind a mount, the user behind a policy.
var podTests = []subject.Test{
	{On: []string{"pod"}, Name: "subpath-mount", Args: []string{"of"}, Vars: []string{"container", "volume", "kind", "path"},
		Doc:  "A mount with subPath or subPathExpr; of a volume whose entries are files (of: file), of any other (of: other), or of both.",
		Find: podTest(subpathMounts)},
	{On: []string{"pod"}, Name: "volume-of-kind", Args: []string{"kinds"}, Vars: []string{"volume", "kind", "by"},
		Doc:  "A volume whose source, or that of the PersistentVolume behind its claim where the files have it, is one of kinds.",
		Find: volumesOfKind},
	{On: []string{"pod"}, Name: "mounts-resolv-conf", Vars: []string{"container", "path"},
		Doc:  "A mount at, or of, a file resolv.conf.",
		Find: podTest(resolvConfMounts)},
	{On: []string{"pod"}, Name: "annotation", Args: []string{"prefix", "except"}, Vars: []string{"annotation", "value"},
		Doc:  "An annotation whose name begins with prefix and whose value is not except.",
		Find: podTest(annotations)},
	{On: []string{"pod"}, Name: "non-root-administrator", Args: []string{"case", "user"}, Vars: []string{"container", "user", "image"},
		Doc:  "A container that must not run as root and is to run as ContainerAdministrator; case: exact compares as kubelets before 1.22 do. user: image asks for images that run as that account by default.",
		Find: podTest(nonRootAdministrators)},
	{On: []string{"pod"}, Name: "containers-above", Args: []string{"number"}, Vars: []string{"containers"},
		Doc:  "More containers than a number; init containers, which end before, are not counted.",
		Find: podTest(containersAbove)},
	{On: []string{"pod"}, Name: "asks-for-host-process",
		Doc:  "The first place where a pod asks to be a HostProcess pod.",
		Find: podTest(hostProcessPlace)},
	{On: []string{"pod"}, Name: "host-process-mixed", Vars: []string{"container"},
		Doc:  "In a pod with HostProcess containers, a container that is not one, or that contradicts the pod.",
		Find: podTest(hostProcessMixed)},
	{On: []string{"pod"}, Name: "host-process-without-user", Vars: []string{"container"},
		Doc:  "A HostProcess container for which neither it nor the pod names a user.",
		Find: podTest(hostProcessWithoutUser)},
}

// containersAbove finds the first container that is one too many.
func containersAbove(p *Pod, at func(string) *yaml.Node, args map[string]string) []subject.Hit {
	number, err := strconv.Atoi(args["number"])
	if err != nil || number < 0 || len(p.Spec.Containers) <= number {
		return nil
	}
	field := fmt.Sprintf("spec.containers[%d]", number)
	return []subject.Hit{{At: at(field), Field: field, Vars: map[string]string{"containers": strconv.Itoa(len(p.Spec.Containers))}}}
}

// podTest adapts a condition that needs the pod alone.
func podTest(find func(p *Pod, at func(string) *yaml.Node, args map[string]string) []subject.Hit) func(*subject.Context, *subject.Subject,
	map[string]string) []subject.Hit {
	return func(_ *subject.Context, s *subject.Subject, args map[string]string) []subject.Hit {
		p, ok := s.Value.(*Pod)
		if !ok || p.Spec == nil {
			return nil
		}
		return find(p, func(path string) *yaml.Node { return nodeAt(s.Root, path) }, args)
	}
}

// nodeAt is the node at a path, or the deepest one on the way to it.
func nodeAt(root *yaml.Node, path string) *yaml.Node {
	p, err := strict.ParsePath(path)
	if err != nil {
		return nil
	}
	for _, f := range strict.Find(root, p) {
		return f.At()
	}
	return nil
}

// placed is a container with its place in the pod.
type placed struct {
	corev1.Container
	path string
}

// placedContainers are all containers of a pod in the order in which the API
// server visits them: init containers, containers, ephemeral ones.
func (p *Pod) placedContainers() []placed {
	var all []placed
	add := func(list string, i int, c corev1.Container) {
		all = append(all, placed{c, "spec." + list + "[" + itoa(i) + "]"})
	}
	for i, c := range p.Spec.InitContainers {
		add("initContainers", i, c)
	}
	for i, c := range p.Spec.Containers {
		add("containers", i, c)
	}
	for i, c := range p.Spec.EphemeralContainers {
		add("ephemeralContainers", i, corev1.Container(c.EphemeralContainerCommon))
	}
	return all
}

// annotations finds annotations by the beginning of their names, for those
// that end in the name of a container.
func annotations(p *Pod, at func(string) *yaml.Node, args map[string]string) []subject.Hit {
	var names []string
	if p.Meta == nil {
		return nil
	}
	for name, value := range p.Meta.Annotations {
		if strings.HasPrefix(name, args["prefix"]) && value != "" && value != args["except"] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var hits []subject.Hit
	for _, name := range names {
		path := `metadata.annotations["` + name + `"]`
		hits = append(hits, subject.Hit{At: at(path), Field: path,
			Vars: map[string]string{"annotation": name, "value": p.Meta.Annotations[name]}})
	}
	return hits
}
