package observed

import (
	"github.com/winlab-dev/winlab/internal/lazyregexp"
	"github.com/winlab-dev/winlab/sim/windows/dump"

	"net/netip"
	"strings"

	"gopkg.in/yaml.v3"
)

// kubectlRow takes a row of kubectl get nodes or kubectl get pods.
func (r *reader) kubectlRow(o *yaml.Node) bool {
	switch {
	case dump.Has(o, "NAME", "STATUS", "ROLES", "VERSION"):
		m := Machine{Name: dump.Str(o, "NAME"), Version: dump.Str(o, "VERSION"), OSImage: dump.Str(o, "OS-IMAGE"),
			Kernel: dump.Str(o, "KERNEL-VERSION"), Runtime: dump.Str(o, "CONTAINER-RUNTIME"), Place: r.placeOf(o.Line)}
		status, _, _ := strings.Cut(dump.Str(o, "STATUS"), ",")
		switch status {
		case "Ready":
			m.Ready = "True"
		case "NotReady":
			m.Ready = "False"
		}
		if a := dump.Addr(dump.Str(o, "INTERNAL-IP")); a.IsValid() {
			m.Addresses = []netip.Addr{a}
		}
		if m.OSImage != "" {
			m.OS = "linux"
			if strings.Contains(m.OSImage, "Windows") {
				m.OS = "windows"
			}
		}
		r.machine(m)
	case dump.Has(o, "NAME", "READY", "STATUS", "RESTARTS"):
		p := Pod{Namespace: dump.Str(o, "NAMESPACE"), name: dump.Str(o, "NAME"), ready: dump.Str(o, "READY"), Status: dump.Str(o, "STATUS"),
			Node: dump.Str(o, "NODE"), address: dump.Addr(dump.Str(o, "IP")), Place: r.placeOf(o.Line)}
		r.node.list(listPods, p.Place)
		r.node.Pods = append(r.node.Pods, p)
		r.addKind(listPods)
	default:
		return false
	}
	return true
}

// AddMachine adds a node of the cluster that another file than the node's own shows.
func (n *Node) AddMachine(m Machine) {
	n.list(listMachines, m.Place)
	n.Machines = append(n.Machines, m)
}

func (r *reader) machine(m Machine) {
	r.node.list(listMachines, m.Place)
	r.node.Machines = append(r.node.Machines, m)
	r.addKind(listMachines)
}

// kubeObject takes Node and Pod objects, alone or in lists.
func (r *reader) kubeObject(o *yaml.Node) bool {
	kind := dump.Str(o, "kind")
	switch {
	case strings.HasSuffix(kind, "List") && dump.Has(o, "items", "apiVersion"):
		for _, e := range dump.Items(dump.Child(o, "items")) {
			r.kubeObject(e)
		}
		return true
	case kind == "Node" && dump.Has(o, "metadata"):
		r.machine(r.machineObject(o))
		return true
	case kind == "Pod" && dump.Has(o, "metadata"):
		meta, spec, status := dump.Child(o, "metadata"), dump.Child(o, "spec"), dump.Child(o, "status")
		p := Pod{Namespace: dump.Str(meta, "namespace"), name: dump.Str(meta, "name"), Node: dump.Str(spec, "nodeName"),
			Status: dump.Str(status, "phase"), address: dump.Addr(dump.Str(status, "podIP")), Place: r.placeOf(o.Line)}
		for _, c := range dump.Items(dump.Child(status, "containerStatuses")) {
			if reason := dump.Str(dump.Child(dump.Child(c, "state"), "waiting"), "reason"); reason != "" {
				p.Status = reason
			}
		}
		if n := dump.Child(meta, "name"); n != nil {
			p.Place = r.placeOf(n.Line)
		}
		r.node.list(listPods, p.Place)
		r.node.Pods = append(r.node.Pods, p)
		r.addKind(listPods)
		return true
	}
	return false
}

func (r *reader) machineObject(o *yaml.Node) Machine {
	meta, spec, status := dump.Child(o, "metadata"), dump.Child(o, "spec"), dump.Child(o, "status")
	info := dump.Child(status, "nodeInfo")
	m := Machine{Name: dump.Str(meta, "name"), Version: dump.Str(info, "kubeletVersion"), OS: dump.Str(info, "operatingSystem"),
		OSImage: dump.Str(info, "osImage"),
		Kernel:  dump.Str(info, "kernelVersion"), Runtime: dump.Str(info, "containerRuntimeVersion"), Place: r.placeOf(o.Line)}
	if n := dump.Child(meta, "name"); n != nil {
		m.Place = r.placeOf(n.Line)
	}
	for _, c := range dump.Items(dump.Child(status, "conditions")) {
		if dump.Str(c, "type") == "Ready" {
			m.Ready, m.Reason = dump.Str(c, "status"), dump.Str(c, "message")
		}
	}
	for _, a := range dump.Items(dump.Child(status, "addresses")) {
		if v := dump.Addr(dump.Str(a, "address")); v.IsValid() {
			m.Addresses = append(m.Addresses, v)
		}
	}
	for _, c := range append(dump.Items(dump.Child(spec, "podCIDRs")), dump.Items(dump.Child(spec, "podCIDR"))...) {
		if p := dump.Prefix(c.Value); p.IsValid() && (len(m.PodCIDRs) == 0 || m.PodCIDRs[0] != p) {
			m.PodCIDRs = append(m.PodCIDRs, p)
		}
	}
	return m
}

var (
	describeField = lazyregexp.New(`^( *)([A-Z][A-Za-z ]*?):\s*(.*?)\s*$`)
	readyRow      = lazyregexp.New(`^\s+Ready\s+(True|False|Unknown)\s+(.*)$`)
)

// describe reads kubectl describe node and kubectl describe pod.
func (r *reader) describe(l dump.Lines) {
	var d *described
	for i, text := range l.Text {
		if row := readyRow.FindStringSubmatch(text); row != nil && d != nil && d.node.Ready == "" {
			d.node.Ready, d.node.Reason = row[1], dump.Clip(row[2])
			continue
		}
		f := describeField.FindStringSubmatch(text)
		if f == nil {
			continue
		}
		indented, key, value := f[1] != "", f[2], f[3]
		switch {
		case !indented && key == "Name":
			r.described(d)
			d = &described{node: Machine{Name: value, Place: l.Place(i)}, pod: Pod{name: value, Place: l.Place(i)}}
		case d != nil && !d.podField(indented, key, value):
			d.nodeField(key, value)
		}
	}
	r.described(d)
}

// described is what one object is that kubectl describes: its fields show whether it is
// a node or a pod.
type described struct {
	node Machine
	pod  Pod
}

// described takes an object that was read to its end.
func (r *reader) described(d *described) {
	if d == nil {
		return
	}
	if d.node.Version != "" || d.node.Ready != "" {
		r.machine(d.node)
	}
	if d.pod.Namespace != "" {
		r.node.list(listPods, d.pod.Place)
		r.node.Pods = append(r.node.Pods, d.pod)
		r.addKind(listPods)
	}
}

// waits reports whether a reason says why a container does not run.
func waits(reason string) bool {
	return reason == "ContainerCreating" || reason == "CrashLoopBackOff" || reason == "ImagePullBackOff" ||
		strings.HasPrefix(reason, "ErrImage")
}

// podField reads a field that pods have.
func (d *described) podField(indented bool, key, value string) bool {
	if indented {
		if key != "Reason" || d.pod.Namespace == "" || !waits(value) {
			return false
		}
		d.pod.Status = value
		return true
	}
	switch key {
	case "Namespace":
		d.pod.Namespace = value
	case "Node":
		d.pod.Node, _, _ = strings.Cut(value, "/")
	case "Status":
		d.pod.Status = value
	case "IP":
		d.pod.address = dump.Addr(value)
	default:
		return false
	}
	return true
}

// nodeField reads a field that nodes have.
func (d *described) nodeField(key, value string) {
	m := &d.node
	switch key {
	case "Kubelet Version":
		m.Version = value
	case "Kernel Version":
		m.Kernel = value
	case "OS Image":
		m.OSImage = value
	case "Operating System":
		m.OS = value
	case "Container Runtime Version":
		m.Runtime = value
	case "PodCIDR", "PodCIDRs":
		if c := dump.Prefix(value); c.IsValid() && len(m.PodCIDRs) == 0 {
			m.PodCIDRs = append(m.PodCIDRs, c)
		}
	case "InternalIP":
		if a := dump.Addr(value); a.IsValid() {
			m.Addresses = append(m.Addresses, a)
		}
	}
}
