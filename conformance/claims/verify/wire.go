package verify

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
)

// frame is one frame as it left a machine.
type frame struct {
	from string // "win1 Ethernet"
	data []byte
}

// wire looks at the bytes of the request where it is on the wire.
func (ch *checker) wire(ctx context.Context, r *result.Check, k claims.Check) error {
	var frames []frame
	req := request(k.Wire.Flow)
	req.Tap = func(_, from string, data []byte) { frames = append(frames, frame{from, append([]byte(nil), data...)}) }
	t, err := ch.c.Trace(ctx, req)
	if err != nil {
		return err
	}
	r.Got, r.Reason, r.Grade, r.Trace, r.Command = string(t.Verdict), string(t.Reason), t.Grade, ch.job.keep(t), t.Command
	var left []byte
	for _, f := range frames {
		if strings.HasPrefix(f.from, t.Flow.Node+" ") {
			left = f.data
			break
		}
	}
	if k.Wire.At == "none" {
		r.Pass = left == nil
		r.Summary = "No frame left the node."
		if left != nil {
			r.Summary = "A frame left the node: " + describe(left) + "."
			r.Wanted, r.Came = "no frame leaves the node", "one does, "+describe(left)
		} else if t.Verdict != trace.Delivered && t.Verdict != trace.Unknown {
			r.NotChecked = "The flow fails on the node, so that no frame could leave it: " + t.Summary
		}
		return nil
	}
	if k.Wire.At == "pod" {
		return ch.atPods(r, k, t)
	}
	if left == nil {
		r.Pass, r.Summary = false, "No frame left the node."
		r.Wanted, r.Came = "a frame leaves the node", "none does ("+string(t.Verdict)+")"
		return nil
	}
	return ch.compare(r, k, t, left, "On the wire")
}

// atPods looks at the frame with which the request ends at a pod, on each way that it can
// take. Whether the pod has a use for it is another question.
func (ch *checker) atPods(r *result.Check, k claims.Check, t *trace.Trace) error {
	r.Pass = len(t.Paths) > 0
	for _, p := range t.Paths {
		a := p.Arrived
		if a == nil || !strings.HasPrefix(a.Object, "pod/") {
			r.Pass, r.Summary = false, "No frame reached a pod."
			r.Wanted, r.Came = "a frame reaches a pod", "none does ("+string(p.Verdict)+")"
		} else if err := ch.compare(r, k, t, a.Frame, "At "+a.Object); err != nil {
			return err
		}
		if !r.Pass {
			return nil
		}
	}
	return nil
}

// compare holds a frame against what its fields must be.
func (ch *checker) compare(r *result.Check, k claims.Check, t *trace.Trace, data []byte, where string) error {
	got, err := fields(data)
	if err != nil {
		return err
	}
	r.Pass, r.Summary = true, where+": "+describe(data)+"."
	var wrong, wanted, came []string
	for _, field := range slices.Sorted(maps.Keys(k.Wire.Frame)) {
		want, err := ch.value(field, k.Wire.Frame[field], t.Flow.Node)
		if err != nil {
			return err
		}
		if got[field] != want {
			wrong = append(wrong, fmt.Sprintf("%s is %s, should be %s", field, got[field], want))
			wanted, came = append(wanted, field+" "+want), append(came, field+" "+cmp.Or(got[field], "none"))
		}
	}
	if len(wrong) > 0 {
		r.Pass = false
		r.Summary = strings.Join(wrong, "; ") + ". " + r.Summary
		r.Wanted, r.Came = "a frame with "+strings.Join(wanted, ", "), strings.Join(came, ", ")
	}
	return nil
}

func describe(data []byte) string {
	p, err := packet.New(data)
	if err != nil {
		return err.Error()
	}
	return p.String()
}

// tunnels are the UDP ports by which a frame is taken for a tunnel packet.
var tunnels = map[uint16]packet.Tunnel{4789: packet.VXLAN, 8472: packet.VXLAN, 6081: packet.Geneve}

// fields reads the fields that a Wire check can name.
func fields(data []byte) (map[string]string, error) {
	p, err := packet.New(data)
	if err != nil {
		return nil, err
	}
	h := *p.Headers()
	m := map[string]string{
		"srcMAC": h.EthSrc.String(), "dstMAC": h.EthDst.String(), "src": h.Src.String(), "dst": h.Dst.String(),
		"tunnel": "none", "overhead": "0", "outerSrc": "", "outerDst": "", "udpPort": "", "vni": "",
	}
	kind, ok := tunnels[h.DstPort]
	if !ok || h.Proto != packet.UDP {
		return m, nil
	}
	outer, err := p.Decap(kind)
	if err != nil {
		return m, nil
	}
	in := p.Headers()
	m["src"], m["dst"] = in.Src.String(), in.Dst.String()
	m["outerSrc"], m["outerDst"] = outer.Src.String(), outer.Dst.String()
	m["udpPort"], m["vni"] = strconv.Itoa(int(outer.DstPort)), strconv.Itoa(int(outer.VNI))
	m["tunnel"] = strings.ToLower(kind.String())
	m["overhead"] = strconv.Itoa(len(data) - p.Len())
	return m, nil
}

// value turns what a claim writes into what a frame holds.
func (ch *checker) value(field, text, node string) (string, error) {
	who := text
	if text == "host" {
		who = "node/" + node
	}
	if !strings.Contains(who, "/") {
		return text, nil
	}
	if strings.HasSuffix(field, "MAC") {
		m, err := ch.c.MAC(who)
		return m.String(), err
	}
	a, err := ch.c.Address(who)
	return a.String(), err
}
