package verify

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/reports/result"
)

// suite has every lab, built. Building them takes a fraction of a second; what
// takes time are the packets, and those are sent when a test asks for them.
type suite struct {
	ledger  *claims.Ledger
	designs []*trial // the designs in each of their settings
	flows   []*trial // the labs with flows of their own, in each of their variants
}

// trial is one cluster in which claims or flows are tried, each once however
// many tests ask.
type trial struct {
	ch *checker

	mu    sync.Mutex
	cells map[string]result.Cell
	done  bool
}

var (
	theSuite = sync.OnceValues(newSuite)
	// theStatics are the checks that need no lab, by claim.
	theStatics = sync.OnceValues(func() (map[string][]result.Static, error) {
		s, err := theSuite()
		if err != nil {
			return nil, err
		}
		all, err := Statics(context.Background(), s.ledger, "../../../fixtures/nodes")
		byClaim := map[string][]result.Static{}
		for _, one := range all {
			byClaim[one.Claim] = append(byClaim[one.Claim], one)
		}
		return byClaim, err
	})
)

func newSuite() (*suite, error) {
	ledger, err := claims.Load()
	if err != nil {
		return nil, err
	}
	files, err := find([]string{"../../../fixtures"})
	if err != nil {
		return nil, err
	}
	jobs, err := plan(files, "")
	if err != nil {
		return nil, err
	}
	s := &suite{ledger: ledger}
	for _, j := range jobs {
		c, err := j.build(context.Background(), nil)
		if err != nil {
			return nil, err
		}
		j.traces, j.column, j.level = result.NewTraces(), column(c), result.Model
		one := &trial{ch: &checker{c: c, job: j, seen: map[string]seen{}}, cells: map[string]result.Cell{}}
		if j.claims {
			s.designs = append(s.designs, one)
		} else {
			s.flows = append(s.flows, one)
		}
	}
	return s, nil
}

func suiteOf(t *testing.T) *suite {
	t.Helper()
	s, err := theSuite()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// applies reports whether a claim has something to try here.
func (one *trial) applies(cl *claims.Claim) bool { return len(cl.ChecksAt(one.ch.job.column)) > 0 }

func (one *trial) cell(cl *claims.Claim) result.Cell {
	one.mu.Lock()
	defer one.mu.Unlock()
	if _, ok := one.cells[cl.ID]; !ok {
		one.cells[cl.ID], _ = one.ch.cell(context.Background(), cl)
	}
	return one.cells[cl.ID]
}

// flow runs the lab's own flows and returns one of them.
func (one *trial) flow(i int) result.FlowResult {
	one.mu.Lock()
	defer one.mu.Unlock()
	if j := one.ch.job; !one.done {
		for _, f := range one.ch.c.Plan.File.Lab.Spec.AllFlows() {
			j.flow(context.Background(), one.ch.c, f)
		}
		one.done = true
	}
	return one.ch.job.flows[i]
}

// TestClaims tries every claim of the ledger where its checks apply:
//
//	go test ./conformance/claims/verify -run 'TestClaims/AREA/CLAIM/SETTING'
//
// Each part is a regular expression, and those at the end may be left out.
func TestClaims(t *testing.T) {
	s := suiteOf(t)
	for _, f := range s.ledger.Files {
		t.Run(f.Area, func(t *testing.T) {
			t.Parallel()
			for i := range f.Claims {
				t.Run(f.Claims[i].ID, func(t *testing.T) { testClaim(t, s, &f.Claims[i]) })
			}
		})
	}
}

func testClaim(t *testing.T, s *suite, cl *claims.Claim) {
	if len(cl.Checks) == 0 {
		t.Skip("nothing checks it: " + cl.Unchecked)
	}
	for _, one := range s.designs {
		if !one.applies(cl) {
			continue
		}
		t.Run(one.ch.job.column.ID, func(t *testing.T) {
			cell := one.cell(cl)
			for _, k := range cell.Checks {
				t.Logf("%s: %s %s", k.What, k.Got, k.Reason)
			}
			if wrong := wrongIn(cell); wrong != "" {
				t.Error(wrong)
			}
		})
	}
	statics, err := theStatics()
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range statics[cl.ID] {
		t.Run(st.Kind, func(t *testing.T) {
			if st.Outcome() == result.Differs {
				t.Error(wrongWith(st.Check))
			}
		})
	}
}

// TestFlows runs the flows that labs expect something of, those of the incidents
// above all: -run 'TestFlows/LAB/VARIANT/FLOW'.
func TestFlows(t *testing.T) {
	for _, one := range suiteOf(t).flows {
		t.Run(strings.TrimSuffix(one.ch.c.Plan.File.Lab.Metadata.Name+"/"+one.ch.job.variant, "/"), func(t *testing.T) {
			t.Parallel()
			for i, f := range one.ch.c.Plan.File.Lab.Spec.AllFlows() {
				t.Run(flowName(f), func(t *testing.T) {
					if r := one.flow(i); !r.Pass {
						t.Error(wrongWith(r.Check))
					}
				})
			}
		})
	}
}

// wrongIn says what is unexpected in a cell; "" when nothing is.
func wrongIn(cell result.Cell) string {
	if cell.Outcome != result.Differs && cell.Outcome != result.Failed {
		return ""
	}
	var wrong []string
	for _, k := range cell.Checks {
		if !k.Pass {
			wrong = append(wrong, wrongWith(k))
		}
	}
	return strings.Join(wrong, "\n")
}

func wrongWith(k result.Check) string {
	// The tests run in their own folder, the reader in the root.
	command := strings.ReplaceAll(strings.ReplaceAll(k.Command, "winlab ", "go run ./cmd/winlab "), " ../../../fixtures", " fixtures")
	wanted, came := k.Words()
	return fmt.Sprintf("%s: expected %s, got %s %s: %s\n%s", k.What, wanted, came, k.Reason, k.Summary, command)
}

// TestOffline makes the same into Ginkgo's specs, which have labels and a report:
// -ginkgo.label-filter 'icmp && overlay && 1.36' selects across claims by area,
// claim, design, network and version, and -ginkgo.junit-report writes JUnit XML.
func TestOffline(t *testing.T) {
	gomega.RegisterFailHandler(ginkgo.Fail)
	suiteOf(t).specs()
	_, reporter := ginkgo.GinkgoConfiguration()
	reporter.Succinct = true
	ginkgo.RunSpecs(t, "claims, offline", reporter)
}

// specs makes one spec of each claim in each setting, and of each flow.
func (s *suite) specs() {
	for _, cl := range s.ledger.Claims() {
		ginkgo.Describe(cl.ID, ginkgo.Label(s.ledger.AreaOf(cl.ID), cl.ID), func() {
			for _, one := range s.designs {
				if !one.applies(cl) {
					continue
				}
				column := one.ch.job.column
				ginkgo.It("in "+column.ID, ginkgo.Label(column.Design, column.Network, column.Kubernetes), func() {
					if wrong := wrongIn(one.cell(cl)); wrong != "" {
						ginkgo.Fail(wrong)
					}
				})
			}
		})
	}
	for _, one := range s.flows {
		meta := one.ch.c.Plan.File.Lab.Metadata
		for i, f := range one.ch.c.Plan.File.Lab.Spec.AllFlows() {
			ginkgo.It(fmt.Sprintf("%s %s: %s", meta.Name, one.ch.job.variant, flowName(f)), ginkgo.Label("flow", meta.Name), func() {
				r := one.flow(i)
				gomega.Expect(r.Pass).To(gomega.BeTrue(), wrongWith(r.Check))
			})
		}
	}
}
