package html

import (
	"fmt"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/reports/clean"
	"github.com/winlab-dev/winlab/reports/result"
)

// cluster is a column whose checks of level cluster come from one cluster.
type cluster struct {
	ID, Title, Provider, Server string
	Simulated                   bool
	Nodes, Notes                []string
	Checks, Failed              int
	NotTried                    []result.NotTried
	// Apart are the checks that are not as documented, or not as another level of evidence
	// has them.
	Apart []clusterRow
}

// clusterRow is such a check.
type clusterRow struct {
	Link, Claim, What, Expect, Got, Other, Why, Known string
}

// apart lists the checks of a cell in which the cluster differs.
func (c *cluster) apart(cell *result.Cell) {
	other := map[string]string{}
	for _, p := range cell.Apart() {
		if p[1].Level == result.Cluster {
			other[p[1].What] = clean.Line(string(p[0].Level) + ": " + p[0].Got)
		}
	}
	for _, k := range cell.Checks {
		if k.Level == result.Cluster && (!k.Pass || other[k.What] != "") {
			c.Apart = append(c.Apart, clusterRow{link(cell.Claim, cell.Setting), clean.Line(cell.Claim), clean.Line(k.What), clean.Line(k.Expect),
				clean.Line(k.Got), other[k.What], clean.Line(k.Summary), clean.Line(k.Known)})
		}
	}
}

// clusters lists the clusters of a run, so that a simulated one is not taken for a real
// one.
func (v *view) clusters(doc *result.Document) {
	for i := range doc.Settings {
		s := &doc.Settings[i]
		if s.Cluster == nil {
			continue
		}
		c := cluster{ID: clean.Line(s.ID), Title: clean.Line(s.Title), Provider: clean.Line(s.Cluster.Provider),
			Server: clean.Line(s.Cluster.Server), Simulated: s.Cluster.Simulated}
		for _, n := range s.Cluster.Nodes {
			c.Nodes = append(c.Nodes,
				clean.Line(strings.Join(strings.Fields(fmt.Sprintf("%s: %s %s %s, kubelet %s, %s", n.Name, n.OS, n.Build, n.Image, n.Kubelet,
					n.Runtime)), " ")))
		}
		for _, n := range s.Cluster.Notes {
			c.Notes = append(c.Notes, clean.Line(n))
		}
		for _, n := range s.Cluster.NotTried {
			c.NotTried = append(c.NotTried, result.NotTried{Claim: clean.Line(n.Claim), What: clean.Line(n.What), Why: clean.Line(n.Why),
				MaySkip: clean.Line(n.MaySkip)})
		}
		slices.SortStableFunc(c.NotTried, func(a, b result.NotTried) int { return strings.Compare(a.Why, b.Why) })
		for j := range doc.Cells {
			cell := &doc.Cells[j]
			if cell.Setting != s.ID {
				continue
			}
			c.apart(cell)
			for _, k := range cell.Checks {
				if k.Level != result.Cluster {
					continue
				}
				c.Checks++
				if !k.Pass {
					c.Failed++
				}
			}
		}
		v.Clusters = append(v.Clusters, c)
	}
}
