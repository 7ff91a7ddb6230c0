package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/reports/clean"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/windows/dump"
)

// rulesArgs are what a lab that is up needs for the rules of a node.
type rulesArgs struct {
	Node, Output string
	// Port limits to one, "" for all; All lists rules that nothing has matched, too.
	Port string
	All  bool
}

func (a *app) hnsRulesCmd() *cobra.Command {
	var o rulesArgs
	cmd := &cobra.Command{
		Use:   "rules --node NODE [PORT]",
		Short: "List the VFP rules of a running node with the number of packets that each decided",
		Long: `List the VFP rules of a node of a lab that is up, with the number of packets that each
decided, directly or through the flows that it created: packets, bytes, and packets dropped. A
port is pod/NAME, or a part of its name as the list shows it. A TCP segment of Linux that
travels whole (up to 58,000 bytes) is one packet.

-o vfpctrl is the form of vfpctrl /get-rule-counter, which a lab reads with hnsDump.`,
		Example: `  winlab hns rules --node win1
  winlab hns rules --node win1 pod/client --all
  winlab hns rules --node win1 -o vfpctrl > win1-rules.txt`,
		Args: cobra.MaximumNArgs(1),
	}
	name := a.runningFlag(cmd)
	form := output(cmd, "text", "json", "vfpctrl")
	cmd.Flags().StringVar(&o.Node, "node", "", "the `name` of a Windows node")
	cmd.Flags().BoolVar(&o.All, "all", false, "also rules that no packet has matched (always with -o json and vfpctrl)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if o.Node == "" {
			return usagef("--node is missing; write the name of one of the lab's Windows nodes")
		}
		if len(args) > 0 {
			o.Port = args[0]
		}
		o.Output = *form
		return a.call(cmd.Context(), *name, verbRules, o)
	}
	return cmd
}

// countedPort is a port with its rules as -o json shows it.
type countedPort struct {
	Port  string        `json:"port"`
	Name  string        `json:"name"`
	Rules []countedRule `json:"rules"`
}

type countedRule struct {
	Layer    string `json:"layer"`
	Group    string `json:"group"`
	Rule     string `json:"rule"`
	Type     string `json:"type"`
	Priority int    `json:"priority"`
	Packets  uint64 `json:"packets"`
	Bytes    uint64 `json:"bytes"`
	Dropped  uint64 `json:"dropped"`
}

func (l *liveLab) rules(w io.Writer, o rulesArgs) error {
	var s *dump.State
	err := l.net.Do(func(c *lab.Cluster) error {
		m := c.Machine(cluster.Ref{Kind: cluster.NodeKind, Name: o.Node})
		if m == nil {
			return fmt.Errorf("there is no node %s in this lab", o.Node)
		}
		var err error
		if s, err = m.Node.State(); err != nil {
			return err
		}
		return s.KeepPorts(func(p dump.Port) bool {
			pod, ok := strings.CutPrefix(o.Port, "pod/")
			return ok && strings.EqualFold(p.Name, c.PodEndpoint(pod)) || !ok &&
				strings.Contains(strings.ToLower(p.Name+" "+p.Friendly), strings.ToLower(o.Port))
		}, o.Port)
	})
	switch {
	case err != nil:
		return err
	case o.Output == "vfpctrl":
		parts, err := dump.Write("vfp-counters", s)
		if err == nil {
			_, err = w.Write(parts[""])
		}
		return err
	}
	all := counted(s)
	if o.Output == "json" {
		return writeJSON(w, all)
	}
	return printCounted(w, all, o.All)
}

func counted(s *dump.State) []countedPort {
	all := []countedPort{}
	for _, p := range s.Ports {
		out := countedPort{Port: p.Name, Name: p.Friendly, Rules: []countedRule{}}
		for _, r := range p.Rules {
			out.Rules = append(out.Rules, countedRule{r.Layer, r.Group, r.Name, r.Type, r.Priority, r.Counts.Matched, r.Counts.Bytes,
				r.Counts.Dropped})
		}
		all = append(all, out)
	}
	return all
}

// printCounted lists ports with the rules that have matched something, or all.
func printCounted(w io.Writer, ports []countedPort, all bool) error {
	for i, p := range ports {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s (%s)\n", clean.Line(p.Name), p.Port)
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "  PACKETS\tBYTES\tDROPPED\tLAYER\tGROUP\tRULE\tTYPE")
		for _, r := range p.Rules {
			if all || r.Packets > 0 {
				fmt.Fprintf(t, "  %d\t%d\t%d\t%s\t%s\t%s\t%s\n", r.Packets, r.Bytes, r.Dropped, r.Layer, r.Group, clean.Line(r.Rule), r.Type)
			}
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	return nil
}
