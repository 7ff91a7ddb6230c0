package nodeconf

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/conformance/check/subject"
	"github.com/winlab-dev/winlab/internal/lazyregexp"
)

// service is the typed form of a subject "service-manager": what nssm or sc.exe
// were told of one service.
type service struct {
	// name is the service, Manager "nssm", "sc" or "script".
	name, manager string
	// component is "kubelet", "kube-proxy" or "flanneld", by the program or else
	// by the name; "" for other services.
	component string
	// incomplete is set when a part of what was set is not in the file.
	incomplete bool

	program word
	args    []word
	env     []envVar
	set     []setting
	at      int
	blocks  []block
}

type setting struct {
	key, value string
	at         int
}

// nssmKeys are the parameters of nssm that are read, as it spells them.
var nssmKeys = []string{
	"Application", "AppParameters", "AppDirectory", "AppEnvironment", "AppEnvironmentExtra", "AppStdout", "AppStderr", "AppStdin",
	"AppExit", "AppRestartDelay", "AppThrottle", "AppPriority", "AppRotateFiles", "AppRotateOnline", "AppRotateSeconds", "AppRotateBytes",
	"DependOnService", "DependOnGroup", "Description", "DisplayName", "ImagePath", "ObjectName", "Start", "Type", "AppNoConsole",
	"AppStopMethodSkip",
}

// scKeys are the options of sc.exe that are read.
var scKeys = []string{"binPath", "start", "depend", "DisplayName", "obj", "password", "type", "error", "group", "reset", "actions"}

// scriptNames are scripts that register the services of a node
// (microsoft/SDN Kubernetes/flannel).
var scriptNames = []string{"register-svc.ps1", "start.ps1"}

// scriptParameters are what these scripts take.
var scriptParameters = []string{
	"-NetworkMode", "-ManagementIP", "-ClusterCIDR", "-ServiceCIDR", "-KubeDnsServiceIP", "-LogDir", "-InterfaceName",
	"-KubeletSvc", "-KubeProxySvc", "-FlanneldSvc", "-KubeletFeatureGates",
}

var nssmWord = lazyregexp.New(`(?i)^(.*[\\/$.])?nssm(exe)?(\.exe)?["')]*$`)

// manager reads a line of nssm, sc.exe, New-Service or of a known script.
func (r *script) manager(st statement) bool {
	words := slices.DeleteFunc(slices.Clone(st.words), func(w word) bool { return w.mark == '(' || w.mark == ')' })
	for i, w := range words[:min(len(words), 4)] {
		text := r.resolve(w.text)
		name := base(text)
		switch {
		case nssmWord.MatchString(text) && i+1 < len(words):
			r.nssm(st, words[i+1:])
			return true
		case name == "sc.exe" || name == "sc" && r.d != powerShell:
			if i+2 < len(words) && slices.Contains([]string{"create", "config", "failure"}, strings.ToLower(words[i+1].text)) {
				r.sc(st, strings.ToLower(words[i+1].text), words[i+2:])
			}
			return true
		case name == "new-service":
			r.newService(st, words[i+1:])
			return true
		case slices.Contains(scriptNames, name) && len(words) > i+1:
			r.registering(name, w.at, words[i+1:])
			return true
		}
	}
	return false
}

// service finds or makes what is known of a service. install begins again.
func (r *script) service(manager, name string, at int, blocks []block, install bool) *service {
	for _, s := range slices.Backward(r.services) {
		if s.manager == manager && strings.EqualFold(s.name, name) && !install {
			if sameBlocks(s.blocks, blocks) || len(s.blocks) < len(blocks) {
				return s
			}
		}
	}
	s := &service{name: name, manager: manager, at: at, blocks: blocks}
	r.services = append(r.services, s)
	r.made = append(r.made, func() []*subject.Subject { return r.finish(s) })
	return s
}

func (r *script) nssm(st statement, words []word) {
	words, whole := r.flatten(words, 0)
	if len(words) < 2 {
		return
	}
	verb, name := strings.ToLower(words[0].text), words[1]
	switch {
	case verb == "install" && len(words) > 2:
		s := r.service("nssm", name.text, name.at, st.blocks, true)
		s.program, s.args = words[2], words[3:]
		s.incomplete = s.incomplete || !whole
	case verb == "set" && len(words) > 2:
		s := r.service("nssm", name.text, name.at, st.blocks, false)
		r.nssmSet(s, words[2], words[3:], st, whole)
	}
}

func (r *script) nssmSet(s *service, key word, values []word, st statement, whole bool) {
	name := key.text
	if i := slices.IndexFunc(nssmKeys, func(k string) bool { return strings.EqualFold(k, name) }); i >= 0 {
		name = nssmKeys[i]
	}
	at := key.at
	if len(values) > 0 {
		at = values[0].at
	}
	// What is set in one way of a condition only is there in that way: a
	// command line in each of them.
	if branched := !sameBlocks(s.blocks, st.blocks); branched && name == "AppParameters" {
		other := *s
		other.blocks, other.args, other.at = st.blocks, values, at
		other.env, other.incomplete = slices.Clone(s.env), s.incomplete || !whole
		r.made = append(r.made, func() []*subject.Subject {
			for _, e := range s.env {
				if reaches(e.blocks, other.blocks) && !slices.ContainsFunc(other.env, func(o envVar) bool { return o.at == e.at }) {
					other.env = append(other.env, e)
				}
			}
			return r.commandOf(&other)
		})
		s.incomplete = true
		s.set = append(s.set, setting{name, join(values), at})
		return
	}
	s.incomplete = s.incomplete || !whole
	switch name {
	case "AppParameters":
		s.args = values
	case "Application":
		if len(values) > 0 {
			s.program = values[0]
		}
	case "AppEnvironmentExtra", "AppEnvironment":
		for _, v := range values {
			if n, value, ok := strings.Cut(strings.TrimLeft(v.text, ":+"), "="); ok {
				s.env = append(s.env, envVar{n, value, v.at, st.blocks})
			}
		}
	}
	s.set = append(s.set, setting{name, join(values), at})
}

func join(words []word) string {
	var parts []string
	for _, w := range words {
		parts = append(parts, w.text)
	}
	return strings.Join(parts, " ")
}

// sc reads "binPath= ..." and its like; the space belongs after the sign, and
// people leave it out.
func (r *script) sc(st statement, verb string, words []word) {
	name := words[0]
	s := r.service("sc", r.resolve(name.text), name.at, st.blocks, verb == "create")
	for i := 1; i < len(words); i++ {
		key, value, ok := strings.Cut(words[i].text, "=")
		j := slices.IndexFunc(scKeys, func(k string) bool { return strings.EqualFold(k, key) })
		if !ok || j < 0 {
			continue
		}
		v := word{text: value, at: words[i].at + len(key) + 1, quoted: true}
		if value == "" && i+1 < len(words) {
			i++
			v = words[i]
		}
		s.set = append(s.set, setting{scKeys[j], r.resolve(v.text), v.at})
		if scKeys[j] == "binPath" {
			v.text = r.resolve(v.text)
			s.binPath(r, v)
		}
	}
}

func (s *service) binPath(r *script, v word) {
	v.quoted = true
	line := r.split(v)
	if len(line) == 0 {
		return
	}
	s.program, s.args = line[0], line[1:]
}

// newService reads PowerShell's New-Service.
func (r *script) newService(st statement, words []word) {
	at := word{}
	values := map[string]word{}
	for i := 0; i+1 < len(words); i++ {
		if key := strings.ToLower(words[i].text); strings.HasPrefix(key, "-") && !strings.HasPrefix(words[i+1].text, "-") {
			values[key] = words[i+1]
		}
	}
	name, path := values["-name"], values["-binarypathname"]
	if name.text == "" && len(words) > 0 && !strings.HasPrefix(words[0].text, "-") {
		name = words[0]
	}
	if name.text == "" || path.text == "" {
		return
	}
	at = name
	s := r.service("sc", r.resolve(name.text), at.at, st.blocks, true)
	path.text = r.resolve(path.text)
	s.set = append(s.set, setting{"binPath", path.text, path.at})
	if d, ok := values["-dependson"]; ok {
		s.set = append(s.set, setting{"depend", d.text, d.at})
	}
	s.binPath(r, path)
}

// registering reads the call of a script that registers services.
func (r *script) registering(name string, at int, words []word) {
	isParameter := func(w word) bool {
		return slices.ContainsFunc(scriptParameters, func(p string) bool { return strings.EqualFold(p, w.text) })
	}
	if name == "start.ps1" && !slices.ContainsFunc(words, isParameter) {
		return // a script of that name, and not this one
	}
	r.made = append(r.made, func() []*subject.Subject {
		line, column := r.lineAndColumn(at)
		root := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: line, Column: column}
		put(root, "name", name, line, column, line, column)
		put(root, "manager", "script", line, column, line, column)
		whole := true
		for i, w := range words {
			j := slices.IndexFunc(scriptParameters, func(p string) bool { return strings.EqualFold(p, w.text) })
			switch {
			case strings.HasPrefix(w.text, "@") || w.mark == 0 && !strings.HasPrefix(w.text, "-") && wholeName.MatchString(w.text) &&
				(i == 0 || !strings.HasPrefix(words[i-1].text, "-")):
				whole = false
			case j >= 0 && i+1 < len(words) && words[i+1].mark == 0:
				kl, kc := r.lineAndColumn(w.at)
				vl, vc := r.lineAndColumn(words[i+1].at)
				put(root, scriptParameters[j], r.resolve(words[i+1].text), kl, kc, vl, vc)
			}
		}
		return []*subject.Subject{{On: "service-manager", Name: name, File: r.file, Root: root,
			Value: &service{name: name, manager: "script", incomplete: !whole}}}
	})
}

// finish makes the subjects of a service: itself and its command line.
func (r *script) finish(s *service) []*subject.Subject {
	program, _ := programOf(s.program.text)
	s.component = program
	if s.component == "" {
		for _, p := range programs {
			if strings.EqualFold(s.name, p) || strings.EqualFold(s.name, strings.ReplaceAll(p, "-", "")) {
				s.component = p
			}
		}
	}
	if s.component == "" {
		return nil
	}
	line, column := r.lineAndColumn(s.at)
	root := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: line, Column: column}
	for _, kv := range [][2]string{{"name", s.name}, {"manager", s.manager}, {"component", s.component}} {
		put(root, kv[0], kv[1], line, column, line, column)
	}
	if s.program.text != "" {
		l, c := r.lineAndColumn(s.program.at)
		put(root, "program", s.program.text, l, c, l, c)
	}
	for _, kv := range s.set {
		l, c := r.lineAndColumn(kv.at)
		put(root, kv.key, kv.value, l, c, l, c)
	}
	all := []*subject.Subject{{On: "service-manager", Name: s.manager + " service " + s.name, File: r.file, Root: root, Value: s}}
	if program != "" {
		all = append(all, r.commandOf(s)...)
	}
	return all
}

// commandOf makes the subject of a service's command line.
func (r *script) commandOf(s *service) []*subject.Subject {
	if s.program.text == "" {
		return nil
	}
	if p, _ := programOf(s.program.text); p == "" {
		return nil
	}
	if len(s.args) == 0 && s.incomplete {
		return nil
	}
	at := s.program.at
	if len(s.args) > 0 {
		at = s.args[0].at
	}
	return r.command(append([]word{s.program}, s.args...), s.blocks, at, s.incomplete, s)
}
