package suite

import (
	"fmt"
	"io"

	"sigs.k8s.io/yaml"

	"github.com/winlab-dev/winlab/reports/result"
)

// sonobuoyItem is a result in the form that Sonobuoy calls manual: a tree of names and
// states (sonobuoy.io docs, "Results", plugins with result-format manual).
type sonobuoyItem struct {
	Name    string            `json:"name"`
	Status  string            `json:"status"`
	Meta    map[string]string `json:"meta,omitempty"`
	Details map[string]string `json:"details,omitempty"`
	Items   []*sonobuoyItem   `json:"items,omitempty"`
}

// failing marks items as failed.
func failing(items ...*sonobuoyItem) {
	for _, i := range items {
		i.Status = "failed"
	}
}

// writeSonobuoy writes the results as Sonobuoy's manual results: areas, claims, checks.
func writeSonobuoy(w io.Writer, doc *result.Document) error {
	root := &sonobuoyItem{Name: "winlab", Status: "passed", Meta: map[string]string{"type": "summary"}}
	var not []result.NotTried
	for _, s := range doc.Settings {
		if s.Cluster != nil {
			root.Meta["simulated"] = fmt.Sprint(s.Cluster.Simulated)
			not = append(not, s.Cluster.NotTried...)
		}
	}
	for _, a := range doc.Areas {
		area := &sonobuoyItem{Name: a.ID, Status: "passed"}
		for _, cl := range doc.Claims {
			if cl.Area != a.ID {
				continue
			}
			if claim := sonobuoyClaim(doc, cl.ID, not); claim != nil {
				area.Items = append(area.Items, claim)
				if claim.Status == "failed" {
					failing(area, root)
				}
			}
		}
		if len(area.Items) > 0 {
			root.Items = append(root.Items, area)
		}
	}
	text, err := yaml.Marshal(root)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// sonobuoyClaim is a claim with its checks, nil without any.
func sonobuoyClaim(doc *result.Document, id string, not []result.NotTried) *sonobuoyItem {
	claim := &sonobuoyItem{Name: id, Status: "skipped"}
	for _, cell := range doc.Cells {
		if cell.Claim != id {
			continue
		}
		for _, k := range cell.Checks {
			item := &sonobuoyItem{Name: k.What, Status: "passed", Details: map[string]string{"expect": k.Expect, "got": k.Got, "why": k.Summary}}
			claim.Items = append(claim.Items, item)
			if claim.Status == "skipped" {
				claim.Status = "passed"
			}
			if !k.Pass && cell.Outcome != result.Disputed {
				failing(item, claim)
			}
		}
	}
	for _, n := range not {
		if n.Claim == id {
			claim.Items = append(claim.Items, &sonobuoyItem{Name: n.What, Status: "skipped", Details: map[string]string{"why": n.Why}})
		}
	}
	if len(claim.Items) == 0 {
		return nil
	}
	return claim
}
