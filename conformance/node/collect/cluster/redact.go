package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/winlab-dev/winlab/conformance/node/collect"
)

// identity are fields that say what an object is, what it belongs to, and what is chosen by it.
// They are kept letter by letter: a label that is changed chooses other pods. Kubernetes has no
// secrets there.
var identity = map[string]bool{
	"apiVersion": true, "kind": true, "name": true, "namespace": true, "generateName": true, "uid": true, "labels": true, "matchLabels": true,
	"matchExpressions": true, "selector": true,
	"podSelector": true, "namespaceSelector": true, "nodeSelector": true, "nodeName": true, "targetRef": true, "ownerReferences": true,
	"image": true, "imageID": true, "containerID": true,
	"externalName": true, "hostname": true, "subdomain": true, "serviceAccountName": true, "serviceAccount": true, "runtimeClassName": true,
	"resourceVersion": true,
}

// lastApplied is where kubectl apply keeps a whole object once more, with the values of its
// variables.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Redact takes out of objects of Kubernetes, as kubectl get -o json prints them, what may be a
// secret, and counts it. The items of a list are read one at a time.
func Redact(data []byte) ([]byte, int, error) {
	r := &redaction{}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var out bytes.Buffer
	if err := r.object(dec, &out); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("the answer ends in the middle")
		}
		return nil, 0, fmt.Errorf("the answer is not an object: %w", err)
	}
	out.WriteByte('\n')
	return out.Bytes(), r.count, nil
}

type redaction struct{ count int }

// object copies an object, its items one by one.
func (r *redaction) object(dec *json.Decoder, out *bytes.Buffer) error {
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return errors.Join(err, notThe(t, "{"))
	}
	out.WriteString("{")
	for n := 0; dec.More(); n++ {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string)
		if n > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(out, "\n    %s: ", quoted(name))
		if name == "items" {
			if err := r.items(dec, out); err != nil {
				return err
			}
			continue
		}
		var v any
		if err := dec.Decode(&v); err != nil {
			return err
		}
		if err := write(out, r.field(name, v), "    "); err != nil {
			return err
		}
	}
	out.WriteString("\n}")
	_, err := dec.Token()
	return err
}

func notThe(t json.Token, want string) error {
	if t == nil {
		return nil
	}
	return fmt.Errorf("%v instead of %s", t, want)
}

func (r *redaction) items(dec *json.Decoder, out *bytes.Buffer) error {
	t, err := dec.Token()
	if err != nil {
		return err
	}
	if t == nil {
		out.WriteString("null")
		return nil
	}
	if t != json.Delim('[') {
		return notThe(t, "[")
	}
	out.WriteByte('[')
	for n := 0; dec.More(); n++ {
		var v any
		if err := dec.Decode(&v); err != nil {
			return err
		}
		if n > 0 {
			out.WriteByte(',')
		}
		out.WriteString("\n        ")
		if err := write(out, r.value(v), "        "); err != nil {
			return err
		}
	}
	out.WriteString("\n    ]")
	_, err = dec.Token()
	return err
}

func write(out *bytes.Buffer, v any, prefix string) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent(prefix, "    ")
	err := enc.Encode(v)
	out.Truncate(len(bytes.TrimRight(out.Bytes(), "\n")))
	return err
}

func quoted(s string) string {
	var b bytes.Buffer
	_ = write(&b, s, "") // a text can be written
	return b.String()
}

func (r *redaction) value(v any) any {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "managedFields") // who set which field: nothing of it decides about packets
		for k, x := range v {
			v[k] = r.field(k, x)
		}
	case []any:
		for i, x := range v {
			v[i] = r.value(x)
		}
	case string:
		return r.text(v)
	}
	return v
}

func (r *redaction) text(s string) string {
	s, n := collect.Redact(s)
	r.count += n
	return s
}

// redact takes a value out.
func (r *redaction) redact(v string) string {
	if v != "" && v != collect.Redacted {
		r.count++
	}
	if v == "" {
		return ""
	}
	return collect.Redacted
}

// field is a value under its name.
func (r *redaction) field(name string, v any) any {
	switch list, _ := v.([]any); {
	case name == "metadata":
		return r.value(v)
	case identity[name]:
		return v
	case name == "env" && list != nil:
		return r.pairs(list, collect.PublicVariable)
	case name == "httpHeaders" && list != nil:
		return r.pairs(list, func(string) bool { return false })
	case (name == "args" || name == "command") && list != nil:
		return r.arguments(list)
	case name == "data", name == "annotations", name == "binaryData":
		return r.texts(v, name == "binaryData")
	}
	if s, ok := v.(string); ok && collect.SecretName(name, s) {
		return r.redact(s)
	}
	return r.value(v)
}

// texts are texts by names that somebody chose: none of them is a field of Kubernetes.
func (r *redaction) texts(v any, all bool) any {
	m, ok := v.(map[string]any)
	if !ok {
		return r.value(v)
	}
	for k, x := range m {
		switch s, isText := x.(string); {
		case !isText:
			m[k] = r.value(x)
		case all || k == lastApplied || collect.SecretName(k, s):
			m[k] = r.redact(s)
		default:
			m[k] = r.text(s)
		}
	}
	return m
}

// pairs are names with values, of which only public ones are kept.
func (r *redaction) pairs(list []any, public func(string) bool) []any {
	for i, x := range list {
		m, ok := x.(map[string]any)
		if !ok {
			list[i] = r.value(x)
			continue
		}
		name, _ := m["name"].(string)
		for k, v := range m {
			s, isText := v.(string)
			switch {
			case k == "name":
			case isText && (k != "value" || public(name)):
				m[k] = r.field(k, s)
			case isText:
				m[k] = r.redact(s)
			default:
				m[k] = r.value(v) // valueFrom: a reference to a Secret has its name, not its value
			}
		}
	}
	return list
}

// arguments are words of a command line.
func (r *redaction) arguments(list []any) []any {
	words := make([]string, 0, len(list))
	for _, x := range list {
		s, ok := x.(string)
		if !ok {
			return r.value(list).([]any)
		}
		words = append(words, s)
	}
	words, n := collect.RedactArguments(words)
	r.count += n
	for i, w := range words {
		list[i] = w
	}
	return list
}
