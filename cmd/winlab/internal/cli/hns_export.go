package cli

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/internal/outfile"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/windows/dump"
)

func (a *app) hnsExportCmd() *cobra.Command {
	var node, form, file string
	var forms strings.Builder
	for _, f := range dump.Forms() {
		fmt.Fprintf(&forms, "\n  %-14s %s", f.Name, f.Doc)
		switch {
		case f.Carries != nil:
			forms.WriteString(" (a part of the node)")
		case f.Lossy:
			forms.WriteString(" (does not show everything)")
		}
	}
	cmd := &cobra.Command{
		Use:   "export LAB --node NODE",
		Short: "Print what the tools on a lab's Windows node would print",
		Long: `Print what the tools on a Windows node of a lab would print: its HNS, routes and
interfaces, in one of the forms in which people save and post them. A lab reads each
form with hnsDump, alone or in a folder with others, and winlab doctor reads it. A form
that shows only a part of the node needs others beside it.

A node whose switch is Open vSwitch has no HNS in the model; only the forms that show the
host are available for it.

The forms:` + forms.String(),
		Example: `  winlab hns export fixtures/labs/l2bridge-flannel-host-gw.yaml --node win1
  winlab hns export fixtures/labs/overlay-flannel-vxlan.yaml --node win1 --form list
  winlab hns export fixtures/labs/overlay-flannel-vxlan.yaml --node win1 --form collectlogs -w /tmp/win1`,
		Args:              exactly("LAB"),
		ValidArgsFunction: files(false, labExts),
	}
	o := a.labFlags(cmd)
	output(cmd, "text")
	cmd.Flags().StringVar(&node, "node", "", "the `name` of the Windows node")
	cmd.Flags().StringVar(&form, "form", "v1", "the `form` to print")
	cmd.Flags().StringVarP(&file, "write", "w", "", "write to a `FILE`, or to a folder for a form of several files")
	fixed(cmd, "form", dump.FormNames()...)
	a.fromLab(cmd, "node", o, func(c *lab.Cluster) []string {
		var names []string
		for _, m := range c.Machines(cluster.NodeKind) {
			if m.Node.Plan.Windows() {
				names = append(names, m.Node.Name)
			}
		}
		return names
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !slices.Contains(dump.FormNames(), form) {
			return usagef("--form: there is no form %q; write one of %s", form, strings.Join(dump.FormNames(), ", "))
		}
		if node == "" {
			return usagef("--node is missing; write the name of one of the lab's Windows nodes")
		}
		c, err := o.build(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		m := c.Machine(cluster.Ref{Kind: cluster.NodeKind, Name: node})
		if m == nil {
			var names []string
			for _, m := range c.Machines(cluster.NodeKind) {
				names = append(names, m.Ref.Name)
			}
			return usagef("--node: the lab has no node %q; write one of %s", node, strings.Join(names, ", "))
		}
		s, err := m.Node.State()
		if err != nil {
			return err
		}
		parts, err := dump.Write(form, s)
		if err != nil {
			return err
		}
		return a.writeParts(parts, file, form)
	}
	return cmd
}

// writeParts writes a form of one file to standard output or a file, one of
// several files to a folder.
func (a *app) writeParts(parts map[string][]byte, to, form string) error {
	if data, ok := parts[""]; ok {
		if to == "" {
			_, err := a.out.Write(data)
			return err
		}
		return outfile.WriteFile(to, data, 0o666)
	}
	if to == "" {
		return usagef("the form %s has several files; name a folder for them with -w", form)
	}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		at := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if err := outfile.WriteFile(at, parts[name], 0o666); err != nil {
			return err
		}
	}
	return nil
}
