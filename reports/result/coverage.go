package result

import "slices"

// Ways are the ways in which something checks a claim, in the order of
// columns. A claim may be checked in several ways.
var Ways = []Way{
	{"model", "model", "packets, names, frames and HNS objects in the simulated data plane", []string{"flow", "resolve", "wire", "hns"}},
	{"rules", "rules", "rules on manifests, node configuration and settings", []string{"rule"}},
	{"small", "scheduling and resources", "the models of the scheduler and of a kubelet's resources", []string{"placement", "resources"}},
	{"doctor", "doctor", "the causes that the doctor looks for in a folder taken from a node", []string{"doctor"}},
	{"e2e", "e2e", "specs on a cluster with Windows nodes; flows and names are tried there, too", []string{"cluster"}},
}

// Way is one way of checking.
type Way struct {
	ID    string
	Title string
	// Means says it in words; Kinds are the kinds of [Claim.CheckedBy] that count.
	Means string
	Kinds []string
}

// Checks reports whether a claim is checked in this way.
func (w Way) Checks(c *Claim) bool {
	return slices.ContainsFunc(c.CheckedBy, func(kind string) bool { return slices.Contains(w.Kinds, kind) })
}

// Needs are what claims without a check wait for, in the order of columns, with
// what that means. A claim that does not say counts as "unsaid".
var Needs = []struct{ ID, Means string }{
	{"cluster", "a cluster with Windows nodes; kubelet.exe and kube-proxy.exe of a simulated one can show it"},
	{"node", "a real Windows node: it is Windows, or its container runtime, that shows it"},
	{"lab", "a lab or a model that is not there yet"},
	{"nothing", "nothing can be run: plans, licences, background"},
	{"unsaid", "the claim does not say"},
}

// Coverage counts claims by what checks them, per area and in all.
type Coverage struct {
	Areas []AreaCoverage `json:"areas"`
	Total AreaCoverage   `json:"total"`
}

// AreaCoverage are the numbers of one area.
type AreaCoverage struct {
	Area  string `json:"area,omitempty"` // "" in the total
	Title string `json:"title"`
	// Claims is how many there are: Checked in at least one way, Unchecked by
	// nothing. Disputed of them have sources that contradict each other.
	Claims    int `json:"claims"`
	Checked   int `json:"checked"`
	Unchecked int `json:"unchecked"`
	Disputed  int `json:"disputed"`
	// By counts the claims by the id of [Ways]; a claim that is checked in two
	// ways counts in both.
	By map[string]int `json:"by"`
	// Needs counts the unchecked ones by the id of [Needs].
	Needs map[string]int `json:"needs"`
}

// CoverageOf counts claims by what the ledger has for them, whether or not a
// setting of some run selects it. Areas without claims are left out; a claim
// whose area is not among areas counts in the total only.
func CoverageOf(areas []Area, claims []Claim) Coverage {
	c := Coverage{Areas: []AreaCoverage{}, Total: newAreaCoverage("", "all areas")}
	of := map[string]*AreaCoverage{}
	for _, a := range areas {
		n := newAreaCoverage(a.ID, a.Title)
		of[a.ID] = &n
	}
	for i := range claims {
		c.Total.add(&claims[i])
		if a := of[claims[i].Area]; a != nil {
			a.add(&claims[i])
		}
	}
	for _, a := range areas {
		if n := of[a.ID]; n.Claims > 0 {
			c.Areas = append(c.Areas, *n)
		}
	}
	return c
}

func newAreaCoverage(id, title string) AreaCoverage {
	a := AreaCoverage{Area: id, Title: title, By: map[string]int{}, Needs: map[string]int{}}
	for _, w := range Ways {
		a.By[w.ID] = 0
	}
	for _, n := range Needs {
		a.Needs[n.ID] = 0
	}
	return a
}

func (a *AreaCoverage) add(c *Claim) {
	a.Claims++
	if c.Disputed {
		a.Disputed++
	}
	for _, w := range Ways {
		if w.Checks(c) {
			a.By[w.ID]++
		}
	}
	if len(c.CheckedBy) > 0 {
		a.Checked++
		return
	}
	a.Unchecked++
	a.Needs[NeedsOf(c)]++
}

// NeedsOf returns the id of [Needs] that an unchecked claim counts under.
func NeedsOf(c *Claim) string {
	for _, n := range Needs {
		if n.ID == c.Needs {
			return n.ID
		}
	}
	return "unsaid"
}
