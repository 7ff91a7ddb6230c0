package html

import (
	"slices"

	"github.com/winlab-dev/winlab/internal/lazyregexp"
	"github.com/winlab-dev/winlab/reports/result"
)

// tally counts a claim's cells for its line in the page of a system.
type tally struct {
	Docs map[string]int `json:"docs,omitempty"` // by what the documents say
	Got  []gotCount     `json:"got,omitempty"`  // by the model's word
}

type gotCount struct {
	Word string `json:"word"`
	Kind string `json:"kind"`
	N    int    `json:"n"`
}

func (t *tally) add(c result.Cell) {
	if t.Docs == nil {
		t.Docs = map[string]int{}
	}
	t.Docs[c.Documented]++
	for _, w := range words(c.Checks) {
		if w.Level != string(result.Model) {
			continue
		}
		at := slices.IndexFunc(t.Got, func(g gotCount) bool { return g.Word == w.Word })
		if at < 0 {
			t.Got = append(t.Got, gotCount{Word: w.Word, Kind: w.Kind})
			at = len(t.Got) - 1
		}
		t.Got[at].N++
	}
}

// staticLine is what a list of static checks needs at once; the rest, with the
// examples, is an item of a part.
type staticLine struct {
	Claim int    `json:"c"` // index among the claims
	Kind  string `json:"kind"`
	What  string `json:"what"`
	Where string `json:"where"`
	Level string `json:"level,omitempty"`
	// Effect is a key of the effects.
	Effect  string `json:"effect,omitempty"`
	Outcome string `json:"o"`
	Got     string `json:"got"`
	More    ref    `json:"more"`
	scope
}

func packStatics(p *packer, doc *result.Document, number map[string]int, words *scoper) ([]staticLine, error) {
	var out []staticLine
	for _, k := range doc.Statics {
		l := staticLine{Claim: number[k.Claim], Kind: k.Kind, What: k.What, Where: k.Where, Outcome: k.Outcome(), Got: k.Got,
			scope: words.parseScope(k.Where)}
		if k.Rule != nil {
			l.What, l.Level, l.Effect = ruleText(k), k.Rule.Level, k.Rule.Effect
		}
		more := struct {
			result.Check
			Trace *int         `json:"trace,omitempty"` // a static check has none to show
			Input string       `json:"input,omitempty"`
			Rule  *result.Rule `json:"rule,omitempty"`
		}{Check: k.Check, Input: k.Input, Rule: k.Rule}
		var err error
		if l.More, err = p.add(more); err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	return out, nil
}

var variable = lazyregexp.New(`\{([A-Za-z][A-Za-z0-9-]*)\}`)

// ruleText is what a rule says: in its example where it was found there, else with
// names instead of what it would fill in.
func ruleText(k result.Static) string {
	if k.Pass && k.Got == "found" && k.Summary != "" && k.Rule.On != "setting" {
		return k.Summary
	}
	return variable.ReplaceAllString(k.Rule.Says, "‹$1›")
}

// systemClaims are the claims of each system, as indices.
func systemClaims(doc *result.Document, number map[string]int) [][]int {
	out := [][]int{}
	for _, s := range doc.Systems {
		list := []int{}
		for _, id := range s.Claims {
			list = append(list, number[id])
		}
		out = append(out, list)
	}
	return out
}

// effects says in words what happens on Windows, by the words of the ledger.
var effects = map[string]string{
	"rejected-by-api":     "the API server refuses it",
	"rejected-by-kubelet": "the kubelet refuses to start the pod",
	"refused":             "the program refuses the configuration",
	"fails":               "it is accepted, and what it asks for fails",
	"ignored":             "it is accepted and has no effect",
	"different":           "it works differently from Linux",
	"unsupported":         "the documents say that it is not supported; how it fails they do not say",
	"unlisted":            "the documents do not list it",
	"risk":                "it works, and something else may break",
	"advice":              "it works; the documents advise otherwise",
}
