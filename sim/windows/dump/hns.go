package dump

import (
	"bytes"
	"encoding/json"
	"errors"
	"sort"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/internal/lazyregexp"
	"github.com/winlab-dev/winlab/internal/strict"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// hnsJSON reads JSON of HNS, which begins after as many columns of its line.
func (r *reader) hnsJSON(l Lines, column int) {
	text := l.Join()
	if strings.Contains(text, `"@{`) {
		// What ConvertTo-Json cut off at its depth is in PowerShell's notation.
		if trees, err := JSONTrees(l); err == nil {
			for _, t := range trees {
				r.hnsTree(l.File, unfold(t))
			}
			return
		}
	}
	r.take(hns.DumpText{Name: l.File, JSON: []byte(text), Position: func(at int) (int, int) {
		line := strings.Count(text[:at], "\n")
		in := at - strings.LastIndexByte(text[:at], '\n')
		if line == 0 {
			in += column
		}
		return l.First + line, in
	}})
}

// unfold reads PowerShell's notation inside of texts.
func unfold(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.ScalarNode {
		return psValue(n)
	}
	for i := range n.Content {
		if n.Kind != yaml.MappingNode || i%2 == 1 {
			n.Content[i] = unfold(n.Content[i])
		}
	}
	return n
}

// hnsTree reads an object that was not printed as JSON.
func (r *reader) hnsTree(file string, n *yaml.Node) {
	w := &treeWriter{}
	w.write(n, 0)
	r.take(hns.DumpText{Name: file, JSON: w.buf.Bytes(), Words: true, Position: w.position})
}

// Objects reads the objects of HNS in a tree, however it was printed. What cannot
// be read is a mistake with its place, and the dump holds the others.
func Objects(file string, n *yaml.Node) (*hns.Dump, strict.Mistakes) {
	w := &treeWriter{}
	w.write(unfold(n), 0)
	d, err := hns.DumpText{Name: file, JSON: w.buf.Bytes(), Words: true, Position: w.position}.Parse()
	var found Node
	found.mistakes(file, err)
	return d, found.Mistakes
}

// treeWriter writes a tree as JSON and remembers the lines.
type treeWriter struct {
	buf   bytes.Buffer
	at    []int
	lines []int
}

func (w *treeWriter) write(n *yaml.Node, depth int) {
	w.at, w.lines = append(w.at, w.buf.Len()), append(w.lines, n.Line)
	if depth > MaxDepth {
		w.buf.WriteString("null")
		return
	}
	switch n.Kind {
	case yaml.MappingNode:
		w.buf.WriteByte('{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			if i > 0 {
				w.buf.WriteByte(',')
			}
			w.text(n.Content[i].Value)
			w.buf.WriteByte(':')
			w.write(n.Content[i+1], depth+1)
		}
		w.buf.WriteByte('}')
	case yaml.SequenceNode:
		w.buf.WriteByte('[')
		for i, e := range n.Content {
			if i > 0 {
				w.buf.WriteByte(',')
			}
			w.write(e, depth+1)
		}
		w.buf.WriteByte(']')
	default:
		w.text(n.Value)
	}
}

func (w *treeWriter) text(s string) {
	raw, _ := json.Marshal(s) // a string can be written
	w.buf.Write(raw)
}

func (w *treeWriter) position(at int) (line, column int) {
	i := sort.SearchInts(w.at, at+1) - 1
	if i < 0 {
		return 1, 1
	}
	return w.lines[i], 1
}

// take parses a text with objects of HNS.
func (r *reader) take(t hns.DumpText) {
	d, err := t.Parse()
	r.n.mistakes(r.f.Name, err)
	counts := []struct {
		what string
		n    int
	}{{"HNS networks", len(d.Networks)}, {"HNS endpoints", len(d.Endpoints)}, {"HNS namespaces", len(d.Namespaces)},
		{"HNS load balancers", len(d.LoadBalancers)}, {"HNS routes", len(d.Routes)}}
	for _, c := range counts {
		if c.n > 0 {
			r.addForm(c.what)
		}
	}
	if err == nil {
		if len(r.f.As) == 0 {
			r.addForm("an empty list of HNS")
		}
		r.n.hnsDump().Add(d)
	}
}

var placeForm = lazyregexp.New(`^(.*?):(\d+):(\d+): (?s:(.*))$`)

// mistakes takes the mistakes of a parser apart.
func (n *Node) mistakes(file string, err error) {
	if err == nil {
		return
	}
	var many interface{ Unwrap() []error }
	if errors.As(err, &many) {
		for _, e := range many.Unwrap() {
			n.mistakes(file, e)
		}
		return
	}
	m := strict.Mistake{File: file, Message: err.Error()}
	if p := placeForm.FindStringSubmatch(err.Error()); p != nil {
		m.File = p[1]
		m.Line, _ = strconv.Atoi(p[2])
		m.Column, _ = strconv.Atoi(p[3])
		m.Message = p[4]
	}
	n.Mistakes = append(n.Mistakes, m)
}

// hnsKeys are fields of which each object of HNS has one.
var hnsKeys = []string{"VirtualNetwork", "VirtualNetworkName", "HostComputeNetwork", "IpConfigurations", "FrontendVIPs",
	"HostComputeEndpoints", "References", "Ipams",
	"Subnets", "MacPools", "MacPool", "ManagementIP", "NamespaceId", "CompartmentGuid", "IsRemoteEndpoint", "Setting", "LayeredOn",
	"IsDefault", "ResourceList", "NatName"}

// isHNS reports whether an object is one of HNS.
func isHNS(o *yaml.Node) bool {
	if o == nil || o.Kind != yaml.MappingNode {
		return false
	}
	if Has(o, "Success") && (Child(o, "Output") != nil || Child(o, "Error") != nil) {
		return true
	}
	return Child(o, hnsKeys...) != nil || Child(o, "Networks", "Endpoints", "LoadBalancers", "PolicyLists") != nil && !Has(o, "kind") ||
		Has(o, "ID", "Policies")
}

// summary reports whether an object has too few fields to be simulated, as
// Select-Object and hnsdiag list all print them.
func summary(o *yaml.Node) bool {
	return Child(o, "ID") == nil || Child(o, hnsKeys...) == nil
}
