package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/reports/support"
)

// answered is the JSON form of an answer.
type answered struct {
	Claim   string          `json:"claim"`
	Title   string          `json:"title"`
	Answers []support.Reply `json:"answers"`
	// Related are claims that try one of the same things.
	Related []string        `json:"related,omitempty"`
	Sources []result.Source `json:"sources"`
}

func (a *app) claimsAnswerCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "answer ID",
		Short: "Say whether something works in a Kubernetes version, on a Windows release, with a network design",
		Long: `Say whether what a claim is about works in a version of Kubernetes, on a release of
Windows Server, in a network design: it works, works under conditions, does not
work, or is unknown. The documents' version ranges also cover versions that were never run.

Without --results the answer rests on the documents alone. With the results of a run it also
compares the documents with the model and with everything else that was tried.`,
		Example: `  winlab claims answer nodeport-from-own-node --kubernetes 1.33 --windows 2022 --design overlay-flannel-vxlan
  winlab run fixtures/labs -d out && winlab claims answer nodeport-from-own-node --results out
  winlab claims answer icmp-outside-unsupported --design 'overlay-*' -o json`,
		Args: exactly("ID"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return claimIDs(), cobra.ShellCompDirectiveNoFileComp
		},
	}
	var q support.Question
	var results string
	fs := cmd.Flags()
	fs.StringVarP(&q.Kubernetes, "kubernetes", "k", "", "a `version` of Kubernetes, such as 1.33; all of them when it is left out")
	fs.StringVarP(&q.Windows, "windows", "w", "", "a `release` of Windows Server, such as 2022, or a build, such as 10.0.17763.1432")
	fs.StringVar(&q.Design, "design", "", "a network `design`: the name of a lab, or a pattern, such as overlay-*")
	fs.StringVar(&results, "results", "", "the `folder` of winlab run, or its results.json")
	fixed(cmd, "kubernetes", claims.Minors()...)
	fixed(cmd, "windows", releaseNames()...)
	fixed(cmd, "design", designNames()...)
	out := output(cmd, "text", "json")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		l, err := claims.Load()
		if err != nil {
			return err
		}
		c := l.Claim(args[0])
		if c == nil {
			return usagef("there is no claim %q%s", args[0], nearClaims(l, args[0]))
		}
		doc := &result.Document{Schema: result.Schema, Versions: claims.Minors(), Designs: claims.ResultDesigns(), Areas: l.Areas(),
			Claims: l.Results()}
		if results != "" {
			if doc, err = result.Load(results); err != nil {
				return err
			}
		}
		m := support.New(doc)
		replies, err := m.Ask(c.ID, q)
		if err != nil {
			return usagef("%v", err)
		}
		at := slices.IndexFunc(doc.Claims, func(x result.Claim) bool { return x.ID == c.ID })
		s := answered{Claim: c.ID, Title: c.Title, Answers: replies, Related: m.Table(c.ID).Related, Sources: doc.Claims[at].Sources}
		if *out == "json" {
			return writeJSON(a.out, s)
		}
		p := &claimPrinter{w: a.out, width: a.width()}
		p.answer(&s, m)
		return p.err
	}
	return cmd
}

// answer writes one block for each state of the feature, with the designs that have it.
func (p *claimPrinter) answer(s *answered, m *support.Matrix) {
	p.line(0, "%s", s.Claim)
	p.line(0, "%s", s.Title)
	done := make([]bool, len(s.Answers))
	for i := range s.Answers {
		if done[i] {
			continue
		}
		r := &s.Answers[i]
		var designs []string
		for j := i; j < len(s.Answers); j++ {
			if o := &s.Answers[j]; !done[j] && sameReply(r, o) {
				done[j] = true
				designs = append(designs, o.Design)
			}
		}
		mark := ""
		if r.Contested {
			mark = "  (contested)"
		}
		p.line(0, "")
		p.line(0, "%s%s", strings.ToUpper(support.Heading(r.State)), mark)
		p.line(2, "Kubernetes %s, Windows: %s", versionsOf(r), r.Windows)
		p.text(2, strings.Join(designs, ", "))
		p.text(2, "why: "+r.Why)
		for _, n := range r.Notes {
			p.text(2, "note: "+n)
		}
		if r.Node == support.Nowhere && r.Windows != m.AnyTitle() && r.Since == r.Until {
			p.line(2, "note: no document names this Windows as a node of Kubernetes %s", r.Kubernetes)
		}
		p.line(2, "evidence: documents %s; model %s; components %s; simulated cluster %s; cluster %s", cmpState(r.Documents), relation(r.Model),
			relation(r.Components), relation(r.Simulated), relation(r.Cluster))
	}
	p.head("Sources")
	for _, x := range s.Sources {
		p.text(2, strings.TrimSpace(x.Doc+", "+x.Version)+": "+x.Section)
	}
	if len(s.Related) > 0 {
		p.head("Claims that try the same")
		p.text(2, strings.Join(s.Related, ", "))
	}
}

// sameReply reports whether two replies differ in the design only.
func sameReply(a, b *support.Reply) bool {
	return a.State == b.State && a.Since == b.Since && a.Until == b.Until && a.Why == b.Why && a.Contested == b.Contested &&
		slices.Equal(a.Notes, b.Notes) &&
		a.Documents == b.Documents && a.Model.Relation == b.Model.Relation && a.Components.Relation == b.Components.Relation &&
		a.Cluster.Relation == b.Cluster.Relation && a.Simulated.Relation == b.Simulated.Relation
}

func versionsOf(r *support.Reply) string {
	if r.Since == r.Until {
		return r.Since
	}
	return r.Since + " to " + r.Until
}

func cmpState(s support.State) string {
	switch s {
	case support.Nowhere:
		return "are silent"
	case support.Unknown:
		return "contradict each other"
	}
	return "say that it " + support.Heading(s)
}

// relation is a kind of evidence in words.
func relation(e support.Evidence) string {
	switch e.Relation {
	case support.Agrees:
		return "agrees"
	case support.Contradicts:
		return "contradicts them"
	case support.Unclear:
		return "leaves it open"
	case support.Own:
		if e.Says != support.Nowhere {
			return "says that it " + support.Heading(e.Says)
		}
		return "leaves it open"
	case support.Near:
		return "was tried in other versions"
	}
	return "not tried"
}
