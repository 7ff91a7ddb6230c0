package offline

import (
	"context"
	"fmt"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"github.com/winlab-dev/winlab/reports/result"
)

// The suite runs every check of the ledger in every design and version, and
// every flow of the incident labs. One spec is one claim in one setting, so a
// failing spec names both.
func TestOffline(t *testing.T) {
	gomega.RegisterFailHandler(ginkgo.Fail)
	doc, err := Run(context.Background(), Options{Paths: []string{"../../fixtures"}, Tool: "test", Command: "go test"})
	if err != nil {
		t.Fatal(err)
	}
	specs(doc)
	_, reporter := ginkgo.GinkgoConfiguration()
	reporter.Succinct = true
	ginkgo.RunSpecs(t, "claims, offline", reporter)
}

// specs makes the specs of a document.
func specs(doc *result.Document) {
	byClaim := map[string][]result.Cell{}
	for _, c := range doc.Cells {
		byClaim[c.Claim] = append(byClaim[c.Claim], c)
	}
	for _, cl := range doc.Claims {
		ginkgo.Describe(cl.ID, func() {
			for _, cell := range byClaim[cl.ID] {
				ginkgo.It("in "+cell.Setting, func() {
					if cell.Outcome != result.Differs && cell.Outcome != result.Failed {
						return
					}
					for _, k := range cell.Checks {
						if !k.Pass {
							ginkgo.Fail(fmt.Sprintf("%s: expected %s, got %s %s: %s\n%s", k.What, k.Expect, k.Got, k.Reason, k.Summary, k.Command))
						}
					}
				})
			}
		})
	}
	for _, f := range doc.Flows {
		ginkgo.It(fmt.Sprintf("%s %s %s: %s", f.Incident, f.Lab, f.Variant, f.Name), func() {
			gomega.Expect(f.Pass).To(gomega.BeTrue(), "%s: expected %s, got %s %s: %s\n%s", f.What, f.Expect, f.Got, f.Reason, f.Summary, f.Command)
		})
	}
}
