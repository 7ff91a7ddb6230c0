package labfile

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/internal/strict"
)

// StepManifests are the objects that a step applies: those of its files, then those
// written in it.
func (f *File) StepManifests(step int) (*Manifests, error) {
	m := &Manifests{}
	var found strict.Mistakes
	s := f.Lab.Spec.Steps[step]
	for _, name := range s.Apply {
		found = append(found, m.read(f.PathOf(name), f.Shown(f.PathOf(name)))...)
	}
	for _, t := range s.Texts {
		found = append(found, m.readText(t.Name, t.Data)...)
	}
	for i, o := range s.Objects {
		at := f.Origin("", "spec", "steps", step, "objects", i)
		doc, err := yaml.Marshal(o)
		if err == nil {
			err = m.add(at.File, at.Line, doc)
		}
		if err != nil {
			found = append(found, strict.Mistake{File: at.File, Line: at.Line, Column: 1, Message: err.Error()})
		}
	}
	m.daemons(f.Lab.Spec.Nodes)
	return m, found.AsError()
}

// steps reports names in a step that do not exist. Names of pods and Services of all
// steps are known at each: whether one is there at its time is seen when the step is
// done.
func (v *validator) steps(s *Spec) {
	names := map[string]bool{Start: true}
	for i, t := range s.Steps {
		at := p("steps", i)
		switch {
		case t.Name == "" || names[t.Name]:
			v.add(at, "a step needs a name of its own; %q is empty or taken (%s is the time before the first step)", t.Name, Start)
		case strings.ContainsAny(t.Name, "\n\t"):
			v.add(sub(at, "name"), "a step's name is one line")
		}
		names[t.Name] = true
		if _, err := ParseWait(t.Wait); err != nil {
			v.add(sub(at, "wait"), "%v", err)
		}
		v.links(sub(at, "links"), t.Links, s)
		v.programs(sub(at, "stop"), t.Stop, ProgramKubeProxy)
		v.programs(sub(at, "restart"), t.Restart, ProgramHNS, ProgramKubeProxy, ProgramNode)
		for j, d := range t.Delete {
			v.deleted(sub(at, "delete", j), d)
		}
		v.applied(at, t)
		v.stepPods(sub(at, "pods"), t.Pods, s)
		v.calls(sub(at, "hns"), t.HNS)
		v.flows(sub(at, "flows"), t.Flows)
		for j, fl := range t.Flows {
			if fl.At != "" {
				v.add(sub(at, "flows", j, "at"), "a flow of a step is evaluated after that step; leave at out")
			}
		}
	}
	for i, fl := range s.Flows {
		if fl.At != "" && !names[fl.At] {
			v.add(p("flows", i, "at"), "there is no step %q%s", fl.At, strict.DidYouMean(fl.At, append([]string{Start}, s.StepNames()...)))
		}
	}
}

// programs complains about programs of nodes that a step cannot stop or restart.
func (v *validator) programs(path []any, texts []string, known ...string) {
	for i, text := range texts {
		program, node, err := ParseProgram(text)
		if err != nil {
			v.add(sub(path, i), "%v", err)
			continue
		}
		v.oneOf(sub(path, i), "program", program, known)
		v.oneOf(sub(path, i), "node", node, v.lab.Spec.nodeNames())
	}
}

func (v *validator) deleted(path []any, text string) {
	t, err := ParseTarget(text)
	if err == nil && (t.Kind != PodTarget && t.Kind != ServiceTarget || t.Port != 0) {
		err = fmt.Errorf("%s cannot be deleted; write pod/NAME or svc/NAME", text)
	}
	if err != nil {
		v.add(path, "%v", err)
		return
	}
	v.target(path, text)
}

func (v *validator) applied(at []any, t Step) {
	for j, name := range t.Apply {
		if info, err := os.Stat(v.of.PathOf(name)); err != nil || info.IsDir() {
			v.add(sub(at, "apply", j), "%s: there is no such file; write the path of a file with manifests, relative to the lab file", name)
		}
	}
	for j, o := range t.Objects {
		if o["kind"] == nil || o["apiVersion"] == nil {
			v.add(sub(at, "objects", j), "an object is written as in a manifest, with apiVersion and kind")
		}
	}
}

func (v *validator) stepPods(path []any, pods []Pod, s *Spec) {
	seen := map[string]bool{}
	for i, pod := range pods {
		at := sub(path, i)
		if pod.Name == "" || seen[podKey(pod)] {
			v.add(at, "a pod needs a name of its own in a step; %q is empty or taken", pod.Name)
		}
		seen[podKey(pod)] = true
		if pod.Late {
			v.add(sub(at, "late"), "late is for the pods of the lab; a pod of a step is created at that step")
		}
		if pod.Node != "" {
			v.oneOf(sub(at, "node"), "node", pod.Node, s.nodeNames())
		}
		if pod.Address != "" {
			v.addr(sub(at, "address"), pod.Address)
			v.podAddress(sub(at, "address"), pod, s)
		}
		v.listen(sub(at, "listen"), pod.Listen)
		for j, h := range pod.HostPorts {
			if _, err := ParseHostPort(h); err != nil {
				v.add(sub(at, "hostPorts", j), "%v", err)
			}
		}
		v.run(sub(at, "run"), pod, s)
	}
}

// connections reports flows of connections that were not opened, and fields that only a
// flow of a connection can have.
func (v *validator) connections(s *Spec) {
	opened := map[string]string{}
	each := func(step string) {
		for i, f := range s.Flows {
			if f.At == step || step == Start && f.At == "" {
				v.connection(p("flows", i), f, opened)
			}
		}
	}
	each(Start)
	for i, t := range s.Steps {
		each(t.Name)
		for j, f := range t.Flows {
			v.connection(p("steps", i, "flows", j), f, opened)
		}
	}
}

// connection complains about one flow, given the connections that flows before it
// have opened with their protocols, and notes its own.
func (v *validator) connection(path []any, f Flow, opened map[string]string) {
	if f.Connection == "" {
		if f.Send != "" || f.By != "" {
			v.add(path, "send and by are for a flow of a connection; write connection: NAME")
		}
		return
	}
	if f.Resolve != "" || f.Connections > 1 || f.Idle != "" || len(f.Meanwhile) > 0 {
		v.add(path, "a flow of a connection cannot have resolve, connections, idle or meanwhile; time and calls are steps of their own")
	} else {
		v.opening(path, f, opened[f.Connection] != "")
	}
	if opened[f.Connection] == "" {
		opened[f.Connection] = cmp.Or(f.Protocol, "tcp")
	}
	if opened[f.Connection] == "udp" {
		v.datagrams(path, f)
	}
	if f.Send != "" {
		v.oneOf(sub(path, "send"), "segment to send", f.Send, []string{SendData, SendFin, SendReset})
	}
	if f.By != "" {
		v.oneOf(sub(path, "by"), "sender", f.By, []string{ByServer})
	}
}

// datagrams complains about what only a TCP connection has.
func (v *validator) datagrams(path []any, f Flow) {
	if f.By == ByServer {
		v.add(sub(path, "by"),
			"by: server is for TCP: a UDP program here answers each datagram and keeps no connection to send on; write a separate flow from the other end, with sourcePort set to the port that it serves")
	}
	if f.Send == SendFin || f.Send == SendReset {
		v.add(sub(path, "send"), "%s is a segment of TCP, and the connection %s is UDP", f.Send, f.Connection)
	}
}

// opening complains about the first flow of a connection that does not open it,
// and about later ones that would open it again.
func (v *validator) opening(path []any, f Flow, opened bool) {
	switch {
	case !opened && (f.From == "" || f.To == ""):
		v.add(path, "no flow before this one opens the connection %s; the first one needs from and to", f.Connection)
	case !opened && (f.Send != "" || f.By != ""):
		v.add(path, "the first flow of the connection %s opens it; send and by are for later ones", f.Connection)
	case !opened && strings.HasPrefix(f.To, string(NameTarget)+"/"):
		v.add(path, "a connection goes to an address; write the Service, pod, node or host instead of its name")
	case !opened && f.Protocol == "ping":
		v.add(path, "a connection is tcp or udp; a ping is a flow of its own each time")
	case opened && (f.From != "" || f.To != "" || f.Protocol != "" || f.Family != "" || f.SourcePort != 0):
		v.add(path, "the connection %s is already open; leave from, to, protocol and sourcePort out, or use another name for another connection",
			f.Connection)
	}
}

// namesOfSteps adds the pods and Services that steps bring.
func (f *File) namesOfSteps(m map[string][]string) {
	add := func(kind, name string) {
		if !slices.Contains(m[kind], name) {
			m[kind] = append(m[kind], name)
		}
	}
	for i, t := range f.Lab.Spec.Steps {
		for _, pod := range t.Pods {
			add("pod", podKey(pod))
		}
		man, err := f.StepManifests(i)
		if err != nil {
			continue // reported with the manifest's own lines when the plan is made
		}
		for _, w := range man.Workloads {
			add("pod", w.Namespace+"/"+w.Name)
		}
		for _, sv := range man.Services {
			add("svc", sv.Key())
		}
	}
}
