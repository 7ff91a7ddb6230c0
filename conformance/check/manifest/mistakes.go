package manifest

import (
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/winlab-dev/winlab/internal/lazyregexp"
	"github.com/winlab-dev/winlab/internal/strict"
)

func isText(n *yaml.Node) bool {
	return n != nil && n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" && n.Value != ""
}

// shape says what keeps a document that was meant for an object from being
// one: a kind is missing, or it is a bare list of objects. Documents that are
// something else altogether give nothing.
func shape(d *strict.Doc) *strict.Mistake {
	say := func(at *yaml.Node, format string, args ...any) *strict.Mistake {
		return &strict.Mistake{File: d.File, Line: at.Line, Column: at.Column, Message: fmt.Sprintf(format, args...)}
	}
	if d.Root.Kind == yaml.SequenceNode {
		for _, e := range d.Root.Content {
			if isText(strict.Child(e, "apiVersion")) && isText(strict.Child(e, "kind")) {
				return say(d.Root, "a bare list of objects; write one object to a document, or {apiVersion: v1, kind: List, items: [...]}")
			}
		}
		return nil
	}
	api, kind := strict.Child(d.Root, "apiVersion"), strict.Child(d.Root, "kind")
	for _, c := range []struct {
		name        string
		have, other *yaml.Node
	}{{"kind", kind, api}, {"apiVersion", api, kind}} {
		switch {
		case c.have != nil && c.other != nil && (c.have.Kind != yaml.ScalarNode || c.have.Value != "") && !isText(c.have):
			return say(c.have, "%s is not a text", c.name)
		case !isText(c.have) && isText(c.other) && (strict.Child(d.Root, "spec") != nil || strict.Child(d.Root, "metadata") != nil):
			return say(d.Root, "the object has no %s", c.name)
		}
	}
	return nil
}

// wrongKind finds kinds that rules look at under a version that does not have
// them: {apiVersion: v1, kind: Deployment}, or kind: pod. Other kinds may be
// anybody's.
func wrongKind(root *yaml.Node, o *object) (at *yaml.Node, message string) {
	gv, err := schema.ParseGroupVersion(o.apiVersion)
	if err != nil || !scheme().IsVersionRegistered(gv) {
		return nil, ""
	}
	for _, k := range kinds {
		if !strings.EqualFold(k.Kind, o.kind) {
			continue
		}
		right, version := k.GroupVersion().String(), strict.Child(root, "apiVersion")
		if k.GroupVersion() == gv || k.Kind != o.kind && scheme().Recognizes(gv.WithKind(k.Kind)) {
			return strict.Child(root, "kind"), fmt.Sprintf("%s has no kind %s; write %s", o.apiVersion, o.kind, k.Kind)
		}
		return version, fmt.Sprintf("%s has no kind %s; write apiVersion: %s", o.apiVersion, o.kind, right)
	}
	return nil, ""
}

var unknown = lazyregexp.New(`^(unknown|duplicate) field "(.*)"$`)

// directive is a field by which kubectl and kustomize know what a patch does.
var directive = lazyregexp.New(`(^|\.)\$(patch|retainKeys|setElementOrder|deleteFromPrimitiveList)[^.]*$`)

// isPatch reports whether an error of the strict decoder is about a field of
// patches.
func isPatch(err error) bool {
	parts := unknown.FindStringSubmatch(err.Error())
	return parts != nil && directive.MatchString(parts[2])
}

// unknownField turns an error of the strict decoder into a mistake with a place.
func unknownField(file string, root *yaml.Node, name string, err error) strict.Mistake {
	m := strict.Mistake{File: file, Line: root.Line, Column: root.Column, Message: name + ": " + oneLine(err)}
	parts := unknown.FindStringSubmatch(err.Error())
	if parts == nil {
		return m
	}
	if directive.MatchString(parts[2]) {
		m.Message = fmt.Sprintf("%s: this is a patch (%s) and no whole object; check what comes out: kubectl kustomize DIR | winlab check -",
			name, parts[2])
	} else {
		m.Message = fmt.Sprintf("%s: the API has no field %s here; the API server drops it or refuses the object", name, parts[2])
	}
	if p, err := strict.ParsePath(parts[2]); err == nil {
		for _, f := range strict.Find(root, p) {
			if at := f.Key; at != nil {
				m.Line, m.Column = at.Line, at.Column
			}
		}
	}
	return m
}

var goField = lazyregexp.New(
	`^json: cannot unmarshal (object|array|string|number|bool)[^ ]*(?: .*)? into Go struct field \w+\.(\S+) of type (\S+)$`)

// kindsOfNode are the nodes that JSON's words mean.
var kindsOfNode = map[string]yaml.Kind{"object": yaml.MappingNode, "array": yaml.SequenceNode}

// wrongValue turns a decoder's error about one value into a mistake with a
// place: the first value on the field's path that is of the kind that the error names.
func wrongValue(file string, root *yaml.Node, name string, err error) strict.Mistake {
	m := strict.Mistake{File: file, Line: root.Line, Column: root.Column, Message: name + ": " + oneLine(err)}
	if strings.Contains(err.Error(), "quantities must match") {
		if n := badQuantity(root, ""); n != nil {
			m.Line, m.Column = n.Line, n.Column
			m.Message = fmt.Sprintf("%s: %q is not a quantity; write a number with a unit, such as 500m, 2 or 1Gi", name, n.Value)
		}
		return m
	}
	parts := goField.FindStringSubmatch(oneLine(err))
	if parts == nil {
		return m
	}
	want := map[string]string{"string": "a text", "bool": "true or false", "int32": "a number", "int64": "a number",
		"intstr.IntOrString": "a number or a text"}[strings.TrimPrefix(parts[3], "*")]
	switch {
	case want != "":
	case strings.HasPrefix(parts[3], "[]"):
		want = "a list"
	default:
		want = "a map"
	}
	m.Message = fmt.Sprintf("%s: %s is %s, and the API wants %s", name, parts[2],
		map[string]string{"object": "a map", "array": "a list", "string": "a text", "number": "a number", "bool": "true or false"}[parts[1]],
		want)
	if n := nodeOfKindAt(root, strings.Split(parts[2], "."), parts[1]); n != nil {
		m.Line, m.Column = n.Line, n.Column
	}
	return m
}

// nodeOfKindAt follows the names of fields through maps and all entries of lists to a
// value of a kind.
func nodeOfKindAt(n *yaml.Node, names []string, kind string) *yaml.Node {
	for n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n == nil {
		return nil
	}
	if n.Kind == yaml.SequenceNode && (len(names) > 0 || kind != "array") {
		for _, e := range n.Content {
			if len(names) == 0 && e.Kind == yaml.MappingNode && kind != "object" {
				continue // this entry is not the wrong one
			}
			if found := nodeOfKindAt(e, names, kind); found != nil {
				return found
			}
		}
		return nil
	}
	if len(names) > 0 {
		return nodeOfKindAt(strict.Child(n, names[0]), names[1:], kind)
	}
	if want, ok := kindsOfNode[kind]; ok && n.Kind == want {
		return n
	}
	if n.Kind == yaml.MappingNode { // labels and the like
		for i := 1; i < len(n.Content); i += 2 {
			if found := nodeOfKindAt(n.Content[i], nil, kind); found != nil {
				return found
			}
		}
		return nil
	}
	tags := map[string][]string{"string": {"!!str", "!!timestamp"}, "number": {"!!int", "!!float"}, "bool": {"!!bool"}}
	for _, tag := range tags[kind] {
		if n.Kind == yaml.ScalarNode && n.ShortTag() == tag {
			return n
		}
	}
	return nil
}

// badQuantity finds the first value below limits, requests and the like that
// is not a quantity.
func badQuantity(n *yaml.Node, key string) *yaml.Node {
	if n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			k, v := n.Content[i].Value, n.Content[i+1]
			switch {
			case v.Kind == yaml.ScalarNode && (k == "sizeLimit" || key == "limits" || key == "requests" || key == "capacity" ||
				key == "allocatable" || key == "podFixed"):
				if _, err := resource.ParseQuantity(v.Value); err != nil {
					return v
				}
			default:
				if found := badQuantity(v, k); found != nil {
					return found
				}
			}
		}
	}
	if n.Kind == yaml.SequenceNode {
		for _, e := range n.Content {
			if found := badQuantity(e, ""); found != nil {
				return found
			}
		}
	}
	return nil
}
