package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode"
)

// psScript reads and runs a script in one pass. It knows statements with ; or line ends
// between them, if and else, throw and exit, assignments to variables, & { }, commands with |
// between them and > FILE, "..." with $name, $env:NAME and $( ), and (COMMAND).Property.
// These are what kubelet.exe (pkg/volume/util/subpath), test/e2e/windows of Kubernetes 1.37 and
// the pages of Kubernetes use; there are no loops, numbers or objects of .NET.
type psScript struct {
	ctx  context.Context
	s    *system
	vars map[string][]string // by the name in small letters; a value is lines of text

	text     []rune
	at       int
	depth    int
	skip     bool // reads, but does not run
	captured bool // what other programs print is a value
	failed   bool // the last command has failed ($? is false)
	ended    bool // exit or throw has ended the script
	code     int
}

// psValue is what a command or an expression gives: lines, and properties of one object by
// the name in small letters.
type psValue struct {
	lines []string
	props map[string]string
}

func (v psValue) String() string { return strings.Join(v.lines, " ") }

// isTrue reports whether a condition holds (about_Booleans).
func (v psValue) isTrue() bool { return v.String() != "" && v.String() != "False" }

// psError ends a script: one that cannot be read, a throw, or a command that failed where
// $ErrorActionPreference is Stop.
type psError struct{ text string }

func (e *psError) Error() string { return e.text }

var errExit = errors.New("exit")

// exitCode runs a script and returns the exit code: that of exit, or 1 when the last command
// has failed.
func (p *psScript) exitCode(script string) int {
	script = strings.ReplaceAll(strings.TrimPrefix(script, "\ufeff"), "\r\n", "\n")
	if code, known := psForms(p.ctx, p.s, script); known {
		return code
	}
	p.skip = true
	err := p.run(script)
	if err == nil {
		p.skip, p.failed, p.code = false, false, 0
		err = p.run(script)
	}
	switch {
	case errors.Is(err, errExit):
		p.ended = true
		return p.code
	case err != nil:
		p.ended = true
		if p.ctx.Err() == nil {
			p.s.complain(1, "%v", err)
		}
		return 1
	case p.failed:
		return 1
	}
	return 0
}

// run reads a script to its end.
func (p *psScript) run(script string) error {
	p.text, p.at = []rune(script), 0
	return p.statements(0, p.print)
}

// print writes what a statement gives.
func (p *psScript) print(v psValue) {
	for _, line := range v.lines {
		p.s.printf("%s\n", line)
	}
}

// maxDepth is how deep scripts may be in each other.
const maxDepth = 100

func (p *psScript) cannotRead(why string) error {
	near := string(p.text[min(p.at, len(p.text)):min(p.at+20, len(p.text))])
	return &psError{fmt.Sprintf("winlab: powershell.exe here cannot read the script at %q: %s", near, why)}
}

func (p *psScript) peek() rune {
	if p.at >= len(p.text) {
		return 0
	}
	return p.text[p.at]
}

// has reports whether a text comes, in any case.
func (p *psScript) has(s string) bool {
	end := p.at + len(s)
	return end <= len(p.text) && strings.EqualFold(string(p.text[p.at:end]), s)
}

// space skips blanks and comments, and the ends of lines too when lines is set.
func (p *psScript) space(lines bool) {
	for {
		switch c := p.peek(); {
		case c == ' ' || c == '\t' || lines && c == '\n':
			p.at++
		case p.has("`\n"):
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

func (p *psScript) expect(c rune) error {
	p.space(true)
	if p.peek() != c {
		return p.cannotRead(fmt.Sprintf("a %c is expected", c))
	}
	p.at++
	return nil
}

func isWord(c rune) bool { return c == '_' || unicode.IsLetter(c) || unicode.IsDigit(c) }

// keyword takes a keyword if it comes.
func (p *psScript) keyword(w string) bool {
	end := p.at + len(w)
	if !p.has(w) || end < len(p.text) && (isWord(p.text[end]) || p.text[end] == '-') {
		return false
	}
	p.at = end
	return true
}

// statements reads up to a closing rune, or the end, and hands on what each gives.
func (p *psScript) statements(end rune, emit func(psValue)) error {
	for {
		p.space(true)
		switch c := p.peek(); {
		case c == ';':
			p.at++
			continue
		case p.at >= len(p.text):
			if end != 0 {
				return p.cannotRead(fmt.Sprintf("a %c is missing", end))
			}
			return nil
		case end != 0 && c == end:
			p.at++
			return nil
		}
		braced, err := p.statement(emit)
		if err != nil {
			return err
		}
		p.space(false)
		if c := p.peek(); !braced && c != ';' && c != '\n' && c != end && p.at < len(p.text) {
			return p.cannotRead("not known here")
		}
	}
}

// statement reads one; braced says that another may follow at once.
func (p *psScript) statement(emit func(psValue)) (braced bool, err error) {
	if err := p.ctx.Err(); err != nil {
		return false, err
	}
	switch {
	case p.keyword("if"):
		return true, p.ifElse(emit)
	case p.keyword("throw"), p.keyword("exit"):
		throw := strings.EqualFold(string(p.text[p.at-1]), "w")
		var v psValue
		if p.space(false); !strings.ContainsRune("\x00;}\n", p.peek()) {
			if v, err = p.capture(p.pipeline); err != nil {
				return false, err
			}
		}
		switch {
		case p.skip:
			return false, nil
		case throw:
			return false, &psError{v.String()}
		}
		_, _ = fmt.Sscan(v.String(), &p.code)
		return false, errExit
	case p.has("& {"), p.has("&{"):
		for p.peek() != '{' {
			p.at++
		}
		p.at++
		if p.depth++; p.depth > maxDepth {
			return false, p.cannotRead("too deep")
		}
		defer func() { p.depth-- }()
		return false, p.statements('}', emit)
	}
	if p.peek() == '$' {
		start := p.at
		p.at++
		name := strings.ToLower(p.name())
		p.space(false)
		if name != "" && p.peek() == '=' {
			p.at++
			p.space(true)
			v, err := p.capture(p.pipeline)
			if err == nil && !p.skip {
				p.vars[name] = v.lines
			}
			return false, err
		}
		p.at = start
	}
	v, err := p.pipeline()
	if err == nil && !p.skip {
		emit(v)
	}
	return false, err
}

func (p *psScript) ifElse(emit func(psValue)) error {
	if p.depth++; p.depth > maxDepth {
		return p.cannotRead("too deep")
	}
	defer func() { p.depth-- }()
	if err := p.expect('('); err != nil {
		return err
	}
	yes, err := p.condition()
	if err != nil {
		return err
	}
	before := p.skip
	defer func() { p.skip = before }()
	block := func(skip bool) error {
		p.skip = before || skip
		if err := p.expect('{'); err != nil {
			return err
		}
		return p.statements('}', emit)
	}
	if err := block(!yes); err != nil {
		return err
	}
	at := p.at
	if p.space(true); !p.keyword("else") {
		p.at = at
		return nil
	}
	return block(yes)
}

// condition reads up to the closing parenthesis: [-not] VALUE [-eq|-ne VALUE]. Comparisons do
// not regard case (about_Comparison_Operators).
func (p *psScript) condition() (yes bool, err error) {
	p.space(true)
	not := p.keyword("-not") || p.keyword("!")
	p.space(true)
	a, err := p.capture(p.operand)
	if err != nil {
		return false, err
	}
	yes = a.isTrue()
	p.space(true)
	for _, op := range []string{"-eq", "-ieq", "-ne", "-ine"} {
		if !p.keyword(op) {
			continue
		}
		p.space(true)
		b, err := p.capture(p.operand)
		if err != nil {
			return false, err
		}
		yes = strings.EqualFold(a.String(), b.String()) != strings.HasSuffix(op, "ne")
		break
	}
	return yes != not, p.expect(')')
}

// operand is a value, or a command with what it is given.
func (p *psScript) operand() (psValue, error) {
	if strings.ContainsRune(`$"'(`, p.peek()) || unicode.IsDigit(p.peek()) {
		return p.word()
	}
	return p.pipeline()
}

// capture reads a part whose output is a value.
func (p *psScript) capture(part func() (psValue, error)) (psValue, error) {
	before := p.captured
	p.captured = true
	defer func() { p.captured = before }()
	return part()
}

// pipeline is values or commands with | between them.
func (p *psScript) pipeline() (v psValue, err error) {
	if p.depth++; p.depth > maxDepth {
		return v, p.cannotRead("too deep")
	}
	defer func() { p.depth-- }()
	p.failed = false
	failed := false
	for n := 0; ; n++ {
		var input *psValue
		if n > 0 {
			input = &v
		}
		next := func() (psValue, error) { return p.command(input) }
		if p.pipeFollows() {
			v, err = p.capture(next)
		} else {
			v, err = next()
		}
		if err != nil {
			return psValue{}, err
		}
		failed = failed || p.failed
		if p.space(false); p.peek() != '|' {
			p.failed = failed
			return v, nil
		}
		p.at++
		p.space(true)
	}
}

// pipeFollows reports whether the command that comes has a | behind it. It looks at the text
// alone, so that nothing is read twice.
func (p *psScript) pipeFollows() bool {
	depth := 0
	for at := p.at; at < len(p.text); at++ {
		switch c := p.text[at]; {
		case c == '`':
			at++
		case c == '\'' || c == '"':
			end := slices.Index(p.text[at+1:], c)
			if end < 0 {
				return false
			}
			at += end + 1
		case c == '(' || c == '{':
			depth++
		case depth > 0 && (c == ')' || c == '}'):
			depth--
		case depth > 0:
		case c == '|':
			return true
		case strings.ContainsRune(";)}\n", c):
			return false
		}
	}
	return false
}

// command reads a command with its arguments and runs it.
func (p *psScript) command(input *psValue) (psValue, error) {
	isValue := strings.ContainsRune(`"'(`, p.peek()) || unicode.IsDigit(p.peek()) || p.peek() == '$' && !p.has("$env:")
	if p.peek() == '[' { // a type of .NET
		return psValue{}, p.cannotRead("not known here")
	}
	first, err := p.word()
	if err != nil {
		return psValue{}, err
	}
	c := &psCall{p: p, input: input}
	file, appends := "", false
	for {
		p.space(false)
		switch ch := p.peek(); {
		case p.at >= len(p.text), strings.ContainsRune(";|)}\n", ch):
			if isValue && len(c.words) == 0 {
				if file != "" {
					return psValue{}, p.save(c, file, first.lines, appends)
				}
				return first, nil
			}
			if p.skip {
				return psValue{}, nil
			}
			return p.call(c, first.String(), file, appends)
		case p.has("2>&1"):
			p.at += 4
		case p.has("2>$null"):
			p.at += 7
		case ch == '>':
			p.at++
			if appends = p.peek() == '>'; appends {
				p.at++
			}
			p.space(false)
			v, err := p.word()
			if err != nil {
				return psValue{}, err
			}
			file = v.String()
		default:
			bare := !strings.ContainsRune(`"'$(`, ch)
			v, err := p.word()
			if err != nil {
				return psValue{}, err
			}
			c.words = append(c.words, psWord{v.String(), bare && ch == '-'})
		}
	}
}

// property reads (COMMAND) or (COMMAND).Property.
func (p *psScript) property() (psValue, error) {
	p.at++
	p.space(true)
	v, err := p.capture(p.pipeline)
	if err == nil {
		err = p.expect(')')
	}
	if err != nil || p.peek() != '.' {
		return v, err
	}
	p.at++
	name := strings.ToLower(p.name())
	if name == "" {
		return v, p.cannotRead("a property is expected")
	}
	text, ok := v.props[name]
	if !ok && !p.skip {
		return v, &psError{"winlab: powershell.exe here does not know the property " + name}
	}
	if v = (psValue{}); text != "" {
		v.lines = []string{text}
	}
	return v, nil
}

// word reads a quoted text, a variable, a command in parentheses, or a word as it stands, in
// which variables expand.
func (p *psScript) word() (psValue, error) {
	if p.peek() == '(' {
		return p.property()
	}
	if p.has("@(") || p.has("@{") {
		return psValue{}, p.cannotRead("lists and tables are not known here")
	}
	start := p.at
	var b strings.Builder
	var whole psValue // a single variable keeps its lines
	for p.at < len(p.text) && !strings.ContainsRune(" \t\n;|(){},>", p.peek()) {
		switch c := p.peek(); {
		case c == '\'':
			end := slices.Index(p.text[p.at+1:], '\'')
			if end < 0 {
				return whole, p.cannotRead("a ' is missing")
			}
			b.WriteString(string(p.text[p.at+1 : p.at+1+end]))
			p.at += end + 2
		case c == '"':
			if err := p.quoted(&b); err != nil {
				return whole, err
			}
		case c == '$':
			v, err := p.variable()
			if err != nil {
				return whole, err
			}
			if b.Len() == 0 {
				whole = v
			}
			b.WriteString(v.String())
		case c == '`' && p.at+1 < len(p.text):
			b.WriteRune(p.text[p.at+1])
			p.at += 2
		default:
			b.WriteRune(c)
			p.at++
		}
	}
	if p.at == start {
		return whole, p.cannotRead("a value is expected")
	}
	if b.Len() == 0 && whole.lines == nil && p.text[start] == '$' {
		return psValue{}, nil
	}
	if whole.String() == b.String() && whole.lines != nil {
		return whole, nil
	}
	return psValue{lines: []string{b.String()}}, nil
}

// quoted reads "..." with expansions.
func (p *psScript) quoted(b *strings.Builder) error {
	for p.at++; p.at < len(p.text); {
		switch c := p.peek(); {
		case c == '"':
			p.at++
			return nil
		case c == '$':
			v, err := p.variable()
			if err != nil {
				return err
			}
			b.WriteString(v.String())
		case c == '`' && p.at+1 < len(p.text):
			b.WriteRune(p.text[p.at+1])
			p.at += 2
		default:
			b.WriteRune(c)
			p.at++
		}
	}
	return p.cannotRead("a \" is missing")
}

// name reads the name of a variable or property.
func (p *psScript) name() string {
	start := p.at
	for isWord(p.peek()) || p.peek() == ':' && p.at > start {
		p.at++
	}
	return string(p.text[start:p.at])
}

// variable reads $name, ${name}, $env:NAME, $( ), or a single $.
func (p *psScript) variable() (psValue, error) {
	p.at++
	if p.peek() == '(' {
		p.at++
		var all []string
		_, err := p.capture(func() (psValue, error) {
			return psValue{}, p.statements(')', func(v psValue) { all = append(all, v.lines...) })
		})
		return psValue{lines: all}, err
	}
	braced := p.peek() == '{'
	if braced {
		p.at++
	}
	name := p.name()
	if braced {
		if err := p.expect('}'); err != nil {
			return psValue{}, err
		}
	}
	switch strings.ToLower(name) {
	case "":
		return psValue{lines: []string{"$"}}, nil
	case "true", "false":
		return psValue{lines: []string{strings.ToUpper(name[:1]) + strings.ToLower(name[1:])}}, nil
	case "null":
		return psValue{}, nil
	}
	if len(name) > 4 && strings.EqualFold(name[:4], "env:") {
		return psValue{lines: linesOf(p.s.getenv(name[4:]))}, nil
	}
	return psValue{lines: p.vars[strings.ToLower(name)]}, nil
}

// native runs another program. Where its output is a value, each line is one.
func (p *psScript) native(args []string, input *psValue) (psValue, error) {
	s := *p.s
	if input != nil {
		s.in = strings.NewReader(joined(input.lines))
	}
	var buf bytes.Buffer
	if p.captured {
		s.out = &buf
	}
	code, err := s.start(p.ctx, &s, args)
	if err != nil {
		return psValue{}, errUnknownCommand
	}
	p.failed = code != 0
	return psValue{lines: linesOf(buf.String())}, nil
}

var errUnknownCommand = errors.New("unknown command")

// linesOf splits a text into its lines.
func linesOf(text string) []string {
	text = strings.TrimSuffix(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

func joined(lines []string) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l + "\r\n")
	}
	return b.String()
}

// save writes lines to a file.
func (p *psScript) save(c *psCall, file string, lines []string, appends bool) error {
	if p.skip {
		return nil
	}
	how := os.O_CREATE | os.O_WRONLY | os.O_TRUNC
	if appends {
		how = os.O_CREATE | os.O_WRONLY | os.O_APPEND
	}
	f, err := os.OpenFile(file, how, 0o644)
	if err == nil {
		_, err = f.WriteString(joined(lines))
		err = errors.Join(err, f.Close())
	}
	return p.complain(c, fileError("out-file", file, err))
}
