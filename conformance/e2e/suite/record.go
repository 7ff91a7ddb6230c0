package suite

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/reporters"
	"github.com/onsi/ginkgo/v2/types"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/reports/result"
)

// recorder writes the results after each spec, so that those of a run that was killed
// are valid and hold all that was finished.
type recorder struct {
	mu      sync.Mutex
	o       Options
	ledger  *claims.Ledger
	targets []claims.Target
	setting result.Setting
	// specs by the name that Ginkgo reports, and of each claim.
	specs   map[string]*Spec
	ofClaim map[string][]*Spec
	checks  map[string][]result.Check
	// added are the specs that have a result of their own.
	added   map[string]bool
	reports types.SpecReports
	failed  int
	// known counts the specs that failed as it is known; apart says that what is around
	// the specs failed.
	known  int
	apart  bool
	broken error
	// stopped is set when a spec was interrupted: those after it never began.
	stopped bool
	// trouble says what of the cluster was not well since a time, "" for nothing; nil when it
	// cannot be asked.
	trouble func(since time.Time) string
}

func newRecorder(l *claims.Ledger, c *Cluster, specs []Spec, o Options) (*recorder, error) {
	if err := os.MkdirAll(o.Out, 0o755); err != nil {
		return nil, err
	}
	r := &recorder{o: o, ledger: l, targets: c.Targets(), setting: c.Setting(), specs: map[string]*Spec{}, ofClaim: map[string][]*Spec{},
		checks: map[string][]result.Check{}, added: map[string]bool{}}
	for i := range specs {
		s := &specs[i]
		r.specs[s.Name] = s
		r.ofClaim[s.Claim.ID] = append(r.ofClaim[s.Claim.ID], s)
	}
	return r, r.write(nil)
}

// add notes what came of a spec.
func (r *recorder) add(s *Spec, k result.Check) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.checks[s.Claim.ID] = append(r.checks[s.Claim.ID], k)
	r.added[s.Name] = true
	if !k.Pass && k.Known != "" {
		r.known++
	}
}

// takeReport takes Ginkgo's report on a spec: one without a result could not be tried.
func (r *recorder) takeReport(report ginkgo.SpecReport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.specs[report.LeafNodeText]
	if s == nil {
		return
	}
	r.reports = append(r.reports, report)
	stopped := report.State == types.SpecStateInterrupted || report.State == types.SpecStateAborted
	switch {
	case r.added[s.Name]:
		if report.Failed() {
			r.failed++
		}
	case stopped, report.State == types.SpecStateSkipped, report.State == types.SpecStatePending:
		r.stopped = r.stopped || stopped
		why := whyNotTried(s, report.Failure.Message, stopped, r.stopped)
		r.setting.Cluster.NotTried = append(r.setting.Cluster.NotTried,
			result.NotTried{Claim: s.Claim.ID, What: s.What, Why: oneLine(why), MaySkip: r.o.Known.maySkip(s.Claim.ID)})
	case report.Failed():
		k := result.Check{Level: result.Cluster, What: s.What, Expect: s.Documented(r.targets).Expect,
			Got: "error", Summary: oneLine(r.reason(report)), Command: "winlab-e2e --claims " + s.Claim.ID,
			Known: r.o.Known.reasonFor(s, r.setting.ID, "error")}
		if k.Known == "" {
			r.failed++
		} else {
			r.known++
		}
		r.checks[s.Claim.ID] = append(r.checks[s.Claim.ID], k)
	}
	r.keep(r.write(nil))
}

// reason is why a spec failed, with what of the cluster was not well: the framework fails,
// too, without a word of that, when it makes a namespace.
func (r *recorder) reason(report ginkgo.SpecReport) string {
	why := report.Failure.Message
	if r.trouble == nil || strings.Contains(why, notWell) {
		return why
	}
	if t := r.trouble(report.StartTime); t != "" {
		return unwell(t, why).Error()
	}
	return why
}

// end takes the report of the whole suite.
func (r *recorder) end(report ginkgo.Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.apart = len(report.SpecialSuiteFailureReasons) > 0
	for _, s := range report.SpecReports {
		r.apart = r.apart || s.Failed() && r.specs[s.LeafNodeText] == nil
	}
	r.keep(r.write(&report))
}

func (r *recorder) keep(err error) {
	if r.broken == nil {
		r.broken = err
	}
}

func (r *recorder) err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.broken
}

// whyNotTried says why a spec has no result: in the words of whoever skipped it, or by
// whether it or one before it was stopped. What is left Ginkgo has skipped for versions,
// without a word, if the spec asks for any.
func whyNotTried(s *Spec, message string, stopped, before bool) string {
	switch {
	case stopped:
		return "the run was stopped"
	case message != "":
		return message
	case before || s.Kubernetes == "" && s.Windows == "":
		return "the run ended before its turn"
	}
	return tooOld(s)
}

// tooOld says what a spec needs that Ginkgo has skipped for its versions.
func tooOld(s *Spec) string {
	var needs []string
	if s.Kubernetes != "" {
		needs = append(needs, "Kubernetes "+s.Kubernetes)
	}
	if s.Windows != "" {
		needs = append(needs, "Windows "+s.Windows)
	}
	return "a node is older than what it needs: " + strings.Join(needs, ", ")
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// outcome sums up what was recorded.
func (r *recorder) outcome() *Outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := &Outcome{Failed: r.failed, Known: r.known, NotTried: r.setting.Cluster.NotTried}
	for _, checks := range r.checks {
		o.Tried += len(checks)
	}
	for _, n := range o.NotTried {
		asks := slices.ContainsFunc(r.ofClaim[n.Claim], func(s *Spec) bool { return s.Documented(r.targets).Expect != "" || s.Kind == Refusals })
		if len(r.checks[n.Claim]) == 0 && asks && r.o.Known.maySkip(n.Claim) == "" && !slices.Contains(o.Unshown, n.Claim) {
			o.Unshown = append(o.Unshown, n.Claim)
		}
	}
	slices.Sort(o.Unshown)
	o.NotSo = r.notSo()
	return o
}

// notSo lists known differences that did not occur: a claim that may go untried and was tried, and
// a check that came out as documented or otherwise. It skips entries on claims that this run was
// not asked for, and those on specs that were not tried, which say why themselves.
func (r *recorder) notSo() (all []string) {
	if r.o.Known == nil {
		return nil
	}
	for _, u := range r.o.Known.Untried {
		if n := len(r.checks[u.Claim]); n > 0 {
			all = append(all, fmt.Sprintf("%s: %s may go untried, and %d of its checks were tried", u.at, u.Claim, n))
		}
	}
	for _, d := range r.o.Known.Differences {
		if !d.appliesTo(r.setting.ID) {
			continue
		}
		for _, k := range r.checks[d.Claim] {
			switch {
			case k.What != d.Check:
			case k.Got != d.Got:
				all = append(all, fmt.Sprintf("%s: %s: %s should come out as %s, and is %s", d.at, d.Claim, d.Check, d.Got, k.Got))
			case k.Pass && k.Expect != "":
				all = append(all, fmt.Sprintf("%s: %s: %s is %s, as documented", d.at, d.Claim, d.Check, k.Got))
			}
		}
	}
	return all
}

// document is the results so far.
func (r *recorder) document() *result.Document {
	doc := &result.Document{Tool: r.o.Tool, Command: r.o.Command, Settings: []result.Setting{r.setting}, Versions: claims.Minors(),
		Designs: claims.ResultDesigns(), Areas: r.ledger.Areas(), Claims: r.ledger.Results()}
	for _, c := range r.ledger.Claims() {
		if checks := r.checks[c.ID]; len(checks) > 0 {
			doc.Cells = append(doc.Cells, r.cell(c, checks))
		}
	}
	result.Summarise(doc)
	return doc
}

// cell is a claim's row in the column of the cluster.
func (r *recorder) cell(c *claims.Claim, checks []result.Check) result.Cell {
	cell := result.Cell{Claim: c.ID, Setting: r.setting.ID, Checks: checks, Documented: "silent", Outcome: result.Own}
	works, fails, disputed := false, false, false
	for _, s := range r.ofClaim[c.ID] {
		d := s.Documented(r.targets)
		disputed = disputed || d.Disputed
		if cell.Status == "" {
			cell.Status = d.Status
		}
		if d.Expect == "" && s.Kind != Refusals {
			continue
		}
		if cell.Basis == "" || d.Basis == "implied" {
			cell.Basis = d.Basis
		}
		ok := d.Expect == "delivered" || d.Expect == claims.Works
		works, fails = works || ok, fails || !ok
	}
	switch {
	case disputed:
		cell.Documented = "disputed"
	case works && fails:
		cell.Documented = "conditional"
	case works:
		cell.Documented = claims.Works
	case fails:
		cell.Documented = claims.Fails
	}
	for _, k := range checks {
		cell.Outcome = graver(cell.Outcome, outcomeOf(k))
	}
	return cell
}

func outcomeOf(k result.Check) string {
	switch {
	case k.Got == "error":
		return result.Failed
	case !k.Pass && k.Explained:
		return result.Disputed
	case !k.Pass:
		return result.Differs
	case k.Expect == "":
		return result.Own
	}
	return result.Agrees
}

// graver is the outcome that needs attention more; one check that asks for something
// makes a cell that agrees.
func graver(a, b string) string {
	switch {
	case a == result.Own:
		return b
	case b == result.Own:
		return a
	case slices.Index(result.Outcomes, b) < slices.Index(result.Outcomes, a):
		return b
	}
	return a
}

// write writes all files of the run. Each appears at once or stays as it was.
func (r *recorder) write(report *ginkgo.Report) error {
	doc := r.document()
	if err := result.Save(r.o.Out, doc); err != nil {
		return err
	}
	if report == nil {
		report = &ginkgo.Report{SuiteDescription: "claims on a cluster with Windows nodes", SpecReports: r.reports}
	}
	junit := filepath.Join(r.o.Out, "junit.xml")
	if err := reporters.GenerateJUnitReportWithConfig(*report, junit+".part",
		reporters.JunitReportConfig{OmitTimelinesForSpecState: types.SpecStatePassed | types.SpecStateSkipped}); err != nil {
		return err
	}
	if err := os.Rename(junit+".part", junit); err != nil {
		return err
	}
	if !r.o.Sonobuoy {
		return nil
	}
	return writeWhole(filepath.Join(r.o.Out, "sonobuoy_results.yaml"), func(f *os.File) error { return writeSonobuoy(f, doc) })
}

// writeWhole writes a file beside its place and moves it there.
func writeWhole(name string, write func(*os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone when it was renamed
	if err := write(f); err != nil {
		f.Close()
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := f.Chmod(0o644); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
