package nodedump

import (
	"path"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/conformance/nodeconf"
	"github.com/winlab-dev/winlab/conformance/subject"
	"github.com/winlab-dev/winlab/sim/strict"
)

// conf gives a file to the reader of configuration files.
func (r *reader) conf(name string, data []byte) (recognised bool) {
	subjects, recognised, mistakes := nodeconf.Read(name, data)
	for _, s := range subjects {
		r.subject(s)
	}
	if len(subjects) > 0 || len(mistakes) > 0 {
		r.as(ListConf)
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
	r.node.list(ListConf, Place{File: r.file, Line: line})
	r.node.Subjects = append(r.node.Subjects, s)
}

// commandLine reads the command line of a process or a service. Empty lines
// before it keep its line number.
func (r *reader) commandLine(text string, line int) {
	pad := strings.Repeat("\n", max(line-1, 0))
	subjects, _, _ := nodeconf.Read("command.txt", []byte(pad+text+"\n"))
	for _, s := range subjects {
		if componentOf(s.On) {
			r.subject(s)
			r.as("command lines")
		}
	}
}

func componentOf(on string) bool {
	return on == "kubelet" || on == "kube-proxy" || on == "flanneld" || on == "service-manager"
}

// sourceVIP takes the two files that start.ps1 keeps for overlay networks.
func (r *reader) sourceVIP(o *yaml.Node) bool {
	if !has(o, "cniVersion") || child(o, "type", "plugins") != nil {
		return false
	}
	v := SourceVIP{Place: r.at(o.Line)}
	if ip4 := child(o, "ip4"); ip4 != nil {
		v.Address = prefix(str(ip4, "ip"))
		v.Place = r.at(line(child(ip4, "ip"), o.Line))
	}
	for _, ip := range items(child(o, "ips")) {
		v.Address = prefix(str(ip, "address"))
		v.Place = r.at(line(child(ip, "address"), o.Line))
	}
	ipam := child(o, "ipam")
	for _, set := range items(child(ipam, "ranges")) {
		for _, rng := range items(set) {
			v.Subnet = prefix(str(rng, "subnet"))
			v.Place = r.at(line(child(rng, "subnet"), o.Line))
		}
	}
	if s := child(ipam, "subnet"); s != nil {
		v.Subnet = prefix(s.Value)
		v.Place = r.at(s.Line)
	}
	if !v.Address.IsValid() && !v.Subnet.IsValid() {
		r.node.Mistakes = append(r.node.Mistakes, strict.Mistake{File: r.file, Line: o.Line, Column: 1,
			Message: "this looks like SourceVip.json or SourceVipRequest.json, but has neither an address nor a subnet; take the files as they are from C:\\k"})
		return true
	}
	r.node.list(ListSourceVIP, v.Place)
	r.node.SourceVIPs = append(r.node.SourceVIPs, v)
	r.as(ListSourceVIP)
	return true
}

func line(n *yaml.Node, other int) int {
	if n == nil {
		return other
	}
	return n.Line
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
