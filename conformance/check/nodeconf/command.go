package nodeconf

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/conformance/check/subject"
	"github.com/winlab-dev/winlab/internal/lazyregexp"
	"github.com/winlab-dev/winlab/internal/strict"
)

// commandLine is the typed form of a command line.
type commandLine struct {
	// program is "kubelet", "kube-proxy" or "flanneld"; path is how the file calls it.
	program, path string
	// args are its arguments in their order.
	args []arg
	// incomplete is set when a part of the line comes from somewhere else, a
	// variable for example: what is not seen may still be there.
	incomplete bool
	// inPod is set when it runs in a container, whose environment is elsewhere.
	inPod bool
	// service is the name of the service that it belongs to, and manager what
	// runs it: "nssm" or "sc"; empty for a direct call.
	service, manager string
	// branch is the HNS network type that the condition around the line names:
	// "overlay", "l2bridge" or "".
	branch string
	// glued are the arguments in which two flags have no space between them.
	glued []arg
}

// arg is one argument.
type arg struct {
	// text is the whole argument, name its flag with the dashes, value the value.
	text, name, value string
	// hasValue is false for a flag without a value.
	hasValue bool
	node     *yaml.Node

	at int
}

// programs are the components whose command lines are read.
var programs = []string{"kubelet", "kube-proxy", "flanneld"}

var programWord = lazyregexp.New(`(?i)^(.*[\\/ "'])?(kubelet|kube-proxy|flanneld)(\.exe)?[)"']*$`)

// programOf says which component a word calls.
func programOf(w string) (program string, exe bool) {
	m := programWord.FindStringSubmatch(strings.TrimSpace(w))
	if m == nil || strings.Contains(m[1], "--") {
		return "", false
	}
	return strings.ToLower(m[2]), m[3] != ""
}

// forLinux reports whether a program's path is one of Linux.
func forLinux(path string, exe bool, d dialect) bool {
	if exe || strings.ContainsAny(path, `\$%`) || len(path) > 1 && path[1] == ':' {
		return false
	}
	return strings.HasPrefix(path, "/") || d == shell
}

// booleans are the flags that take no value when nothing follows
// (kubernetes/kubernetes cmd/kubelet/app/options, cmd/kube-proxy/app, flannel-io/flannel main.go).
var booleans = map[string]bool{}

func init() {
	for name := range strings.FieldsSeq(`
		allow-privileged alsologtostderr anonymous-auth authentication-token-webhook bind-address-hard-fail cgroups-per-qos cleanup
		cleanup-iptables cleanup-ipvs containerized contention-profiling cpu-cfs-quota enable-controller-attach-detach
		enable-cadvisor-json-endpoints enable-custom-metrics enable-debugging-handlers enable-dsr enable-server exit-on-lock-contention
		experimental-allocatable-ignore-eviction experimental-check-node-capabilities-before-mount experimental-kernel-memcg-notification
		fail-swap-on fail-cgroupv1 forward-healthcheck-vip help init-only ip-masq iptables-forward-rules ipvs-strict-arp
		keep-terminated-pod-volumes kernel-memcg-notification kube-subnet-mgr local-storage-capacity-isolation logtostderr
		make-iptables-util-chains masquerade-all one-output profiling protect-kernel-defaults really-crash-for-testing register-node
		register-schedulable rotate-certificates rotate-server-certificates runonce seccomp-default serialize-image-pulls service
		skip-headers skip-log-headers version windows-service iptables-localhost-nodeports conntrack-tcp-be-liberal feature-gates-help`) {
		booleans["--"+name] = true
	}
}

// A flag begins with one or two dashes; PowerShell's own parameters have a
// capital letter.
var flagWord = lazyregexp.New(`^--?[a-z][A-Za-z0-9._-]*(=|$)`)

// glue finds a flag that begins in the middle of a value.
var glue = lazyregexp.New(`[^\s,;=]--([a-z][a-z-]+[a-z])(=|$)`)

// arguments reads flags out of words.
func arguments(words []word) []arg {
	var args []arg
	for i := 0; i < len(words); i++ {
		w := words[i]
		if !flagWord.MatchString(w.text) {
			args = append(args, arg{text: w.text, at: w.at})
			continue
		}
		a := arg{text: w.text, at: w.at}
		a.name, a.value, a.hasValue = strings.Cut(w.text, "=")
		if !strings.HasPrefix(a.name, "--") {
			a.name = "-" + a.name
		}
		if !a.hasValue && !booleans[a.name] && i+1 < len(words) && !strings.HasPrefix(words[i+1].text, "-") && words[i+1].mark == 0 {
			i++
			a.value, a.hasValue = words[i].text, true
			a.text += " " + a.value
		}
		a.value = unquoteArg(a.value)
		args = append(args, a)
	}
	return args
}

// unquoteArg takes off the double quotes that reach the program's own parser
// (Windows' CommandLineToArgvW, which knows no single quotes).
func unquoteArg(s string) string {
	for _, q := range []string{`\"`, "`\"", `"`} {
		if len(s) >= 2*len(q) && strings.HasPrefix(s, q) && strings.HasSuffix(s, q) {
			return s[len(q) : len(s)-len(q)]
		}
	}
	return s
}

// build makes the subject of a command line.
func (c *commandLine) build(s *input, at int, env []envVar) *subject.Subject {
	line, column := s.lineAndColumn(at)
	root := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: line, Column: column}
	for i := range c.args {
		a := &c.args[i]
		line, column := s.lineAndColumn(a.at)
		a.node = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: a.text, Line: line, Column: column}
		if a.name == "" {
			continue
		}
		c.setFlag(root, a, a.name, a.value, a.hasValue, line, column)
	}
	for _, e := range env {
		line, column := s.lineAndColumn(e.at)
		put(root, "$"+e.name, e.value, line, column, line, column)
	}
	name := c.program
	if c.service != "" {
		name += " (" + c.manager + " service " + c.service + ")"
	}
	return &subject.Subject{On: c.program, Name: name, File: s.file, Root: root, Value: c}
}

// setFlag enters a flag; of two that are glued together both are entered, as
// they were meant.
func (c *commandLine) setFlag(root *yaml.Node, a *arg, name, value string, has bool, line, column int) {
	if m := glue.FindStringSubmatchIndex(value); has && m != nil && knownFlag(c.program, "--"+value[m[2]:m[3]]) {
		c.glued = append(c.glued, *a)
		rest, tail, tailHas := strings.Cut(value[m[2]-2:], "=")
		value = value[:m[2]-2]
		c.setFlag(root, a, rest, unquoteArg(tail), tailHas, line, column)
	}
	if !has {
		value = "true"
	}
	put(root, name, value, line, column, line, column)
}

// Arguments makes a subject of a program and its arguments where another reader
// has them already, such as the args of a container. It returns nil when the
// program is not kubelet, kube-proxy or flanneld.
func Arguments(file string, command []*yaml.Node) *subject.Subject {
	i := slices.IndexFunc(command, func(n *yaml.Node) bool { p, _ := programOf(strict.Text(n)); return p != "" })
	if i < 0 {
		return nil
	}
	program, exe := programOf(strict.Text(command[i]))
	if forLinux(strict.Text(command[i]), exe, shell) {
		return nil
	}
	c := &commandLine{program: program, path: strict.Text(command[i]), inPod: true}
	root := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: command[i].Line, Column: command[i].Column}
	var words []word
	for j, n := range command[i+1:] {
		words = append(words, word{text: strict.Text(n), at: j})
	}
	c.args = arguments(words)
	for k := range c.args {
		a := &c.args[k]
		a.node = command[i+1+a.at]
		if a.name != "" {
			c.setFlag(root, a, a.name, a.value, a.hasValue, a.node.Line, a.node.Column)
		}
	}
	return &subject.Subject{On: program, Name: program, File: file, Root: root, Value: c}
}
