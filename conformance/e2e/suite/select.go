package suite

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/internal/strict"
)

// Selection says which specs to run.
type Selection struct {
	// Claims are globs of claim ids, Areas areas, Kinds kinds of specs; none for all.
	Claims, Areas, Kinds []string
	// Shard and Shards are a part of a run, Shard from 0; Shards 0 for all.
	Shard, Shards int
	// Disruptive includes specs that disturb others on the cluster.
	Disruptive bool
}

// ParseShard reads "i/n", i from 0 as an Indexed Job counts.
func ParseShard(s string) (shard, shards int, err error) {
	if s == "" {
		return 0, 0, nil
	}
	i, n, ok := strings.Cut(s, "/")
	shard, err1 := strconv.Atoi(i)
	shards, err2 := strconv.Atoi(n)
	if !ok || err1 != nil || err2 != nil || shards < 1 || shard < 0 || shard >= shards {
		return 0, 0, fmt.Errorf("shard %q; write i/n with i from 0 and below n, for example 0/4", s)
	}
	return shard, shards, nil
}

// Select returns the specs that are asked for and, of these, those for which a document
// says something on the cluster. Every glob, area and kind must exist.
func Select(all []Spec, sel Selection, targets []claims.Target) (asked, apply []Spec, err error) {
	var kinds, areas []string
	for _, s := range all {
		kinds, areas = append(kinds, string(s.Kind)), append(areas, s.Area)
	}
	for _, x := range []struct {
		what          string
		wanted, known []string
	}{{"area", sel.Areas, areas}, {"kind", sel.Kinds, kinds}} {
		for _, w := range x.wanted {
			if !slices.Contains(x.known, w) {
				slices.Sort(x.known)
				return nil, nil, fmt.Errorf("no spec has the %s %q%s", x.what, w, strict.DidYouMean(w, slices.Compact(x.known)))
			}
		}
	}
	for _, g := range sel.Claims {
		if _, err := path.Match(g, ""); err != nil {
			return nil, nil, fmt.Errorf("%q is not a glob: %w", g, err)
		}
		if !slices.ContainsFunc(all, func(s Spec) bool { return matches([]string{g}, s.Claim.ID) }) {
			return nil, nil, fmt.Errorf("no claim with a spec is called %q; winlab-e2e --list shows all", g)
		}
	}
	for _, s := range all {
		if len(sel.Claims) > 0 && !matches(sel.Claims, s.Claim.ID) || len(sel.Areas) > 0 && !slices.Contains(sel.Areas, s.Area) ||
			len(sel.Kinds) > 0 && !slices.Contains(sel.Kinds, string(s.Kind)) || s.Disruptive && !sel.Disruptive {
			continue
		}
		asked = append(asked, s)
	}
	// All specs of a claim are in one shard, which then knows whether any was tried.
	number := map[string]int{}
	for _, s := range asked {
		if !s.Documented(targets).Applies {
			continue
		}
		n, ok := number[s.Claim.ID]
		if !ok {
			n = len(number)
			number[s.Claim.ID] = n
		}
		if sel.Shards == 0 || n%sel.Shards == sel.Shard {
			apply = append(apply, s)
		}
	}
	return asked, apply, nil
}

func matches(globs []string, s string) bool {
	return slices.ContainsFunc(globs, func(g string) bool { ok, _ := path.Match(g, s); return ok })
}
