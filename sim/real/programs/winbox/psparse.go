package main

import (
	"fmt"
	"strings"
	"unicode"
)

// The part of PowerShell's language that scripts of documents and suites are written in
// (Microsoft's about_Language_Keywords, about_Operators, about_Parsing): assignments,
// loops, conditions, try, pipelines, script blocks, strings with expansion, members and
// methods. What is not known is an error of the parser.

type node any

type (
	nLit    struct{ v any }
	nText   struct{ parts []node } // "..." with expansions
	nVar    struct{ name string }
	nMember struct {
		of     node
		name   string
		args   []node
		call   bool
		static bool
	}
	nIndex  struct{ of, at node }
	nNot    struct{ x node }
	nNeg    struct{ x node }
	nBinary struct {
		op   string
		a, b node
	}
	nList   struct{ items []node }
	nTable  struct{ keys, values []node }
	nBlock  struct{ body []node }
	nSub    struct{ body []node } // (...) and $(...)
	nArray  struct{ body []node } // @(...)
	nType   struct{ name string }
	nAssign struct {
		to    node
		op    string
		value node
	}
	nForeach struct {
		name string
		in   node
		body []node
	}
	nWhile struct {
		begin, cond, step node
		body              []node
		first             bool // do ... while
	}
	nIf struct {
		cond     node
		yes, not []node
	}
	nTry  struct{ body, catch, finally []node }
	nFlow struct {
		word string
		x    node
	} // exit, throw, return, break, continue
	nIncr struct {
		of node
		by int64
	}
	nArg struct {
		name  string
		value node
	} // of a command: -Name value, or a value
	nCmd struct {
		name     node
		args     []nArg
		file     node // > file
		appends  bool
		mergeErr bool
	}
	nPipe struct{ parts []node }
)

type psParser struct {
	text []rune
	at   int
	// oneValue: a comma parts the arguments of a method and makes no list.
	oneValue bool
	depth    int
}

// deeper guards against a script that is nothing but brackets.
func (p *psParser) deeper() func() {
	if p.depth++; p.depth > 200 {
		p.fail("too deep")
	}
	return func() { p.depth-- }
}

type psError struct{ text string }

func (e *psError) Error() string { return e.text }

func (p *psParser) fail(format string, args ...any) {
	panic(&psError{"winlab: powershell.exe here cannot read the script at \"" + p.near() + "\": " + fmt.Sprintf(format, args...)})
}

func (p *psParser) near() string {
	return string(p.text[min(p.at, len(p.text)):min(p.at+20, len(p.text))])
}

// psParse reads a script.
func psParse(text string) (body []node, err error) {
	p := &psParser{text: []rune(strings.ReplaceAll(text, "\r\n", "\n"))}
	defer func() {
		switch e := recover().(type) {
		case nil:
		case *psError:
			body, err = nil, e
		default:
			panic(e)
		}
	}()
	body = p.statements(0)
	return body, nil
}

func (p *psParser) peek() rune { return p.ahead(0) }

func (p *psParser) ahead(n int) rune {
	if p.at+n >= len(p.text) {
		return 0
	}
	return p.text[p.at+n]
}

func (p *psParser) has(s string) bool {
	for i, r := range []rune(s) {
		if unicode.ToLower(p.ahead(i)) != r {
			return false
		}
	}
	return true
}

// space skips blanks and comments, and the ends of lines too when lines is set.
func (p *psParser) space(lines bool) {
	for {
		switch c := p.peek(); {
		case c == ' ' || c == '\t' || lines && c == '\n':
			p.at++
		case c == '`' && p.ahead(1) == '\n':
			p.at += 2
		case p.has("<#"):
			for p.at < len(p.text) && !p.has("#>") {
				p.at++
			}
			p.at = min(p.at+2, len(p.text))
		case c == '#':
			for p.at < len(p.text) && p.peek() != '\n' {
				p.at++
			}
		default:
			return
		}
	}
}

func (p *psParser) expect(c rune) {
	p.space(true)
	if p.peek() != c {
		p.fail("a %c is expected", c)
	}
	p.at++
}

// word reports whether a keyword comes, and takes it.
func (p *psParser) word(w string) bool {
	if !p.has(w) || isWord(p.ahead(len(w))) || p.ahead(len(w)) == '-' {
		return false
	}
	p.at += len(w)
	return true
}

func isWord(c rune) bool { return c == '_' || unicode.IsLetter(c) || unicode.IsDigit(c) }

// statements reads up to a closing rune, or the end.
func (p *psParser) statements(end rune) (all []node) {
	defer p.deeper()()
	before := p.oneValue
	p.oneValue = false
	defer func() { p.oneValue = before }()
	for {
		p.space(true)
		switch c := p.peek(); {
		case c == ';':
			p.at++
		case c == end && (end != 0 || p.at >= len(p.text)):
			if end != 0 {
				p.at++
			}
			return all
		case p.at >= len(p.text):
			p.fail("a %c is missing", end)
		default:
			all = append(all, p.statement())
			p.space(false)
			if c := p.peek(); c != ';' && c != '\n' && c != end && p.at < len(p.text) {
				if _, braced := last(all).(closed); !braced {
					p.fail("not known here")
				}
			}
		}
	}
}

// closed are statements that end with a brace, after which another may follow.
type closed interface{ closed() }

func (nForeach) closed() {}
func (nWhile) closed()   {}
func (nIf) closed()      {}
func (nTry) closed()     {}

func last(all []node) node { return all[len(all)-1] }

func (p *psParser) block() []node {
	p.expect('{')
	return p.statements('}')
}

func (p *psParser) paren() node {
	p.expect('(')
	p.space(true)
	x := p.statement()
	p.expect(')')
	return x
}

func (p *psParser) statement() node {
	switch {
	case p.word("foreach"):
		p.space(true)
		if p.peek() != '(' { // the command of that name, in a pipeline
			p.fail("a ( is expected")
		}
		p.expect('(')
		p.expect('$')
		f := nForeach{name: p.name()}
		p.space(true)
		if !p.word("in") {
			p.fail("\"in\" is expected")
		}
		p.space(true)
		f.in = p.statement()
		p.expect(')')
		f.body = p.block()
		return f
	case p.word("while"):
		return nWhile{cond: p.paren(), body: p.block()}
	case p.word("do"):
		w := nWhile{body: p.block(), first: true}
		p.space(true)
		if !p.word("while") {
			p.fail("\"while\" is expected")
		}
		w.cond = p.paren()
		return w
	case p.word("for"):
		return p.forLoop()
	case p.word("if"):
		return p.ifElse()
	case p.word("try"):
		return p.try()
	}
	for _, w := range []string{"exit", "throw", "return", "break", "continue"} {
		if p.word(w) {
			p.space(false)
			if c := p.peek(); c == 0 || strings.ContainsRune(";}\n)", c) {
				return nFlow{w, nil}
			}
			return nFlow{w, p.pipeline()}
		}
	}
	return p.pipeline()
}

func (p *psParser) forLoop() node {
	var w nWhile
	p.expect('(')
	part := func(end rune) (x node) {
		p.space(true)
		if p.peek() != end {
			x = p.statement()
		}
		p.expect(end)
		return x
	}
	w.begin, w.cond, w.step = part(';'), part(';'), part(')')
	w.body = p.block()
	return w
}

func (p *psParser) ifElse() node {
	n := nIf{cond: p.paren(), yes: p.block()}
	at := p.at
	p.space(true)
	switch {
	case p.word("elseif"):
		n.not = []node{p.ifElse()}
	case p.word("else"):
		n.not = p.block()
	default:
		p.at = at
	}
	return n
}

func (p *psParser) try() node {
	n := nTry{body: p.block()}
	for {
		at := p.at
		p.space(true)
		switch {
		case p.word("catch"):
			p.space(true)
			if p.peek() == '[' {
				for p.at < len(p.text) && p.peek() != ']' {
					p.at++
				}
				p.at++
			}
			n.catch = p.block()
			if n.catch == nil {
				n.catch = []node{}
			}
		case p.word("finally"):
			n.finally = p.block()
		default:
			p.at = at
			return n
		}
	}
}

// pipeline is an assignment, or expressions and commands with | between them.
func (p *psParser) pipeline() node {
	var parts []node
	for {
		p.space(len(parts) > 0)
		if len(parts) == 0 && p.isExpression() {
			x := p.expression()
			p.space(false)
			for _, op := range []string{"+=", "-=", "*=", "="} {
				if p.has(op) {
					p.at += len(op)
					p.space(true)
					return nAssign{x, op, p.statement()}
				}
			}
			parts = append(parts, x)
		} else {
			parts = append(parts, p.command())
		}
		p.space(false)
		if p.peek() != '|' {
			break
		}
		p.at++
	}
	if len(parts) == 1 {
		if _, isCommand := parts[0].(nCmd); !isCommand {
			return parts[0]
		}
	}
	return nPipe{parts}
}

func (p *psParser) isExpression() bool {
	c := p.peek()
	return strings.ContainsRune(`$"'(@[{!`, c) || unicode.IsDigit(c) || c == '-' && unicode.IsDigit(p.ahead(1)) || p.has("-not") &&
		!isWord(p.ahead(4)) || p.has("++") || p.has("--")
}

// command is a name and its arguments.
func (p *psParser) command() node {
	var c nCmd
	if p.peek() == '&' || p.peek() == '.' && p.ahead(1) == ' ' {
		p.at++
		p.space(false)
		c.name = p.argument()
	} else {
		start := p.at
		for p.at < len(p.text) && !strings.ContainsRune(" \t\n;|(){}\"'><", p.peek()) {
			p.at++
		}
		if p.at == start {
			p.fail("a command is expected")
		}
		c.name = p.bare(string(p.text[start:p.at]))
	}
	for {
		p.space(false)
		switch ch := p.peek(); {
		case ch == 0 && p.at >= len(p.text), strings.ContainsRune(";|)}\n", ch):
			return c
		case p.has("2>&1"):
			p.at += 4
			c.mergeErr = true
		case p.has("2>"):
			p.at += 2
			p.space(false)
			p.argument() // where errors go is not looked at: $null in all scripts that are known
		case ch == '>':
			p.at++
			if p.peek() == '>' {
				p.at++
				c.appends = true
			}
			p.space(false)
			c.file = p.argument()
		case ch == '-' && unicode.IsLetter(p.ahead(1)):
			c.args = append(c.args, p.parameter())
		default:
			c.args = append(c.args, nArg{value: p.arguments()})
		}
	}
}

// parameter is -Name, -Name:value.
func (p *psParser) parameter() nArg {
	start := p.at
	p.at++
	for isWord(p.peek()) || p.peek() == '-' {
		p.at++
	}
	a := nArg{name: string(p.text[start:p.at])}
	if p.peek() == ':' {
		p.at++
		p.space(false)
		a.value = p.arguments()
	}
	return a
}

// arguments is one argument, or several with commas between them.
func (p *psParser) arguments() node {
	first := p.argument()
	var all []node
	for p.peek() == ',' {
		p.at++
		p.space(true)
		all = append(all, p.argument())
	}
	if all == nil {
		return first
	}
	return nList{append([]node{first}, all...)}
}

// argument is a quoted text, a value, or a word as it stands, in which variables expand. What
// is read is read once: a word can hold scripts that hold words.
func (p *psParser) argument() node {
	start := p.at
	var parts []node
	var b strings.Builder
	add := func(x node) {
		if b.Len() > 0 {
			parts = append(parts, nLit{b.String()})
			b.Reset()
		}
		if x != nil {
			parts = append(parts, x)
		}
	}
	for p.at < len(p.text) && !strings.ContainsRune(" \t\n;|)},", p.peek()) {
		switch c := p.peek(); {
		case strings.ContainsRune("(@{", c) && p.at == start:
			add(p.postfix(p.primary()))
		case c == '"' || c == '\'':
			add(p.primary())
		case c == '$' && (strings.ContainsRune("({?", p.ahead(1)) || isWord(p.ahead(1))):
			add(p.postfix(p.primary()))
		case c == '`' && p.ahead(1) != 0:
			b.WriteRune(p.ahead(1))
			p.at += 2
		default:
			b.WriteRune(c)
			p.at++
		}
	}
	add(nil)
	switch {
	case p.at == start:
		p.fail("a value is expected")
	case len(parts) == 0:
		return nLit{""}
	case len(parts) == 1:
		return parts[0]
	}
	return nText{parts}
}

// bare is the name of a command: variables in it expand.
func (p *psParser) bare(word string) node {
	if !strings.ContainsAny(word, "$`") {
		return nLit{word}
	}
	q := &psParser{text: []rune(word + `"`), depth: p.depth}
	return q.expand()
}
