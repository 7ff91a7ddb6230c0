package hns

import (
	"errors"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// Where sources name two codes for one refusal the error says both and is either of them;
// a pinned code is the only one.
func TestDisputedCode(t *testing.T) {
	for _, c := range []struct {
		pin       string
		is, isNot *Error
		says      string
		disputed  int
	}{
		{"", ErrAlreadyExists, ErrInvalidParam,
			"already exists. (0xb7 or 0x803b0013, sources disagree: kubernetes/kubernetes issue 139519, kubernetes/kubernetes v1.37.0 ", 1},
		{"", ErrPortAlreadyExists, ErrOutOfMemory, ": 10.96.0.1 port 80 protocol 6 belongs to load balancer ", 1},
		{"0xb7", ErrAlreadyExists, ErrPortAlreadyExists, "already exists. (0xb7): 10.96.0.1 port 80", 0},
		{"0x803b0013", ErrPortAlreadyExists, ErrAlreadyExists, "port already exists. (0x803b0013): 10.96.0.1 port 80", 0},
	} {
		s, _, e := bridge(t, "2022")
		if c.pin != "" {
			s.opts.Pinned = map[string]string{"hns-code-taken-frontend": c.pin}
		}
		if _, err := s.CreateLoadBalancer(tcp("10.96.0.1", 80, 0, e.ID)); err != nil || len(s.Disputed()) != 0 {
			t.Fatal(err, s.Disputed())
		}
		for range 2 {
			_, err := s.CreateLoadBalancer(tcp("10.96.0.1", 80, 0, e.ID))
			if !errors.Is(err, c.is) || errors.Is(err, c.isNot) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("pinned %q: %v, want %s and not %s, with %q", c.pin, err, c.is.Name, c.isNot.Name, c.says)
			}
		}
		if len(s.Disputed()) != c.disputed {
			t.Errorf("pinned %q: %d disputed, want %d", c.pin, len(s.Disputed()), c.disputed)
		}
	}
}

// A disputed mistake behind one of which sources agree disputes nothing.
func TestDisputedCodeBehindAnother(t *testing.T) {
	s, _, e := bridge(t, "2022")
	if _, err := s.CreateLoadBalancer(tcp("10.96.0.1", 80, 0, e.ID)); err != nil {
		t.Fatal(err)
	}
	bad := tcp("10.96.0.1", 80, 0, e.ID)
	bad.PortMappings[0].InternalPort = 0
	_, err := s.CreateLoadBalancer(bad)
	if !errors.Is(err, ErrInvalidParam) || errors.Is(err, ErrAlreadyExists) || len(s.Disputed()) != 0 ||
		!strings.Contains(err.Error(), "belongs to") {
		t.Errorf("%v, disputed %v", err, s.Disputed())
	}
}

// On a nat network the code of a published port that is taken is disputed, elsewhere not.
func TestTakenHostPort(t *testing.T) {
	for network, disputed := range map[NetworkType]bool{NAT: true, L2Bridge: false} {
		s := newService(t, "2022")
		n, err := s.CreateNetwork(Network{Name: "n", Type: network, Ipams: subnets("10.244.1.0/24")})
		if err != nil {
			t.Fatal(err)
		}
		port := ParsePolicy(PolicyPortMapping, []byte(`{"Protocol":6,"InternalPort":80,"ExternalPort":8080}`))
		if _, err := s.CreateEndpoint(Endpoint{HostComputeNetwork: n.ID, Policies: []Policy{port}}); err != nil {
			t.Fatal(err)
		}
		_, err = s.CreateEndpoint(Endpoint{HostComputeNetwork: n.ID, Policies: []Policy{port}})
		if !errors.Is(err, ErrPortAlreadyExists) || errors.Is(err, ErrSharingViolation) != disputed || (len(s.Disputed()) > 0) != disputed {
			t.Errorf("%s: %v, disputed %v", network, err, s.Disputed())
		}
	}
}

// The codes of a dispute are the answers of its question, and each has its source.
func TestDisputes(t *testing.T) {
	for _, d := range []dispute{takenFrontend, takenHostPort} {
		if len(d.codes) != len(d.question.Answers) || len(d.sources) != len(d.codes) || evidence.QuestionOf(d.question.Param) != d.question {
			t.Fatalf("%s: %d codes, %d answers, %d sources", d.question.Param, len(d.codes), len(d.question.Answers), len(d.sources))
		}
		for i, v := range d.question.Values() {
			if got := (&Service{opts: Options{Pinned: map[string]string{d.question.Param: v}}}).code(d); got.Code != d.codes[i].Code ||
				len(got.Or) != 0 || !strings.Contains(got.Error(), "("+v+")") {
				t.Errorf("%s pinned to %s: %v", d.question.Param, v, got)
			}
		}
	}
}
