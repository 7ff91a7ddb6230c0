package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/live"
	"github.com/winlab-dev/winlab/sim/live/control"
)

// psArgs are what a lab that is up needs for ps.
type psArgs struct{ Output string }

func (a *app) psCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ps",
		Short: "List the machines and programs of a lab that is up, or all labs that are up",
		Example: `  winlab ps
  winlab ps --name overlay -o json`,
		Args:              exactly(),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	name := a.runningFlag(cmd)
	form := output(cmd, "text", "json", "name")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		names, err := control.Names()
		switch {
		case err != nil:
			return err
		case *name == "" && len(names) != 1:
			return a.psAll(cmd.Context(), names, *form)
		}
		return a.call(cmd.Context(), *name, verbPs, psArgs{*form})
	}
	return cmd
}

// psAll lists the labs that are up.
func (a *app) psAll(_ context.Context, names []string, form string) error {
	switch {
	case form == "json":
		return writeJSON(a.out, append([]string{}, names...))
	case len(names) == 0:
		fmt.Fprintln(a.err, "no lab is up; winlab up LAB starts one")
		return nil
	case form == "text":
		fmt.Fprintln(a.err, "several labs are up; winlab ps --name LAB shows one")
	}
	for _, n := range names {
		fmt.Fprintln(a.out, n)
	}
	return nil
}

// psMachine is a machine as ps lists it.
type psMachine struct {
	Name      string   `json:"name"`
	Node      string   `json:"node,omitempty"`
	System    string   `json:"system"`
	Addresses []string `json:"addresses"`
	Listens   []string `json:"listens,omitempty"`
}

func (l *liveLab) ps(w io.Writer, o psArgs) error {
	var all []psMachine
	err := l.net.Do(func(c *lab.Cluster) error {
		for _, k := range []cluster.Kind{cluster.NodeKind, cluster.PodKind, cluster.HostKind} {
			for _, m := range c.Machines(k) {
				all = append(all, machineOf(m))
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	l.mu.Lock()
	programs := []liveProgram{}
	for _, p := range l.programs {
		programs = append(programs, *p)
	}
	l.mu.Unlock()
	for _, p := range l.net.Programs() {
		programs = append(programs, liveProgram{Machine: p.Machine, PID: p.PID, Command: p.Command, Since: p.Since, Ended: p.Ended})
	}
	slices.SortFunc(programs, func(a, b liveProgram) int { return a.Since.Compare(b.Since) })
	switch o.Output {
	case "name":
		for _, m := range all {
			fmt.Fprintln(w, shortName(m.Name))
		}
		return nil
	case "json":
		return writeJSON(w, struct {
			Lab      string        `json:"lab"`
			File     string        `json:"file"`
			Since    time.Time     `json:"since"`
			Machines []psMachine   `json:"machines"`
			Programs []liveProgram `json:"programs"`
			Stats    live.Stats    `json:"stats"`
		}{l.name, l.path, l.since, all, programs, l.net.Stats()})
	}
	fmt.Fprintf(w, "%s (%s), up for %s\n", l.name, l.path, time.Since(l.since).Round(time.Second))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "MACHINE\tNODE\tSYSTEM\tADDRESSES\tLISTENS")
	for _, m := range all {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", shortName(m.Name), m.Node, m.System, strings.Join(m.Addresses, " "), strings.Join(m.Listens, " "))
	}
	if err := t.Flush(); err != nil || len(programs) == 0 {
		return err
	}
	fmt.Fprintln(t, "\nPID\tMACHINE\tRUNNING\tCOMMAND")
	for _, p := range programs {
		running := time.Since(p.Since).Round(time.Second).String()
		if p.Ended != "" {
			running = "ended"
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\n", p.PID, shortName(p.Machine), running, p.Command)
	}
	return t.Flush()
}

func machineOf(m *cluster.Machine) psMachine {
	p := psMachine{Name: m.Ref.String(), System: "Linux"}
	if m.Stack().Windows {
		p.System = "Windows"
	}
	if m.Kind == cluster.PodKind && m.Node != nil {
		p.Node = m.Node.Name
	}
	for _, l := range m.Stack().Links {
		for _, a := range l.Addrs {
			p.Addresses = append(p.Addresses, a.Addr().String())
		}
	}
	for _, l := range m.Stack().Listeners() {
		p.Listens = append(p.Listens, fmt.Sprintf("%s/%d", strings.ToLower(l.Proto.String()), l.Port))
	}
	slices.Sort(p.Listens)
	p.Listens = slices.Compact(p.Listens)
	return p
}

func (a *app) logsCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "logs [kube-proxy/NODE|pod/NAME]",
		Short: "Show the log and the counters of a lab that is up, or the output of one of its programs",
		Example: `  winlab logs --name overlay
  winlab logs kube-proxy/win1`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	name := a.runningFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.call(cmd.Context(), *name, verbLogs, strings.Join(args, ""))
	}
	return cmd
}

// programLog writes what a program of the lab has written: kube-proxy/NODE, pod/NAME.
func (l *liveLab) programLog(w io.Writer, program string) error {
	names := []string{}
	for _, p := range l.net.Programs() {
		if p.Key != program && shortName(p.Key) != program {
			names = append(names, shortName(p.Key))
			continue
		}
		err := p.WriteLog(w)
		if err == nil && p.Ended != "" {
			_, err = fmt.Fprintln(w, "(it has ended: "+p.Ended+")")
		}
		return err
	}
	return fmt.Errorf("the lab has no program %s; there are %s", program,
		cmp.Or(strings.Join(names, ", "), "none: kube-proxy and the plugin are models, and no pod has one (run)"))
}

func (a *app) downCmd() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "down [NAME]",
		Short: "End a lab that is up, with all its programs",
		Example: `  winlab down
  winlab down overlay
  winlab down --all`,
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			names, _ := control.Names()
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "end all labs that are up")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		names := args
		if all {
			if len(args) > 0 {
				return usagef("--all and a name exclude each other")
			}
			var err error
			if names, err = control.Names(); err != nil {
				return err
			}
		} else if len(names) == 0 {
			name, err := running("")
			if err != nil {
				return err
			}
			names = []string{name}
		}
		for _, n := range names {
			if err := a.call(cmd.Context(), n, verbDown, nil); err != nil {
				return err
			}
			if err := control.AwaitEnd(cmd.Context(), n, time.Minute); err != nil {
				return err
			}
			fmt.Fprintln(a.err, n+" is down")
		}
		return nil
	}
	return cmd
}
