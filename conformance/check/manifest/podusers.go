package manifest

import (
	"strings"

	"gopkg.in/yaml.v3"
	corev1 "k8s.io/api/core/v1"

	"github.com/winlab-dev/winlab/conformance/check/subject"
)

// windowsOf are the Windows options of the pod and of a container.
func (p *Pod) windowsOf(c *placed) (pod, container corev1.WindowsSecurityContextOptions) {
	if p.Spec.SecurityContext != nil && p.Spec.SecurityContext.WindowsOptions != nil {
		pod = *p.Spec.SecurityContext.WindowsOptions
	}
	if c.SecurityContext != nil && c.SecurityContext.WindowsOptions != nil {
		container = *c.SecurityContext.WindowsOptions
	}
	return pod, container
}

// user is what the container runs as by its manifest, and where it says so;
// the container's setting takes precedence over the pod's.
func (p *Pod) user(c *placed) (user *string, where string) {
	pod, own := p.windowsOf(c)
	if own.RunAsUserName != nil {
		return own.RunAsUserName, c.path + ".securityContext.windowsOptions.runAsUserName"
	}
	return pod.RunAsUserName, "spec.securityContext.windowsOptions.runAsUserName"
}

// root is the account of containers that the kubelet takes for root.
const root = "ContainerAdministrator"

// nonRootAdministrators does what verifyRunAsNonRoot of
// pkg/kubelet/kuberuntime/security_context_windows.go does with what the
// manifest says; with user: image it looks at containers without one, whose image is known
// to run as ContainerAdministrator.
func nonRootAdministrators(p *Pod, at func(string) *yaml.Node, args map[string]string) []subject.Hit {
	var hits []subject.Hit
	for _, c := range p.placedContainers() {
		nonRoot := c.SecurityContext != nil && c.SecurityContext.RunAsNonRoot != nil && *c.SecurityContext.RunAsNonRoot
		if (c.SecurityContext == nil || c.SecurityContext.RunAsNonRoot == nil) && p.Spec.SecurityContext != nil &&
			p.Spec.SecurityContext.RunAsNonRoot != nil {
			nonRoot = *p.Spec.SecurityContext.RunAsNonRoot
		}
		user, where := p.user(&c)
		if !nonRoot || user == nil || args["user"] == "image" {
			if image := ImageOf(c.Image); nonRoot && user == nil && args["user"] == "image" && image.user == root {
				where = c.path + ".image"
				hits = append(hits, subject.Hit{At: at(where), Field: where,
					Vars: map[string]string{"container": c.Name, "user": image.user, "image": c.Image}})
			}
			continue
		}
		if *user == root || args["case"] != "exact" && strings.EqualFold(*user, root) {
			hits = append(hits, subject.Hit{At: at(where), Field: where,
				Vars: map[string]string{"container": c.Name, "user": *user, "image": c.Image}})
		}
	}
	return hits
}

// hostProcessOf says whether a container is a HostProcess container: by its own
// setting, or else by the pod's.
func (p *Pod) hostProcessOf(c *placed) bool {
	pod, own := p.windowsOf(c)
	if own.HostProcess != nil {
		return *own.HostProcess
	}
	return pod.HostProcess != nil && *pod.HostProcess
}

func hostProcessPlace(p *Pod, at func(string) *yaml.Node, _ map[string]string) []subject.Hit {
	hit := func(where string) []subject.Hit { return []subject.Hit{{At: at(where), Field: where}} }
	if o, _ := p.windowsOf(&placed{}); o.HostProcess != nil && *o.HostProcess {
		return hit("spec.securityContext.windowsOptions.hostProcess")
	}
	for _, c := range p.placedContainers() {
		if p.hostProcessOf(&c) {
			return hit(c.path + ".securityContext.windowsOptions.hostProcess")
		}
	}
	return nil
}

// hostProcessMixed is validateWindowsHostProcessPod of
// pkg/apis/core/validation/validation.go: all or none, and a container does
// not contradict its pod.
func hostProcessMixed(p *Pod, at func(string) *yaml.Node, _ map[string]string) []subject.Hit {
	all := p.placedContainers()
	some := false
	for _, c := range all {
		some = some || p.hostProcessOf(&c)
	}
	var hits []subject.Hit
	for _, c := range all {
		pod, own := p.windowsOf(&c)
		contradicts := pod.HostProcess != nil && own.HostProcess != nil && *pod.HostProcess != *own.HostProcess
		if !contradicts && (!some || p.hostProcessOf(&c)) {
			continue
		}
		where := c.path
		if own.HostProcess != nil {
			where += ".securityContext.windowsOptions.hostProcess"
		}
		hits = append(hits, subject.Hit{At: at(where), Field: where, Vars: map[string]string{"container": c.Name}})
	}
	return hits
}

func hostProcessWithoutUser(p *Pod, at func(string) *yaml.Node, _ map[string]string) []subject.Hit {
	var hits []subject.Hit
	for _, c := range p.placedContainers() {
		if user, _ := p.user(&c); user == nil && p.hostProcessOf(&c) {
			hits = append(hits, subject.Hit{At: at(c.path), Field: c.path, Vars: map[string]string{"container": c.Name}})
		}
	}
	return hits
}
