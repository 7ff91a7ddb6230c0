package html

import (
	"cmp"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/reports/clean"
	"github.com/winlab-dev/winlab/reports/result"
)

// differences adds the cells of a claim that differ, also where a dispute explains it, or
// could not be checked, joined where documents, verdict and reason are the same.
func (v *view) differences(doc *result.Document, cl *result.Claim, areaTitle string, cells map[string]*result.Cell) {
	start := len(v.Differences)
	for i := range doc.Settings {
		s := &doc.Settings[i]
		c := cells[s.ID]
		if c == nil || (c.Outcome != result.Differs && c.Outcome != result.Failed && c.Outcome != result.Disputed) {
			continue
		}
		d := difference{Claim: clean.Line(cl.ID), Title: clean.Line(cl.Title), Area: areaTitle, Documented: c.Documented, Basis: c.Basis,
			Outcome: c.Outcome}
		for _, k := range c.Checks {
			if d.Got == "" || !k.Pass {
				d.Got, d.Reason, d.Why = clean.Line(k.Got), clean.Line(k.Reason), clean.Line(k.Summary)
				d.Level, d.Known = clean.Line(string(cmp.Or(k.Level, result.Model))), clean.Line(k.Known)
				d.Expect, d.Says = clean.Line(k.Expect), clean.Line(otherSide(cl, k))
				if !k.Pass {
					break
				}
			}
		}
		at := slices.IndexFunc(v.Differences[start:], func(o difference) bool {
			return o.Documented == d.Documented && o.Expect == d.Expect && o.Got == d.Got && o.Reason == d.Reason && o.Outcome == d.Outcome &&
				o.Level == d.Level && o.Known == d.Known
		})
		if at < 0 {
			v.Differences = append(v.Differences, d)
			at = len(v.Differences) - 1 - start
		}
		o := &v.Differences[start+at]
		o.Where = append(o.Where, place{Link: link(cl.ID, s.ID), Label: label(s)})
	}
}

// otherSide is what the other source of a dispute says, where it explains a difference.
func otherSide(cl *result.Claim, k result.Check) string {
	if !k.Explained || k.Dispute == nil || k.Dispute.Against < 1 || k.Dispute.Against > len(cl.Sources) {
		return ""
	}
	s := cl.Sources[k.Dispute.Against-1]
	return s.Doc + ": " + s.Says
}

func (v *view) tiles(doc *result.Document) {
	claims := map[string]int{}
	for _, o := range result.OfClaims(doc) {
		claims[o]++
	}
	cells := map[string]int{}
	for _, c := range doc.Cells {
		cells[c.Outcome]++
	}
	for _, t := range []tile{
		{ID: result.Differs, Label: "differ", Do: "Open each one: the documents, the model or our reading is wrong."},
		{ID: result.Failed, Label: "failed to run", Do: "The check could not be done. Fix the lab or the claim."},
		{ID: result.Disputed, Label: "differ, another source agrees",
			Do: "The model does not do what one document says and does what another one says. A real node decides."},
		{ID: result.Unknown, Label: "unknown", Do: "The model does not know, and names the missing fact. Evidence is welcome."},
		{ID: result.NotChecked, Label: "not reached", Do: "No packet reached what the claim is about. Each says why."},
		{ID: result.Own, Label: "own verdict", Do: "The documents are silent. Trust it as far as its evidence goes."},
		{ID: result.Agrees, Label: "as documented", Do: "Nothing to do."},
		{ID: result.Unchecked, Label: "not checked here", Do: "Each says why, and what it would take."},
	} {
		t.Claims, t.Cells = claims[t.ID], cells[t.ID]
		v.Tiles = append(v.Tiles, t)
	}
}

func (v *view) flows(doc *result.Document) {
	ids := flowIDs(doc.Flows)
	for i, f := range doc.Flows {
		row := flowRow{Link: "#flow=" + fragment(ids[i]), Lab: clean.Line(f.Lab), Variant: clean.Line(f.Variant),
			VariantTitle: clean.Line(f.VariantTitle), Setting: clean.Line(f.Setting), Name: clean.Line(f.At()), What: clean.Line(f.What),
			Expect: clean.Line(f.Expect), Got: clean.Line(f.Got), Reason: clean.Line(f.Reason), Why: clean.Line(f.Summary), Pass: f.Pass,
			Open: f.Open()}
		_, row.Kind = word(f.Check)
		v.FlowsTotal++
		if !f.Pass {
			v.FlowsFailed++
		}
		if f.Incident == "" {
			v.Flows = append(v.Flows, row)
			continue
		}
		at := slices.IndexFunc(v.Incidents, func(x incident) bool { return x.File == clean.Line(f.File) && x.Lab == row.Lab })
		if at < 0 {
			title := clean.Line(f.Title)
			if title == "" {
				title = row.Lab
			}
			v.Incidents = append(v.Incidents, incident{Lab: row.Lab, Title: title, Incident: clean.Line(f.Incident), URL: ThreadURL(f.Incident),
				File: clean.Line(f.File)})
			at = len(v.Incidents) - 1
		}
		v.Incidents[at].Rows = append(v.Incidents[at].Rows, row)
	}
	slices.SortStableFunc(v.Flows, func(a, b flowRow) int {
		if a.Pass == b.Pass {
			return 0
		}
		if b.Pass {
			return -1
		}
		return 1
	})
	sum := *doc
	result.Summarise(&sum)
	v.AsExpected = sum.Summary.AsExpected
	v.Unknown, v.Contested = sum.Summary.Outcomes[result.Unknown], sum.Summary.Outcomes[result.Disputed]
}

// notices lists what the labs say and the simulation does not follow.
func (v *view) notices(doc *result.Document) {
	for _, n := range doc.NotModelled {
		where := append([]string(nil), n.Settings...)
		if n.Variant != "" {
			where = append(where, n.Variant)
		}
		v.Notices = append(v.Notices, notice{What: clean.Line(n.What), At: clean.Line(n.Place()), Why: clean.Line(n.Why), Lab: clean.Line(n.Lab),
			Where: clean.Line(strings.Join(where, ", "))})
	}
}

// ThreadURL returns the address of "owner/repo#number", or "".
func ThreadURL(s string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(s), " ")
	if strings.HasPrefix(first, "https://") {
		return first
	}
	repo, n, ok := strings.Cut(first, "#")
	if !ok || strings.Count(repo, "/") != 1 || n == "" || strings.Trim(n, "0123456789") != "" {
		return ""
	}
	return "https://github.com/" + repo + "/issues/" + n
}
