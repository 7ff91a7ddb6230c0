package hns

import (
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// dispute is a refusal for which sources name different codes. That HNS refuses is
// no question; the code is one, which a lab can pin.
type dispute struct {
	question *evidence.Question
	// codes are those of the question's answers, in their order, and where each was read.
	codes   []*Error
	sources []string
}

// Disputed is an error code that this HNS has given and that is another one in another
// source.
type Disputed struct {
	Question *evidence.Question
	// Err is the error as the caller got it.
	Err *Error
}

var (
	takenFrontend = dispute{evidence.NewQuestion("hns-code-taken-frontend",
		evidence.NewParam("hns-code-taken-frontend", "hns.taken-frontend-code", evidence.Unknown,
			"Which code HNS returns when it refuses a load balancer whose frontend is taken: a log shows 0xb7; kube-proxy 1.37 expects 0xb7 or 0x803b0013 and treats both alike; earlier versions treat every code alike.",
			"kubernetes/kubernetes issue 139519", "kubernetes/kubernetes v1.37.0 pkg/proxy/winkernel/hns.go:79 (IsPolicyAlreadyExists)"),
		evidence.Answer{Value: "0xb7", Means: "HNS refuses a taken frontend with 0xb7"},
		evidence.Answer{Value: "0x803b0013", Means: "HNS refuses a taken frontend with 0x803b0013"}),
		[]*Error{ErrAlreadyExists, ErrPortAlreadyExists},
		[]string{"kubernetes/kubernetes issue 139519", "kubernetes/kubernetes v1.37.0 pkg/proxy/winkernel/hns.go"}}
	takenHostPort = dispute{evidence.NewQuestion("hns-code-taken-host-port",
		evidence.NewParam("hns-code-taken-host-port", "hns.taken-host-port-code", evidence.Unknown,
			"Which code HNS returns when it refuses a node port that another endpoint of a nat network publishes: hcsshim's test has 0x803b0013, on an overlay network; Docker's users report 0x20 on nat.",
			"microsoft/hcsshim hcn/hcnerrors_test.go (TestEndpointAlreadyExistsError)", "docker/for-win issue 3893"),
		evidence.Answer{Value: "0x803b0013", Means: "HNS refuses a taken port of the node with 0x803b0013"},
		evidence.Answer{Value: "0x20", Means: "HNS refuses a taken port of the node with 0x20"}),
		[]*Error{ErrPortAlreadyExists, ErrSharingViolation},
		[]string{"microsoft/hcsshim hcn/hcnerrors_test.go", "docker/for-win issue 3893"}}
)

// code is the error of a refusal: the pinned one, or the first with the others beside it.
func (s *Service) code(d dispute) *Error {
	if v, ok := s.opts.Pinned[d.question.Param]; ok {
		if i := slices.Index(d.question.Values(), v); i >= 0 {
			return d.codes[i]
		}
	}
	c := *d.codes[0]
	c.Or, c.Question = d.codes[1:], d.question
	c.disagree = ", sources disagree: " + strings.Join(d.sources, ", ")
	return &c
}

// refusal is the error of a call with mistakes, nil for none. It notes a disputed code.
func (s *Service) refusal(m *mistakes, op string) error {
	err := m.err(op)
	if err == nil {
		return nil
	}
	if m.first.Question != nil && !slices.ContainsFunc(s.disputed, func(o Disputed) bool { return o.Question == m.first.Question }) {
		s.disputed = append(s.disputed, Disputed{m.first.Question, m.first.forCall(op, m.texts...)})
	}
	return err
}

// Disputed returns the disputed codes that were given, the first of each question.
func (s *Service) Disputed() []Disputed { return slices.Clone(s.disputed) }
