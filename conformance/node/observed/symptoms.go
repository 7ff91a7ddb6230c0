package observed

import (
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/conformance/known"
	"github.com/winlab-dev/winlab/conformance/known/symptoms"
)

// KnownIssue is an issue of the register whose symptoms are in the folder, with the first places.
type KnownIssue struct {
	Entry  *known.Entry
	Places []Place
}

// mostPlaces bounds the places that are kept of one fragment.
const mostPlaces = 3

// symptomsIn notes the lines of a file that known issues print.
func (r *reader) symptomsIn() {
	m := symptoms.Register()
	for i, text := range r.all.Text {
		for _, f := range m.Line(strings.ToLower(text)) {
			if r.node.symptoms == nil {
				r.node.symptoms = map[*symptoms.Fragment][]Place{}
			}
			if r.node.symptoms[f] == nil {
				r.node.fragments = append(r.node.fragments, f)
			}
			if len(r.node.symptoms[f]) < mostPlaces {
				r.node.symptoms[f] = append(r.node.symptoms[f], r.placeOf(r.all.First+i))
			}
		}
	}
}

// KnownIssues are the issues of the register whose symptoms are in the folder, the likeliest
// first.
func (n *Node) KnownIssues() []KnownIssue {
	var all []KnownIssue
	for _, e := range symptoms.Weigh(n.fragments) {
		k := KnownIssue{Entry: e}
		for _, f := range n.fragments {
			if slices.Contains(f.Entries, e) {
				k.Places = append(k.Places, n.symptoms[f]...)
			}
		}
		all = append(all, k)
	}
	return all
}
