package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/conformance/node/bundle"
	"github.com/winlab-dev/winlab/conformance/node/importer"
	"github.com/winlab-dev/winlab/internal/outfile"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
)

func (a *app) importCmd() *cobra.Command {
	var out string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "import BUNDLE -o LAB",
		Short: "Make a lab from a bundle that was taken from a cluster",
		Long: `Make a lab from a bundle: from what winlab collect took on Windows nodes, and from objects
of Kubernetes as kubectl prints them (kubectl get nodes,pods,services,endpointslices,
networkpolicies,configmaps -A -o json, kubectl cluster-info dump). Folders that other scripts
left are taken as well, if files in them show objects of HNS: collectlogs.ps1, AKS' logs, or
a few files. A folder may have bundles of several nodes in it.

Windows nodes have exactly the HNS objects that their files show. Each value in the lab names
the file and the line that it was read from, or what it was concluded from. What is missing is
listed with what that leaves open and the command that settles it. Flows that depend on
something missing are unknown, and name it.

winlab trace and the other commands that take a lab take a bundle as well.`,
		Example: `  winlab import win1.zip -o win1.yaml
  winlab import ./bundles -o cluster.yaml && winlab trace cluster.yaml --from pod/a --to svc/b:80
  winlab import --json ./bundles -o cluster.yaml`,
		Args:              exactly("BUNDLE"),
		ValidArgsFunction: files(false, []string{"zip"}),
	}
	f := cmd.Flags()
	f.StringVarP(&out, "output", "o", "", "the lab `file` to write; what it needs beside it goes into a folder of the same name")
	f.BoolVar(&asJSON, "json", false, "print facts, conclusions and what is missing as JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if out == "" {
			return usagef("-o is missing; write the name of the lab file to write, such as -o cluster.yaml")
		}
		b, err := bundle.Open(cmd.Context(), args[0], bundle.Limits{})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.Close()) }()
		r, _, err := writeLab(cmd.Context(), b, out)
		if err != nil {
			return err
		}
		if asJSON {
			return writeJSON(a.out, r)
		}
		return a.imported(r, out)
	}
	return cmd
}

// imported says what an import found.
func (a *app) imported(r *importer.Result, out string) error {
	fmt.Fprintf(a.out, "%s: %d facts\n", out, len(r.Facts))
	for _, c := range r.Concluded {
		fmt.Fprintf(a.out, "concluded  %s: %s (%s)\n", c.What, c.Value, c.Because)
	}
	missing(a.out, r)
	for _, d := range r.Drift {
		fmt.Fprintf(a.out, "drift      on %s: Kubernetes says: %s\n           HNS says: %s\n           %s\n", d.Node, d.Kubernetes, d.HNS,
			d.Means)
		if d.Moving != "" {
			fmt.Fprintf(a.out, "           %s\n", d.Moving)
		}
	}
	return leftOut(a.out, r)
}

// notKnown says what a lab of a bundle does not rest on: what is missing, and what was left out.
func notKnown(w io.Writer, r *importer.Result) {
	missing(w, r)
	_ = leftOut(w, r)
}

func missing(w io.Writer, r *importer.Result) {
	for _, m := range r.Missing {
		fmt.Fprintf(w, "missing    %s\n           %s\n", m.What, m.Leaves)
		if m.Settle != "" {
			fmt.Fprintf(w, "           settle it with: %s\n", m.Settle)
		}
	}
}

func leftOut(w io.Writer, r *importer.Result) error {
	for _, l := range r.LeftOut {
		if _, err := fmt.Fprintf(w, "left out   %s\n", l); err != nil {
			return err
		}
	}
	return nil
}

// writeLab makes a lab of a bundle and writes it. Files of a bundle in a folder stay where they
// are; those of a .zip are copied beside the lab. shown has the names of both in the bundle, by
// their paths as the lab has them.
func writeLab(ctx context.Context, b *bundle.Bundle, out string) (r *importer.Result, shown map[string]string, err error) {
	dir := filepath.Dir(out)
	name := strings.TrimSuffix(filepath.Base(out), filepath.Ext(out))
	beside := name + ".files"
	var copies []string
	unpacked := b.Unpacked()
	shown = map[string]string{}
	r, err = importer.Import(ctx, b, labName(name), func(file string) (rel string) {
		defer func() {
			path := filepath.FromSlash(rel)
			if !filepath.IsAbs(path) {
				path = filepath.Join(dir, path)
			}
			shown[path] = b.Shown(file)
		}()
		if unpacked {
			copies = append(copies, file)
			return filepath.ToSlash(filepath.Join(beside, "bundle", file))
		}
		at := b.File(file)
		if abs, err := filepath.Abs(at); err == nil {
			if base, err := filepath.Abs(dir); err == nil {
				if rel, err := filepath.Rel(base, abs); err == nil {
					return filepath.ToSlash(rel)
				}
			}
		}
		return at
	}, func(extra string) string { return beside + "/" + extra })
	if err != nil {
		return nil, nil, err
	}
	put := func(name string, data []byte) error {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		return outfile.WriteFile(at, data, 0o666)
	}
	for extra, data := range r.Extra {
		if err := put(beside+"/"+extra, data); err != nil {
			return nil, nil, err
		}
		shown[filepath.Join(dir, beside, extra)] = extra + " of " + b.Path
	}
	for _, file := range copies {
		data, err := b.Read(file)
		if err == nil {
			err = put(beside+"/bundle/"+file, data)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return r, shown, put(filepath.Base(out), r.Lab)
}

// labName is a name that a lab can have.
func labName(s string) string {
	s = strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, strings.ToLower(s)), "-")
	if s == "" {
		return "bundle"
	}
	return s
}

// loadLab loads a lab file, or makes a lab of a bundle; done removes what that needed. What is
// missing in the bundle, and what of it was left out, goes to warn: a verdict may rest on what
// the lab has in its place.
func loadLab(ctx context.Context, path string, warn io.Writer) (f *lab.File, done func(), err error) {
	if !bundle.Is(path) {
		f, err = lab.Load(path)
		return f, func() {}, err
	}
	b, err := bundle.Open(ctx, path, bundle.Limits{})
	if err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp("", "winlab-import-")
	done = func() { _ = os.RemoveAll(dir); _ = b.Close() }
	if err == nil {
		at := filepath.Join(dir, labName(strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)))+".yaml")
		var r *importer.Result
		var files map[string]string
		if r, files, err = writeLab(ctx, b, at); err == nil {
			notKnown(warn, r)
			f, err = lab.LoadShown(at, labfile.Shown{Lab: path, Files: files})
		}
	}
	if err != nil {
		done()
		return nil, nil, err
	}
	return f, done, nil
}
