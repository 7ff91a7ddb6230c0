package dump

import (
	"encoding/json"
	"errors"
	"io"
	"strings"

	"gopkg.in/yaml.v3"
)

// json reads JSON values one after the other: each is of HNS, or facts of the node.
func (r *reader) json(l Lines) {
	text := l.Join()
	dec := json.NewDecoder(strings.NewReader(text))
	for {
		var raw json.RawMessage
		err := dec.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			if !r.inLog {
				r.n.mistake(l.File, l.First, "not JSON: %v", err)
			}
			return
		}
		at := int(dec.InputOffset()) - len(raw)
		line := strings.Count(text[:at], "\n")
		column := at - strings.LastIndexByte(text[:at], '\n') - 1
		r.jsonValue(Lines{File: l.File, First: l.First + line, Text: strings.Split(string(raw), "\n")}, column)
	}
}

// jsonValue reads one value, which begins after as many columns of its line.
func (r *reader) jsonValue(l Lines, column int) {
	trees, err := JSONTrees(l)
	if err != nil || len(trees) == 0 {
		return
	}
	objects := Items(trees[0])
	facts := 0
	for _, o := range objects {
		if r.fact(l, o) {
			facts++
		}
	}
	switch {
	case facts > 0:
	case r.inLog && (len(objects) == 0 || !isHNS(objects[0])):
	case len(objects) == 0:
		r.n.hnsDump()
		r.addForm("an empty list of HNS")
	case isHNS(objects[0]) || maybeHNS(objects[0]):
		r.hnsJSON(l, column)
	}
}

// maybeHNS reports whether an object, though not known, may be meant as one of
// HNS, so that the reader says what it lacks: not one of Kubernetes.
func maybeHNS(o *yaml.Node) bool {
	return o.Kind != yaml.MappingNode || !Has(o, "kind") && !Has(o, "apiVersion") && !Has(o, "cniVersion")
}

// fact takes a fact of the node out of an object, however it was printed.
func (r *reader) fact(l Lines, o *yaml.Node) bool {
	if o.Kind != yaml.MappingNode {
		return false
	}
	if r.netRoute(l, o) || r.adapter(l, o) {
		return true
	}
	kind := r.n.ReadObject(r.command, l, o)
	if kind != "" {
		r.addForm(kind)
	}
	return kind != ""
}

// adapter takes what Get-NetAdapter and Get-NetIPAddress show.
func (r *reader) adapter(l Lines, o *yaml.Node) bool {
	a, ok := AdapterOf(o)
	if !ok {
		return false
	}
	a.Place = l.placeOf(o.Line)
	if len(a.Addresses) > 0 {
		r.addForm("addresses")
	} else {
		r.addForm("network adapters")
	}
	r.n.Adapters = append(r.n.Adapters, a)
	return true
}

// ipconfig takes what ipconfig /all shows.
func (r *reader) ipconfig(l Lines) {
	if !IsIPConfig(l.Join()) {
		return
	}
	if _, all, ok := IPConfig(l); ok {
		r.n.Adapters = append(r.n.Adapters, all...)
		r.addForm("network adapters")
	}
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
	r.ipconfig(l)
	r.routePrint(l)
	r.hnsdiag(l)
	for _, kind := range r.n.ReadText(r.command, l) {
		r.addForm(kind)
	}
}
