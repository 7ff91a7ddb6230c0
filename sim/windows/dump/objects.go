package dump

import (
	"strings"

	"gopkg.in/yaml.v3"
)

// json reads JSON: objects of HNS, or facts of the node.
func (r *reader) json(l Lines) {
	trees, err := JSONTrees(l)
	if err != nil {
		r.n.mistake(l.File, l.First, "not JSON: %v", err)
		return
	}
	var objects []*yaml.Node
	empty := false
	for _, t := range trees {
		if t.Kind == yaml.SequenceNode {
			objects = append(objects, t.Content...)
			empty = empty || len(t.Content) == 0
		} else {
			objects = append(objects, t)
		}
	}
	facts := 0
	for _, o := range objects {
		if r.fact(l, o) {
			facts++
		}
	}
	switch {
	case facts > 0:
	case empty && len(objects) == 0:
		r.n.hnsDump()
		r.as("an empty list of HNS")
	case len(objects) > 0:
		if !isHNS(objects[0]) && !strings.Contains(strings.Join(l.Text[:min(len(l.Text), 50)], ""), `"ID"`) {
			return
		}
		r.hnsJSON(l)
	}
}

// fact takes a fact of the node out of an object, however it was printed.
func (r *reader) fact(l Lines, o *yaml.Node) bool {
	if o.Kind != yaml.MappingNode {
		return false
	}
	return r.netRoute(l, o) || r.netInterface(l, o) || r.netNAT(l, o) || r.tcpSetting(l, o)
}

// text reads what is not JSON.
func (r *reader) text(l Lines) {
	for _, o := range Tables(l) {
		r.fact(l, o)
	}
	for _, o := range ListObjects(l) {
		if r.fact(l, o) {
			continue
		}
		if isHNS(o) && !summary(o) {
			r.hnsTree(l.File, o)
		}
	}
	r.routePrint(l)
	r.portRanges(l)
	r.netshInterfaces(l)
	r.hnsdiag(l)
	r.vfp(l)
}
