package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/sim/kube/dns"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/text"
)

func toolNames() string { return strings.Join(tools(), ", ") }

func parseTool(s string) (dns.Tool, error) {
	if s == "" {
		return "", nil
	}
	for _, t := range dns.Tools {
		if strings.EqualFold(s, string(t)) {
			return t, nil
		}
	}
	return "", fmt.Errorf("--tool: there is no tool %q; write one of %s", s, toolNames())
}

func (a *app) resolveCmd() *cobra.Command {
	var from, tool string
	var verbose bool
	cmd := &cobra.Command{
		Use:   "resolve LAB --from X NAME",
		Short: "Resolve a name as a program in a lab would",
		Long: `Resolve a name as a program in a lab would, and print every question with its
answer. Programs on Windows differ: Resolve-DnsName asks the DNS client, nslookup
has its own resolver, ping represents all programs that call getaddrinfo.

The exit code is 1 when the name does not resolve.`,
		Example: `  winlab resolve fixtures/labs/l2bridge-flannel-host-gw.yaml --from pod/client win-webserver
  winlab resolve fixtures/labs/l2bridge-flannel-host-gw.yaml --from pod/client win-webserver.default --tool nslookup
  winlab resolve fixtures/labs/l2bridge-flannel-host-gw.yaml --from pod/linux-client www.example.com -o json`,
		Args: exactly("LAB", "NAME"),
		ValidArgsFunction: func(c *cobra.Command, args []string, s string) ([]string, cobra.ShellCompDirective) {
			return files(false, labExts)(c, args, s)
		},
	}
	o := a.labFlags(cmd)
	out := output(cmd, "text", "json")
	cmd.Flags().StringVar(&from, "from", "", "who asks: pod/NAME, node/NAME or host/NAME")
	cmd.Flags().StringVar(&tool, "tool", "", "the `program` that asks: "+toolNames()+" (default: Resolve-DnsName on Windows, linux on Linux)")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "also print the path of every question")
	fixed(cmd, "tool", tools()...)
	a.fromLab(cmd, "from", o, func(c *lab.Cluster) []string { f, _ := c.Names(); return f })
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		t, err := parseTool(tool)
		if err != nil {
			return usageError{err}
		}
		if from == "" {
			return usagef("say who asks: --from pod/client")
		}
		c, err := o.build(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		l, err := c.Resolve(cmd.Context(), from, args[1], t)
		if err != nil {
			return err
		}
		if *out == "json" {
			err = writeJSON(a.out, l)
		} else {
			opt := text.Options{Color: a.colour(), Width: a.width()}
			if verbose {
				opt.Detail = text.Verbose
			}
			err = text.Lookup(a.out, &l, opt)
		}
		if err != nil {
			return err
		}
		if l.Verdict != trace.Delivered {
			return unexpected{}
		}
		return nil
	}
	return cmd
}
