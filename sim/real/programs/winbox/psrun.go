package main

import (
	"bytes"
	"errors"
	"os"
	"strings"
)

func (i *interp) table(n nTable) (any, error) {
	t := newTable()
	for k := range n.keys {
		key, err := i.value(n.keys[k])
		if err != nil {
			return nil, err
		}
		v, err := i.value(n.values[k])
		if err != nil {
			return nil, err
		}
		t.put(key, v)
	}
	return t, nil
}

func newTable() *psTable { return &psTable{values: map[string]any{}, names: map[string]any{}} }

func (t *psTable) put(key, v any) {
	k := strings.ToLower(show(key))
	if _, there := t.values[k]; !there {
		t.keys = append(t.keys, k)
	}
	t.values[k], t.names[k] = v, key
}

func (t *psTable) list(values bool) []any {
	all := []any{}
	for _, k := range t.keys {
		if values {
			all = append(all, t.values[k])
		} else {
			all = append(all, t.names[k])
		}
	}
	return all
}

func (i *interp) variable(name string) any {
	switch name {
	case "true":
		return true
	case "false":
		return false
	case "null":
		return nil
	case "?":
		return i.ok
	case "lastexitcode":
		return int64(i.last)
	case "pwd":
		dir, _ := os.Getwd()
		return dir
	case "pid":
		return int64(os.Getpid())
	}
	if v, ok := strings.CutPrefix(name, "env:"); ok {
		if text := i.s.getenv(v); text != "" {
			return text
		}
		return nil
	}
	return i.vars[name]
}

// native runs another program. Where what it prints is collected, each line is a value.
func (i *interp) native(args []string, in []any, piped bool, emit emitter) error {
	s := *i.s
	if piped {
		var b strings.Builder
		for _, v := range in {
			b.WriteString(show(v) + "\r\n")
		}
		s.in = strings.NewReader(b.String())
	}
	var buf bytes.Buffer
	if i.captured {
		s.out = &buf
	}
	code, err := s.start(i.ctx, &s, args)
	if err != nil {
		return errUnknownCommand
	}
	i.last, i.ok = code, code == 0
	text := strings.TrimSuffix(strings.ReplaceAll(buf.String(), "\r\n", "\n"), "\n")
	if text == "" {
		return nil
	}
	for line := range strings.SplitSeq(text, "\n") {
		if err := emit(line); err != nil {
			return err
		}
	}
	return nil
}

var errUnknownCommand = errors.New("unknown command")
