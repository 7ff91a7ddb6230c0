package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
)

// interp runs a script. Values are string, int64, float64, bool, nil, []any, *psTable,
// psRange, nBlock, and objects with members.
type interp struct {
	ctx  context.Context
	s    *system
	vars map[string]any
	jobs *[]*psJob
	ok   bool // $?
	last int  // $LASTEXITCODE
	// captured says that what is emitted does not go to the program's output.
	captured bool
}

// psObject has members and methods.
type psObject interface {
	get(name string) (any, bool)
	set(name string, v any) bool
	call(i *interp, name string, args []any) (any, error)
}

type psRange struct{ from, to int64 }

type psTable struct {
	keys   []string
	values map[string]any
	names  map[string]any
}

// flow ends statements: exit, throw, return, break, continue.
type flow struct {
	word string
	v    any
}

func (f *flow) Error() string { return show(f.v) }

type emitter func(any) error

func (i *interp) run(body []node, emit emitter) error {
	for _, n := range body {
		if err := i.ctx.Err(); err != nil {
			return err
		}
		if err := i.statement(n, emit); err != nil {
			return err
		}
	}
	return nil
}

func (i *interp) statement(n node, emit emitter) error {
	switch n := n.(type) {
	case nAssign:
		return i.assign(n)
	case nForeach:
		return i.foreach(n, emit)
	case nWhile:
		return i.while(n, emit)
	case nIf:
		yes, err := i.value(n.cond)
		if err != nil {
			return err
		}
		if truth(yes) {
			return i.run(n.yes, emit)
		}
		return i.run(n.not, emit)
	case nTry:
		return i.try(n, emit)
	case nFlow:
		var v any
		if n.x != nil {
			var err error
			if v, err = i.value(n.x); err != nil {
				return err
			}
		}
		if n.word == "return" && v != nil {
			if err := each(v, emit); err != nil {
				return err
			}
		}
		return &flow{n.word, v}
	case nIncr:
		_, err := i.value(n)
		return err
	case nPipe:
		return i.pipe(n, emit)
	}
	v, err := i.value(n)
	if err != nil {
		return err
	}
	i.ok = true
	return each(v, emit)
}

// each hands on the items of a list, or the one value. Nothing is handed on of nothing.
func each(v any, emit emitter) error {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		for _, x := range v {
			if err := emit(x); err != nil {
				return err
			}
		}
		return nil
	case psRange:
		step := int64(1)
		if v.to < v.from {
			step = -1
		}
		for n := v.from; ; n += step {
			if err := emit(n); err != nil || n == v.to {
				return err
			}
		}
	}
	return emit(v)
}

// loop runs the body of a loop; done is set by break.
func (i *interp) loop(body []node, emit emitter) (done bool, err error) {
	err = i.run(body, emit)
	var f *flow
	if errors.As(err, &f) {
		switch f.word {
		case "break":
			return true, nil
		case "continue":
			return false, nil
		}
	}
	return false, err
}

var errDone = errors.New("done")

func (i *interp) foreach(n nForeach, emit emitter) error {
	all, err := i.value(n.in)
	if err != nil {
		return err
	}
	err = each(all, func(v any) error {
		i.vars[strings.ToLower(n.name)] = v
		if done, err := i.loop(n.body, emit); err != nil {
			return err
		} else if done {
			return errDone
		}
		return i.ctx.Err()
	})
	if errors.Is(err, errDone) {
		return nil
	}
	return err
}

func (i *interp) while(n nWhile, emit emitter) error {
	if n.begin != nil {
		if err := i.statement(n.begin, emit); err != nil {
			return err
		}
	}
	for skip := n.first; ; skip = false {
		if !skip && n.cond != nil {
			v, err := i.value(n.cond)
			if err != nil {
				return err
			}
			if !truth(v) {
				return nil
			}
		}
		if done, err := i.loop(n.body, emit); err != nil || done {
			return err
		}
		if n.step != nil {
			if err := i.statement(n.step, emit); err != nil {
				return err
			}
		}
		if err := i.ctx.Err(); err != nil {
			return err
		}
	}
}

func (i *interp) try(n nTry, emit emitter) error {
	err := i.run(n.body, emit)
	var f *flow
	if err != nil && n.catch != nil && i.ctx.Err() == nil && (!errors.As(err, &f) || f.word == "throw") {
		i.vars["_"] = err.Error()
		err = i.run(n.catch, emit)
	}
	return errors.Join(err, i.run(n.finally, emit))
}

func (i *interp) assign(n nAssign) error {
	var v any
	var all []any
	// What is assigned is a list when more than one value comes out.
	err := i.inside(func() error {
		return i.statement(n.value, func(x any) error { all = append(all, x); return nil })
	})
	if err != nil {
		return err
	}
	switch {
	case isListNode(n.value):
		v = slices.Clip(append([]any{}, all...))
	case len(all) == 1:
		v = all[0]
	case len(all) > 1:
		v = all
	}
	if n.op != "=" {
		old, err := i.value(n.to)
		if err != nil {
			return err
		}
		if v, err = calculate(n.op[:1], old, v); err != nil {
			return err
		}
	}
	return i.store(n.to, v)
}

func isListNode(n node) bool {
	switch n.(type) {
	case nList, nArray:
		return true
	}
	return false
}

func (i *interp) store(to node, v any) error {
	switch to := to.(type) {
	case nVar:
		if name, ok := strings.CutPrefix(to.name, "env:"); ok {
			return os.Setenv(name, show(v))
		}
		i.vars[to.name] = v
		return nil
	case nMember:
		of, err := i.value(to.of)
		if err != nil {
			return err
		}
		if t, ok := of.(*psTable); ok {
			t.put(to.name, v)
			return nil
		}
		if o, ok := of.(psObject); ok && o.set(to.name, v) {
			return nil
		}
		return &psError{"winlab: powershell.exe here cannot set the property " + to.name}
	case nIndex:
		of, err := i.value(to.of)
		if err != nil {
			return err
		}
		at, err := i.value(to.at)
		if err != nil {
			return err
		}
		if t, ok := of.(*psTable); ok {
			t.put(at, v)
			return nil
		}
		if l, ok := of.([]any); ok {
			if n, ok := at.(int64); ok && n >= 0 && int(n) < len(l) {
				l[n] = v
				return nil
			}
		}
	}
	return &psError{"winlab: powershell.exe here cannot assign to that"}
}

// inside runs f while what is emitted is collected.
func (i *interp) inside(f func() error) error {
	before := i.captured
	i.captured = true
	defer func() { i.captured = before }()
	return f()
}

// collect runs statements and returns what comes out.
func (i *interp) collect(body []node) (all []any, err error) {
	err = i.inside(func() error { return i.run(body, func(v any) error { all = append(all, v); return nil }) })
	return all, err
}

func (i *interp) pipe(n nPipe, emit emitter) error {
	input, ok := []any(nil), true
	if len(n.parts) > 1 {
		// One that fails makes all of it fail ($?).
		defer func() { i.ok = i.ok && ok }()
	}
	for k, part := range n.parts {
		end := k == len(n.parts)-1
		var out []any
		to := emit
		if !end {
			to = func(v any) error { out = append(out, v); return nil }
		}
		run := func() error {
			if c, ok := part.(nCmd); ok {
				return i.command(c, input, k > 0, to)
			}
			return i.statement(part, to)
		}
		err := error(nil)
		if end {
			err = run()
		} else {
			err = i.inside(run)
		}
		if _, is := part.(nCmd); is {
			ok = ok && i.ok
		}
		if err != nil {
			return err
		}
		input = out
	}
	return nil
}

// value evaluates an expression.
func (i *interp) value(n node) (any, error) {
	switch n := n.(type) {
	case nLit:
		return n.v, nil
	case nText:
		var b strings.Builder
		for _, p := range n.parts {
			v, err := i.value(p)
			if err != nil {
				return nil, err
			}
			b.WriteString(show(v))
		}
		return b.String(), nil
	case nVar:
		return i.variable(n.name), nil
	case nBlock:
		return n, nil
	case nType:
		return psType(n.name), nil
	case nSub:
		all, err := i.collect(n.body)
		if err != nil || len(all) == 0 {
			return nil, err
		}
		if len(all) == 1 {
			return all[0], nil
		}
		return all, nil
	case nArray:
		return i.list(n.body)
	case nList:
		var all []any
		for _, x := range n.items {
			v, err := i.value(x)
			if err != nil {
				return nil, err
			}
			all = append(all, v)
		}
		return all, nil
	case nTable:
		return i.table(n)
	case nNot:
		v, err := i.value(n.x)
		return !truth(v), err
	case nNeg:
		v, err := i.value(n.x)
		if err != nil {
			return nil, err
		}
		return calculate("-", int64(0), v)
	case nIncr:
		old, err := i.value(n.of)
		if err != nil {
			return nil, err
		}
		v, err := calculate("+", old, n.by)
		if err != nil {
			return nil, err
		}
		return old, i.store(n.of, v)
	}
	return i.compound(n)
}

func (i *interp) compound(n node) (any, error) {
	switch n := n.(type) {
	case nBinary:
		return i.binary(n)
	case nIndex:
		of, err := i.value(n.of)
		if err != nil {
			return nil, err
		}
		at, err := i.value(n.at)
		if err != nil {
			return nil, err
		}
		return index(of, at), nil
	case nMember:
		return i.member(n)
	}
	all, err := i.collect([]node{n})
	if err != nil || len(all) == 0 {
		return nil, err
	}
	if len(all) == 1 {
		return all[0], nil
	}
	return all, nil
}

func (i *interp) list(body []node) (any, error) {
	all, err := i.collect(body)
	if all == nil {
		all = []any{}
	}
	return all, err
}

func (i *interp) binary(n nBinary) (any, error) {
	a, err := i.value(n.a)
	if err != nil {
		return nil, err
	}
	switch n.op {
	case "-and", "-or":
		if truth(a) != (n.op == "-and") {
			return truth(a), nil
		}
		b, err := i.value(n.b)
		return truth(b), err
	}
	b, err := i.value(n.b)
	if err != nil {
		return nil, err
	}
	switch n.op {
	case "..":
		x, ok1 := number64(a)
		y, ok2 := number64(b)
		if !ok1 || !ok2 {
			return nil, &psError{"winlab: a range goes from a number to a number"}
		}
		return psRange{int64(x), int64(y)}, nil
	case "-f":
		return format(show(a), b), nil
	case "+", "-", "*", "/", "%":
		return calculate(n.op, a, b)
	case "-xor":
		return truth(a) != truth(b), nil
	}
	return compare(n.op, a, b)
}
