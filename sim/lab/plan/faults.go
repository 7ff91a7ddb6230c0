package plan

import (
	"net/netip"
	"regexp"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Fault breaks the rules of a pod's port; one of Drop, Keep and Add is set.
type Fault struct {
	// Pod is "namespace/name", or Port a port of the node itself.
	Pod, Port string
	// Drop and Keep match names of rules: those that are taken away, and those that stay
	// when HNS no longer asks for them.
	Drop, Keep *regexp.Regexp
	Add        *ExtraRule
	// field and text are what the lab says.
	field, text string
}

// Field is the field of the lab that says what the fault does, and its text.
func (f Fault) Field() (field, text string) { return f.field, f.text }

// On names the port.
func (f Fault) On() string {
	if f.Pod != "" {
		return "pod " + f.Pod
	}
	return "the node (" + f.Port + ")"
}

// ExtraRule is a rule that no object of HNS asks for. A prefix that is not valid and
// ports of 0 match all.
type ExtraRule struct {
	Name, Layer        string
	In                 bool // to the pod
	Priority           uint16
	Proto              packet.Proto // 0: all
	From, To           netip.Prefix
	FromPorts, ToPorts [2]uint16
	// Action is one of [spec.FaultActions]; SetSource and SetDestination are what nat
	// puts into the packet, with port 0 for the packet's own.
	Action                    string
	SetSource, SetDestination netip.AddrPort
	Origin                    *trace.Origin
}

// newFault reads fault j of node i.
func newFault(r *reader, file *labfile.File, i, j int, in labfile.Fault) Fault {
	f := Fault{Port: in.Port}
	if in.Pod != "" {
		f.Pod = PodKey(in.Pod)
	}
	for _, x := range []struct {
		field, text string
		to          **regexp.Regexp
	}{{"dropRules", in.DropRules, &f.Drop}, {"keepRules", in.KeepRules, &f.Keep}} {
		if x.text != "" {
			re, err := regexp.Compile("^(?:" + x.text + ")$")
			r.note(err)
			*x.to, f.field, f.text = re, x.field, x.text
		}
	}
	if in.AddRule != nil {
		f.Add = extraRule(r, in.AddRule)
		f.Add.Origin = file.Origin("rule that a fault of the lab adds", "spec", "nodes", i, "faults", j, "addRule")
		f.field, f.text = "addRule", f.Add.Name+" in "+f.Add.Layer
	}
	return f
}

func extraRule(r *reader, in *labfile.FaultRule) *ExtraRule {
	x := &ExtraRule{Name: in.Name, Layer: in.Layer, In: in.Direction == "in", Priority: in.Priority, From: r.prefix(in.From),
		To: r.prefix(in.To), Action: in.Action}
	if x.Name == "" {
		x.Name = "(extra rule)"
	}
	var err error
	x.Proto, err = labfile.ParseProtocol(in.Protocol)
	r.note(err)
	x.FromPorts[0], x.FromPorts[1], err = labfile.ParsePorts(in.FromPorts)
	r.note(err)
	x.ToPorts[0], x.ToPorts[1], err = labfile.ParsePorts(in.ToPorts)
	r.note(err)
	x.SetSource, err = labfile.ParseAddressPort(in.SetSource)
	r.note(err)
	x.SetDestination, err = labfile.ParseAddressPort(in.SetDestination)
	r.note(err)
	return x
}
