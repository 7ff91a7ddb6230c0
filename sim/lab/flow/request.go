package flow

import (
	"cmp"

	"github.com/winlab-dev/winlab/sim/lab/labfile"
)

// ends are the two ends of a flow. They are read once, where a request comes in; text is
// for messages and commands only.
type ends struct{ from, to labfile.Target }

// readEnds reads the ends of a flow as a user writes them.
func readEnds(from, to string) (e ends, err error) {
	if e.from, err = labfile.ParseTarget(from); err != nil {
		return e, err
	}
	e.to, err = labfile.ParseTarget(to)
	return e, err
}

// request is a Request whose ends were read.
type request struct {
	Request
	ends
}

func (r Request) read() (request, error) {
	r.Protocol = cmp.Or(r.Protocol, "tcp")
	e, err := readEnds(r.From, r.To)
	return request{r, e}, err
}

// requestOf is the request that a flow of a lab file makes, with the ends, the protocol,
// the family and the source port.
func requestOf(f labfile.Flow) Request {
	return Request{From: f.From, To: f.To, Protocol: f.Protocol, IPv6: f.Family == labfile.FamilyIPv6, SrcPort: f.SourcePort}
}
