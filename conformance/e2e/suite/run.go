package suite

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/kubernetes/test/e2e/framework"
	admissionapi "k8s.io/pod-security-admission/api"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/reports/result"
)

// Options are how a run is made.
type Options struct {
	// Run names the run in labels of what it creates.
	Run string
	// Out is the folder of the results.
	Out string
	// Internet is the address of a machine outside, for flows to host/internet.
	Internet string
	// Outside opens connections from a machine outside of the cluster, in the network of its
	// nodes, for flows from host/lan; nil where there is none.
	Outside Dialer
	// PodStart is how long a pod may take to start, Settle how long a cluster may take
	// to program what must be delivered.
	PodStart, Settle time.Duration
	// Sonobuoy also writes results in the form of a Sonobuoy plugin.
	Sonobuoy bool
	// Command is what was typed, Tool the version of winlab.
	Command, Tool string
	// Known is what is known not to be as documented; nil for nothing.
	Known *Known
}

// runLabel marks the namespaces of a run.
const runLabel = "winlab.dev/run"

// runner is one run.
type runner struct {
	o       *Options
	c       *Cluster
	targets []claims.Target
	actors  *actors
	dynamic dynamic.Interface
	mapper  meta.RESTMapper
	record  *recorder
	config  *rest.Config
}

// Run tries the specs, one after the other, and writes the results after each. Ginkgo
// runs one suite in a process, so it can be called once. The error says that the run
// could not be made; whether claims hold is in the outcome.
func Run(ctx context.Context, config *rest.Config, kubeconfig string, ledger *claims.Ledger, c *Cluster, specs []Spec, o Options) (*Outcome,
	error) {
	if o.PodStart == 0 {
		o.PodStart = 5 * time.Minute
	}
	if o.Settle == 0 {
		o.Settle = settle
	}
	config = patient(config)
	r := &runner{o: &o, c: c, targets: c.Targets(), config: config}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	if r.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	groups, err := restmapper.GetAPIGroupResources(client.Discovery())
	if err != nil {
		return nil, fmt.Errorf("the API server's resources: %w", err)
	}
	r.mapper = restmapper.NewDiscoveryRESTMapper(groups)
	r.actors = &actors{c: c, o: &o, client: client, pods: map[string]*actor{}}
	if r.record, err = newRecorder(ledger, c, specs, o); err != nil {
		return nil, err
	}
	r.record.trouble = func(since time.Time) string {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		return c.trouble(ctx, client, since)
	}
	if err := configure(kubeconfig, specs); err != nil {
		return nil, err
	}
	for i := range specs {
		r.register(&specs[i])
	}
	r.frame()
	return r.runTree(ctx)
}

// configure is what e2e.test takes from its flags.
func configure(kubeconfig string, specs []Spec) (err error) {
	t := &framework.TestContext
	t.KubeConfig, t.Provider, t.NodeOSDistro = kubeconfig, "skeleton", "windows"
	t.DeleteNamespace, t.DeleteNamespaceOnFailure, t.DumpLogsOnFailure = true, true, false
	t.VerifyServiceAccount = slices.ContainsFunc(specs, func(s Spec) bool { return s.Kind == InGo })
	t.CloudConfig.Provider, err = framework.SetupProviderConfig(t.Provider)
	gomega.RegisterFailHandler(framework.Fail)
	return err
}

// frame registers what is around all specs.
func (r *runner) frame() {
	ginkgo.ReportAfterEach(func(report ginkgo.SpecReport) { r.record.takeReport(report) })
	ginkgo.AfterSuite(func(ctx context.Context) { framework.ExpectNoError(r.actors.remove(ctx)) }, ginkgo.NodeTimeout(2*time.Minute))
	ginkgo.ReportAfterSuite("results", func(report ginkgo.Report) { r.record.end(report) })
}

// suiteT stands for the testing.T that Ginkgo wants; what failed is in the reports.
type suiteT struct{}

// Fail does nothing.
func (suiteT) Fail() {}

func (r *runner) runTree(ctx context.Context) (*Outcome, error) {
	suite, reporter := ginkgo.GinkgoConfiguration()
	suite.SemVerFilter = semVerFilter(r.targets)
	suite.GracePeriod = 30 * time.Second
	suite.Timeout = 24 * time.Hour
	reporter.NoColor = true
	passed := ginkgo.RunSpecs(suiteT{}, "claims on a cluster with Windows nodes", suite, reporter)
	if err := r.record.err(); err != nil {
		return nil, err
	}
	o := r.record.outcome()
	if !passed && (o.Failed == 0 && o.Known == 0 || r.record.apart) {
		return o,
			errors.New(
				"the suite did not end as it should, though no claim failed: it was interrupted, or it could not clean up; see the report above")
	}
	return o, ctx.Err()
}

// semVerFilter are the versions of the cluster as Ginkgo filters specs by them: the
// oldest of its nodes, since pods may come to run on any. Windows is a component of its
// own.
func semVerFilter(targets []claims.Target) string {
	kube, build := "", ""
	for _, t := range targets {
		if v := threeNumbers(t.Kubernetes); v != "" && (kube == "" || less(v, kube)) {
			kube = v
		}
		// A build without a revision counts as fully patched, as in the ledger.
		if b := semBuild(t.Build, "999999"); b != "" && (build == "" || less(b, build)) {
			build = b
		}
	}
	var parts []string
	if kube != "" {
		parts = append(parts, kube)
	}
	if build != "" {
		parts = append(parts, windowsComponent+"="+build)
	}
	return strings.Join(parts, ",")
}

// windowsComponent is Windows in Ginkgo's constraints.
const windowsComponent = "windows"

// semBuild is a build of Windows as a semantic version, which has three numbers: the
// second of a build is 0 and is left out, so that 10.0.20348.2762 is 10.20348.2762. It is
// "" for what is not a build.
func semBuild(build, revision string) string {
	n := strings.Split(build, ".")
	switch {
	case len(n) < 3 || n[1] != "0":
		return ""
	case len(n) > 3:
		revision = n[3]
	}
	return n[0] + "." + n[2] + "." + revision
}

// threeNumbers makes a semantic version of "1.36".
func threeNumbers(v string) string {
	if strings.Count(v, ".") == 1 {
		v += ".0"
	}
	return v
}

func less(a, b string) bool {
	x, err1 := claims.ParseVersion(a)
	y, err2 := claims.ParseVersion(b)
	return err1 == nil && err2 == nil && slices.Compare(x, y) < 0
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// register adds a spec to Ginkgo's tree.
func (r *runner) register(s *Spec) {
	limit := 10 * time.Minute
	if s.Slow {
		limit = 30 * time.Minute
	}
	args := []any{ginkgo.Label(s.labels()...), ginkgo.SpecTimeout(limit)}
	if s.Serial || s.Disruptive {
		args = append(args, ginkgo.Serial)
	}
	if s.Kubernetes != "" {
		args = append(args, ginkgo.SemVerConstraint(">= "+threeNumbers(s.Kubernetes)))
	}
	if b := semBuild(s.Windows, "0"); b != "" {
		args = append(args, ginkgo.ComponentSemVerConstraint(windowsComponent, ">= "+b))
	}
	ginkgo.Describe("["+s.Area+"]", func() {
		base := notInNames.ReplaceAllString("winlab-"+s.Claim.ID, "-")
		f := framework.NewDefaultFramework(strings.TrimRight(base[:min(len(base), 40)], "-"))
		f.NamespacePodSecurityLevel = admissionapi.LevelPrivileged
		f.SkipNamespaceCreation = s.Kind != InGo
		ginkgo.It(s.Name, append(args, func(ctx context.Context) {
			var err error
			f.ClientSet, err = kubernetes.NewForConfig(r.config)
			framework.ExpectNoError(err)
			k, err := r.attempt(ctx, &Env{Framework: f, C: r.c, Options: r.o}, s)
			framework.ExpectNoError(err)
			k.Known = r.o.Known.reasonFor(s, r.record.setting.ID, k.Got)
			r.record.add(s, k)
			if !k.Pass && k.Known != "" {
				ginkgo.AddReportEntry("a known difference", k.Known, ginkgo.ReportEntryVisibilityFailureOrVerbose)
			} else if !k.Pass && !k.Explained {
				framework.Failf("the documents ask for %q, and it is %q. %s", k.Expect, k.Got, k.Summary)
			}
		})...)
	})
}

// Outcome sums a run up.
type Outcome struct {
	// Failed counts the specs that are not as documented and not known to be so, Known
	// those that are known.
	Tried, Failed, Known int
	// NotTried are specs that could not be tried; Unshown are claims of which none could
	// be, although the documents ask for something on this cluster and they were not
	// allowed to go untried.
	NotTried []result.NotTried
	Unshown  []string
	// NotSo is what is known and is not so, a line each.
	NotSo []string
}
