package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/conformance/e2e/cluster"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/live/control"
	"github.com/winlab-dev/winlab/sim/trace"
)

// The verbs that a cluster has beside those of a lab that is up.
const (
	verbStatus     = "cluster-status"
	verbKubeconfig = "cluster-kubeconfig"
	verbLogs       = "cluster-logs"
	verbAct        = "cluster-act"
	verbDown       = "down"
	// verbChange is that of winlab restart.
	verbChange = "change"
)

// handle does what another program asks for.
func (r *running) handle(ctx context.Context, c control.Call) (int, error) {
	if c.Verb == verbStatus {
		var form string
		if err := json.Unmarshal(c.Args, &form); err != nil {
			return 2, err
		}
		return 0, r.status(ctx, c.Stdio[1], form)
	}
	select {
	case <-r.up:
	default:
		if c.Verb == verbDown {
			r.end()
			return 0, nil
		}
		if c.Verb == verbLogs {
			return 0, r.logs(c.Stdio[1], "")
		}
		return 2, errors.New("the cluster is not up yet; winlab-cluster status says how far it is")
	}
	switch c.Verb {
	case verbKubeconfig:
		var path bool
		if err := json.Unmarshal(c.Args, &path); err != nil {
			return 2, err
		}
		return 0, r.kubeconfig(c.Stdio[1], path)
	case verbLogs:
		var program string
		if err := json.Unmarshal(c.Args, &program); err != nil {
			return 2, err
		}
		return 0, r.logs(c.Stdio[1], program)
	case verbAct:
		var o actArgs
		if err := json.Unmarshal(c.Args, &o); err != nil {
			return 2, err
		}
		return r.act(ctx, c.Stdio[2], o)
	case verbChange:
		var o struct{ Step labfile.Step }
		if err := json.Unmarshal(c.Args, &o); err != nil {
			return 2, err
		}
		if len(o.Step.Restart) > 0 { // the programs and nodes of a cluster are more than its network
			return r.act(ctx, c.Stdio[2], actArgs{cluster.Restart, o.Step.Restart})
		}
	}
	return r.lab.Handle(ctx, c)
}

// actArgs say what to do to which programs and nodes.
type actArgs struct {
	Action cluster.Action
	Names  []string
}

func (r *running) act(ctx context.Context, w io.Writer, o actArgs) (int, error) {
	if err := r.cluster.Act(ctx, o.Action, o.Names...); err != nil {
		return 1, err
	}
	_, err := fmt.Fprintln(w, o.Action.Done()+" "+strings.Join(o.Names, ", "))
	return 0, err
}

func (r *running) kubeconfig(w io.Writer, path bool) error {
	if path {
		_, err := fmt.Fprintln(w, r.cluster.Kubeconfig())
		return err
	}
	text, err := os.ReadFile(r.cluster.Kubeconfig())
	if err == nil {
		_, err = w.Write(text)
	}
	return err
}

func (r *running) logs(w io.Writer, program string) error {
	if program != "" {
		return r.cluster.WriteLog(w, program)
	}
	r.mu.Lock()
	said := slices.Clone(r.said)
	r.mu.Unlock()
	for _, line := range said {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// status is what status prints as JSON.
type status struct {
	Cluster string `json:"cluster"`
	// PID is the process that holds the cluster, which ends with it.
	PID        int            `json:"pid"`
	Up         bool           `json:"up"`
	Last       string         `json:"last,omitempty"` // what it does, when it is not up yet
	Kubeconfig string         `json:"kubeconfig,omitempty"`
	Nodes      []cluster.Seen `json:"nodes,omitempty"`
	Programs   []program      `json:"programs,omitempty"`
	// Notices are what objects of the API server and the lab say and nothing follows.
	Notices []trace.Notice `json:"notModelled,omitempty"`
	// Trouble says why there are no nodes.
	Trouble string `json:"trouble,omitempty"`
}

// nodesWithin is how long the API server may take to answer.
const nodesWithin = 10 * time.Second

type program struct {
	Name    string    `json:"name"`
	Machine string    `json:"machine"`
	PID     int       `json:"pid"`
	Since   time.Time `json:"since"`
	// Ended says how it has ended and when it starts again.
	Ended string `json:"ended,omitempty"`
	// Restarts is how often it was started again.
	Restarts int    `json:"restarts"`
	Log      string `json:"log,omitempty"`
}

func (r *running) status(ctx context.Context, w io.Writer, form string) error {
	s := status{Cluster: r.name, PID: os.Getpid()}
	select {
	case <-r.up:
		s.Up, s.Kubeconfig = true, r.cluster.Kubeconfig()
		for _, p := range r.cluster.Programs() {
			s.Programs = append(s.Programs, program(p))
		}
		s.Notices = r.cluster.Notices()
		// Without the API server there are programs to show.
		asked, cancel := context.WithTimeout(ctx, nodesWithin)
		defer cancel()
		var err error
		if s.Nodes, err = r.cluster.Nodes(asked); err != nil {
			s.Trouble = "the API server does not say which nodes there are: " + err.Error()
		}
	default:
		r.mu.Lock()
		if len(r.said) > 0 {
			s.Last = strings.TrimSpace(r.said[len(r.said)-1])
		}
		r.mu.Unlock()
	}
	if form == "json" {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(s)
	}
	if !s.Up {
		_, err := fmt.Fprintf(w, "%s comes up: %s\n", s.Cluster, s.Last)
		return err
	}
	fmt.Fprintf(w, "%s is up; export KUBECONFIG=%s\n\n", s.Cluster, s.Kubeconfig)
	if s.Trouble != "" {
		fmt.Fprintln(w, s.Trouble)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(s.Nodes) > 0 {
		fmt.Fprintln(t, "NODE\tREADY\tADDRESS\tPODS\tSYSTEM\tKERNEL\tKUBELET\tRUNTIME")
	}
	hollow, ready := 0, 0
	for _, n := range s.Nodes {
		if n.Hollow {
			if hollow++; n.Ready == "True" {
				ready++
			}
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", n.Name, n.Ready, n.Address, strings.Join(n.PodCIDRs, ","), n.System, n.Kernel,
			n.Kubelet, n.Runtime)
	}
	if hollow > 0 {
		fmt.Fprintf(t, "%d hollow nodes, of which %d are Ready: kubectl get nodes -l %s\n", hollow, ready, cluster.HollowLabel)
	}
	fmt.Fprintln(t, "\nPROGRAM\tRUNNING\tRESTARTS\tPID\tMACHINE")
	for _, p := range s.Programs {
		pid := "-"
		if p.PID > 0 {
			pid = strconv.Itoa(p.PID)
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\n", p.Name, cmp.Or(p.Ended, time.Since(p.Since).Round(time.Second).String()), p.Restarts, pid,
			p.Machine)
	}
	if err := t.Flush(); err != nil || len(s.Notices) == 0 {
		return err
	}
	fmt.Fprintln(w, "\nWITHOUT EFFECT")
	for _, n := range s.Notices {
		if _, err := fmt.Fprintf(w, "%s: %s\n", n.What, n.Why); err != nil {
			return err
		}
	}
	return nil
}

// exactly wants arguments with these names.
func exactly(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != len(names) {
			return fmt.Errorf("write %s", strings.Join(append([]string{c.CommandPath()}, names...), " "))
		}
		return nil
	}
}

// named is the cluster that a command is for: the one with the name, else the only one.
func named(name string) (string, error) { return control.Select(name, "winlab-cluster up LAB") }

func nameFlag(c *cobra.Command) *string {
	return c.Flags().String("name", "", "the `cluster`, when several are up")
}

// call asks a cluster to do something.
func call(ctx context.Context, name, verb string, args any) error {
	name, err := named(name)
	if err != nil {
		return err
	}
	code, err := control.Ask(ctx, name, verb, args, [3]*os.File{os.Stdin, os.Stdout, os.Stderr}, false)
	var remote *control.Remote
	switch {
	case errors.As(err, &remote):
		return exitWith{max(code, 1), remote.Text}
	case err != nil:
		return err
	case code != 0:
		return exitWith{code: code}
	}
	return nil
}

func statusCommand() *cobra.Command {
	c := &cobra.Command{Use: "status", Short: "Show the nodes and programs of a cluster, or how far it is", Args: exactly()}
	name := nameFlag(c)
	form := c.Flags().StringP("output", "o", "text", "text or json")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if *form != "text" && *form != "json" {
			return fmt.Errorf("--output %s: write text or json", *form)
		}
		return call(c.Context(), *name, verbStatus, *form)
	}
	return c
}

func kubeconfigCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "kubeconfig", Short: "Print the administrator's kubeconfig, or where it is", Args: exactly(),
		Example: `  export KUBECONFIG=$(winlab-cluster kubeconfig --path)
  winlab-cluster kubeconfig > kubeconfig.yaml`,
	}
	name := nameFlag(c)
	path := c.Flags().Bool("path", false, "print the name of the file")
	c.RunE = func(c *cobra.Command, _ []string) error { return call(c.Context(), *name, verbKubeconfig, *path) }
	return c
}

func logsCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "logs [PROGRAM]", Short: "Show the output of a program of a cluster, or the cluster's own log", Args: cobra.MaximumNArgs(1),
		Example: `  winlab-cluster logs
  winlab-cluster logs kubelet/win1`,
	}
	name := nameFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return call(c.Context(), *name, verbLogs, strings.Join(args, ""))
	}
	return c
}

// actCommands are restart, stop, start and kill.
func actCommands() (all []*cobra.Command) {
	const what = `Programs are those that winlab-cluster status lists; hns/NODE is a node's HNS, which can be
restarted only, and node/NODE is a node with everything that runs on it.

`
	for _, a := range []struct {
		action      cluster.Action
		short, long string
		example     string
	}{
		{cluster.Restart, "Restart programs or nodes of a cluster", `stop and start.`,
			"  winlab-cluster restart kubelet/win1 kube-apiserver\n  winlab-cluster restart hns/win1"},
		{cluster.Stop, "Stop programs or nodes of a cluster",
			`A program is asked to end (SIGTERM, Ctrl-C on Windows), killed after ten seconds, and stays
ended until start or restart. A node shuts down: its programs end, its pods are gone, and its
cable is cut.`, "  winlab-cluster stop kube-proxy/win1\n  winlab-cluster stop node/win2"},
		{cluster.Start, "Start programs or nodes that were stopped",
			`It returns when a program answers, or a node is Ready. One that waits for its next start
starts now.`, "  winlab-cluster start node/win2"},
		{cluster.Kill, "Kill programs or nodes, as a fault does",
			`A program gets SIGKILL, and is started again as its node would: kubelets, kube-proxy.exe and
runtimes after 10 seconds; the control plane at once, then after 10, 20, 40 ... seconds, 5
minutes at most. A node loses its power without notice, and is off until start.`,
			"  winlab-cluster kill kubelet/win1\n  winlab-cluster kill node/win2"},
	} {
		c := &cobra.Command{Use: string(a.action) + " PROGRAM|NODE...", Short: a.short, Long: what + strings.ToUpper(a.long[:1]) + a.long[1:],
			Example: a.example,
			Args: func(_ *cobra.Command, args []string) error {
				if len(args) == 0 {
					return fmt.Errorf("write winlab-cluster %s PROGRAM, such as kubelet/win1, or node/win1", a.action)
				}
				return nil
			}}
		name := nameFlag(c)
		c.RunE = func(c *cobra.Command, args []string) error {
			return call(c.Context(), *name, verbAct, actArgs{a.action, args})
		}
		all = append(all, c)
	}
	return all
}

func downCommand() *cobra.Command {
	c := &cobra.Command{Use: "down [NAME]", Short: "End a cluster with all its programs", Args: cobra.MaximumNArgs(1)}
	c.RunE = func(c *cobra.Command, args []string) error {
		name, err := named(strings.Join(args, ""))
		if err != nil {
			return err
		}
		if err := call(c.Context(), name, verbDown, nil); err != nil {
			return err
		}
		if err := control.AwaitEnd(c.Context(), name, 2*time.Minute); err != nil {
			return err
		}
		fmt.Fprintln(c.ErrOrStderr(), name+" is down")
		return nil
	}
	return c
}
