package nodeconf

import (
	"bytes"
	"errors"
	"io"
	"path"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/conformance/check/subject"
	"github.com/winlab-dev/winlab/internal/strict"
	"github.com/winlab-dev/winlab/internal/utf"
)

// componentKinds are the configuration files of the components.
var componentKinds = map[string]string{
	"kubelet.config.k8s.io/KubeletConfiguration":     "kubelet-config",
	"kubeproxy.config.k8s.io/KubeProxyConfiguration": "kube-proxy-config",
}

// component says which component's configuration a document is, "" for none.
func component(doc *yaml.Node) string {
	group, _, _ := strings.Cut(strict.Text(doc, "apiVersion"), "/")
	return componentKinds[group+"/"+strict.Text(doc, "kind")]
}

// Embedded looks for node configuration in one YAML document: a
// KubeletConfiguration or a KubeProxyConfiguration, or a ConfigMap whose data
// holds such a document, a CNI configuration, a net-conf.json or a script. data
// is the file that the document was read from: it gives what is inside a block
// scalar its column. Documents that hold none of this give nothing.
func Embedded(file string, data []byte, doc *yaml.Node) ([]*subject.Subject, strict.Mistakes) {
	if doc != nil && doc.Kind == yaml.DocumentNode && len(doc.Content) > 0 {
		doc = doc.Content[0]
	}
	if doc == nil || doc.Kind != yaml.MappingNode {
		return nil, nil
	}
	if on := component(doc); on != "" {
		return []*subject.Subject{{On: on, Name: strict.Text(doc, "kind"), File: file, Root: doc}}, nil
	}
	if strict.Text(doc, "kind") != "ConfigMap" {
		return nil, nil
	}
	entries := strict.Child(doc, "data")
	if entries == nil || entries.Kind != yaml.MappingNode {
		return nil, nil
	}
	lines := sync.OnceValue(func() []string {
		decoded, _ := utf.Decode(data)
		return strings.Split(decoded, "\n")
	})
	var all []*subject.Subject
	var found strict.Mistakes
	for i := 0; i+1 < len(entries.Content); i += 2 {
		key, value := entries.Content[i], entries.Content[i+1]
		if value.Kind != yaml.ScalarNode || strings.TrimSpace(value.Value) == "" || len(value.Value) > maxSize {
			continue
		}
		if path.Base(key.Value) == antreaAgentFile && !strings.Contains(strict.Text(doc, "metadata", "name"), "windows") {
			continue // antrea-config is of Linux nodes
		}
		s := newInput(file, value.Value)
		s.place = placeIn(value, lines)
		subjects, ok := s.read(path.Base(key.Value), true)
		if !ok {
			continue
		}
		all = append(all, subjects...)
		if len(subjects) > 0 {
			found = append(found, s.mistakes...)
		}
	}
	return all, found
}

// placeIn maps places of a scalar's text to places of its file. Only a literal
// block has its lines as the file has them; for other scalars the beginning is
// all that is known.
func placeIn(n *yaml.Node, file func() []string) func(line, column int) (int, int) {
	text := strings.Split(n.Value, "\n")
	return func(line, column int) (int, int) {
		at := n.Line + line // the block begins on the line after its indicator
		lines := file()
		if n.Style&yaml.LiteralStyle == 0 || line > len(text) || at > len(lines) {
			return n.Line, n.Column
		}
		raw, shown := strings.TrimSuffix(lines[at-1], "\r"), strings.TrimSuffix(text[line-1], "\r")
		if !strings.HasSuffix(raw, shown) {
			return at, column
		}
		return at, len(raw) - len(shown) + column
	}
}

// documents reads the YAML documents of a file.
func documents(text string) ([]*yaml.Node, error) {
	var docs []*yaml.Node
	d := yaml.NewDecoder(bytes.NewReader([]byte(text)))
	for {
		var doc yaml.Node
		err := d.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return docs, err
		}
		if len(doc.Content) > 0 && doc.Content[0].ShortTag() != "!!null" {
			docs = append(docs, doc.Content[0])
		}
	}
}

// yamlConf reads a file of which every document is node configuration. It
// returns false when one of them is something else: then the file belongs to
// the reader of manifests, which asks Embedded document by document.
func (s *input) yamlConf() ([]*subject.Subject, bool) {
	if !strings.Contains(s.text, "KubeletConfiguration") && !strings.Contains(s.text, "KubeProxyConfiguration") {
		return nil, false
	}
	docs, err := documents(s.text)
	if len(docs) == 0 {
		return nil, false
	}
	var all []*subject.Subject
	for _, doc := range docs {
		on := component(doc)
		if on == "" {
			return nil, false
		}
		all = append(all, &subject.Subject{On: on, Name: strict.Text(doc, "kind"), File: s.file, Root: s.relocated(doc)})
	}
	if err != nil {
		s.mistakes = append(s.mistakes, s.inFile(strict.SyntaxMistake(s.file, err)))
	}
	return all, true
}

// maxDepth bounds the nesting of a file; real ones have less than ten levels.
const maxDepth = 64

// relocate moves a tree to the place of its text. Aliases are moved
// where they are defined.
func relocate(n *yaml.Node, place func(int, int) (int, int), depth int) {
	if depth > maxDepth {
		return
	}
	n.Line, n.Column = place(n.Line, n.Column)
	for _, c := range n.Content {
		relocate(c, place, depth+1)
	}
}
