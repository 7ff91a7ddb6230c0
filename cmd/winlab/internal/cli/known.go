package cli

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/conformance/known"
	"github.com/winlab-dev/winlab/conformance/known/consult"
	"github.com/winlab-dev/winlab/conformance/known/search"
	"github.com/winlab-dev/winlab/internal/input"
	"github.com/winlab-dev/winlab/internal/strict"
	"github.com/winlab-dev/winlab/reports/clean"
	"github.com/winlab-dev/winlab/sim/kube"
)

// knownFlags say for which cluster known issues are wanted.
type knownFlags struct {
	kubernetes, windows, network string
	components                   []string
	limit                        int
	output                       *string
}

// foundIssue is an entry of the register in the answer of winlab known.
type foundIssue struct {
	*known.Entry
	// Open are conditions that nothing given decides.
	Open []string `json:"open,omitempty"`
}

func (a *app) knownCmd() *cobra.Command {
	f := &knownFlags{}
	cmd := &cobra.Command{
		Use:     "known [WORDS...|-]",
		Aliases: []string{"issues"},
		Short:   "Search the known issues of Windows nodes, or list those that a cluster can have",
		Long: `Search the register of known issues of Windows nodes: networking, names and lifecycle, as
people, maintainers and vendors reported them, with the versions that have them and the fix.

WORDS are a symptom in plain words, an error code, or lines of a log; - reads them from standard
input. The best match comes first. Flags leave out what the cluster cannot have: a version outside
of the affected range, another plugin, another build. Conditions that they do not decide are named.`,
		Example: `  winlab known pod cannot reach service after node reboot
  winlab known 0x803b0013 --kubernetes 1.27
  winlab known --kubernetes 1.33 --windows 2022 --network overlay --component flannel=0.25.5
  kubectl logs -n kube-system kube-proxy-windows-x7x2p | winlab known -
  winlab known show 214`,
		Args: cobra.ArbitraryArgs,
	}
	fs := cmd.Flags()
	fs.StringVarP(&f.kubernetes, "kubernetes", "k", "", "the cluster's `version` of Kubernetes, such as 1.33 or 1.33.2")
	fs.StringVarP(&f.windows, "windows", "w", "", "a `release` of Windows Server, such as 2019, or a build, such as 10.0.17763.1432")
	fs.StringVarP(&f.network, "network", "n", "", "the `type` of the HNS network, such as overlay")
	fs.StringSliceVarP(&f.components, "component", "c", nil, "a `NAME` that the cluster has, such as calico or calico=3.26.1; can be repeated")
	fs.IntVar(&f.limit, "limit", 10, "the most issues to show with WORDS")
	fixed(cmd, "kubernetes", claims.Minors()...)
	fixed(cmd, "windows", releaseNames()...)
	fixed(cmd, "network", known.Networks...)
	fixed(cmd, "component", known.Components...)
	f.output = output(cmd, "text", "json")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return a.known(cmd.Context(), args, f) }
	cmd.AddCommand(a.knownShowCmd())
	return cmd
}

func (a *app) knownShowCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "show ID...",
		Short:   "Show known issues with their versions, symptoms, fix and sources",
		Example: "  winlab known show 214",
		Args:    cobra.MinimumNArgs(1),
	}
	out := output(cmd, "text", "json")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		r := known.Load()
		var all []*known.Entry
		for _, arg := range args {
			id, err := strconv.Atoi(strings.TrimPrefix(arg, "#"))
			if err != nil {
				return usagef("%q is not the number of a known issue; winlab known WORDS finds it", arg)
			}
			e := r.Find(id)
			if e == nil {
				return usagef("there is no known issue %d; winlab known WORDS searches %d issues", id, len(r.Entries))
			}
			all = append(all, e)
		}
		if *out == "json" {
			return writeJSON(a.out, all)
		}
		p := &claimPrinter{w: a.out, width: a.width()}
		for i, e := range all {
			if i > 0 {
				p.line(0, "")
			}
			p.knownIssue(e)
		}
		return p.err
	}
	return cmd
}

// known answers a search, or lists what a cluster can have.
func (a *app) known(ctx context.Context, args []string, f *knownFlags) error {
	text := strings.Join(args, " ")
	if text == "-" {
		b, err := input.ReadAll(ctx, "standard input", os.Stdin, maxPaste)
		if err != nil {
			return err
		}
		text = string(b)
	}
	c, said, err := f.cluster()
	if err != nil {
		return err
	}
	if strings.TrimSpace(text) == "" && !said {
		return usagef("say what to look for: words, an error code or lines of a log, or the cluster: --kubernetes, --windows, --network, --component")
	}
	r := known.Load()
	var found []foundIssue
	for _, m := range c.Matches(r.Entries) {
		if text == "" && !m.Selected {
			continue // about everybody
		}
		found = append(found, foundIssue{m.Entry, m.Open})
	}
	possible := len(found)
	if text != "" {
		if found, err = searched(ctx, text, found, f.limit, said); err != nil {
			return err
		}
	}
	if *f.output == "json" {
		return writeJSON(a.out, found)
	}
	p := &claimPrinter{w: a.out, width: a.width()}
	switch {
	case len(found) == 0 && text != "":
		p.line(0, "None of the %d known issues that fit shares a word with it.", possible)
	case len(found) == 0:
		p.line(0, "None of %d known issues is particular to such a cluster.", len(r.Entries))
	case text != "":
		p.line(0, "Of %d known issues, the %d that match best:", possible, len(found))
	default:
		p.line(0, "%d of %d known issues are particular to such a cluster, or not excluded by what was said of it:", len(found), len(r.Entries))
	}
	for _, i := range found {
		p.line(0, "")
		p.line(2, "%4d  %s", i.ID, clean.Line(i.Title))
		p.text(8, knownWhere(i.Entry))
		if len(i.Open) > 0 {
			p.text(8, "if "+strings.Join(i.Open, ", "))
		}
	}
	if len(found) > 0 {
		p.line(0, "")
		p.line(0, "winlab known show %d says more.", found[0].ID)
	}
	return p.err
}

// maxPaste is the most that is read from standard input, in bytes.
const maxPaste = 1 << 20

// searched are the entries among those found that match a text best. Conditions are kept only
// where something was said of the cluster.
func searched(ctx context.Context, text string, found []foundIssue, limit int, said bool) ([]foundIssue, error) {
	open := map[int][]string{}
	var entries []*known.Entry
	for _, i := range found {
		open[i.ID] = i.Open
		entries = append(entries, i.Entry)
	}
	x, err := search.New(ctx, entries)
	if err != nil {
		return nil, err
	}
	defer x.Close()
	hits, err := x.Find(ctx, text, limit)
	if err != nil {
		return nil, err
	}
	var all []foundIssue
	for _, h := range hits {
		i := foundIssue{Entry: h.Entry}
		if said {
			i.Open = open[h.Entry.ID]
		}
		all = append(all, i)
	}
	return all, nil
}

// cluster is what the flags say; said is false when they say nothing.
func (f *knownFlags) cluster() (c *consult.Cluster, said bool, err error) {
	c = &consult.Cluster{Has: map[string]string{"windows": "", "hns": ""}, Settings: map[string]bool{}}
	if f.kubernetes != "" {
		v, err := kube.ParseVersion(strings.TrimPrefix(f.kubernetes, "v"))
		if err != nil {
			return nil, false, usagef("--kubernetes: %v", err)
		}
		for _, component := range []string{"kubernetes", "kubelet", "kube-proxy"} {
			c.Has[component] = v.Full()
		}
		if v.AtLeast(26) { // the mode userspace was removed
			c.Settings[consult.Kernelspace], c.Settings[consult.Userspace] = true, false
		}
	}
	if f.windows != "" {
		r, ok := claims.ReleaseNamed(f.windows)
		if !ok {
			return nil, false, usagef("--windows: no release of Windows Server is called %q here%s", f.windows, strict.DidYouMean(f.windows, releaseNames()))
		}
		build := r.Build
		if strings.Count(f.windows, ".") == 3 {
			build = f.windows
		}
		c.Builds = []string{build}
	}
	for _, s := range f.components {
		name, version, _ := strings.Cut(s, "=")
		if !slices.Contains(known.Components, name) {
			return nil, false, usagef("--component: the register has no component %q%s", name, strict.DidYouMean(name, known.Components))
		}
		c.Has[name] = version
	}
	c.OnePlugin()
	if f.network != "" && !slices.Contains(known.Networks, f.network) {
		return nil, false, usagef("--network: there is no type %q; write one of %s", f.network, strings.Join(known.Networks, ", "))
	}
	if c.Network = f.network; c.Network != "" {
		c.Settings[consult.Overlay] = c.Network == "overlay"
	}
	return c, f.kubernetes+f.windows+f.network != "" || len(f.components) > 0, nil
}

// knownWhere says in one line who has an issue, and what is known of it.
func knownWhere(e *known.Entry) string {
	parts := consult.Conditions(e)
	parts = append(parts, e.Certainty)
	if e.Simulated != "none" {
		parts = append(parts, "simulated ("+e.Simulated+")")
	}
	return strings.Join(parts, " · ")
}

// knownIssue writes one entry in full.
func (p *claimPrinter) knownIssue(e *known.Entry) {
	p.line(0, "%d  %s", e.ID, clean.Line(e.Title))
	part := func(name, text string) {
		if text != "" {
			p.line(0, "")
			p.line(0, "%s", name)
			p.text(2, text)
		}
	}
	part("Affects", cmp.Or(strings.Join(consult.Conditions(e), "; "), "every Windows node"))
	part("Symptom", e.Symptoms.Words)
	for _, l := range e.Symptoms.Logs {
		p.line(2, "%s logs: %s", l.Program, clean.Line(l.Text))
	}
	if len(e.Symptoms.Codes) > 0 {
		p.line(2, "codes: %s", strings.Join(e.Symptoms.Codes, ", "))
	}
	if len(e.Symptoms.Events) > 0 {
		p.line(2, "events: %s", strings.Join(e.Symptoms.Events, ", "))
	}
	for _, s := range e.Symptoms.State {
		p.text(2, s)
	}
	part("Cause", e.Cause)
	part("Fix", e.Fix)
	part("Workaround", e.Workaround)
	part("Certainty", map[string]string{"fixed": "a fix was merged or released", "acknowledged": "a maintainer or the vendor says so",
		"reported": "only reporters say so"}[e.Certainty])
	if e.Simulated != "none" {
		part("In winlab", "simulated by "+e.Simulated)
	} else {
		part("In winlab", "not simulated: a trace does not show it")
	}
	p.line(0, "")
	p.line(0, "Sources")
	for _, s := range e.Sources {
		p.text(2, strings.TrimSpace(s.Date+" "+s.Who)+": "+s.Says)
		p.line(4, "%s", s.URL)
	}
}
