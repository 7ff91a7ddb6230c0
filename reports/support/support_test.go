package support

import (
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/internal/products"
	"github.com/winlab-dev/winlab/reports/result"
)

// document has two designs in 1.20 and 1.36, on 2019 with its update and on 2022, and the
// claims of one test.
func document(claims []result.Claim, cells ...result.Cell) *result.Document {
	doc := &result.Document{Schema: result.Schema, Areas: []result.Area{{ID: "a", Title: "A"}}, Claims: claims, Cells: cells,
		Versions: []string{"1.5", "1.19", "1.20", "1.28", "1.33", "1.36", "1.37"},
		Designs: []result.Design{{Name: "l2bridge-x", Network: "l2bridge", Plugin: "x", Kubernetes: ">=1.14"},
			{Name: "overlay-y", Network: "overlay", Plugin: "y", Kubernetes: ">=1.14"}}}
	for _, d := range doc.Designs {
		for _, v := range []struct{ kubernetes, build string }{{"1.20", "10.0.17763.1432"}, {"1.36", "10.0.20348.2762"},
			{"1.37", "10.0.20348.2762"}} {
			doc.Settings = append(doc.Settings, result.Setting{ID: d.Name + "/" + v.kubernetes, Design: d.Name, Title: "the " + d.Name,
				Network: d.Network, Plugin: d.Plugin, Kubernetes: v.kubernetes, Builds: []string{v.build}})
		}
	}
	return doc
}

const flow = "pod/client -> pod/peer:80 (tcp)"

// kubernetes is a scope of versions; one without an end is open, and read up to 1.36.
func kubernetes(rng string) *result.Scope {
	s := &result.Scope{Kubernetes: rng}
	if strings.HasPrefix(rng, ">=") && !strings.Contains(rng, "<") {
		s.Kubernetes, s.Open = rng+" <=1.36", rng
	}
	return s
}

func ask(rng, expect string) result.Ask {
	return result.Ask{Scope: *kubernetes(rng), Kind: "flow", What: flow, Expect: expect}
}

// contradicted is a check that another source contradicts.
func contradicted(rng, expect string) result.Ask {
	a := ask(rng, expect)
	a.Dispute = &result.Dispute{By: 1, Against: 2, Model: "against"}
	return a
}

// tried is a cell of the design overlay-y with one check.
func tried(version, expect, got string) result.Cell {
	pass := expect == "" || expect == got || expect == "not-delivered" && got != "delivered"
	return result.Cell{Claim: "c", Setting: "overlay-y/" + version, Documented: "works", Outcome: result.Agrees,
		Checks: []result.Check{{Level: result.Model, What: flow, Expect: expect, Got: got, Pass: pass}}}
}

// unreached is a cell whose packet was never sent.
func unreached(version string) result.Cell {
	c := tried(version, "not-delivered", "dropped")
	c.Outcome, c.Checks[0].NotChecked = result.NotChecked, "No packet is sent."
	return c
}

func oneClaim(history []result.Status, asks ...result.Ask) []result.Claim {
	return []result.Claim{{ID: "c", Area: "a", Title: "C", History: history, Asks: asks, CheckedBy: []string{"flow"}}}
}

func asked(t *testing.T, doc *result.Document, q Question) Reply {
	t.Helper()
	replies, err := New(doc).Ask("c", q)
	if err != nil {
		t.Fatal(err)
	}
	if len(replies) != 1 {
		t.Fatalf("%d replies to %+v", len(replies), q)
	}
	return replies[0]
}

// TestStates: what follows from documents and findings, in every way in which they stand to
// each other. The question is about overlay-y on Windows Server 2022.
func TestStates(t *testing.T) {
	stable := []result.Status{{Status: "stable", Scope: kubernetes(">=1.14")}}
	unsupported := []result.Status{{Status: "unsupported", Scope: kubernetes(">=1.14")}}
	disputed := []result.Status{{Status: "disputed", Scope: kubernetes(">=1.14")}}
	for _, c := range []struct {
		name      string
		claims    []result.Claim
		cells     []result.Cell
		version   string
		want      State
		contested bool
		model     Relation
		why       string
	}{
		{"documented and confirmed", oneClaim(stable, ask(">=1.14", "delivered")), []result.Cell{tried("1.36", "delivered", "delivered")}, "1.36",
			Works, false, Agrees, "the model agrees"},
		{"a no that is confirmed is a no", oneClaim(unsupported, ask(">=1.14", "not-delivered")),
			[]result.Cell{tried("1.36", "not-delivered", "no-reply")}, "1.36", DoesNot, false, Agrees, "the model agrees"},
		{"between the columns the documents answer", oneClaim(stable, ask(">=1.14", "delivered")),
			[]result.Cell{tried("1.36", "delivered", "delivered")}, "1.33", Works, false, Near, "the documents say so"},
		{"not tried", oneClaim(stable, ask(">=1.14", "delivered")), nil, "1.33", Works, false, None, "the documents say so"},
		{"documents and model differ", oneClaim(unsupported, ask(">=1.14", "not-delivered")),
			[]result.Cell{tried("1.36", "not-delivered", "delivered")}, "1.36", Works, true, Contradicts, "the model says that it works"},
		{"what differs on both sides differs between", oneClaim(unsupported, ask(">=1.14", "not-delivered")),
			[]result.Cell{tried("1.20", "not-delivered", "delivered"), tried("1.36", "not-delivered", "delivered")}, "1.33", Works, true, Near,
			"before and after this one"},
		{"what differs on one side is open beyond", oneClaim(unsupported, ask(">=1.14", "not-delivered")),
			[]result.Cell{tried("1.36", "not-delivered", "delivered")}, "1.33", Unknown, true, Near, "no version as old or as new was tried"},
		{"a flow that must fail where the feature works is not the feature", oneClaim(stable, ask(">=1.14", "not-delivered")),
			[]result.Cell{tried("1.36", "not-delivered", "delivered")}, "1.36", Works, true, Contradicts, "see the claim"},
		{"the model does not know", oneClaim(stable, ask(">=1.14", "delivered")), []result.Cell{tried("1.36", "delivered", "unknown")}, "1.36",
			Works, false, Unclear, "the documents say so"},
		{"what no packet reached is not evidence", oneClaim(unsupported, ask(">=1.14", "not-delivered")), []result.Cell{unreached("1.36")},
			"1.36", DoesNot, false, None, "the documents say so"},
		{"documents contradict each other, the model decides", oneClaim(disputed, ask(">=1.14", "delivered")),
			[]result.Cell{tried("1.36", "delivered", "delivered")}, "1.36", Works, true, Own, "contradict each other; the model says that it works"},
		{"documents contradict each other, and nothing was tried", oneClaim(disputed, ask(">=1.14", "delivered")), nil, "1.33", Unknown, true,
			None, "contradict each other"},
		{"another source contradicts what a check asks for", oneClaim(unsupported, contradicted(">=1.14", "not-delivered")), nil, "1.33", Unknown,
			true, None, "contradict each other"},
		{"and the model decides", oneClaim(unsupported, contradicted(">=1.14", "not-delivered")),
			[]result.Cell{tried("1.36", "not-delivered", "delivered")}, "1.36", Works, true, Own, "the model says that it works"},
		{"a part of it is contradicted", oneClaim(stable, contradicted(">=1.14", "delivered"), ask(">=1.14", "delivered")), nil, "1.33", Works,
			true, None, "the documents say so"},
		{"silence and a verdict", oneClaim(nil, ask(">=1.14", ""), ask("1.19", "delivered")), []result.Cell{tried("1.36", "", "delivered")},
			"1.36", Works, false, Own, "no document says anything; the model says that it works"},
		{"silence between two verdicts is not known", oneClaim(nil, ask("1.19", "delivered")),
			[]result.Cell{tried("1.20", "", "delivered"), tried("1.36", "", "delivered")}, "1.33", Unknown, false, Near, "it was not tried here"},
		{"what is only looked at decides nothing", oneClaim(nil, ask(">=1.14", "")), []result.Cell{tried("1.36", "", "delivered")}, "1.36",
			Unknown, false, Own, "see the claim"},
		{"after the documents", oneClaim(stable, ask(">=1.14", "delivered")), []result.Cell{tried("1.37", "", "delivered")}, "1.37", Works, false,
			Agrees, "the documents of this version were not read"},
		{"after the documents it is otherwise", oneClaim(stable, ask(">=1.14", "delivered")), []result.Cell{tried("1.37", "", "no-reply")},
			"1.37", DoesNot, true, Contradicts, "the model says that it does not work"},
		{"a range that ends has no answer after its end", oneClaim([]result.Status{{Status: "stable", Scope: kubernetes(">=1.14 <=1.28")}}), nil,
			"1.33", Unknown, false, None, "no document says anything"},
		{"alpha is a condition", oneClaim([]result.Status{{Status: "alpha", Scope: kubernetes(">=1.14")}}), nil, "1.33", Conditions, false, None,
			"the documents say so"},
		{"it depends on what the question leaves open",
			oneClaim([]result.Status{{Status: "stable", Scope: &result.Scope{Runtimes: []string{"containerd"}}},
				{Status: "unsupported", Scope: &result.Scope{Runtimes: []string{"docker"}}}}), nil, "1.33", Conditions, false, None,
			"the documents say so"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := asked(t, document(c.claims, c.cells...), Question{Design: "overlay-y", Kubernetes: c.version, Windows: "Windows Server 2022"})
			if r.State != c.want || r.Contested != c.contested || r.Model.Relation != c.model || !strings.Contains(r.Why, c.why) {
				t.Errorf("%s, contested %v, model %s, %s", r.State, r.Contested, r.Model.Relation, r.Why)
			}
		})
	}
}

// TestComponentsComeBeforeTheModel: what the real programs did decides, also against a model
// that agrees with the documents.
func TestComponentsComeBeforeTheModel(t *testing.T) {
	cell := tried("1.36", "delivered", "delivered")
	cell.Checks = append(cell.Checks, result.Check{Level: result.Components, What: flow, Expect: "delivered", Got: "dropped"})
	doc := document(oneClaim([]result.Status{{Status: "stable", Scope: kubernetes(">=1.14")}}, ask(">=1.14", "delivered")), cell)
	if r := asked(t, doc, Question{Design: "overlay-y", Kubernetes: "1.36", Windows: "2022"}); r.State != DoesNot || !r.Contested {
		t.Errorf("%s, contested %v: %s", r.State, r.Contested, r.Why)
	}
	cell.Checks[0], cell.Checks[1] = cell.Checks[1], cell.Checks[0]
	cell.Checks[0].Level, cell.Checks[1].Level = result.Model, result.Components
	if r := asked(t, doc, Question{Design: "overlay-y", Kubernetes: "1.36", Windows: "2022"}); r.State != Works || !r.Contested {
		t.Errorf("%s, contested %v: %s", r.State, r.Contested, r.Why)
	}
}

// TestKindsOfEvidence: a cluster with real nodes decides, components and a simulated cluster
// are of one rank, and the model comes last.
func TestKindsOfEvidence(t *testing.T) {
	stable := []result.Status{{Status: "stable", Scope: kubernetes(">=1.14")}}
	const yes, no = "delivered", "dropped"
	for _, c := range []struct {
		name                               string
		status                             []result.Status
		real, simulated, components, model string // verdicts; "" is not tried
		want                               State
		contested                          bool
		why                                string
	}{
		{"a simulated cluster alone", stable, "", no, "", "", DoesNot, true, "a simulated cluster says that it does not work"},
		{"against components, the documents stand", stable, "", no, yes, yes, Works, true,
			"the real Windows programs and the model agree with the document"},
		{"and the other way", stable, "", yes, no, "", Works, true,
			"the real Windows programs say that it does not work, and a simulated cluster agrees"},
		{"both against the model", stable, "", no, no, yes, DoesNot, true,
			"the real Windows programs and a simulated cluster say that it does not work, and the model agrees with the document"},
		{"a real cluster overrules", stable, no, yes, yes, yes, DoesNot, true, "a cluster says that it does not work"},
		{"a real cluster stands", stable, yes, no, no, no, Works, true, "a cluster agrees with the document"},
		{"silence, and they differ", nil, "", no, yes, "", Unknown, false, "the real Windows programs and a simulated cluster do not agree"},
		{"silence, and a real cluster", nil, yes, no, no, "", Works, false, "a cluster says that it works"},
	} {
		t.Run(c.name, func(t *testing.T) {
			doc := document(oneClaim(c.status, ask(">=1.14", yes)))
			if c.status == nil {
				doc = document(oneClaim(nil, ask("1.19", yes)))
			}
			last := doc.Settings[len(doc.Settings)-2] // overlay-y/1.36
			add := func(id, got string, level result.Level, cluster *result.ClusterInfo) {
				if got == "" {
					return
				}
				s := last
				s.ID, s.Cluster = id, cluster
				doc.Settings = append(doc.Settings, s)
				cell := tried("1.36", yes, got)
				cell.Setting, cell.Checks[0].Level = id, level
				if c.status == nil {
					cell.Checks[0].Expect, cell.Checks[0].Pass = "", true
				}
				doc.Cells = append(doc.Cells, cell)
			}
			add("model", c.model, result.Model, nil)
			add("components", c.components, result.Components, nil)
			add("simulated", c.simulated, result.Cluster, &result.ClusterInfo{Simulated: true})
			add("real", c.real, result.Cluster, &result.ClusterInfo{})
			r := asked(t, doc, Question{Design: "overlay-y", Kubernetes: "1.36", Windows: "Windows Server 2022"})
			if r.State != c.want || r.Contested != c.contested || !strings.Contains(r.Why, c.why) {
				t.Errorf("%s, contested %v: %s", r.State, r.Contested, r.Why)
			}
			assumed := slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "this assumes that it does") })
			if assumed != (c.status == nil && c.want != Unknown) {
				t.Errorf("notes: %q", r.Notes)
			}
		})
	}
}

// TestUpdatesPartARelease: where the documents name a revision, the release has two rows,
// and without a Windows the answer is that it depends.
func TestUpdatesPartARelease(t *testing.T) {
	history := []result.Status{{Status: "unsupported", Scope: &result.Scope{Build: "<10.0.17763.1432"}},
		{Status: "stable", Scope: &result.Scope{Build: ">=10.0.17763.1432"}}}
	doc := document(oneClaim(history))
	for windows, want := range map[string]State{"10.0.17763.379": DoesNot, "10.0.17763.1432": Works, "2019": Works, "ltsc2022": Works,
		"1709": DoesNot, "": Conditions} {
		r := asked(t, doc, Question{Design: "overlay-y", Kubernetes: "1.20", Windows: windows})
		if r.State != want {
			t.Errorf("%q: %s, want %s", windows, r.State, want)
		}
		if windows == "" && (len(r.Notes) != 2 || !strings.Contains(r.Notes[1], "Windows Server 2019 before revision 1432")) {
			t.Errorf("the notes are %q", r.Notes)
		}
	}
}

func TestSinceAndUntil(t *testing.T) {
	history := []result.Status{{Status: "unsupported", Scope: kubernetes("<1.28")}, {Status: "stable", Scope: kubernetes(">=1.28 <=1.36")}}
	doc := document(oneClaim(history))
	r := asked(t, doc, Question{Design: "overlay-y", Kubernetes: "1.33", Windows: "2022"})
	if r.Since != "1.28" || r.Until != "1.36" || r.State != Works {
		t.Errorf("%s since %s until %s", r.State, r.Since, r.Until)
	}
	replies, err := New(doc).Ask("c", Question{Design: "overlay-y", Windows: "2022"})
	if err != nil || len(replies) != 3 || replies[0].State != DoesNot || replies[2].State != Unknown {
		t.Errorf("%+v, %v", replies, err)
	}
}

// TestQuestionsWithoutAnAnswer say what can be asked.
func TestQuestionsWithoutAnAnswer(t *testing.T) {
	m := New(document(oneClaim(nil)))
	for _, c := range []struct {
		claim string
		q     Question
		want  string
	}{
		{"d", Question{}, "no claim is called"},
		{"c", Question{Kubernetes: "1.99"}, "no document of the ledger is about Kubernetes 1.99; it has 1.5, 1.19"},
		{"c", Question{Windows: "NT 4"}, "not a known release of Windows Server"},
		{"c", Question{Design: "calico"}, "no design fits"},
		{"c", Question{Kubernetes: "1.5"}, "no design fits"},
	} {
		if _, err := m.Ask(c.claim, c.q); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.q, err)
		}
	}
}

// TestADocumentWithoutScopes: one that has only the words is answered by what was found.
func TestADocumentWithoutScopes(t *testing.T) {
	doc := document(oneClaim([]result.Status{{Where: "Kubernetes 1.14 and later", Status: "stable"}}), tried("1.36", "delivered", "delivered"))
	doc.Versions, doc.Designs = nil, nil
	r := asked(t, doc, Question{Design: "overlay-y", Kubernetes: "1.36", Windows: "2022"})
	if r.State != Unknown || r.Documents != Nowhere {
		t.Errorf("%+v", r)
	}
	if m := New(doc); !slices.Equal(m.Versions, []string{"1.20", "1.36", "1.37"}) || len(m.Designs) != 2 {
		t.Errorf("%v, %v", m.Versions, m.Designs)
	}
}

// TestNodes: the claims on releases of Windows Server say which versions have such nodes.
func TestNodes(t *testing.T) {
	claims := append(oneClaim(nil), result.Claim{ID: "os-server-2022", Area: "a",
		History: []result.Status{{Status: "stable", Scope: &result.Scope{Kubernetes: ">=1.28", Releases: []string{"2022"}}}}})
	m := New(document(claims))
	if m.Node("2022", "1.33") != Works || m.Node("2022", "1.20") != Nowhere || m.Node("2019", "1.33") != Nowhere {
		t.Error("the claim on the release does not decide")
	}
}

// TestEveryProductIsThere reads the file of products, and looks its sources up.
func TestEveryProductIsThere(t *testing.T) {
	l, err := claims.Load()
	if l == nil {
		t.Fatal(err)
	}
	for _, r := range products.Releases() {
		if got, ok := products.ReleaseNamed(r.Title); !ok || got != r || l.Claim(r.Claim) == nil {
			t.Errorf("%q is found as %+v", r.Title, got)
		}
	}
	for _, h := range products.HostedKubernetes() {
		if len(h.Sources) == 0 || h.Says == "" {
			t.Errorf("%s has no source", h.Name)
		}
		for _, d := range h.Designs {
			if !slices.ContainsFunc(claims.Designs, func(x claims.Design) bool { return x.Name == d }) {
				t.Errorf("%s has the design %s, which is not there", h.Name, d)
			}
		}
	}
}

// Where the documents name one Windows as a node, the answer for any of them counts another one
// on which something was tried, too, and in versions in which nothing was tried it does not.
func TestAnyCountsWhatWasTried(t *testing.T) {
	var node string
	for _, r := range products.Releases() {
		if r.Name == "2019" {
			node = r.Claim
		}
	}
	claims := append(oneClaim(nil, ask(">=1.14", ""), ask("1.19", "delivered")),
		result.Claim{ID: node, Area: "a", Title: "N", History: []result.Status{{Status: "stable", Scope: kubernetes(">=1.14")}}})
	doc := document(claims, tried("1.36", "", "delivered")) // on 2022
	r := asked(t, doc, Question{Design: "overlay-y", Kubernetes: "1.36"})
	if r.State != Conditions || !slices.ContainsFunc(r.Notes, func(n string) bool {
		return strings.HasPrefix(n, "works: ") &&
			strings.Contains(n, "2022")
	}) {
		t.Errorf("1.36: %s, %q", r.State, r.Notes)
	}
	if r := asked(t, doc, Question{Design: "overlay-y", Kubernetes: "1.33"}); r.State != Unknown {
		t.Errorf("1.33: %s, %q", r.State, r.Notes)
	}
}
