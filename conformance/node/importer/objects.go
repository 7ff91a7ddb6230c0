package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/winlab-dev/winlab/internal/strict"
	"github.com/winlab-dev/winlab/internal/utf"
)

// object is an object of Kubernetes in a file.
type object struct {
	File string
	Line int
	Kind string
	// raw is its JSON.
	raw []byte
}

// head is what says whether a value is an object or a list of some.
type head struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// objects reads the objects of a file of JSON or YAML: single ones, and Lists as kubectl get -o
// json prints them, or typed ones (PodList) as kubectl cluster-info dump and the API server write
// them, whose items do not say what they are. A file that is cut in the middle of a List gives those before the cut and a
// mistake there.
func objects(file string, data []byte) ([]object, strict.Mistakes) {
	text, _ := utf.Decode(data)
	data = []byte(text)
	trimmed := bytes.TrimSpace(data)
	switch {
	case len(trimmed) > 0 && trimmed[0] == '{':
		return jsonObjects(file, data)
	case path.Ext(file) == ".yaml" || path.Ext(file) == ".yml":
		return yamlObjects(file, data)
	}
	return nil, nil
}

// lines counts lines up to offsets that grow.
type lines struct {
	data []byte
	at   int
	n    int
}

func (l *lines) lineOf(offset int64) int {
	to := min(int(offset), len(l.data))
	l.n += bytes.Count(l.data[l.at:max(to, l.at)], []byte("\n"))
	l.at = max(to, l.at)
	return l.n + 1
}

// jsonObjects reads JSON values one after the other; items of Lists are read one by one.
func jsonObjects(file string, data []byte) (all []object, found strict.Mistakes) {
	dec := json.NewDecoder(bytes.NewReader(data))
	count := &lines{data: data}
	mistake := func(err error) strict.Mistakes {
		offset := dec.InputOffset()
		var syntax *json.SyntaxError
		message := "not JSON: " + err.Error()
		if errors.As(err, &syntax) {
			offset = max(syntax.Offset-1, 0)
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			offset, message = int64(len(data)), "the file ends in the middle; what is before was read"
		}
		before := data[:min(int(offset), len(data))]
		return append(found, strict.Mistake{File: file, Line: bytes.Count(before, []byte("\n")) + 1,
			Column: len(before) - bytes.LastIndexByte(before, '\n'), Message: message})
	}
	for {
		t, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return all, found
		}
		if err != nil {
			return all, mistake(err)
		}
		if t != json.Delim('{') {
			return all, found // a list of something else
		}
		begin := dec.InputOffset() - 1
		line := count.lineOf(begin)
		var h head
		plain := true
		for dec.More() {
			key, err := dec.Token()
			if err != nil {
				return all, mistake(err)
			}
			if key == "items" && (h.Kind == "" || strings.HasSuffix(h.Kind, "List")) {
				plain = false
				more, err := items(dec, count, file, h)
				all = append(all, more...)
				if err != nil {
					return all, mistake(err)
				}
				continue
			}
			var v json.RawMessage
			if err := dec.Decode(&v); err != nil {
				return all, mistake(err)
			}
			switch key {
			case "kind":
				_ = json.Unmarshal(v, &h.Kind)
			case "apiVersion":
				_ = json.Unmarshal(v, &h.APIVersion)
			}
		}
		if _, err := dec.Token(); err != nil {
			return all, mistake(err)
		}
		if plain && h.Kind != "" && h.APIVersion != "" {
			all = append(all, object{file, line, h.Kind, data[begin:dec.InputOffset()]})
		}
	}
}

// items reads the items of a List. The decoder is behind the key. list is what was read of the
// List: its kind stands before its items in what programs write.
func items(dec *json.Decoder, count *lines, file string, list head) ([]object, error) {
	var all []object
	of := strings.TrimSuffix(list.Kind, "List")
	if t, err := dec.Token(); err != nil || t != json.Delim('[') {
		return nil, err // null
	}
	for dec.More() {
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			return all, err
		}
		line := count.lineOf(dec.InputOffset() - int64(len(v)))
		var h head
		if json.Unmarshal(v, &h) != nil {
			continue
		}
		if h.Kind == "" && of != "" && list.APIVersion != "" {
			h.Kind, v = of, withHead(v, head{list.APIVersion, of})
		}
		if h.Kind != "" {
			all = append(all, object{file, line, h.Kind, v})
		}
	}
	_, err := dec.Token()
	return all, err
}

// withHead writes what an object is into it.
func withHead(v json.RawMessage, h head) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(v, &fields) != nil || fields == nil {
		return v
	}
	fields["kind"], _ = json.Marshal(h.Kind)
	fields["apiVersion"], _ = json.Marshal(h.APIVersion)
	out, err := json.Marshal(fields)
	if err != nil {
		return v
	}
	return out
}

// maxYAML bounds a document of YAML in bytes: JSON is what programs write.
const maxYAML = 16 << 20

// yamlObjects reads documents of YAML; the lines of items of a List are that of the document.
func yamlObjects(file string, data []byte) (all []object, found strict.Mistakes) {
	if len(data) > maxYAML {
		return nil,
			strict.Mistakes{{File: file, Message: fmt.Sprintf("it has %d bytes; the limit is %d as YAML. Take it with -o json", len(data), maxYAML)}}
	}
	line := 1
	for _, doc := range strings.Split(string(data), "\n---") {
		raw, err := yaml.YAMLToJSON([]byte(doc))
		var h head
		switch {
		case err != nil:
			found = append(found, strict.Mistake{File: file, Line: line, Column: 1, Message: err.Error()})
		case json.Unmarshal(raw, &h) != nil || h.Kind == "":
		case strings.HasSuffix(h.Kind, "List"):
			more, bad := jsonObjects(file, raw)
			for i := range more {
				more[i].Line = line
			}
			all, found = append(all, more...), append(found, bad...)
		default:
			all = append(all, object{file, line, h.Kind, raw})
		}
		line += strings.Count(doc, "\n") + 1
	}
	return all, found
}
