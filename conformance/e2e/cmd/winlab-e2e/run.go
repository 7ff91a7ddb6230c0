package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubernetes/test/utils/image"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/conformance/e2e/kind"
	"github.com/winlab-dev/winlab/conformance/e2e/suite"
)

// flags are those of a run.
type flags struct {
	provider, kubeconfig, shard, images string
	name, kubernetes, windows           string
	components, known                   string
	maySkip                             []string
	sel                                 suite.Selection
	given                               suite.Given
	o                                   suite.Options
	list, dryRun, force, outsideHere    bool
}

// publicInternet is the machine outside that flows go to: Google's name server, as in
// Kubernetes' own tests for Windows; labInternet is that of the ledger's labs.
const publicInternet, labInternet = "8.8.8.8", "203.0.113.10"

// providers are where clusters come from.
const (
	fromKubeconfig = "kubeconfig" // it is there
	fromLab        = "simulated"  // it is made of a lab, and goes with the run
	fromKind       = "kind"       // kind makes it, and it goes with the run
)

func runCommand() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "winlab-e2e",
		Short: "Try the claims about Windows nodes on a cluster",
		Long: `Try the claims of the ledger on a Kubernetes cluster with Windows nodes: flows and names
of the network, what the API server refuses, and what only a cluster can show. What must
come out is what the documents say about the versions and the network that are found.

The provider simulated brings a cluster up on a lab, and takes it down at the end, also
after Ctrl-C. kind does so with a cluster of kind, which has no Windows node. kubeconfig
is for a cluster that is there.

The results are written after each spec, into results.json (for winlab report), junit.xml
and, with --sonobuoy, sonobuoy_results.yaml. The exit code is 0 when all is as documented,
1 when something is not, 2 when the run could not be made, 3 when nothing was selected and
4 when a claim is made for this cluster and no check of it could be tried.

--known is a file of known differences, with reasons: claims that may go untried, and
checks with another outcome. They stay in the results as differences, and do not count for
the exit code. A known difference that no longer occurs fails a run.`,
		Example: `  winlab-e2e --provider simulated
  winlab-e2e --provider simulated --lab fixtures/labs/overlay-flannel-vxlan.yaml --areas flows
  winlab-e2e --kubeconfig ~/.kube/config --areas flows,dns --out results
  winlab-e2e --may-skip 'horizontal-autoscaling=there is no metrics server'
  winlab-e2e --list --claims 'controller-*'
  winlab-e2e merge results-0 results-1 labs --out all`,
		Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
	}
	fs := cmd.Flags()
	fs.StringVar(&f.provider, "provider", fromKubeconfig, "where the cluster comes from: simulated, kind or kubeconfig")
	fs.StringVar(&f.kubeconfig, "kubeconfig", "", "the cluster's kubeconfig; default $KUBECONFIG, ~/.kube/config, or the pod's own account")
	fs.StringSliceVar(&f.sel.Claims, "claims", nil, "only these claims (globs)")
	fs.StringSliceVar(&f.sel.Areas, "areas", nil, "only these areas")
	fs.StringSliceVar(&f.sel.Kinds, "kinds", nil, "only specs of these kinds: flow, resolve, rule, cluster")
	fs.BoolVar(&f.sel.Disruptive, "disruptive", false, "also specs that disturb what else runs on the cluster")
	fs.StringVar(&f.shard, "shard", "", "a part of the specs, i/n with i from 0")
	fs.StringVar(&f.given.Network, "network", "",
		"the HNS network type, where it is not visible: l2bridge, l2tunnel, overlay, transparent, nat")
	fs.StringVar(&f.given.Plugin, "plugin", "", "the network plugin, where it is not visible")
	fs.StringVar(&f.given.Proxy, "proxy", "", "kernelspace, kernelspace-dsr or none, where it is not visible")
	fs.StringVar(&f.given.Lab, "lab", "", "with --provider simulated the lab's file (default "+defaultLab+
		"); else the name of the lab of a simulated cluster, where its nodes do not say it")
	fs.StringVar(&f.name, "name", "", "the name of a cluster that is brought up (default e2e- and the number of the process)")
	fs.StringVar(&f.kubernetes, "kubernetes", "",
		"the version of Kubernetes of a cluster that is brought up (default: the newest that is pinned, for kind its own)")
	fs.StringVar(&f.windows, "windows", "", "the build of the Windows nodes of a simulated cluster (default: that of the lab)")
	fs.StringVar(&f.components, "components", "",
		"real for the network plugin's programs in a simulated cluster, model for their models (default: what the lab says)")
	fs.StringVar(&f.known, "known", "", "a file of what is known not to be as documented on this cluster")
	fs.StringArrayVar(&f.maySkip, "may-skip", nil, "CLAIM=REASON: a claim that may go untried; can be repeated")
	fs.StringVar(&f.images, "image-repo-list", "", "a file with mirrors of the image registries, as e2e.test takes it")
	fs.StringVar(&f.o.Out, "out", "results", "the folder for the results")
	fs.StringVar(&f.o.Internet, "internet", "", "the address of a machine outside that answers on TCP 443 and UDP 53")
	fs.BoolVar(&f.outsideHere, "outside-here", false,
		"this machine is outside of the cluster and in the network of its nodes: flows from outside are made here")
	fs.DurationVar(&f.o.PodStart, "pod-start", 5*time.Minute, "how long a pod may take to start")
	fs.DurationVar(&f.o.Settle, "settle", time.Minute, "how long a cluster may take to program what must be delivered")
	fs.BoolVar(&f.o.Sonobuoy, "sonobuoy", false, "also write results for Sonobuoy, and done at the end")
	fs.BoolVar(&f.list, "list", false, "list the specs and what is documented, and stop; needs no cluster")
	fs.BoolVar(&f.dryRun, "dry-run", false, "find out about the cluster, list the specs that apply, and stop")
	fs.BoolVar(&f.force, "skip-preflight", false, "run even if the preflight finds something missing")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return f.run(cmd) }
	return cmd
}

func (f *flags) run(cmd *cobra.Command) error {
	if err := f.checkProvider(); err != nil {
		return err
	}
	var err error
	if f.sel.Shard, f.sel.Shards, err = suite.ParseShard(f.shard); err != nil {
		return exit{notRun, err}
	}
	if f.images != "" {
		if _, err := os.Stat(f.images); err != nil {
			return exitf(notRun, "--image-repo-list: %w", err)
		}
		image.Init(f.images)
	}
	ledger, err := claims.Load()
	if err != nil {
		return exit{notRun, err}
	}
	all, err := suite.Specs(ledger)
	if err != nil {
		return exit{notRun, err}
	}
	// Before a cluster comes up: what is asked for may not exist.
	asked, _, err := suite.Select(all, f.sel, nil)
	if err != nil {
		return exit{notRun, err}
	}
	if f.list {
		return f.print(cmd.OutOrStdout(), asked, nil)
	}
	if f.outsideHere {
		f.o.Outside = &net.Dialer{}
	}
	if f.o.Known, err = suite.ReadKnown(f.known, f.maySkip, all); err != nil {
		return exit{notRun, err}
	}
	end, err := f.bringUp(cmd)
	if err != nil {
		return exit{notRun, err}
	}
	err = f.onCluster(cmd, ledger, all)
	if e := end(); e != nil {
		return errors.Join(err, exitf(failures, "taking the cluster down: %w", e))
	}
	return err
}

// checkProvider holds the flags against the provider.
func (f *flags) checkProvider() error {
	up := f.provider != fromKubeconfig
	switch {
	case f.provider != fromKubeconfig && f.provider != fromLab && f.provider != fromKind:
		return exitf(notRun, "there is no provider %q; write simulated, kind or kubeconfig", f.provider)
	case up && f.kubeconfig != "":
		return exitf(notRun, "--provider %s brings a cluster up; for the one of --kubeconfig leave --provider out", f.provider)
	case !up && (f.name != "" || f.kubernetes != ""):
		return exitf(notRun, "--name and --kubernetes are for a cluster that is brought up: write --provider simulated or kind")
	case f.provider != fromLab && (f.windows != "" || f.components != ""):
		return exitf(notRun, "--windows and --components are for a simulated cluster: write --provider simulated")
	case f.provider == fromLab && f.outsideHere:
		return exitf(notRun,
			"--outside-here is for a cluster that this machine reaches; a simulated one has a machine outside in its lab, host/lan")
	case f.provider == fromKind && f.given.Lab != "":
		return exitf(notRun, "a cluster of kind has no lab; leave --lab out")
	}
	return nil
}

// bringUp makes the cluster, where the provider is to; end takes it down.
func (f *flags) bringUp(cmd *cobra.Command) (end func() error, err error) {
	if f.name == "" {
		f.name = fmt.Sprintf("e2e-%d", os.Getpid())
	}
	switch f.provider {
	case fromLab:
		o := simulatedOptions{file: f.given.Lab, name: f.name, kubernetes: f.kubernetes, windows: f.windows, components: f.components,
			logs: filepath.Join(f.o.Out, "cluster"), say: cmd.ErrOrStderr()}
		if o.file == "" {
			o.file = defaultLab
		}
		f.given.Lab = ""
		s, err := bringUp(cmd.Context(), o)
		if err != nil {
			return nil, err
		}
		f.kubeconfig = s.kubeconfig
		if f.o.Internet == "" {
			f.o.Internet = s.internet
		}
		f.o.Outside = s.outside
		return s.end, nil
	case fromKind:
		k, err := kind.Up(cmd.Context(), kind.Options{Name: f.name, Kubernetes: f.kubernetes, Log: cmd.ErrOrStderr()})
		if err != nil {
			return nil, err
		}
		f.kubeconfig = k.Kubeconfig
		return k.Close, nil
	}
	return func() error { return nil }, nil
}

func (f *flags) onCluster(cmd *cobra.Command, ledger *claims.Ledger, all []suite.Spec) error {
	ctx := cmd.Context()
	config, path, err := f.config()
	if err != nil {
		return exit{notRun, err}
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return exit{notRun, err}
	}
	c, err := suite.Discover(ctx, client, f.provider, f.given)
	if err != nil {
		return exit{notRun, err}
	}
	if f.o.Internet == "" {
		f.o.Internet = publicInternet
		if c.Simulated {
			f.o.Internet = labInternet
		}
	}
	describe(cmd.ErrOrStderr(), c)
	asked, specs, err := suite.Select(all, f.sel, c.Targets())
	switch {
	case err != nil:
		return exit{notRun, err}
	case len(asked) == 0:
		return exitf(nothingSelected, "nothing is selected: no spec is in all of what was asked for")
	case len(specs) == 0:
		return exitf(nothingSelected, "nothing is selected: no document says anything about this cluster that the %d specs asked for could show",
			len(asked))
	}
	specs, left := c.LeaveOut(specs)
	if left != "" {
		fmt.Fprintln(cmd.ErrOrStderr(), "note: "+left)
	}
	if len(specs) == 0 {
		return exitf(nothingSelected, "nothing is selected: %s", left)
	}
	apiOnly := true
	for _, s := range specs {
		apiOnly = apiOnly && s.Kind == suite.Refusals
	}
	missing, err := suite.Preflight(ctx, client, c, apiOnly)
	if err != nil {
		return exit{notRun, err}
	}
	if f.dryRun {
		for _, m := range missing {
			fmt.Fprintln(cmd.ErrOrStderr(), "missing: "+m)
		}
		return f.print(cmd.OutOrStdout(), specs, c)
	}
	if len(missing) > 0 && !f.force {
		return exitf(notRun, "the cluster lacks what the specs need:\n  %s\nwinlab-e2e --skip-preflight runs them nevertheless",
			strings.Join(missing, "\n  "))
	}
	f.o.Run, f.o.Command, f.o.Tool = fmt.Sprintf("%x", time.Now().UnixNano()), strings.Join(os.Args, " "), "winlab-e2e"
	if f.o.Sonobuoy {
		defer f.done()
	}
	o, err := suite.Run(ctx, config, path, ledger, c, specs, f.o)
	if err != nil && o == nil {
		return exit{notRun, err}
	}
	return f.sum(cmd.ErrOrStderr(), o, err)
}

// sum prints what came of a run and makes it an exit code.
func (f *flags) sum(w io.Writer, o *suite.Outcome, err error) error {
	fmt.Fprintf(w, "%d checks tried, %d failed, ", o.Tried, o.Failed)
	if o.Known > 0 {
		fmt.Fprintf(w, "%d more are known not to be as documented, ", o.Known)
	}
	fmt.Fprintf(w, "%d could not be tried; results in %s\n", len(o.NotTried), f.o.Out)
	for _, n := range o.NotSo {
		fmt.Fprintln(w, "known, but no longer so: "+n)
	}
	switch {
	case o.Failed > 0:
		return exitf(failures, "%d checks are not as documented", o.Failed)
	case err != nil:
		return exit{failures, err}
	case len(o.NotSo) > 0:
		return exitf(failures, "%d known differences no longer occur: correct %s", len(o.NotSo), orUnknown(f.known))
	case len(o.Unshown) > 0:
		return exitf(allSkipped,
			"of these claims no check could be tried: %s\nname what may go untried, with its reason, with --may-skip or in the file of --known",
			strings.Join(o.Unshown, ", "))
	}
	return nil
}

// done tells Sonobuoy's worker which file has the results.
func (f *flags) done() {
	if name, err := filepath.Abs(filepath.Join(f.o.Out, "sonobuoy_results.yaml")); err == nil {
		_ = os.WriteFile(filepath.Join(f.o.Out, "done"), []byte(name), 0o644)
	}
}

// config is how to reach the cluster. The framework reads a file, so that the account of
// a pod is written into one by it (path "").
func (f *flags) config() (*rest.Config, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		if clientcmd.IsEmptyConfig(err) {
			err = errors.New("no cluster; give --kubeconfig FILE")
		}
		return nil, "", err
	}
	path := f.kubeconfig
	if path == "" {
		path = rules.GetDefaultFilename()
	}
	if _, err := os.Stat(path); err != nil {
		path = ""
	}
	return config, path, nil
}

func describe(w io.Writer, c *suite.Cluster) {
	what := "a cluster"
	if c.Simulated {
		what = "a simulated cluster: it gives no evidence of what Windows does"
	}
	fmt.Fprintf(w, "%s, Kubernetes %s, network %s, plugin %s, proxy %s\n", what, c.Server, orUnknown(c.Network), orUnknown(c.Plugin),
		orUnknown(c.Proxy))
	for _, n := range c.Nodes {
		fmt.Fprintf(w, "  %s: %s %s, kubelet %s, %s\n", n.Name, n.OS, n.Build, n.Kubelet, n.Runtime)
	}
	for _, n := range c.Notes {
		fmt.Fprintln(w, "  note: "+n)
	}
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

func (f *flags) print(w io.Writer, specs []suite.Spec, c *suite.Cluster) error {
	if len(specs) == 0 {
		return exitf(nothingSelected, "nothing is selected")
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range specs {
		var how []string
		for i, is := range []bool{s.Serial, s.Slow, s.Disruptive} {
			if is {
				how = append(how, []string{"serial", "slow", "disruptive"}[i])
			}
		}
		row := []string{s.Area, string(s.Kind), s.Name, strings.Join(how, ",")}
		if c != nil {
			d := s.Documented(c.Targets())
			expect := d.Expect
			if s.Kind == suite.Refusals {
				expect = "refused"
			}
			row = append(row, orUnknown(d.Status), strings.Replace(orUnknown(expect), "unknown", "observe", 1))
		}
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	return t.Flush()
}
