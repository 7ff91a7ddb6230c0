package observed

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/conformance/check/nodeconf"
	"github.com/winlab-dev/winlab/conformance/check/subject"
	"github.com/winlab-dev/winlab/internal/lazyregexp"
	"github.com/winlab-dev/winlab/internal/strict"
	"github.com/winlab-dev/winlab/sim/windows/dump"
)

// maxConf is the size up to which a file may be configuration or command lines;
// conformance/check/nodeconf reads no larger ones. Logs and dumps are.
const maxConf = 1 << 20

// conf gives a file to the reader of configuration files.
func (r *reader) conf(name string, data []byte) (recognised bool) {
	if len(data) > maxConf {
		return false // a log
	}
	subjects, recognised, mistakes := nodeconf.Read(name, data)
	for _, s := range subjects {
		r.subject(s)
	}
	if len(subjects) > 0 || len(mistakes) > 0 {
		r.addKind(listConf)
	}
	r.node.Mistakes = append(r.node.Mistakes, mistakes...)
	return recognised && len(subjects)+len(mistakes) > 0
}

func (r *reader) subject(s *subject.Subject) {
	s.File = r.file
	line := 0
	if s.Root != nil {
		line = s.Root.Line
	}
	if componentOf(s.On) {
		// A list of processes is also read as a file with command lines.
		key := fmt.Sprintf("%s %s %d", s.On, s.File, line)
		if r.seen[key] {
			return
		}
		r.seen[key] = true
	}
	r.node.list(listConf, Place{File: r.file, Line: line})
	r.node.Subjects = append(r.node.Subjects, s)
}

// maxCommands bounds the command lines of one file; a node has a few hundred
// processes.
const maxCommands = 5000

// commandLine reads the command line of a process or a service.
func (r *reader) commandLine(text string, line int) {
	if r.commands++; r.commands > maxCommands {
		return
	}
	subjects, _, _ := nodeconf.Read("command.txt", []byte(text+"\n"))
	for _, s := range subjects {
		if componentOf(s.On) {
			shift(s.Root, line-1, 0)
			r.subject(s)
			r.addKind("command lines")
		}
	}
}

// shift moves a tree to the line that it is on.
func shift(n *yaml.Node, by, depth int) {
	if n == nil || depth > dump.MaxDepth {
		return
	}
	n.Line += by
	for _, c := range n.Content {
		shift(c, by, depth+1)
	}
}

func componentOf(on string) bool {
	return on == "kubelet" || on == "kube-proxy" || on == "flanneld" || on == "service-manager"
}

// sourceVIP takes the two files that start.ps1 keeps for overlay networks.
func (r *reader) sourceVIP(o *yaml.Node) bool {
	if strings.Contains(strings.ToLower(path.Base(r.file)), "sourcevip") && dump.Has(o, "code") && dump.Has(o, "msg") {
		// An error of a CNI plugin (containernetworking/cni pkg/types Error): no address was given.
		r.node.Mistakes = append(r.node.Mistakes, strict.Mistake{File: r.file, Line: o.Line, Column: 1,
			Message: "the plugin that gives the source VIP answered with an error, so kube-proxy has none: " + dump.Str(o, "msg")})
		r.addKind(listSourceVIP)
		return true
	}
	if !dump.Has(o, "cniVersion") || dump.Child(o, "type", "plugins") != nil {
		return false
	}
	v := SourceVIP{Place: r.placeOf(o.Line)}
	if ip4 := dump.Child(o, "ip4"); ip4 != nil {
		v.Address = dump.Prefix(dump.Str(ip4, "ip"))
		v.Place = r.placeOf(line(dump.Child(ip4, "ip"), o.Line))
	}
	for _, ip := range dump.Items(dump.Child(o, "ips")) {
		v.Address = dump.Prefix(dump.Str(ip, "address"))
		v.Place = r.placeOf(line(dump.Child(ip, "address"), o.Line))
	}
	ipam := dump.Child(o, "ipam")
	for _, set := range dump.Items(dump.Child(ipam, "ranges")) {
		for _, rng := range dump.Items(set) {
			v.Subnet = dump.Prefix(dump.Str(rng, "subnet"))
			v.Place = r.placeOf(line(dump.Child(rng, "subnet"), o.Line))
		}
	}
	if s := dump.Child(ipam, "subnet"); s != nil {
		v.Subnet = dump.Prefix(s.Value)
		v.Place = r.placeOf(s.Line)
	}
	if !v.Address.IsValid() && !v.Subnet.IsValid() {
		r.node.Mistakes = append(r.node.Mistakes, strict.Mistake{File: r.file, Line: o.Line, Column: 1,
			Message: "this looks like SourceVip.JSON or SourceVipRequest.json, but has neither an address nor a subnet; take the files as they are from C:\\k"})
		return true
	}
	r.node.list(listSourceVIP, v.Place)
	r.node.SourceVIPs = append(r.node.SourceVIPs, v)
	r.addKind(listSourceVIP)
	return true
}

func line(n *yaml.Node, other int) int {
	if n == nil {
		return other
	}
	return n.Line
}

// flagForm is how the components log the flags that they run with, at
// verbosity 1 and above (k8s.io/component-base cli/flag PrintFlags).
var flagForm = lazyregexp.New(`\] (?:"?FLAG: )(--[a-z0-9\-]+)=(\S.*)$`)

// flagLines makes a command line of the flags that a component logged. It
// counts only where the folder has no command line of that component.
func (r *reader) flagLines(l dump.Lines) {
	root := dump.Mapping(0)
	on := ""
	for i, text := range l.Text {
		if !strings.Contains(text, "FLAG: --") {
			continue
		}
		m := flagForm.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		if dump.Child(root, m[1]) != nil { // the component was started again
			r.logged(on, root)
			root, on = dump.Mapping(0), ""
		}
		if root.Line == 0 {
			root.Line = l.First + i
		}
		value := m[2]
		if u, err := strconv.Unquote(strings.TrimSuffix(value, `"`) + `"`); err == nil && strings.HasPrefix(value, `"`) {
			value = u
		}
		if value == "" || value == "[]" {
			continue // the flag was not given
		}
		dump.Put(root, m[1], dump.Scalar(value, l.First+i))
		switch m[1] {
		case "--proxy-mode", "--cluster-cidr", "--detect-local-mode":
			on = "kube-proxy"
		case "--cgroups-per-qos", "--pod-infra-container-image", "--cluster-dns", "--node-labels":
			on = "kubelet"
		}
	}
	r.logged(on, root)
}

func (r *reader) logged(on string, root *yaml.Node) {
	if on != "" && len(root.Content) > 0 {
		r.flags = append(r.flags, &subject.Subject{On: on, Name: on, File: r.file, Root: root})
		r.addKind("logged flags")
	}
}

// useFlags takes the last logged flags of components that have no command line.
func (r *reader) useFlags() {
	for _, on := range []string{"kubelet", "kube-proxy"} {
		var last *subject.Subject
		for _, s := range r.flags {
			if s.On == on {
				last = s
			}
		}
		if last != nil && !slices.ContainsFunc(r.node.Subjects, func(s *subject.Subject) bool { return s.On == on }) {
			r.node.Subjects = append(r.node.Subjects, last)
		}
	}
}

// script reports whether a file is a program: its text says what it would
// print, not what was printed.
func script(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".ps1", ".psm1", ".psd1", ".cmd", ".bat", ".sh", ".md", ".go", ".py":
		return true
	}
	return false
}
