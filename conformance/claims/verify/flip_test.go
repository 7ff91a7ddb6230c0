package verify

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/sim/trace"
)

// flip is a check that asks for the opposite in one thing.
type flip struct {
	what  string
	check claims.Check
}

// opposite is a verdict that asks for what the given one excludes.
func opposite(expect string) string {
	if expect == string(trace.Delivered) {
		return "not-delivered"
	}
	return string(trace.Delivered)
}

// otherAddress is a source that no receiver of a lab sees (RFC 5737, TEST-NET-1).
const otherAddress = "192.0.2.254"

// flips turns each thing that a check asks for into its opposite, one at a time.
func flips(k claims.Check) []flip {
	var all []flip
	add := func(what string, change func(*claims.Check)) {
		f := k
		change(&f)
		all = append(all, flip{what, f})
	}
	if k.Expect != "" {
		add("expect", func(f *claims.Check) { f.Expect = opposite(k.Expect) })
	}
	if k.Reason != "" {
		add("reason", func(f *claims.Check) { f.Reason = string(trace.ModelHole) })
	}
	switch {
	case k.Flow != nil && k.Flow.SeenAs != "":
		add("seenAs", func(f *claims.Check) { flow := *k.Flow; flow.SeenAs = otherAddress; f.Flow = &flow })
	case k.Wire != nil && k.Wire.At == "none":
		add("at", func(f *claims.Check) { w := *k.Wire; w.At = "fabric"; f.Wire = &w })
	case k.Wire != nil:
		if k.Wire.At == "fabric" { // at a pod the sender need not be on a node, which a frame could leave
			add("at", func(f *claims.Check) { w := *k.Wire; w.At, w.Frame = "none", nil; f.Wire = &w })
		}
		for _, field := range slices.Sorted(maps.Keys(k.Wire.Frame)) {
			add("frame."+field, func(f *claims.Check) {
				w := *k.Wire
				w.Frame = maps.Clone(w.Frame)
				w.Frame[field] = otherValue(field, w.Frame[field])
				f.Wire = &w
			})
		}
	case k.HNS != nil && k.HNS.Want != "":
		for i := range strings.Split(k.HNS.Want, ",") {
			add(fmt.Sprintf("want[%d]", i), func(f *claims.Check) { q := *k.HNS; q.Want = otherWant(q.Want, i); f.HNS = &q })
		}
	}
	if d := k.Disputed; d != nil {
		add("disputed.model", func(f *claims.Check) {
			o := *d
			o.Model = map[string]string{claims.FollowsBy: claims.FollowsAgainst, claims.FollowsAgainst: claims.FollowsBy}[d.Model]
			f.Disputed = &o
		})
		if d.Otherwise != "" && d.Model == claims.FollowsAgainst {
			add("disputed.otherwise", func(f *claims.Check) { o := *d; o.Otherwise = opposite(d.Otherwise); f.Disputed = &o })
		}
	}
	return append(all, staticFlips(k)...)
}

func otherValue(field, v string) string {
	switch field {
	case "tunnel":
		if v == "none" {
			return "vxlan"
		}
		return "none"
	case "srcMAC", "dstMAC":
		return "02-00-5e-00-53-fe"
	case "udpPort", "vni", "overhead":
		return "1" + v
	}
	return otherAddress
}

// otherWant negates one entry of what an HNS query must answer.
func otherWant(want string, i int) string {
	if op, n, ok := comparison(want); ok {
		return map[string]string{">=": "<", "<=": ">", ">": "<=", "<": ">="}[op] + fmt.Sprint(n)
	}
	parts := strings.Split(want, ",")
	p := strings.TrimSpace(parts[i])
	if rest, ok := strings.CutPrefix(p, "!"); ok {
		parts[i] = rest
	} else {
		parts[i] = "!" + p
	}
	return strings.Join(parts, ", ")
}

// staticFlips are the flips of checks that need no lab.
func staticFlips(k claims.Check) []flip {
	var all []flip
	add := func(what string, change func(*claims.Check)) {
		f := k
		change(&f)
		all = append(all, flip{what, f})
	}
	switch {
	case k.Rule != nil:
		add("examples", func(f *claims.Check) { r := *k.Rule; r.Bad, r.Good = r.Good, r.Bad; f.Rule = &r })
	case k.Placement != nil:
		for _, n := range k.Placement.Nodes {
			add("fits "+n, func(f *claims.Check) { p := *k.Placement; p.Fits = toggled(p.Fits, n); f.Placement = &p })
			add("runs "+n, func(f *claims.Check) { p := *k.Placement; p.Runs = toggled(p.Runs, n); f.Placement = &p })
		}
	case k.Resources != nil:
		for _, name := range slices.Sorted(maps.Keys(k.Resources.Want)) {
			add("want "+name, func(f *claims.Check) {
				r := *k.Resources
				r.Want = maps.Clone(r.Want)
				r.Want[name] = "not " + r.Want[name]
				if d := k.Disputed; d != nil && d.Model == claims.FollowsAgainst {
					_, r.Want[name], _ = strings.Cut(d.Otherwise, " ")
				}
				f.Resources = &r
			})
		}
	case k.Doctor != nil:
		add("finds", func(f *claims.Check) {
			d := *k.Doctor
			if d.Finds != "" {
				d.Finds = ""
			} else {
				d.Finds = "no-such-cause"
			}
			f.Doctor = &d
		})
	}
	return all
}

func toggled(list []string, name string) []string {
	if i := slices.Index(list, name); i >= 0 {
		return slices.Delete(slices.Clone(list), i, i+1)
	}
	return append(slices.Clone(list), name)
}

// bounds are the bounds of a range, each moved by one step inwards and outwards. The end of
// the documents is not a bound of the rule.
func bounds(rng, newest string) []string {
	var all []string
	for _, at := range bound.FindAllStringSubmatchIndex(rng, -1) {
		v := rng[at[4]:at[5]]
		if v == newest {
			continue
		}
		head, last, _ := cutLast(v)
		n, err := strconv.Atoi(last)
		if err != nil {
			continue
		}
		for _, to := range []int{n - 1, n + 1} {
			if to >= 0 {
				all = append(all, rng[:at[4]]+head+strconv.Itoa(to)+rng[at[5]:])
			}
		}
	}
	return all
}

var bound = regexp.MustCompile(`([<>=]*)([0-9][0-9.]*)`)

// cutLast parts a version before its last number.
func cutLast(v string) (head, last string, ok bool) {
	i := strings.LastIndexByte(v, '.') + 1
	return v[:i], v[i:], i > 0
}

// minors are the documented versions of Kubernetes that a range has.
func minors(rng string) []string { return versions(claims.Check{Where: claims.Where{Kubernetes: rng}}) }

// settingFlips move each bound of a rule on settings, unless no documented version of
// Kubernetes is between the old bound and the new one.
func settingFlips(k claims.Check) []flip {
	if k.Rule == nil || k.Rule.On != "setting" {
		return nil
	}
	var all []flip
	for _, r := range bounds(k.Kubernetes, claims.Newest()) {
		if _, err := claims.ParseRange(r); err == nil && !slices.Equal(minors(r), minors(k.Kubernetes)) {
			f := k
			f.Kubernetes = r
			all = append(all, flip{"kubernetes " + r, f})
		}
	}
	for _, r := range bounds(k.Build, "") {
		f := k
		f.Build = r
		all = append(all, flip{"build " + r, f})
	}
	for _, r := range bounds(k.RuntimeVersion, "") {
		f := k
		f.RuntimeVersion = r
		all = append(all, flip{"runtimeVersion " + r, f})
	}
	return all
}

// notDecided are the settings in which the model does not know what a check asks, so that
// neither the expectation nor its opposite is met. The cell says unknown there.
func (s *suite) notDecided(ctx context.Context, k claims.Check) map[string]bool {
	all := map[string]bool{}
	for _, one := range s.designs {
		if k.Matches(one.ch.job.column) {
			one.mu.Lock()
			r, _ := one.ch.check(ctx, k)
			one.mu.Unlock()
			if r.Got == string(trace.Unknown) || len(r.Open) > 0 {
				all[one.ch.job.column.ID] = true
			}
		}
	}
	return all
}

// TestEveryExpectationCanFail flips everything that a check of the ledger asks for, one
// thing at a time, and tries the check again: wherever the model knows the answer, the run
// must then be not as expected. What stays as it was is a check that cannot go red.
func TestEveryExpectationCanFail(t *testing.T) {
	s := suiteOf(t)
	tried := 0
	var never []string
	for _, cl := range s.ledger.Claims() {
		for i, k := range cl.Checks {
			red, undecided := 0, map[string]bool{}
			if !k.Static() && k.Cluster == "" && k.Asks() {
				undecided = s.notDecided(t.Context(), k)
			}
			all := append(flips(k), settingFlips(k)...)
			tried += len(all)
			for _, f := range all {
				one := *cl
				one.Checks = slices.Clone(cl.Checks)
				one.Checks[i] = f.check
				n, green := s.turned(t.Context(), &one, &one.Checks[i], undecided)
				red += n
				for _, where := range green {
					t.Errorf("%s, check %d (%s, %s): %s flipped, and nothing fails in %s", cl.ID, i+1, k, k.Words(), f.what, where)
				}
			}
			if len(all) > 0 && red == 0 {
				never = append(never, fmt.Sprintf("%s, check %d (%s, %s)", cl.ID, i+1, k, k.Words()))
			}
		}
	}
	t.Logf("%d flips; the model decides nothing of %d checks:\n%s", tried, len(never), strings.Join(never, "\n"))
}

// turned tries a flipped check: in how many settings it fails, and in which it does not
// although the model decides it.
func (s *suite) turned(ctx context.Context, cl *claims.Claim, k *claims.Check, undecided map[string]bool) (red int, green []string) {
	if k.Static() {
		st, _ := tryStatic(ctx, s.ledger, cl, k, newFolders("../../../fixtures/nodes"))
		if st.Outcome() != result.Differs {
			return 0, []string{"its examples"}
		}
		return 1, nil
	}
	for _, one := range s.designs {
		column := one.ch.job.column
		if !k.Matches(column) || undecided[column.ID] {
			continue
		}
		one.mu.Lock()
		r, tried := one.ch.check(ctx, *k)
		one.mu.Unlock()
		var all tally
		if all.add(r, tried, k.Asks()); all.outcome() == result.Differs {
			red++
		} else {
			green = append(green, column.ID)
		}
	}
	return red, green
}
