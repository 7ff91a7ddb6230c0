package doctor

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/conformance/node/observed"
	"github.com/winlab-dev/winlab/reports/findings"
)

// mostKnown bounds the known issues that are named, and the lines of each.
const mostKnown = 3

// Examine looks for all causes. What t leaves open is taken from the
// node's own files. An item whose claim does not hold for the node's
// version is skipped: the documents of that version do not have it.
func Examine(n *observed.Node, t claims.Target, l *claims.Ledger) *findings.Document {
	x := newNodeFacts(n, t)
	d := &findings.Document{Schema: findings.Schema, Files: len(n.Files), Documents: len(n.Files),
		CarriedOver: claims.CarriedOver([]claims.Target{x.t})}
	if x.t != (claims.Target{}) {
		d.Settings = []string{x.t.String()}
	}
	for _, f := range n.Files {
		if f.Skipped == "" {
			d.Read = append(d.Read, f.Name)
		}
		if len(f.As) == 0 {
			if d.Passed == nil {
				d.Passed = map[string]int{}
			}
			why := cmp.Or(f.Skipped, "of a kind that the doctor does not know")
			d.Passed[why]++
			if f.Skipped != "empty" {
				d.NotUnderstood = append(d.NotUnderstood, f.Name+": "+why)
			}
		}
	}
	for _, c := range n.Cut {
		d.NotExamined = append(d.NotExamined, c.Place.File+": "+c.Value)
	}
	for _, m := range n.Mistakes {
		d.Mistakes = append(d.Mistakes, findings.Mistake{File: m.File, Line: m.Line, Column: m.Column, Message: m.Message})
	}
	for i, k := range n.KnownIssues() {
		if i == mostKnown {
			break
		}
		issue := findings.KnownIssue{ID: k.Entry.ID, Title: k.Entry.Title}
		for j, p := range k.Places {
			if j < mostKnown {
				issue.Lines = append(issue.Lines, fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text))
			}
		}
		d.Known = append(d.Known, issue)
	}
	for _, item := range Items() {
		x.item(item, l, d)
	}
	return d
}

func (x *nodeFacts) item(item Item, l *claims.Ledger, d *findings.Document) {
	var fine, missing []string
	hits := 0
	for _, c := range item.Causes {
		claim := l.Claim(cmp.Or(c.Claim, item.Claim))
		if claim == nil || !holds(claim, x.t) {
			continue
		}
		out := c.look(x)
		for _, h := range merge(out.hits) {
			hits++
			d.Findings = append(d.Findings, x.finding(c, claim, h))
		}
		if out.healthy != "" && !slices.Contains(fine, out.healthy) {
			fine = append(fine, out.healthy)
		}
		if out.lacks != "" && !slices.Contains(missing, out.lacks) {
			missing = append(missing, out.lacks)
		}
	}
	d.Healthy = append(d.Healthy, fine...)
	if hits == 0 && len(fine) == 0 {
		for _, m := range missing {
			d.NotExamined = append(d.NotExamined, item.Title+" "+m)
		}
	}
}

// merge joins the hits that say the same into one.
func merge(hits []hit) []hit {
	var out []hit
	for _, h := range hits {
		i := slices.IndexFunc(out, func(o hit) bool { return o.says == h.says && o.subject == h.subject && o.level == h.level })
		if i < 0 {
			out = append(out, h)
			continue
		}
		for _, p := range h.evidence {
			if !slices.Contains(out[i].evidence, p) {
				out[i].evidence = append(out[i].evidence, p)
			}
		}
	}
	return out
}

// maxEvidence bounds the places that a finding names.
const maxEvidence = 8

// holds reports whether the claim applies in the target's documents.
func holds(c *claims.Claim, t claims.Target) bool {
	return slices.ContainsFunc(c.Support, func(s claims.Support) bool { return s.Status != "undocumented" && s.Applies(t) })
}

func (x *nodeFacts) finding(c Cause, claim *claims.Claim, h hit) findings.Finding {
	f := findings.Finding{
		Subject: cmp.Or(h.subject, x.name()), Level: cmp.Or(h.level, c.Level), Claim: claim.ID, ClaimTitle: claim.Title,
		Effect: c.Effect, EffectWords: claims.Effects[c.Effect], Message: h.says, Write: h.write, Cause: h.says, CauseID: c.ID,
	}
	if t := claim.Trouble; t != nil {
		f.Symptom = t.Symptom
		f.Write = cmp.Or(f.Write, t.Cure)
	}
	for i, p := range h.evidence {
		if i == maxEvidence {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s: and %d more places", p.File, len(h.evidence)-i))
			break
		}
		f.Evidence = append(f.Evidence, p.String())
	}
	if len(h.evidence) > 0 {
		f.File, f.Line = h.evidence[0].File, h.evidence[0].Line
	}
	return f
}

// Check tries the check of a claim: the folder has the cause that it finds, or
// when it finds "" none of the claim's causes. It returns "" when that is so,
// else a sentence on what was found instead.
func Check(n *observed.Node, t claims.Target, l *claims.Ledger, claim string, finds string) string {
	var ids []string
	for _, f := range Examine(n, t, l).Findings {
		if f.Claim == claim {
			ids = append(ids, f.CauseID)
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	switch {
	case finds == "" && len(ids) > 0:
		return "nothing was to be found, and the doctor found " + words(ids)
	case finds != "" && !slices.Contains(ids, finds) && len(ids) == 0:
		return "the doctor did not find " + finds
	case finds != "" && !slices.Contains(ids, finds):
		return "the doctor did not find " + finds + ", but " + words(ids)
	}
	return ""
}

func words(list []string) string {
	out := ""
	for i, s := range list {
		if i > 0 {
			out += ", "
		}
		out += s
	}
	return out
}
