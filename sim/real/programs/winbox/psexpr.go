package main

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// levels are the binary operators, those that bind least first (about_Operator_Precedence).
var levels = [][]string{
	{"-and", "-or", "-xor"},
	{"-eq", "-ne", "-gt", "-ge", "-lt", "-le", "-ieq", "-ine", "-ceq", "-cne", "-like", "-notlike", "-match", "-notmatch", "-contains",
		"-notcontains", "-in", "-notin", "-join", "-split", "-replace", "-is"},
	{"+", "-"},
	{"*", "/", "%"},
	{"-f"},
	{".."},
}

func (p *psParser) expression() node { return p.binary(0) }

func (p *psParser) binary(level int) node {
	if level == len(levels) {
		return p.comma()
	}
	a := p.binary(level + 1)
	for {
		at := p.at
		p.space(false)
		op := p.operator(levels[level])
		if op == "" {
			p.at = at
			return a
		}
		p.space(true)
		a = nBinary{op, a, p.binary(level + 1)}
	}
}

func (p *psParser) operator(ops []string) string {
	for _, op := range ops {
		switch {
		case !p.has(op):
		case len(op) > 1 && op[0] == '-' && isWord(p.ahead(len(op))):
		case len(op) == 1 && p.ahead(1) == '=': // an assignment
		case (op == "+" || op == "-") && p.ahead(1) == p.peek(): // ++
		case op == "-" && unicode.IsLetter(p.ahead(1)):
		default:
			p.at += len(op)
			return op
		}
	}
	return ""
}

func (p *psParser) comma() node {
	first := p.unary()
	if p.oneValue {
		return first
	}
	var all []node
	for {
		at := p.at
		p.space(false)
		if p.peek() != ',' {
			p.at = at
			break
		}
		p.at++
		p.space(true)
		all = append(all, p.unary())
	}
	if all == nil {
		return first
	}
	return nList{append([]node{first}, all...)}
}

func (p *psParser) unary() node {
	defer p.deeper()()
	p.space(false)
	switch {
	case p.peek() == '!':
		p.at++
		return nNot{p.unary()}
	case p.word("-not"):
		return nNot{p.unary()}
	case p.has("++"), p.has("--"):
		by := int64(44 - p.peek()) // '+' is 43, '-' is 45
		p.at += 2
		return nIncr{p.unary(), by}
	case p.peek() == '-':
		p.at++
		return nNeg{p.unary()}
	}
	return p.postfix(p.primary())
}

// postfix reads members, methods, indexes and ++.
func (p *psParser) postfix(x node) node {
	for {
		switch {
		case p.peek() == '.' && (isWord(p.ahead(1)) && !unicode.IsDigit(p.ahead(1))):
			p.at++
			x = p.member(x, false)
		case p.has("::"):
			p.at += 2
			x = p.member(x, true)
		case p.peek() == '[':
			p.at++
			p.space(true)
			at := p.expression()
			p.expect(']')
			x = nIndex{x, at}
		case p.has("++"), p.has("--"):
			by := int64(44 - p.peek())
			p.at += 2
			x = nIncr{x, by}
		default:
			return x
		}
	}
}

func (p *psParser) member(of node, static bool) node {
	m := nMember{of: of, name: strings.ToLower(p.name()), static: static}
	if p.peek() != '(' {
		return m
	}
	p.at++
	m.call = true
	for p.space(true); p.peek() != ')'; p.space(true) {
		if len(m.args) > 0 {
			p.expect(',')
			p.space(true)
		}
		m.args = append(m.args, p.argumentOfMethod())
	}
	p.at++
	return m
}

// argumentOfMethod is an expression in which a comma parts arguments.
func (p *psParser) argumentOfMethod() node {
	before := p.oneValue
	p.oneValue = true
	x := p.expression()
	p.oneValue = before
	return x
}

func (p *psParser) name() string {
	start := p.at
	for isWord(p.peek()) {
		p.at++
	}
	if p.at == start {
		p.fail("a name is expected")
	}
	return string(p.text[start:p.at])
}

func (p *psParser) primary() node {
	switch c := p.peek(); {
	case c == '\'':
		return nLit{p.single()}
	case c == '"':
		p.at++
		return p.expand()
	case c == '(':
		p.at++
		return nSub{p.statements(')')}
	case c == '{':
		p.at++
		return nBlock{p.statements('}')}
	case c == '@' && p.ahead(1) == '(':
		p.at += 2
		return nArray{p.statements(')')}
	case c == '@' && p.ahead(1) == '{':
		p.at += 2
		return p.table()
	case c == '$' && p.ahead(1) == '(':
		p.at += 2
		return nSub{p.statements(')')}
	case c == '$':
		p.at++
		return p.variable()
	case c == '[':
		start := p.at + 1
		for p.at < len(p.text) && p.peek() != ']' {
			p.at++
		}
		p.at++
		return p.typed(strings.ToLower(string(p.text[start : p.at-1])))
	case unicode.IsDigit(c):
		return p.number()
	}
	p.fail("a value is expected")
	return nil
}

// typed is a type, or a cast of what follows.
func (p *psParser) typed(name string) node {
	if p.has("::") {
		return nType{name}
	}
	if c := p.peek(); strings.ContainsRune(`$"'(@`, c) || unicode.IsDigit(c) {
		return nMember{of: nType{name}, name: "cast", args: []node{p.unary()}, call: true, static: true}
	}
	return nType{name}
}

func (p *psParser) table() node {
	var t nTable
	for {
		for p.space(true); p.peek() == ';'; p.space(true) {
			p.at++
		}
		if p.peek() == '}' {
			p.at++
			return t
		}
		var key node
		if isWord(p.peek()) {
			key = nLit{p.name()}
		} else {
			key = p.primary()
		}
		p.expect('=')
		p.space(true)
		t.keys, t.values = append(t.keys, key), append(t.values, p.statement())
	}
}

func (p *psParser) variable() node {
	if p.peek() == '{' {
		end := slices.Index(p.text[p.at:], '}')
		if end < 0 {
			p.fail("a } is missing")
		}
		name := string(p.text[p.at+1 : p.at+end])
		p.at += end + 1
		return nVar{strings.ToLower(name)}
	}
	if c := p.peek(); c == '?' || c == '$' {
		p.at++
		return nVar{string(c)}
	}
	name := strings.ToLower(p.name())
	if p.peek() == ':' && isWord(p.ahead(1)) { // $env:NAME, $script:x
		p.at++
		scope := name
		if name = p.name(); scope == "env" {
			return nVar{"env:" + name}
		}
		name = strings.ToLower(name)
	}
	return nVar{name}
}

func (p *psParser) number() node {
	start := p.at
	for isWord(p.peek()) || p.peek() == '.' && unicode.IsDigit(p.ahead(1)) {
		p.at++
	}
	text := strings.ToLower(string(p.text[start:p.at]))
	factor := int64(1)
	for i, unit := range []string{"kb", "mb", "gb"} {
		if rest, ok := strings.CutSuffix(text, unit); ok {
			text, factor = rest, 1<<(10*(i+1))
		}
	}
	if n, err := strconv.ParseInt(text, 0, 64); err == nil {
		return nLit{n * factor}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		p.fail("%q is not a number", text)
	}
	return nLit{f * float64(factor)}
}

// single is a text in single quotes, in which nothing expands.
func (p *psParser) single() string {
	var b strings.Builder
	for p.at++; ; p.at++ {
		c := p.peek()
		if c == 0 && p.at >= len(p.text) {
			p.fail("a ' is missing")
		}
		if c == '\'' {
			if p.at++; p.peek() != '\'' {
				return b.String()
			}
		}
		b.WriteRune(c)
	}
}

// expand reads a text up to its double quote.
func (p *psParser) expand() node {
	var t nText
	var b strings.Builder
	flush := func() {
		if b.Len() > 0 {
			t.parts = append(t.parts, nLit{b.String()})
			b.Reset()
		}
	}
	for {
		c := p.peek()
		switch {
		case c == 0 && p.at >= len(p.text):
			p.fail("a \" is missing")
		case c == '"' && p.ahead(1) == '"' && p.at+2 < len(p.text):
			b.WriteRune('"')
			p.at += 2
		case c == '"':
			p.at++
			flush()
			return t
		case c == '`':
			escapes := map[rune]rune{'n': '\n', 'r': '\r', 't': '\t', '0': 0, 'a': 7, 'b': 8}
			r := p.ahead(1)
			if e, ok := escapes[r]; ok {
				r = e
			}
			b.WriteRune(r)
			p.at += 2
		case c == '$' && (p.ahead(1) == '(' || p.ahead(1) == '{' || isWord(p.ahead(1)) || p.ahead(1) == '?'):
			flush()
			t.parts = append(t.parts, p.primary())
		default:
			b.WriteRune(c)
			p.at++
		}
	}
}
