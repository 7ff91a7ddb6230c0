package html

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/reports/clean"
	"github.com/winlab-dev/winlab/reports/result"
)

// real is the section on real components; nil in a run without any.
type real struct {
	Programs     string // "kube-proxy 1.36.3, win-bridge 1.9.1"
	Rows         []realRow
	Checks       int // at level components
	Apart        int // cells in which they do not say what the models say
	Objects      int // fields of HNS objects
	ObjectsApart int
}

// realRow is a setting that was run with real components.
type realRow struct {
	Title, Windows, Programs string
	Checks, Apart, Objects   int
	// Cells are those whose levels do not agree, Lines the fields that only one has.
	Cells []place
	Lines []realLine
}

type realLine struct{ Node, Only, Line string }

// components fills the section.
func (v *view) components(doc *result.Document) {
	r := &real{}
	var programs []string
	for i := range doc.Settings {
		s := &doc.Settings[i]
		if len(s.Components) == 0 {
			continue
		}
		title := label(s)
		if strings.Contains(s.Proxy, "DSR") {
			title += " DSR"
		}
		row := realRow{Title: title, Windows: clean.Line(strings.Join(s.Builds, ", ")), Programs: clean.Line(strings.Join(s.Components, ", ")),
			Objects: s.Objects}
		for _, p := range s.Components {
			addNew(&programs, clean.Line(p))
		}
		for _, o := range s.ObjectsApart {
			row.Lines = append(row.Lines, realLine{clean.Line(o.Node), clean.Line(string(o.Only)), clean.Line(o.Line)})
		}
		for j := range doc.Cells {
			c := &doc.Cells[j]
			if c.Setting != s.ID {
				continue
			}
			for _, k := range c.Checks {
				if k.Level == result.Components {
					row.Checks++
				}
			}
			if len(c.Apart()) > 0 {
				row.Apart++
				row.Cells = append(row.Cells, place{Link: link(c.Claim, c.Setting), Label: clean.Line(c.Claim)})
			}
		}
		r.Checks, r.Apart = r.Checks+row.Checks, r.Apart+row.Apart
		r.Objects, r.ObjectsApart = r.Objects+row.Objects, r.ObjectsApart+len(row.Lines)
		r.Rows = append(r.Rows, row)
	}
	if len(r.Rows) == 0 {
		return
	}
	slices.SortStableFunc(r.Rows, func(a, b realRow) int { return cmp.Compare(b.Apart+len(b.Lines), a.Apart+len(a.Lines)) })
	slices.Sort(programs)
	r.Programs = strings.Join(programs, ", ")
	v.Real = r
}

// Says sums the section up in a sentence.
func (r *real) Says() string {
	switch {
	case r.Apart == 0 && r.ObjectsApart == 0 && r.Objects > 0:
		return "Every verdict and every HNS object is that of the models."
	case r.Objects == 0:
		return "The models did not run beside them."
	}
	return fmt.Sprintf("%d %s another verdict than with the models, %d %s.", r.Apart, plural(r.Apart, "cell has", "cells have"),
		r.ObjectsApart, plural(r.ObjectsApart, "field of HNS objects differs", "fields of HNS objects differ"))
}
