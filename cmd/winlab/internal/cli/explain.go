package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/internal/strict"
	"github.com/winlab-dev/winlab/sim/dataplane/ovs"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
	"github.com/winlab-dev/winlab/sim/trace/text"
)

// verdictInfo and paramInfo are the JSON forms of what explain prints.
type verdictInfo struct {
	Verdict trace.Verdict `json:"verdict"`
	Means   string        `json:"means"`
}

type paramInfo struct {
	Name    string   `json:"name"`
	Values  []string `json:"values,omitempty"` // empty: any value
	Default string   `json:"default"`
	Means   string   `json:"means,omitempty"`
	// Open says that every value is tried.
	Open bool `json:"open,omitempty"`
}

func (a *app) explainCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain [CODE | params | facts | fact ID]",
		Short: "Explain a verdict, a reason code, a parameter or a fact",
		Long: `Explain a verdict, a reason code, a parameter or a fact that the simulator follows.
Without an argument, all verdicts and reason codes are listed.`,
		Example: `  winlab explain
  winlab explain icmp-not-translated
  winlab explain no-reply
  winlab explain params
  winlab explain fact wire.ethernet`,
		Args: cobra.ArbitraryArgs,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			switch {
			case len(args) == 0:
				return append(codes(), "params", "facts", "fact"), cobra.ShellCompDirectiveNoFileComp
			case len(args) == 1 && args[0] == "fact":
				return factIDs(), cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
	}
	out := output(cmd, "text", "json")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		v, print, err := explain(args)
		switch {
		case err != nil:
			return err
		case *out == "json":
			return writeJSON(a.out, v)
		}
		return print(a.out)
	}
	return cmd
}

// explain finds what was asked for: as data, and as a function that prints it.
func explain(args []string) (any, func(io.Writer) error, error) {
	switch {
	case len(args) == 0:
		v := struct {
			Verdicts []verdictInfo       `json:"verdicts"`
			Reasons  []trace.Explanation `json:"reasons"`
		}{verdictInfos(), trace.Reasons}
		return v, printCodes, nil
	case args[0] == "params" && len(args) == 1:
		ps := params()
		return ps, func(w io.Writer) error { return printParams(w, ps) }, nil
	case args[0] == "facts" && len(args) == 1:
		return evidence.All(), printFacts, nil
	case args[0] == "fact" && len(args) == 2:
		f := evidence.Lookup(args[1])
		if f == nil {
			return nil, nil, fmt.Errorf("there is no fact %q%s (winlab explain facts lists them all)", args[1], near(args[1], factIDs()))
		}
		return f, func(w io.Writer) error { return printFact(w, f) }, nil
	case args[0] == "fact" && len(args) == 1:
		return nil, nil, usagef("say which fact: winlab explain fact ID; winlab explain facts lists them")
	case args[0] == "fact":
		return nil, nil, usagef("%q is one argument too many; write winlab explain fact ID", args[2])
	case len(args) > 1:
		return nil, nil, usagef("%q is one argument too many; write winlab explain CODE or winlab explain fact ID", args[1])
	}
	code := strings.ToLower(args[0])
	if e, ok := trace.Explain(trace.Reason(code)); ok {
		return e, func(w io.Writer) error { return text.Explanation(w, e) }, nil
	}
	for _, v := range verdictInfos() {
		if string(v.Verdict) == code {
			return v, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s  (a verdict)\n  %s\n", v.Verdict, v.Means)
				return err
			}, nil
		}
	}
	for _, p := range params() {
		if p.Name == code {
			return p, func(w io.Writer) error { return printParams(w, []paramInfo{p}) }, nil
		}
	}
	if f := evidence.Lookup(args[0]); f != nil {
		return f, func(w io.Writer) error { return printFact(w, f) }, nil
	}
	return nil, nil, fmt.Errorf("there is no verdict, reason code, parameter or fact %q%s (winlab explain lists the codes)", args[0],
		near(code, codes()))
}

// near proposes the name that was probably meant, if one is close.
func near(word string, names []string) string {
	if s := strict.DidYouMean(word, names); strings.Contains(s, "did you mean") {
		return s
	}
	return ""
}

func codes() []string {
	ids := verdicts()
	for _, r := range trace.Reasons {
		ids = append(ids, string(r.Code))
	}
	return ids
}

func factIDs() []string {
	var ids []string
	for _, f := range evidence.All() {
		ids = append(ids, f.ID)
	}
	return ids
}

func verdictInfos() []verdictInfo {
	var vs []verdictInfo
	for _, v := range trace.Verdicts {
		vs = append(vs, verdictInfo{v.ID, v.Means})
	}
	return vs
}

// params lists the parameters of labs and those of Open vSwitch designs.
func params() []paramInfo {
	var ps []paramInfo
	for _, p := range labfile.Params() {
		ps = append(ps, paramInfo{p.Name, p.Values, p.Default, p.Means, p.Open})
	}
	for _, p := range ovs.Params {
		if slices.ContainsFunc(ps, func(q paramInfo) bool { return q.Name == p.Name }) {
			continue
		}
		ps = append(ps, paramInfo{Name: p.Name, Values: p.Values, Default: p.Default[""], Means: "Open vSwitch designs only"})
	}
	return ps
}

func printCodes(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "VERDICT\tMEANS")
	for _, v := range trace.Verdicts {
		fmt.Fprintf(t, "%s\t%s\n", v.ID, v.Means)
	}
	fmt.Fprintln(t, "\t\nREASON\tMEANS")
	for _, r := range trace.Reasons {
		fmt.Fprintf(t, "%s\t%s\n", r.Code, r.Title)
	}
	return t.Flush()
}

func printParams(w io.Writer, ps []paramInfo) error {
	fmt.Fprintln(w, "Parameters choose among behaviours that no source decides: spec.params of a lab.")
	for _, p := range ps {
		values := strings.Join(p.Values, ", ")
		if values == "" {
			values = "any"
		}
		fmt.Fprintf(w, "\n%s\n  %s\n  values   %s\n  default  %s\n", p.Name, p.Means, values,
			cmp.Or(p.Default, map[bool]string{true: "open: every value is tried"}[p.Open], "depends on the design"))
	}
	return nil
}

func printFacts(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "FACT\tGRADE\tSAYS")
	for _, f := range evidence.All() {
		fmt.Fprintf(t, "%s\t%s\t%s\n", f.ID, f.Grade, f.Says)
	}
	return t.Flush()
}

func printFact(w io.Writer, f *evidence.Fact) error {
	fmt.Fprintf(w, "%s\n  %s\n  grade    %s\n", f.ID, f.Says, f.Grade)
	for _, s := range f.Sources {
		fmt.Fprintf(w, "  source   %s\n", s)
	}
	if f.Param != "" {
		fmt.Fprintf(w, "  param    %s\n", f.Param)
	}
	return nil
}
