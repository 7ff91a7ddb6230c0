package cli

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// labOptions choose a state and versions of a lab.
type labOptions struct {
	variant, kubernetes, windows, components string
	// anyBuild takes a lab that does not know the build of some node; else that is an error.
	anyBuild bool
	// keep lets real components stay when the cluster is built.
	keep bool
	// warn receives what is missing in a bundle that is read instead of a lab.
	warn io.Writer
}

func (a *app) labFlags(cmd *cobra.Command) *labOptions {
	o := &labOptions{warn: a.err}
	f := cmd.Flags()
	f.StringVar(&o.variant, "variant", "", "a variant of the lab (spec.variants)")
	f.StringVar(&o.kubernetes, "kubernetes", "",
		"another Kubernetes `version`; if spec.settings has an entry for it, with the kube-proxy flags given there")
	f.StringVar(&o.windows, "windows", "", "another Windows `build` on every Windows node, such as 10.0.20348.2762")
	f.StringVar(&o.components, "components", "",
		"what attaches pods and programs Services on Windows nodes: `model|real` (the programs, under Wine) (default: what the lab says)")
	oneOf(cmd, "components", "--components", labfile.ComponentKinds...)
	fromFile(cmd, "variant", func(s *labfile.Spec) []string {
		var names []string
		for _, v := range s.Variants {
			names = append(names, v.Name)
		}
		return names
	})
	fromFile(cmd, "kubernetes", func(s *labfile.Spec) []string {
		return settings(s, func(t labfile.Setting) string { return t.Kubernetes })
	})
	fromFile(cmd, "windows", func(s *labfile.Spec) []string {
		return settings(s, func(t labfile.Setting) string { return t.Build })
	})
	return o
}

func settings(s *labfile.Spec, value func(labfile.Setting) string) []string {
	var vs []string
	for _, t := range s.Settings {
		if v := value(t); v != "" && !slices.Contains(vs, v) {
			vs = append(vs, v)
		}
	}
	return vs
}

// build loads a lab and builds its cluster.
func (o *labOptions) build(ctx context.Context, path string) (*lab.Cluster, error) {
	f, done, err := loadLab(ctx, path, o.warn)
	if err != nil {
		return nil, err
	}
	defer done()
	set, err := o.setting(&f.Lab.Spec)
	if err != nil {
		return nil, err
	}
	c, err := lab.Build(ctx, f, lab.Options{Variant: o.variant, Setting: set, Components: o.components, Keep: o.keep, Later: o.keep})
	if err != nil || o.anyBuild {
		return c, err
	}
	return c, c.OneBuild()
}

// setting finds the entry of spec.settings that --kubernetes and --windows ask
// for. Among several the one with the lab's own build is taken, else the first.
// When none fits, the versions alone are replaced.
func (o *labOptions) setting(s *labfile.Spec) (*labfile.Setting, error) {
	if o.kubernetes == "" && o.windows == "" {
		return nil, nil
	}
	if o.kubernetes != "" {
		if _, err := kube.ParseVersion(o.kubernetes); err != nil {
			return nil, usagef("--kubernetes: %w", err)
		}
	}
	var own string
	for _, n := range s.Nodes {
		if n.OS == "windows" {
			own = n.Build
			break
		}
	}
	var best *labfile.Setting
	for i := range s.Settings {
		t := &s.Settings[i]
		if o.kubernetes != "" && t.Kubernetes != o.kubernetes || o.windows != "" && !sameBuild(t.Build, o.windows) || o.kubernetes == "" &&
			t.Kubernetes != s.Kubernetes {
			continue
		}
		if best == nil || o.windows == "" && t.Build == own && best.Build != own {
			best = t
		}
	}
	if best != nil {
		return best, nil
	}
	t := &labfile.Setting{Kubernetes: s.Kubernetes, Build: o.windows}
	if o.kubernetes != "" {
		t.Kubernetes = o.kubernetes
	}
	if o.windows != "" {
		v, err := builds.Parse(o.windows)
		if err == nil {
			_, err = builds.Lookup(v)
		}
		if err != nil {
			return nil, usagef("--windows: %w", err)
		}
	}
	return t, nil
}

// sameBuild reports whether a build is the one asked for: whole, without
// "10.0.", or without the revision.
func sameBuild(build, asked string) bool {
	short := strings.TrimPrefix(build, "10.0.")
	asked = strings.TrimPrefix(asked, "10.0.")
	number, _, _ := strings.Cut(short, ".")
	return asked == short || asked == number
}
