package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/conformance/reach"
	doc "github.com/winlab-dev/winlab/reports/reach"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/lab/flow"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/lab/plan"
	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// whatifOptions are the flags of whatif.
type whatifOptions struct {
	*labOptions
	reach.Options
	set, proxyFlags, delete []string
	all                     bool
}

func (a *app) whatifCmd() *cobra.Command {
	o := &whatifOptions{}
	cmd := &cobra.Command{
		Use:   "whatif A [B]",
		Short: "Say which flows change with another Windows, Kubernetes, flag or policy, and what changes each",
		Long: `Say which flows change with another Windows, Kubernetes, kube-proxy flag or policy, or from lab
or bundle A to B, and what changes each: the first step at which the packet's path differs,
with the rule, the configuration and the fact behind it.

winlab sends the flows of winlab reach on both sides. Flows that change for the same cause form
one group.
--kubernetes, --windows and --variant choose the state of A, and of B where it is another lab;
--set, --proxy-flag and --delete change B.

The exit code is 1 when something changed.`,
		Example: `  winlab whatif fixtures/labs/overlay-flannel-vxlan.yaml --windows 10.0.17763.1217 --set windows=10.0.17763.1432
  winlab whatif fixtures/labs/l2bridge-flannel-host-gw.yaml --set windows=10.0.26100.1,kubernetes=1.37
  winlab whatif fixtures/labs/overlay-flannel-vxlan.yaml --windows 10.0.20348.2762 --set kubernetes=1.36 --proxy-flag=--enable-dsr=true
  winlab whatif fixtures/plugins/overlay-calico-vxlan.yaml --variant policies --delete netpol/peer-admits-clients
  winlab whatif main/lab.yaml branch/lab.yaml -o markdown
  winlab whatif cluster.zip --set windows=10.0.26100.1 --from "pod/shop/*"`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: files(true, labExts),
	}
	o.labOptions = a.labFlags(cmd)
	out := output(cmd, "text", "markdown", "json")
	a.reachFlags(cmd, &o.Options, o.labOptions)
	f := cmd.Flags()
	f.StringSliceVar(&o.set, "set", nil, "what differs in B: windows=`BUILD`, kubernetes=VERSION or variant=NAME")
	f.StringArrayVar(&o.proxyFlags, "proxy-flag", nil,
		"a `flag` of kube-proxy on Windows nodes in B, which replaces the flag of the same name: --enable-dsr=true")
	f.StringSliceVar(&o.delete, "delete", nil, "an `object` that is not in B: netpol/NAME, svc/NAME or pod/NAME")
	f.BoolVar(&o.all, "all", false, fmt.Sprintf("list all flows, not only %d of each group", doc.Shown))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 && len(o.set)+len(o.proxyFlags)+len(o.delete) == 0 {
			return usagef("say what differs: --set windows=BUILD, --set kubernetes=VERSION, --proxy-flag, --delete, or a second lab")
		}
		if err := checkPorts(o.Ports); err != nil {
			return err
		}
		x, y, err := o.buildBothSides(cmd.Context(), args)
		if err != nil {
			return err
		}
		c, err := reach.Compare(cmd.Context(), x, y, len(o.delete)+len(o.proxyFlags) > 0, o.Options)
		if err != nil {
			return reachError(err)
		}
		return a.printChange(c, *out, o.all)
	}
	return cmd
}

func (a *app) printChange(c *doc.Change, form string, all bool) error {
	limit := doc.Shown
	if all {
		limit = 0
	}
	var err error
	switch form {
	case "json":
		err = doc.WriteJSON(a.out, c)
	case "markdown":
		err = doc.WriteChangeMarkdown(a.out, c, limit)
	default:
		err = doc.WriteChange(a.out, c, limit)
	}
	if err == nil && (c.Changed > 0 || len(c.OnlyA)+len(c.OnlyB) > 0) {
		err = unexpected{}
	}
	return err
}

// buildBothSides builds the two sides.
func (o *whatifOptions) buildBothSides(ctx context.Context, args []string) (a, b *lab.Cluster, err error) {
	if a, err = o.build(ctx, args[0]); err != nil {
		return nil, nil, err
	}
	warn := o.warn
	if len(args) == 1 {
		warn = io.Discard // the same bundle: it was said
	}
	f, done, err := loadLab(ctx, args[len(args)-1], warn)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	variant, set, err := o.variantAndSettingOfB(f)
	if err != nil {
		return nil, nil, err
	}
	p, err := plan.New(f, variant, set)
	if err != nil {
		return nil, nil, err
	}
	if err := reach.Delete(p, o.delete); err != nil {
		return nil, nil, usagef("--delete: %w", err)
	}
	c, err := cluster.New(ctx, p, cluster.Options{Components: o.components})
	if err != nil {
		return nil, nil, err
	}
	return a, flow.New(c), nil
}

// variantAndSettingOfB is the variant and the setting of B: those of A with what is to be otherwise.
func (o *whatifOptions) variantAndSettingOfB(f *lab.File) (variant string, set *labfile.Setting, err error) {
	variant = o.variant
	s := &f.Lab.Spec
	if set, err = o.setting(s); err != nil {
		return "", nil, err
	}
	next := labfile.Setting{Kubernetes: s.Kubernetes}
	if set != nil {
		next = *set
	}
	var errs []error
	changed := len(o.proxyFlags) > 0
	for _, text := range o.set {
		k, v, _ := strings.Cut(text, "=")
		switch {
		case v == "":
			errs = append(errs, fmt.Errorf("--set %s: write windows=BUILD, kubernetes=VERSION or variant=NAME", text))
		case k == "variant":
			variant = v
		case k == "kubernetes":
			_, err := kube.ParseVersion(v)
			errs = append(errs, prefixed("--set kubernetes", err))
			next.Kubernetes, changed = v, true
		case k == "windows" || k == "build":
			build, err := builds.Parse(v)
			if err == nil {
				_, err = builds.Lookup(build)
			}
			errs = append(errs, prefixed("--set "+k, err))
			next.Build, changed = v, true
		default:
			errs = append(errs, fmt.Errorf("--set %s: %q cannot be set; write windows=BUILD, kubernetes=VERSION or variant=NAME", text, k))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return "", nil, usageError{err}
	}
	if !changed {
		return variant, set, nil
	}
	if len(o.proxyFlags) > 0 {
		next.Proxy = withFlags(f, variant, &next, o.proxyFlags)
	}
	return variant, &next, nil
}

func prefixed(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// withFlags is kube-proxy of a lab with other flags: each replaces the one that has
// its name.
func withFlags(f *lab.File, variant string, set *labfile.Setting, flags []string) *labfile.Proxy {
	of := f.Lab.Spec.Proxy
	if v, err := f.Variant(variant); err == nil {
		of = v.Lab.Spec.Proxy
	}
	if set.Proxy != nil {
		of = *set.Proxy
	}
	of.Flags = slices.Clone(of.Flags)
	for _, next := range flags {
		name, _, _ := strings.Cut(next, "=")
		of.Flags = slices.DeleteFunc(of.Flags, func(was string) bool {
			n, _, _ := strings.Cut(was, "=")
			return n == name
		})
		of.Flags = append(of.Flags, next)
	}
	return &of
}
