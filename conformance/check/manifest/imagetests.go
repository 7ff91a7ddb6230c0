package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
	corev1 "k8s.io/api/core/v1"

	"github.com/winlab-dev/winlab/conformance/check/subject"
	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/internal/lazyregexp"
	"github.com/winlab-dev/winlab/internal/strict"
	"github.com/winlab-dev/winlab/sim/kube/schedule"
)

// imageTests are the conditions on the images of pods.
var imageTests = []subject.Test{
	{
		On: []string{"pod"}, Name: "image-not-for-host",
		Doc:  "a Windows image whose build the node cannot run with process isolation",
		Vars: []string{"container", "image", "made-for", "host"},
		Find: func(c *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
			return onHost(c, s, func(isolation, image, host string) bool {
				return isolation == process && !schedule.SameBuild(image, host) && !schedule.SameABI(image, host)
			})
		},
	},
	{
		On: []string{"pod"}, Name: "image-of-earlier-release",
		Doc:  "a Windows image of the long-term release before the node's, which the node runs all the same",
		Vars: []string{"container", "image", "made-for", "host"},
		Find: func(c *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
			return onHost(c, s, func(isolation, image, host string) bool {
				return isolation == process && !schedule.SameBuild(image, host) && schedule.SameABI(image, host)
			})
		},
	},
	{
		On: []string{"pod"}, Name: "image-newer-than-host",
		Doc:  "a Windows image that is newer than the node, which Hyper-V isolation does not help",
		Vars: []string{"container", "image", "made-for", "host"},
		Find: func(c *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
			return onHost(c, s, func(isolation, image, host string) bool {
				return isolation == hyperV && newer(image, host)
			})
		},
	},
	{
		On: []string{"pod"}, Name: "image-without-build",
		Doc:  "an image of one Windows build whose tag does not say which",
		Vars: []string{"container", "image"},
		Find: func(_ *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
			p, ok := s.Value.(*Pod)
			if !ok {
				return nil
			}
			var hits []subject.Hit
			for _, u := range p.images() {
				if u.OS == "windows" && u.Build == "" && !u.MultiArch && !strings.Contains(u.ref, "@") {
					hits = append(hits, u.hit(s, map[string]string{}))
				}
			}
			return hits
		},
	},
	{
		On: []string{"pod"}, Name: "images-of-both-systems",
		Doc:  "a pod with an image that is for Windows only and one that is for Linux only",
		Vars: []string{"container", "image", "other-container", "other-image"},
		Find: mixedImages,
	},
	{
		On: []string{"pod"}, Name: "image-of-other-system",
		Doc:  "a pod whose known images are all for the other system than the pod is",
		Vars: []string{"container", "image", "system", "other-system", "why"},
		Find: otherSystem,
	},
	{
		On: []string{"pod"}, Name: "hyperv-annotation-with-containers",
		Doc:  "the annotation of the Hyper-V experiment on a pod with more than one container",
		Vars: []string{"count"},
		Find: func(_ *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
			p, ok := s.Value.(*Pod)
			if n := len(p.containers()); ok && hyperVAnnotation(p) && n > 1 {
				at, field := find(s, "spec.containers[1]")
				return []subject.Hit{{At: at, Field: field, Vars: map[string]string{"count": fmt.Sprint(n)}}}
			}
			return nil
		},
	},
}

// containers are those that run side by side.
func (p *Pod) containers() []corev1.Container {
	if p == nil {
		return nil
	}
	return p.Spec.Containers
}

// Ways in which a pod is kept apart from its node.
const (
	process = "process"
	hyperV  = "hyperv"
)

const hyperVAnnotationKey = "experimental.windows.kubernetes.io/isolation-type"

func hyperVAnnotation(p *Pod) bool { return p.Meta.Annotations[hyperVAnnotationKey] == hyperV }

// The handlers of containerd on Windows are runhcs-wcow-process and
// runhcs-wcow-hypervisor (kubernetes: test/e2e/windows/hyperv.go).
var (
	hyperVHandler  = lazyregexp.New(`(?i)hyper-?v`)
	processHandler = lazyregexp.New(`(?i)wcow-process`)
)

// isolation is how the pod is kept apart from its node, "" when that cannot be
// known: a RuntimeClass that is in none of the files may ask for either. The
// annotation counts up to 1.20; its gate was removed with 1.21
// (kubernetes: pkg/features/kube_features.go).
func (p *Pod) isolation(t claims.Target) string {
	if hyperVAnnotation(p) {
		v, err := claims.ParseVersion(t.Kubernetes)
		if err != nil || len(v) < 2 || v[1] <= 20 {
			return hyperV
		}
	}
	if p.Spec.RuntimeClassName == nil || *p.Spec.RuntimeClassName == "" {
		return process
	}
	word := *p.Spec.RuntimeClassName
	if p.class != nil {
		word = p.class.Handler
	}
	switch {
	case hyperVHandler.MatchString(word):
		return hyperV
	case p.class != nil || processHandler.MatchString(word):
		return process
	}
	return ""
}

// host is the Windows build of the nodes on which the pod can land: the one
// that its selectors name, or else that of the setting, if it was given; "" when neither says.
func (p *Pod) host(c *subject.Context) string {
	if b := p.selectedBuild(); b != "" {
		return b
	}
	if c.BuildAssumed {
		return ""
	}
	return targetBuild(c.Setting())
}

// selectedBuild is the Windows build that the pod or its RuntimeClass selects.
func (p *Pod) selectedBuild() string {
	if b := p.Spec.NodeSelector[corev1.LabelWindowsBuild]; b != "" {
		return b
	}
	if p.class != nil && p.class.Scheduling != nil {
		return p.class.Scheduling.NodeSelector[corev1.LabelWindowsBuild]
	}
	return ""
}

// ImagesOfSomeBuild counts the images of Windows pods whose references name a build of
// Windows that nothing in the files can be held against: the pods select none.
func ImagesOfSomeBuild(all []*subject.Subject) int {
	n := 0
	for _, s := range all {
		p, ok := s.Value.(*Pod)
		if !ok || s.Pods != "windows" || p.selectedBuild() != "" {
			continue
		}
		for _, u := range p.images() {
			if u.OS == "windows" && u.Build != "" {
				n++
			}
		}
	}
	return n
}

// onHost asks about every container whose Windows build is known.
func onHost(c *subject.Context, s *subject.Subject, bad func(isolation, image, host string) bool) []subject.Hit {
	p, ok := s.Value.(*Pod)
	if !ok {
		return nil
	}
	isolation, host := p.isolation(c.Setting()), p.host(c)
	if isolation == "" || host == "" {
		return nil
	}
	var hits []subject.Hit
	for _, u := range p.images() {
		if u.OS == "windows" && u.Build != "" && bad(isolation, u.Build, host) {
			hits = append(hits, u.hit(s, map[string]string{"made-for": windowsName(u.Image), "host": buildName(host)}))
		}
	}
	return hits
}

// newer reports whether a build is above another, by the numbers that name a
// release.
func newer(image, host string) bool {
	a, err1 := claims.ParseVersion(image)
	b, err2 := claims.ParseVersion(host)
	return err1 == nil && err2 == nil && len(a) >= 3 && len(b) >= 3 && slices.Compare(a[:3], b[:3]) > 0
}

// windowsName is an image's Windows, as people call it.
func windowsName(i Image) string {
	if r, ok := claims.ReleaseNamed(i.release); ok {
		return fmt.Sprintf("%s (%s)", r.Title, i.Build)
	}
	return "Windows " + i.Build
}

func buildName(build string) string {
	if r, ok := claims.ReleaseNamed(build); ok {
		return fmt.Sprintf("%s (%s)", r.Title, build)
	}
	return "Windows " + build
}

// used is an image where a container names it.
type used struct {
	Image
	ref, container, path string
}

// images are those of all containers of the pod.
func (p *Pod) images() []used {
	var all []used
	add := func(list string, i int, name, ref string) {
		all = append(all, used{ImageOf(ref), ref, name, fmt.Sprintf("spec.%s[%d].image", list, i)})
	}
	for i, c := range p.Spec.InitContainers {
		add("initContainers", i, c.Name, c.Image)
	}
	for i, c := range p.Spec.Containers {
		add("containers", i, c.Name, c.Image)
	}
	for i, c := range p.Spec.EphemeralContainers {
		add("ephemeralContainers", i, c.Name, c.Image)
	}
	return all
}

func (u used) hit(s *subject.Subject, vars map[string]string) subject.Hit {
	at, field := find(s, u.path)
	vars["container"], vars["image"] = u.container, u.ref
	return subject.Hit{At: at, Field: field, Vars: vars}
}

func mixedImages(_ *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
	p, ok := s.Value.(*Pod)
	if !ok {
		return nil
	}
	first := map[string]used{}
	for _, u := range p.images() {
		if _, seen := first[u.OS]; !seen && u.OS != "" {
			first[u.OS] = u
		}
	}
	if len(first) < 2 {
		return nil
	}
	// Point at the image that does not fit the pod.
	system := cmp.Or(p.os, "windows")
	own, other := first[system], first[otherOf(system)]
	return []subject.Hit{other.hit(s, map[string]string{"other-container": own.container, "other-image": own.ref})}
}

func otherSystem(_ *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
	p, ok := s.Value.(*Pod)
	if !ok || p.os == "" {
		return nil
	}
	var wrong []used
	for _, u := range p.images() {
		switch {
		case u.OS == p.os || u.MultiArch && u.OS == "":
			return nil // one image fits; images-of-both-systems reports the others
		case u.OS != "":
			wrong = append(wrong, u)
		}
	}
	var hits []subject.Hit
	for _, u := range wrong {
		hits = append(hits, u.hit(s, map[string]string{"system": title1(p.os), "other-system": title1(u.OS), "why": u.why}))
	}
	return hits
}

func otherOf(system string) string {
	if system == "windows" {
		return "linux"
	}
	return "windows"
}

func title1(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// find is the node of a field of a subject and its path.
func find(s *subject.Subject, path string) (at *yaml.Node, field string) {
	p, err := strict.ParsePath(path)
	if err != nil {
		return s.Root, path
	}
	for _, f := range strict.Find(s.Root, p) {
		return f.At(), path
	}
	return s.Root, path
}
