package manifest

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/winlab-dev/winlab/conformance/check/subject"
)

// commandTests look at what a container is told to run: its command, and those of its
// probes and hooks. Its arguments are the program's own, and a path in them may well be
// one that the program understands.
var commandTests = []subject.Test{{
	On: []string{"pod"}, Name: "unix-command", Args: []string{"image", "programs"}, Vars: []string{"container", "image", "command", "of"},
	Doc: "A command, or that of a probe or hook, whose program is one of programs. " +
		"image: known asks containers with a Windows image of which the table says that it has no programs of Unix, and finds all programs in /bin, /usr/bin and so on; image: unknown asks containers of whose image nothing is known.",
	Find: unixCommands,
}}

// commandOf is a command with its place in the pod.
type commandOf struct {
	of, path string
	words    []string
}

// commandsOf are all commands of a container.
func commandsOf(c *placed) []commandOf {
	all := []commandOf{{"command", c.path + ".command", c.Command}}
	probe := func(of, field string, p *corev1.Probe) {
		if p != nil && p.Exec != nil {
			all = append(all, commandOf{of, c.path + "." + field + ".exec.command", p.Exec.Command})
		}
	}
	probe("liveness probe", "livenessProbe", c.LivenessProbe)
	probe("readiness probe", "readinessProbe", c.ReadinessProbe)
	probe("startup probe", "startupProbe", c.StartupProbe)
	if l := c.Lifecycle; l != nil {
		hook := func(of, field string, h *corev1.LifecycleHandler) {
			if h != nil && h.Exec != nil {
				all = append(all, commandOf{of, c.path + ".lifecycle." + field + ".exec.command", h.Exec.Command})
			}
		}
		hook("postStart hook", "postStart", l.PostStart)
		hook("preStop hook", "preStop", l.PreStop)
	}
	return all
}

// unixFolders are where Linux images have their programs, and no image of Windows does
// unless somebody made them.
var unixFolders = []string{"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin"}

// unixProgram reports whether a program is one of Unix by its path, or one of the names.
// A path that ends in .exe is one that somebody wrote for Windows.
// In an image of which nothing is known, /bin/app may be C:\bin\app.exe.
func unixProgram(program string, names []string, known bool) bool {
	if strings.HasSuffix(strings.ToLower(program), ".exe") {
		return false
	}
	named := slices.Contains(names, path.Base(program))
	return named && !strings.Contains(program, "/") || slices.Contains(unixFolders, path.Dir(program)) && (known || named)
}

func unixCommands(_ *subject.Context, s *subject.Subject, args map[string]string) []subject.Hit {
	p, ok := s.Value.(*Pod)
	if !ok {
		return nil
	}
	names := strings.FieldsFunc(args["programs"], func(r rune) bool { return r == ',' || r == ' ' })
	var hits []subject.Hit
	for _, c := range p.placedContainers() {
		image := ImageOf(c.Image)
		known := image.OS == "windows" && image.noUnix
		if image.unix || known != (args["image"] == "known") {
			continue
		}
		for _, cmd := range commandsOf(&c) {
			if len(cmd.words) == 0 || !unixProgram(cmd.words[0], names, known) {
				continue
			}
			hits = append(hits, hit(s, cmd.path, map[string]string{"container": c.Name, "image": c.Image, "command": cmd.words[0], "of": cmd.of}))
		}
	}
	return hits
}
