package claims

import (
	"cmp"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/internal/versions"
	"github.com/winlab-dev/winlab/reports/result"
)

// History is the documented status over versions, in words, oldest first.
func (c *Claim) History() []result.Status {
	order := make([]int, len(c.Support))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		return cmp.Or(
			slices.Compare(lowest(c.Support[i].Kubernetes), lowest(c.Support[j].Kubernetes)),
			slices.Compare(lowest(c.Support[i].Build), lowest(c.Support[j].Build)))
	})
	history := make([]result.Status, 0, len(order))
	for _, i := range order {
		s := c.Support[i]
		history = append(history, result.Status{Where: s.Words(), Status: s.Status, Says: s.Says, Scope: s.Scope()})
	}
	return history
}

// Scope is the set of settings as results have it.
func (w Where) Scope() *result.Scope {
	return &result.Scope{Kubernetes: w.Kubernetes, Open: w.open, Build: w.Build, Releases: w.Releases, Designs: w.Designs,
		Networks: w.Networks,
		Plugins:  w.Plugins, PluginVersion: w.PluginVersion, Proxies: w.Proxies, Runtimes: w.Runtimes, RuntimeVersion: w.RuntimeVersion}
}

// asks are the claim's checks as results have them.
func (c *Claim) asks() []result.Ask {
	var all []result.Ask
	for _, k := range c.Checks {
		a := result.Ask{Scope: *k.Scope(), Kind: k.Kind(), What: k.String(), Expect: k.Expect, Basis: k.Basis, Condition: k.Condition}
		if d := k.Disputed; d != nil {
			a.Dispute = &result.Dispute{By: d.By, Against: d.Against, Otherwise: d.Otherwise, Model: d.Model}
		}
		all = append(all, a)
	}
	return all
}

// lowest is where a range begins, for sorting; ">1.20" begins after "1.20".
func lowest(s string) Version {
	r, err := ParseRange(s)
	if err != nil {
		return nil
	}
	var low Version
	for i, bounds := range r {
		var begin Version
		for _, b := range bounds {
			v := b.Version
			if b.Op == ">" {
				v = append(slices.Clone(v), 1<<30)
			}
			if !strings.HasPrefix(b.Op, "<") && slices.Compare(v, begin) > 0 {
				begin = v
			}
		}
		if i == 0 || slices.Compare(begin, low) < 0 {
			low = begin
		}
	}
	return low
}

// Words says a set of settings as a person would: "Kubernetes 1.14 to 1.20,
// overlay". The empty set of conditions is "everywhere".
func (w Where) Words() string {
	var parts []string
	for _, r := range []struct{ what, rng string }{
		{"Kubernetes", w.Kubernetes}, {"Windows build", w.Build}, {"plugin version", w.PluginVersion},
		{"runtime version", w.RuntimeVersion},
	} {
		if r.rng != "" {
			parts = append(parts, rangeWords(r.what, r.rng))
		}
	}
	if len(w.Releases) > 0 {
		parts = append(parts, "Windows Server "+orList(w.Releases))
	}
	for _, list := range [][]string{w.Networks, w.Plugins, w.Designs, w.Runtimes} {
		if len(list) > 0 {
			parts = append(parts, orList(list))
		}
	}
	if len(w.Proxies) > 0 {
		parts = append(parts, "proxy "+orList(w.Proxies))
	}
	if len(parts) == 0 {
		return "everywhere"
	}
	return strings.Join(parts, ", ")
}

func orList(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// rangeWords says a range in words; one that cannot be read stays as it is.
func rangeWords(what, s string) string {
	r, err := ParseRange(s)
	if err != nil {
		return what + " " + s
	}
	var alternatives []string
	for _, bounds := range r {
		alternatives = append(alternatives, boundWords(bounds))
	}
	return what + " " + strings.Join(alternatives, " or ")
}

func boundWords(bounds []versions.Bound) string {
	if len(bounds) == 2 && bounds[0].Op == ">=" && bounds[1].Op == "<=" {
		return bounds[0].Text + " to " + bounds[1].Text
	}
	if len(bounds) == 2 && bounds[0].Op == ">=" && bounds[1].Op == "<" {
		return "from " + bounds[0].Text + " and before " + bounds[1].Text
	}
	var words []string
	for _, b := range bounds {
		v := b.Text
		switch b.Op {
		case "=":
			words = append(words, v)
		case ">=":
			words = append(words, v+" and later")
		case ">":
			words = append(words, "after "+v)
		case "<=":
			words = append(words, "up to "+v)
		case "<":
			words = append(words, "before "+v)
		}
	}
	return strings.Join(words, " and ")
}
