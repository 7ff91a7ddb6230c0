package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/conformance/check"
	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/conformance/node/bundle"
	"github.com/winlab-dev/winlab/conformance/node/diagnose"
	"github.com/winlab-dev/winlab/conformance/node/doctor"
	"github.com/winlab-dev/winlab/conformance/node/observed"
	"github.com/winlab-dev/winlab/reports/findings"
)

func (a *app) doctorCmd() *cobra.Command {
	var s targetFlags
	chosen := selectFlags{profile: "all"}
	var list, report bool
	cmd := &cobra.Command{
		Use:   "doctor DIR|BUNDLE",
		Short: "Look for causes of trouble in a folder taken from a Windows node, or in a bundle",
		Long: `Look in a folder of files taken from a Windows node for the causes of trouble that
the documents describe: lists of HNS networks and endpoints (Get-HnsNetwork,
Get-HnsEndpoint, hnsdiag list all), ipconfig and route tables, adapters, services and
processes, CNI configurations, command lines, logs, descriptions of nodes and pods.
Files are recognised by their content; fixtures/nodes/README.md has the commands that
take such a folder.

In a bundle of winlab collect (a folder or a .zip), or a folder with HNS of nodes and
objects of Kubernetes, it also looks for differences between the two: load balancers and
endpoints that are missing, left over or not as Kubernetes asks for, and paths to other
nodes' pods that flanneld would set up differently. It makes a lab of the bundle and sends
packets between pods and to Services; a packet that is certainly lost is a finding with the
place.

Each finding has the symptom, the cause with the lines that show it, and the fix.
What is in order is counted. What could not be examined is listed with the command
that makes the missing file.

Suppress a known cause with --ignore CLAIM=REASON; with --baseline, only causes that an
earlier run did not find count.

Exit codes: 0 nothing found at the level of --fail-on or above, 1 a cause was found,
2 a file could not be read, or wrong usage.`,
		Example: `  winlab doctor fixtures/nodes/subnet-env-missing
  winlab doctor --kubernetes 1.20 --windows 2019 ./win1
  winlab doctor --bug-report ./win1 > report.md
  winlab doctor win1.zip
  winlab doctor bundles        # of several nodes, with cluster.json of kubectl beside them
  winlab doctor --list`,
		Args: func(cmd *cobra.Command, args []string) error {
			if list {
				return exactly()(cmd, args)
			}
			return exactly("DIR|BUNDLE")(cmd, args)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	out := output(cmd, "text", "json", "sarif", "junit")
	s.add(cmd)
	chosen.addKnown(cmd)
	cmd.Flags().StringVar(&chosen.fail, "fail-on", "warning", "the lowest level of a finding that sets the exit code to 1: "+
		strings.Join(failOn, ", "))
	cmd.Flags().BoolVar(&list, "list", false, "list what the doctor looks for, and nothing else")
	cmd.Flags().BoolVar(&report, "bug-report", false,
		"print what a bug report to SIG Windows asks for, as Markdown, as far as the folder has the answers")
	fixed(cmd, "fail-on", failOn...)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		l, err := claims.Load()
		if err != nil {
			return err
		}
		sel, err := chosen.read(cmd, l)
		if err != nil {
			return err
		}
		if list {
			return a.causes(*out)
		}
		t, err := s.target()
		if err != nil {
			return err
		}
		doc, err := a.examine(cmd.Context(), args[0], t, l, report)
		if err != nil || doc == nil {
			return err
		}
		doc.Tool, doc.Command = currentVersion().String(), a.command()
		check.Ignore(doc, sel.ignore)
		check.Select(doc, sel.baseline, chosen.profile)
		if err := sel.put(doc); err != nil {
			return err
		}
		return a.found(doc, *out, &chosen)
	}
	return cmd
}

// examine looks into a folder or a bundle. With report it prints a bug report, and the
// document is nil.
func (a *app) examine(ctx context.Context, path string, t claims.Target, l *claims.Ledger, report bool) (doc *findings.Document,
	err error) {
	whole, err := diagnose.Is(ctx, path)
	if err != nil {
		return nil, err
	}
	if whole && !report {
		b, err := bundle.Open(ctx, path, bundle.Limits{})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, b.Close()) }()
		return diagnose.Bundle(ctx, b, t, l)
	}
	if i, err := os.Stat(path); err != nil || !i.IsDir() {
		return nil, usagef("%s is not a folder; name the folder with the files that were taken from the node, or a bundle of winlab collect",
			path)
	}
	n, err := observed.Read(ctx, path)
	if err != nil {
		return nil, err
	}
	if report {
		_, err := fmt.Fprint(a.out, doctor.BugReport(n, t))
		return nil, err
	}
	return doctor.Examine(n, t, l), nil
}

// causes prints what the doctor looks for.
func (a *app) causes(form string) error {
	type cause struct {
		Item   string `json:"item"`
		Claim  string `json:"claim"`
		Cause  string `json:"cause"`
		Level  string `json:"level"`
		Effect string `json:"effect"`
	}
	var all []cause
	for _, i := range doctor.Items() {
		for _, c := range i.Causes {
			id := c.Claim
			if id == "" {
				id = i.Claim
			}
			all = append(all, cause{i.Title, id, c.ID, string(c.Level), c.Effect})
		}
	}
	if form == "json" {
		return writeJSON(a.out, all)
	}
	item := ""
	for _, c := range all {
		if c.Item != item {
			item = c.Item
			fmt.Fprintln(a.out, item)
		}
		if _, err := fmt.Fprintf(a.out, "  %-28s %-8s %s\n", c.Cause, c.Level, c.Claim); err != nil {
			return err
		}
	}
	return nil
}
