package reach

import (
	"net/netip"
	"slices"
	"strings"

	doc "github.com/winlab-dev/winlab/reports/reach"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// Pods of different classes share answers where all that tells the classes apart are ACLs of
// NetworkPolicies that say nothing of each other. The packets of a flow between two pods have, at
// either one's endpoint, the address of the other one or one that is not a pod's (of a node that
// translated it, or of a router that refuses it). So an ACL in which other pods stand, each by its
// address, is met by none of them, and the flow ends as it would without that ACL.
//
// The answer for one such pair is that of another but for names. Where names stand in it is not
// guessed: two pairs are traced, and the second answer must be the first one with the names of the
// second. See docs/decisions/reach.md.

// sharing reports whether there may be answers to share.
func (s *space) sharing() bool { return len(s.c.Plan.Policies) > 0 }

// towards are a pod's ACLs as flows with others meet them.
type towards struct {
	acls []towardsACL
	// others is the text towards pods that no ACL names, and names those names of which come from
	// the ACLs that they meet.
	others string
	names  []int32
	// named are the pods that an ACL names.
	named map[*pod]bool
}

// towardsACL is an ACL of an endpoint.
type towardsACL struct {
	// text is what flows with a pod meet that it does not name: "" where none of them does, as it
	// names single addresses of pods and no others.
	text string
	// named are texts for the pods that it names.
	named map[*pod]string
	names []int32
}

// remote is where the pods stand that an ACL speaks of.
const remote = `"RemoteAddresses":"`

// share reads the ACLs of a pod.
func (s *space) share(p *pod) *towards {
	if p.towards != nil {
		return p.towards
	}
	t := &towards{named: map[*pod]bool{}}
	p.towards = t
	n := 0
	for _, x := range p.endpoint.hns.Policies {
		if !isACL(x) {
			continue
		}
		text, id := withoutID(p.endpoint.acls[n])
		n++
		took, _ := hns.SettingsOf[hns.ACLSettings](x)
		a := s.towardsOf(text, p, took.RemoteAddresses)
		a.names = []int32{s.called.number(x.Origin.String()), s.called.number(id)}
		for q := range a.named {
			t.named[q] = true
		}
		t.acls = append(t.acls, a)
	}
	t.others, t.names = t.aclTextFor(nil)
	return t
}

// withoutID takes the identifier of an ACL out of its text: it is a name.
func withoutID(text string) (rest, id string) {
	const begins = `,"Id":"`
	before, behind, ok := strings.Cut(text, begins)
	id, behind, closed := strings.Cut(behind, `"`)
	if !ok || !closed || strings.Contains(behind, begins) || isMarked(id) {
		return text, ""
	}
	return before + begins + `"` + behind, id
}

// towardsOf reads a text with marks of an ACL of a pod. took are the remote addresses that HNS took
// from it: JSON may have the key twice, also in other letters, and the last one counts.
func (s *space) towardsOf(text string, p *pod, took string) towardsACL {
	a := towardsACL{named: map[*pod]string{}}
	before, rest, ok := strings.Cut(text, remote+string(listBegins))
	list, behind, closed := strings.Cut(rest, string(listEnds)+`"`)
	if ok && closed && !isMarked(before) && !isMarked(behind) {
		words, addresses := strings.Split(list, ","), strings.Split(took, ",")
		ok = len(words) == len(addresses)
		for i := 0; ok && i < len(words); i++ {
			q := s.single(words[i], p)
			if q == nil || !isAddress(addresses[i], q.addrs[0]) {
				ok = false
				break
			}
			a.named[q] = before + "(the other)" + behind
		}
		if ok {
			return a
		}
	}
	a.text, a.named = s.raw(text), map[*pod]string{}
	for _, q := range s.pointed(text) {
		a.named[q] = a.text + "the other is " + q.plan.Key()
	}
	return a
}

// isAddress reports whether a text is an address, or the prefix that has no other.
func isAddress(text string, a netip.Addr) bool {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p == netip.PrefixFrom(a, a.BitLen())
	}
	is, err := netip.ParseAddr(text)
	return err == nil && is == a
}

// single is the pod of which a word in a text of p is the only address, and nothing else; nil for
// none.
func (s *space) single(word string, p *pod) *pod {
	q, address, rest := p, "0", ""
	if own, ok := strings.CutPrefix(word, "(pod 0)"); ok {
		rest = own
	} else if word == "" || word[0] != markBegins {
		return nil
	} else {
		end := strings.IndexByte(word, markEnds)
		rest = word[end+1:]
		q, address = s.pointedBy(word[1:end])
	}
	if rest != "" && rest != "/32" && rest != "/128" || address != "0" || len(q.addrs) != 1 {
		return nil
	}
	return q
}

// aclTextFor is the text of the ACLs that flows with q meet; nil is one that none names. names are those of
// these ACLs, and where they come from.
func (t *towards) aclTextFor(q *pod) (text string, names []int32) {
	var b strings.Builder
	for _, a := range t.acls {
		text, ok := a.named[q]
		if !ok {
			text = a.text
		}
		if text != "" {
			b.WriteString(text)
			names = append(names, a.names...)
		}
	}
	return digest(b.String()), names
}

func (t *towards) textFor(q *pod) (string, []int32) {
	if t.named[q] {
		return t.aclTextFor(q)
	}
	return t.others, t.names
}

// shareKey is equal for flows that end alike but for names.
type shareKey struct {
	from, to, out, in string
	how, protocol     string
	port              uint16
	// alike says which of the names are the same: two ACLs of one policy are one cause.
	alike string
}

// sharedKind are the groups of one key.
type sharedKind struct {
	groups []*group
	// second is the one that is traced beside the first; nil where there is only one.
	second *group
}

// shares finds the groups that may share an answer, in their order, and those that have to be
// traced first: two of each kind, and all others.
func (v *view) shares(list []*group) (kinds []*sharedKind, first []*group) {
	if v.s == nil || !v.s.sharing() {
		return nil, list
	}
	of := map[shareKey]*sharedKind{}
	for _, g := range list {
		k, ok := v.shareKey(g)
		if !ok {
			first = append(first, g)
			continue
		}
		x := of[k]
		if x == nil {
			x = &sharedKind{}
			of[k] = x
			kinds = append(kinds, x)
		}
		x.groups = append(x.groups, g)
	}
	for _, x := range kinds {
		if first = append(first, x.groups[0]); len(x.groups) > 1 {
			x.second = v.unlike(x.groups)
			first = append(first, x.second)
		}
	}
	return kinds, first
}

func (v *view) shareKey(g *group) (k shareKey, ok bool) {
	if g.via != nil || g.a.kind != doc.Pod || g.b.kind != doc.Pod {
		return k, false
	}
	a, b := v.pod(g.a), v.pod(g.b)
	if a.alone == "" || b.alone == "" {
		return k, false
	}
	k = shareKey{from: a.alone, to: b.alone, how: g.how, protocol: g.protocol, port: g.port, alike: v.s.equalityPattern(v.names(g))}
	k.out, _ = v.s.share(a).textFor(b)
	k.in, _ = v.s.share(b).textFor(a)
	return k, true
}

func (v *view) pod(e *end) *pod { return v.s.pods[e.namespace+"/"+e.name] }

// maxChoice is among how many groups one is chosen: what is chosen decides how many have to be
// traced, and no answer.
const maxChoice = 100

// unlike is a group that has few names in common with the first.
func (v *view) unlike(groups []*group) (second *group) {
	is, fewest := slices.Clone(v.names(groups[0])), -1
	for _, g := range append([]*group{groups[len(groups)-1]}, groups[1:min(len(groups), maxChoice)]...) {
		n := 0
		for i, name := range v.names(g) {
			if name == is[i] {
				n++
			}
		}
		if fewest < 0 || n < fewest {
			second, fewest = g, n
		}
	}
	return second
}

// called are names by number; 0 is "".
type called struct {
	names   []string
	numbers map[string]int32
}

func (c *called) number(name string) int32 {
	if c.names == nil {
		c.names, c.numbers = []string{""}, map[string]int32{"": 0}
	}
	n, ok := c.numbers[name]
	if !ok {
		n = int32(len(c.names))
		c.names, c.numbers[name] = append(c.names, name), n
	}
	return n
}

// names are all names that are a group's own: those of its pods, their endpoints and nodes, and
// of the ACLs that its packets meet. Groups of one kind have as many. They are valid until the next
// call.
func (v *view) names(g *group) []int32 {
	a, b := v.pod(g.a), v.pod(g.b)
	_, out := v.s.share(a).textFor(b)
	_, in := v.s.share(b).textFor(a)
	v.buf = v.buf[:0]
	for _, list := range [][]int32{v.s.namesOf(a), v.s.namesOf(b), out, in} {
		v.buf = append(v.buf, list...)
	}
	return v.buf
}

// equalityPattern says which of some names are the same, and which do not occur.
func (s *space) equalityPattern(names []int32) string {
	is := make([]byte, 0, 2*len(names))
	for i, n := range names {
		if n != 0 {
			i = slices.Index(names, n) + 1
		} else {
			i = 0
		}
		is = append(is, byte(i), byte(i>>8))
	}
	return string(is)
}

func (s *space) namesOf(p *pod) []int32 {
	if p.called != nil {
		return p.called
	}
	n, e := p.on.Node.Plan.Kube, p.endpoint.hns
	all := []string{p.plan.Name, p.plan.Node, e.ID, e.HostComputeNamespace, e.MacAddress, strings.ToLower(e.ID), strings.ToUpper(e.ID)}
	for _, a := range append(slices.Clone(p.addrs), n.Address, n.Address6) {
		if a.IsValid() {
			all = append(all, a.String())
		} else {
			all = append(all, "")
		}
	}
	for _, m := range []packet.MAC{n.MAC, n.VtepMAC, p.on.Node.Plan.PodNIC} {
		all = append(all, m.String())
	}
	if m, err := packet.ParseMAC(e.MacAddress); err == nil {
		all = append(all, m.String())
	} else {
		all = append(all, "")
	}
	for _, name := range all {
		p.called = append(p.called, s.called.number(name))
	}
	return p.called
}

// shareOut gives the answers of kinds to their other groups. It returns those that have to be
// traced all the same.
func (v *view) shareOut(kinds []*sharedKind, cells map[*group]*doc.Cell) (rest []*group) {
	for _, x := range kinds {
		if x.second == nil {
			continue
		}
		first := x.groups[0]
		f := newForm(cells[first], slices.Clone(v.names(first)), v.s.called.names)
		second := slices.Clone(v.names(x.second))
		is := f.cell(x.second, second)
		fits := sameCell(&is, cells[x.second])
		for _, g := range x.groups[1:] {
			if g == x.second {
				continue
			}
			if of := v.names(g); fits && f.seen(of, second) {
				*cells[g] = f.cell(g, of)
			} else {
				rest = append(rest, g)
			}
		}
	}
	return rest
}

func sameCell(a, b *doc.Cell) bool {
	if (a.Decides == nil) != (b.Decides == nil) || a.Decides != nil && *a.Decides != *b.Decides || len(a.Open)+len(b.Open) > 0 {
		return false
	}
	return a.Verdict == b.Verdict && a.Reason == b.Reason && a.Summary == b.Summary && a.Example == b.Example
}

// form is an answer with places for names.
type form struct {
	of      *doc.Cell
	names   []int32
	called  []string // by name
	used    []bool   // by place in names
	summary blanks
	command blanks
	decides [4]blanks
}

// blanks is a text with places for names: a part, a name, a part, and so on.
type blanks struct {
	parts []string
	names []int // by their place
}

func newForm(c *doc.Cell, names []int32, called []string) *form {
	f := &form{of: c, names: names, called: called, used: make([]bool, len(names))}
	var order []int
	for i, n := range names {
		if n != 0 && slices.Index(names, n) == i {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return len(called[names[j]]) - len(called[names[i]]) })
	f.summary, f.command = f.blanks(c.Summary, order), f.blanks(c.Example.Command, order)
	if d := c.Decides; d != nil {
		for i, text := range []string{d.Place, d.Text, d.Rule, d.From} {
			f.decides[i] = f.blanks(text, order)
		}
	}
	return f
}

// blanks finds names in a text; order are their places, longer ones first.
func (f *form) blanks(text string, order []int) (b blanks) {
	from := 0
	for i := 0; i < len(text); {
		n := -1
		if i == 0 || !inName(text[i-1]) {
			n = slices.IndexFunc(order, func(n int) bool {
				rest, ok := strings.CutPrefix(text[i:], f.called[f.names[n]])
				return ok && (rest == "" || !inName(rest[0]) || rest[0] == '.' && (len(rest) == 1 || !inName(rest[1])))
			})
		}
		if n < 0 {
			i++
			continue
		}
		b.parts, b.names = append(b.parts, text[from:i]), append(b.names, order[n])
		f.used[order[n]] = true
		i += len(f.called[f.names[order[n]]])
		from = i
	}
	b.parts = append(b.parts, text[from:])
	return b
}

func inName(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '.'
}

func (f *form) fillIn(b *blanks, names []int32) string {
	var s strings.Builder
	for i, n := range b.names {
		s.WriteString(b.parts[i])
		s.WriteString(f.called[names[n]])
	}
	s.WriteString(b.parts[len(b.names)])
	return s.String()
}

// cell is the answer with other names, which are alike where those of the form are.
func (f *form) cell(g *group, names []int32) doc.Cell {
	c := cellOf(g, &trace.Trace{Verdict: f.of.Verdict, Reason: f.of.Reason, Summary: f.fillIn(&f.summary, names),
		Command: f.fillIn(&f.command, names)})
	if d := f.of.Decides; d != nil {
		c.Decides = &doc.Step{Fact: d.Fact}
		for i, text := range []*string{&c.Decides.Place, &c.Decides.Text, &c.Decides.Rule, &c.Decides.From} {
			*text = f.fillIn(&f.decides[i], names)
		}
	}
	return c
}

// seen reports whether every name that has to be another one is another one in the second answer as
// well, which has shown that it is a name there and no word of the text.
func (f *form) seen(names, second []int32) bool {
	for i, n := range f.names {
		if f.used[i] && names[i] != n && second[i] == n {
			return false
		}
	}
	return true
}
