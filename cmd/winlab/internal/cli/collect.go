package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/conformance/node/bundle"
	"github.com/winlab-dev/winlab/conformance/node/collect"
	"github.com/winlab-dev/winlab/conformance/node/collect/cluster"
)

// collectOptions are the flags of collect.
type collectOptions struct {
	node    collect.Options
	cluster cluster.Options
	nodes   cluster.Nodes
	// fromCluster takes the objects of a cluster; where is which Windows nodes are read in pods.
	fromCluster bool
	where       string
	dry         bool
}

// allNodes is what --nodes is without a value.
const allNodes = "all"

func (a *app) collectCmd() *cobra.Command {
	o := &collectOptions{}
	cmd := &cobra.Command{
		Use:   "collect BUNDLE",
		Short: "Collect from a cluster or a Windows node what decides about packets, as a bundle",
		Long: `Collect what decides about packets as a bundle: a new folder, a file if the name ends in
.zip, or - for a .zip on standard output. bundle.json in it says what each file is and
what could not be read.

From outside, with --cluster, --kubeconfig or --context, or as kubectl winlab:
nodes, pods, Services, EndpointSlices, policies of all kinds, namespaces, RuntimeClasses, events,
and ConfigMaps of network plugins and kube-proxy by name. winlab asks with kubectl. --nodes
also runs winlab.exe collect on the Windows nodes, each in a HostProcess pod that is removed
afterwards; winlab.exe is copied into the pods (--exe), or is in the root of an image that you
name (--image).

On a Windows node, as administrator (winlab.exe; GOOS=windows go build ./cmd/winlab): the
objects of HNS as HNS itself returns them, the host's adapters, routes and reserved ports,
the rules of VFP where vfpctrl.exe exists, configuration of plugins, kubelet, kube-proxy
and the runtime, and the ends of their logs.

It only reads, except that --nodes creates pods. Secrets are never read. Values of variables,
and what looks like a password or a token in command lines, annotations, ConfigMaps and logs,
are removed. Review a bundle nevertheless before you pass it on.

--dry-run prints each step with what it reads and how, and does nothing; it works anywhere.

Exit codes: 0 everything that exists was read, 1 a step failed (the others are in the bundle),
2 wrong usage, not on a Windows node, or kubectl not found.`,
		Example: `  winlab collect --dry-run
  winlab collect --cluster cluster.zip
  winlab collect --kubeconfig prod.yaml --context west --nodes --exe winlab.exe cluster.zip
  winlab collect --cluster --nodes=win1,win2 --image registry.example/winlab:1 cluster.zip
  winlab.exe collect win1.zip
  winlab.exe collect --node win1 --log-bytes 10000000 C:\temp\win1`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.dry {
				return cobra.MaximumNArgs(1)(cmd, args)
			}
			return exactly("BUNDLE")(cmd, args)
		},
		ValidArgsFunction: files(false, []string{"zip"}),
	}
	f := cmd.Flags()
	f.BoolVar(&o.fromCluster, "cluster", false, "read the objects of the cluster that kubectl uses here")
	f.StringVar(&o.cluster.Client.Kubeconfig, "kubeconfig", "", "read the objects of the cluster in this kubeconfig `file`")
	f.StringVar(&o.cluster.Client.Context, "context", "", "the `name` of the context in the kubeconfig")
	f.StringVar(&o.cluster.Client.Program, "kubectl", "", "the kubectl `program` (default: kubectl on the PATH)")
	f.StringVar(&o.where, "nodes", "",
		"also run winlab.exe in a HostProcess pod on the Windows nodes with these `names` (without a value: all)")
	f.Lookup("nodes").NoOptDefVal = allNodes
	f.StringVar(&o.nodes.Program, "exe", "",
		"winlab.exe on this machine, a `file` that is copied into the pods (default: the one beside this program)")
	f.StringVar(&o.nodes.Image, "image", "", "the `image` of the pods; without --exe it must have winlab.exe in its root")
	f.StringVar(&o.nodes.Namespace, "namespace", "kube-system", "the `namespace` of the pods; it must admit HostProcess pods")
	f.StringVar(&o.node.Node, "node", "", "the `name` of this node in Kubernetes (default: the computer's, in lower case)")
	f.Int64Var(&o.node.LogBytes, "log-bytes", 1<<20, "how many `bytes` to take from the end of each log of a node")
	f.DurationVar(&o.node.Timeout, "timeout", time.Minute, "how long a step may take")
	f.BoolVar(&o.dry, "dry-run", false, "print what would be done, and do nothing")
	if err := cmd.MarkFlagFilename("exe", "exe"); err != nil {
		panic(err) // the flag does not exist: any test finds it
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.fromCluster = o.fromCluster || a.name == pluginName && !cmd.Flags().Changed("node")
		if err := o.check(cmd); err != nil {
			return err
		}
		switch {
		case o.dry && o.fromCluster:
			return a.clusterSteps(o.cluster)
		case o.dry:
			return a.collectSteps()
		case !o.fromCluster:
			if err := collect.Possible(); err != nil {
				return usagef("%w; from outside write --cluster, --kubeconfig FILE or --context NAME; --dry-run prints what is read", err)
			}
		default:
			if _, err := o.cluster.Client.Find(); err != nil {
				return err
			}
		}
		return a.collect(cmd, args[0], o)
	}
	return cmd
}

// check checks the flags and fills in what follows from them.
func (o *collectOptions) check(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	o.fromCluster = o.fromCluster || given("kubeconfig") || given("context") || given("nodes") || given("kubectl")
	o.cluster.Timeout = o.node.Timeout
	switch {
	case o.node.LogBytes <= 0 || o.node.Timeout <= 0:
		return usagef("--log-bytes and --timeout: write more than 0")
	case o.fromCluster && given("node"):
		return usagef("--node is the name of the node on which winlab.exe runs; from outside write --nodes=%s", o.node.Node)
	case !given("nodes"):
		for _, other := range []string{"exe", "image", "namespace"} {
			if given(other) {
				return usagef("--%s is about the pods that --nodes makes; write --nodes, too", other)
			}
		}
		return nil
	}
	if o.where != allNodes {
		o.nodes.Names = strings.Split(o.where, ",")
		if slices.Contains(o.nodes.Names, "") {
			return usagef("--nodes=%s: write names with commas between them, such as --nodes=win1,win2", o.where)
		}
	}
	if given("exe") || !given("image") {
		program, err := cluster.Program(o.nodes.Program)
		switch {
		case err == nil:
		case given("exe"):
			return usagef("--exe: %w", err)
		case o.dry:
			program = "winlab.exe"
		default:
			return usagef(
				"which winlab.exe runs on the nodes? Name it with --exe (GOOS=windows go build ./cmd/winlab makes it), or an image that has it with --image: %w", err)
		}
		o.nodes.Program = program
	}
	// The pods end by themselves: winlab.exe has as long as all its steps may take.
	o.nodes.Read = time.Duration(len(collect.Steps()))*o.node.Timeout + time.Minute
	o.nodes.Arguments = []string{fmt.Sprintf("--log-bytes=%d", o.node.LogBytes), "--timeout=" + o.node.Timeout.String()}
	o.cluster.Nodes = &o.nodes
	return nil
}

// collect takes a bundle.
func (a *app) collect(cmd *cobra.Command, to string, o *collectOptions) error {
	w := bundle.Stream(a.out, currentVersion().String(), beganAt())
	if to != "-" {
		var err error
		if w, err = bundle.Create(to, currentVersion().String(), beganAt()); err != nil {
			return err
		}
	}
	failed, steps := 0, 0
	progress := func(s bundle.Step) {
		steps++
		name := s.Name
		if s.Node != "" && o.fromCluster {
			name = s.Node + " " + s.Name
		}
		switch {
		case s.Error != "":
			failed++
			fmt.Fprintf(a.err, "%-14s failed: %s\n", name, strings.ReplaceAll(s.Error, "\n", "\n"+strings.Repeat(" ", 15)))
		case s.Absent != "":
			fmt.Fprintf(a.err, "%-14s %s\n", name, s.Absent)
		default:
			fmt.Fprintf(a.err, "%-14s %s\n", name, countOf(len(s.Files), "file"))
		}
	}
	var err error
	if o.fromCluster {
		o.cluster.Progress = progress
		o.cluster.Waits = func(text string) { fmt.Fprintln(a.err, text) }
		err = cluster.Take(cmd.Context(), w, o.cluster)
	} else {
		o.node.Progress = progress
		err = collect.Node(cmd.Context(), w, o.node)
	}
	// What was read before an interruption is a bundle, too.
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	if to != "-" {
		fmt.Fprintf(a.out, "%s: %s\n", to, countOf(len(w.Manifest().Files), "file"))
	}
	if failed > 0 {
		return unexpected{fmt.Sprintf("%d of %d steps failed; %s in the bundle says why", failed, steps, bundle.Name)}
	}
	return nil
}

// countOf is a number with its noun.
func countOf(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// collectSteps prints what collect reads on a node.
func (a *app) collectSteps() error {
	for _, s := range collect.Steps() {
		if err := a.printStep(s.Name, s.What, s.How); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printStep(name, what string, how []string) error {
	fmt.Fprintf(a.out, "%s: %s\n", name, what)
	for _, h := range how {
		if _, err := fmt.Fprintf(a.out, "    %s\n", h); err != nil {
			return err
		}
	}
	return nil
}

// clusterSteps prints what collect asks a cluster, and the pods that it would make.
func (a *app) clusterSteps(o cluster.Options) error {
	steps := cluster.Steps(o)
	if o.Nodes != nil {
		steps = append(steps, cluster.NodeSteps(o)...)
	}
	for _, s := range steps {
		if err := a.printStep(s.Name, s.What, s.How); err != nil {
			return err
		}
	}
	if o.Nodes == nil {
		return nil
	}
	_, err := fmt.Fprintf(a.out, "The pod:\n%s", o.Nodes.Pod("NODE", "RUN"))
	return err
}
