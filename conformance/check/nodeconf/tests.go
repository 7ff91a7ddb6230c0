package nodeconf

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/conformance/check/subject"
	"github.com/winlab-dev/winlab/internal/strict"
)

// Tests are the conditions on node configuration that a field and a word
// cannot express.
func Tests() []subject.Test {
	return slices.Concat(commandTests, proxyTests, cniTests, agreementTests, reservedTests, agentTests)
}

var components = []string{"kubelet", "kube-proxy", "flanneld"}

var commandTests = []subject.Test{
	{
		On: components, Name: "glued-flags", Vars: []string{"argument", "split"},
		Doc:  "Two flags of a command line have no space between them, so that the second is a part of the first one's value.",
		Find: gluedFlags,
	},
	{
		On: components, Name: "unknown-flag", Vars: []string{"flag", "hint"},
		Doc:  "No version of the program has the flag.",
		Find: unknownFlags,
	},
	{
		On: []string{"kubelet", "kube-proxy"}, Name: "flag-of-other-version", Args: []string{"except", "when"},
		Vars: []string{"flag", "versions"},
		Doc:  "The program has the flag in other versions only. except lists flags to leave out; when is gone (in older versions) or new (in newer ones).",
		Find: otherVersion,
	},
	{
		On: components, Name: "missing-flag", Args: []string{"flag", "network", "config"}, Vars: []string{"flag"},
		Doc: "A command line that is seen as a whole lacks a flag or variable. network narrows to command lines for an HNS network type; " +
			"config is the field of the component's configuration file that does instead.",
		Find: missingFlag,
	},
	{
		On: []string{"kubelet", "kube-proxy"}, Name: "service-without-flag", Vars: []string{"service"},
		Doc:  "A service that sc.exe keeps runs the program without --windows-service, so that it does not answer the service manager.",
		Find: serviceWithoutFlag,
	},
	{
		On: components, Name: "single-quotes", Vars: []string{"flag", "value"},
		Doc:  "A value in a service's command line is in single quotes, which Windows does not remove.",
		Find: singleQuotes,
	},
	{
		On: []string{"service-manager"}, Name: "missing-setting", Args: []string{"component", "nssm", "sc"}, Vars: []string{"service", "setting"},
		Doc:  "A service of a component lacks a setting, named as nssm or as sc has it; without a name for its manager it is passed over.",
		Find: missingSetting,
	},
	{
		On: []string{"kubelet", "kube-proxy", "kube-proxy-config", "kubelet-config"}, Name: "gate-unknown", Args: []string{"except"},
		Vars: []string{"gate", "problem"},
		Doc:  "A feature gate is set that this version does not know, or that it does not let anybody change. except names gates to leave out.",
		Find: gateMistakes,
	},
}

func gluedFlags(_ *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
	c, ok := s.Value.(*commandLine)
	if !ok {
		return nil
	}
	var hits []subject.Hit
	for _, a := range c.glued {
		m := glue.FindStringSubmatchIndex(a.text)
		if m == nil {
			continue
		}
		hits = append(hits, subject.Hit{At: a.node, Field: a.name,
			Vars: map[string]string{"argument": a.text, "split": a.text[:m[2]-2] + " " + a.text[m[2]-2:]}})
	}
	return hits
}

func serviceWithoutFlag(_ *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
	c, ok := s.Value.(*commandLine)
	if !ok || c.manager != "sc" || c.incomplete || nodeAt(s, "--windows-service") != nil || nodeAt(s, "--service") != nil {
		return nil
	}
	return []subject.Hit{{Vars: map[string]string{"service": c.service}}}
}

func singleQuotes(_ *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
	c, ok := s.Value.(*commandLine)
	if !ok || c.manager != "sc" {
		return nil
	}
	var hits []subject.Hit
	for _, a := range c.args {
		if len(a.value) > 1 && strings.HasPrefix(a.value, "'") {
			hits = append(hits, subject.Hit{At: a.node, Field: a.name, Vars: map[string]string{"flag": a.name, "value": a.value}})
		}
	}
	return hits
}

func missingSetting(_ *subject.Context, s *subject.Subject, args map[string]string) []subject.Hit {
	v, ok := s.Value.(*service)
	if !ok || v.component != args["component"] || args[v.manager] == "" || nodeAt(s, args[v.manager]) != nil {
		return nil
	}
	return []subject.Hit{{Vars: map[string]string{"service": v.name, "setting": args[v.manager]}}}
}

func unknownFlags(_ *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
	var hits []subject.Hit
	for i := 0; i+1 < len(s.Root.Content); i += 2 {
		name := s.Root.Content[i].Value
		// --service has a claim of its own.
		if !strings.HasPrefix(name, "--") || !literal(name) || knownFlag(s.On, name) || name == "--service" {
			continue
		}
		hint := ""
		if near := nearestFlag(s.On, name); near != "" {
			hint = "; did you mean " + near + "?"
		}
		hits = append(hits, subject.Hit{At: s.Root.Content[i+1], Field: name, Vars: map[string]string{"flag": name, "hint": hint}})
	}
	return hits
}

func otherVersion(c *subject.Context, s *subject.Subject, args map[string]string) []subject.Hit {
	v := minor(c.Setting().Kubernetes)
	if v < 14 {
		return nil // the command lines of 1.5 were not compared flag by flag
	}
	except := strings.Fields(args["except"])
	var hits []subject.Hit
	for i := 0; i+1 < len(s.Root.Content); i += 2 {
		name := plainFlag(s.Root.Content[i].Value)
		l, ok := flagTable()[s.On][name]
		if !ok || slices.Contains(except, name) {
			continue
		}
		versions := ""
		switch {
		case v > l.last && args["when"] != "new":
			versions = fmt.Sprintf("1.%d is the last version with it", l.last)
			if l.last < 14 { // 1.6 to 1.13 were not looked at
				versions = "it was gone before 1.14"
			}
		case v < l.first && l.first > 14 && args["when"] != "gone":
			versions = fmt.Sprintf("it came with 1.%d", l.first)
		default:
			continue
		}
		hits = append(hits, subject.Hit{At: s.Root.Content[i+1], Field: name, Vars: map[string]string{"flag": name, "versions": versions}})
	}
	return hits
}

// missingFlag looks for what a command line lacks. Where a part of it is not
// seen, nothing is missing.
func missingFlag(c *subject.Context, s *subject.Subject, args map[string]string) []subject.Hit {
	cmd, _ := s.Value.(*commandLine)
	if cmd != nil && cmd.incomplete {
		return nil
	}
	if args["network"] != "" && !isFor(c, s, args["network"]) {
		return nil
	}
	flag := args["flag"]
	if cmd != nil && cmd.inPod && strings.Contains(flag, "$") {
		return nil // the container's environment has it, or not
	}
	for _, alternative := range strings.Fields(flag) {
		if nodeAt(s, alternative) != nil {
			return nil
		}
	}
	if nodeAt(s, "--config") != nil {
		if args["config"] != "" {
			return nil // in the file, which is checked by itself
		}
		if cmd == nil {
			return nil
		}
	}
	flag, _, _ = strings.Cut(flag, " ")
	return []subject.Hit{{Field: flag, Vars: map[string]string{"flag": flag}}}
}

func gateMistakes(c *subject.Context, s *subject.Subject, args map[string]string) []subject.Hit {
	v := minor(c.Setting().Kubernetes)
	node := func(string) *yaml.Node { return nodeAt(s, "--feature-gates") }
	values := gateValues(strict.Text(nodeAt(s, "--feature-gates")))
	if list := nodeAt(s, "featureGates"); strings.HasSuffix(s.On, "-config") {
		values = map[string]bool{}
		if list != nil {
			for i := 0; i+1 < len(list.Content); i += 2 {
				values[list.Content[i].Value] = list.Content[i+1].Value == "true"
			}
		}
		node = func(name string) *yaml.Node { return nodeAt(s, "featureGates", name) }
	}
	var hits []subject.Hit
	for name, on := range values {
		g, ok := gates[name]
		if !ok || slices.Contains(strings.Fields(args["except"]), name) {
			continue
		}
		problem := ""
		switch {
		case v < g.first:
			problem = fmt.Sprintf("it came with 1.%d", g.first)
		case !g.known(v):
			problem = fmt.Sprintf("1.%d is the last version with it", g.last)
		case g.locked > 0 && v >= g.locked && !on:
			problem = fmt.Sprintf("from 1.%d on it cannot be turned off", g.locked)
		default:
			continue
		}
		hits = append(hits, subject.Hit{At: node(name), Field: "featureGates." + name, Vars: map[string]string{"gate": name, "problem": problem}})
	}
	slices.SortFunc(hits, func(a, b subject.Hit) int { return cmp.Compare(a.Field, b.Field) })
	return hits
}
