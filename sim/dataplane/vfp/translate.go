package vfp

import (
	"fmt"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
)

// translate picks a backend and a source for lbnat and dynnat rules. c is the
// connection that will hold the source port, nil in a stateless layer. The text
// is made only for a recorder.
func (pt *Port) translate(r *Rule, h *packet.Headers, c *conn, env *Env) (rw packet.Rewrite, text string, fail trace.Reason) {
	text = "source translated"
	if r.Type == LBNAT {
		n := len(r.Targets)
		if n == 0 {
			return rw, "the load balancer has no backend here", trace.NoBackend
		}
		pick := r.pick(h, env)
		t := &r.Targets[pick]
		if !r.KeepDst {
			rw.Set |= packet.RwDst | packet.RwDstPort
			rw.Dst, rw.DstPort = t.Addr, t.Port
		}
		if !t.MAC.IsZero() {
			rw.Set |= packet.RwEthDst
			rw.EthDst = t.MAC
			if r.Hairpin {
				rw.Set |= packet.RwEthSrc
				rw.EthSrc = pt.MAC
			}
		}
		if env.Rec.On() {
			text = fmt.Sprintf("backend %d of %d", pick+1, n)
			if r.KeepDst {
				text += fmt.Sprintf(" is %s, destination kept", t)
			}
		}
	}
	if r.Pool == nil {
		return rw, text, ""
	}
	if c == nil {
		// Nobody would undo the translation or give the port back.
		c = &conn{dead: true}
	}
	port, ok := r.Pool.bind(h.Proto, c, env.Now)
	if !ok {
		return rw, "no free port in pool " + r.Pool.Name, trace.NoFreePort
	}
	if pt.sw != nil {
		pt.sw.bindings[binding{r.Pool.Addr, h.Proto, port}] = pt
	}
	rw.Set |= packet.RwSrc | packet.RwSrcPort
	rw.Src, rw.SrcPort = r.Pool.Addr, port
	return rw, text, ""
}

// pick chooses the target of a new flow.
func (r *Rule) pick(h *packet.Headers, env *Env) int {
	n := len(r.Targets)
	if n == 1 {
		return 0
	}
	def := int(hash(h, r.BySource) % uint32(n))
	if env.Choose == nil {
		return def
	}
	return env.Choose(r.ID, n, def, func(i int) string { return r.Targets[i].String() })
}

// hash spreads flows over backends. The real hash is not published; winlab
// shows every admissible pick and uses this one (FNV-1a) where it must take
// just one.
func hash(h *packet.Headers, bySource bool) uint32 {
	x := uint32(2166136261)
	x = mix16(x, h.Src.As16())
	if bySource {
		return x
	}
	x = mix16(x, h.Dst.As16())
	for _, b := range [...]byte{byte(h.SrcPort >> 8), byte(h.SrcPort), byte(h.DstPort >> 8), byte(h.DstPort), byte(h.Proto)} {
		x = (x ^ uint32(b)) * fnvPrime
	}
	return x
}

const fnvPrime = 16777619

func mix16(x uint32, bs [16]byte) uint32 {
	for _, b := range bs {
		x = (x ^ uint32(b)) * fnvPrime
	}
	return x
}
