// Package symptoms finds known issues by what they print: fragments of log lines and error
// codes, in the lines of files that somebody took from a node.
//
// It must not know what else is in such a file, nor which cluster it is from.
package symptoms

import (
	"slices"
	"strings"
	"sync"

	"github.com/winlab-dev/winlab/conformance/known"
	"github.com/winlab-dev/winlab/internal/lazyregexp"
)

// Fragment is a text that one or more entries have as a symptom, in lower case.
type Fragment struct {
	Text    string
	Entries []*known.Entry
}

// Matcher finds fragments in lines. It can be used by several goroutines.
type Matcher struct {
	// starts has the first two bytes of fragments: most places of a line begin none.
	starts [1 << 16]bool
	by     map[string][]*Fragment // by the first bytes
}

// prefix is how many bytes fragments are found by, shortest the least length of one: shorter
// texts are in lines that have nothing to do with the issue.
const prefix, shortest = 6, 12

// failure is what a line says that a healthy node does not print.
var failure = lazyregexp.New(`fail|error|unable|cannot|can't|could not|not found|no such|denied|refused|forbidden|time[d]? ?out|invalid|` +
	`panic|fatal|exists|unknown|missing|not supported|unsupported|deadline|unreachable|exited|incorrect|0x[0-9a-f]{8}`)

// Of makes a matcher of entries.
func Of(entries []*known.Entry) *Matcher {
	m := &Matcher{by: map[string][]*Fragment{}}
	add := func(e *known.Entry, text string) {
		text = strings.ToLower(text)
		if len(text) < shortest && !strings.HasPrefix(text, "0x8") || len(text) < prefix || !failure.MatchString(text) {
			return
		}
		m.starts[uint16(text[0])<<8|uint16(text[1])] = true
		same := m.by[text[:prefix]]
		i := slices.IndexFunc(same, func(f *Fragment) bool { return f.Text == text })
		if i < 0 {
			i = len(same)
			same = append(same, &Fragment{Text: text})
			m.by[text[:prefix]] = same
		}
		if f := same[i]; !slices.Contains(f.Entries, e) {
			f.Entries = append(f.Entries, e)
		}
	}
	for _, e := range entries {
		for _, l := range e.Symptoms.Logs {
			add(e, l.Text)
		}
		for _, c := range e.Symptoms.Codes {
			add(e, c)
		}
	}
	return m
}

// Register is the matcher of the register that is part of the program.
var Register = sync.OnceValue(func() *Matcher { return Of(known.Load().Entries) })

// Line returns the fragments that a line has, in lower case as it is given.
func (m *Matcher) Line(low string) []*Fragment {
	var found []*Fragment
	for i := 0; i+prefix <= len(low); i++ {
		if !m.starts[uint16(low[i])<<8|uint16(low[i+1])] {
			continue
		}
		for _, f := range m.by[low[i:i+prefix]] {
			if strings.HasPrefix(low[i:], f.Text) && !slices.Contains(found, f) {
				found = append(found, f)
			}
		}
	}
	return found
}

// Weigh ranks the entries that fragments speak for, the likeliest first: a fragment that many
// entries share says less of each. Entries with less than half a fragment of their own are left
// out.
func Weigh(seen []*Fragment) []*known.Entry {
	weight := map[*known.Entry]float64{}
	var all []*known.Entry
	for _, f := range seen {
		for _, e := range f.Entries {
			if weight[e] == 0 {
				all = append(all, e)
			}
			weight[e] += 1 / float64(len(f.Entries))
		}
	}
	all = slices.DeleteFunc(all, func(e *known.Entry) bool { return weight[e] < 0.5 })
	slices.SortStableFunc(all, func(a, b *known.Entry) int {
		if weight[a] != weight[b] {
			if weight[a] > weight[b] {
				return -1
			}
			return 1
		}
		return a.ID - b.ID
	})
	return all
}
