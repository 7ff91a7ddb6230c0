package nodeconf

import (
	"strings"

	"github.com/winlab-dev/winlab/internal/lazyregexp"
)

// dialect is the language of a script, as far as words and statements go.
type dialect int

const (
	powerShell dialect = iota
	batch
	shell
	// anyText is a text of unknown origin: notes, the
	// output of a command, or lines copied from a document.
	anyText
)

// word is one word of a statement, without its quotes.
type word struct {
	text string
	at   int
	// quoted is set when the whole word was in quotes; mark is '(' or ')' for
	// the brackets of an array, ',' for the comma of one.
	quoted bool
	mark   byte
	// here is one more than where the text of a here-string begins.
	here int
}

// statement is one command with the blocks around it.
type statement struct {
	words  []word
	blocks []block
}

// block is a pair of braces and what comes before it: `if ($x -eq "overlay")`.
type block struct {
	header string
	id     int
}

// maxWords bounds what one statement may hold; the rest of an absurdly long one is dropped.
const maxWords = 4096

type scanner struct {
	text    string
	d       dialect
	pos     int
	depth   int
	words   []word
	blocks  []block
	ids     int
	out     []statement
	pending string // the header of the last block that ended, for else
	// endless are end marks of here-strings that are known not to follow.
	endless map[string]bool
}

// scan takes a script apart.
func scan(text string, d dialect) []statement {
	s := &scanner{text: text, d: d}
	for s.pos < len(s.text) {
		s.step()
	}
	s.end()
	return s.out
}

func (s *scanner) end() {
	if len(s.words) > 0 {
		s.out = append(s.out, statement{words: s.words, blocks: s.blocks[:len(s.blocks):len(s.blocks)]})
	}
	s.words, s.depth = nil, 0
}

func (s *scanner) mark(c byte) {
	s.words = append(s.words, word{at: s.pos, mark: c, text: string(c)})
}

// power reports whether the braces and brackets of PowerShell mean something.
func (s *scanner) power() bool { return s.d == powerShell || s.d == anyText }

func (s *scanner) step() {
	rest := s.text[s.pos:]
	if !s.space(rest) && !s.separator(rest) && !s.bracket(rest) {
		s.word()
	}
	if len(s.words) > maxWords {
		s.end()
	}
}

// space passes over what is between words: blanks, ends of lines, comments.
func (s *scanner) space(rest string) bool {
	switch n := s.continued(rest); {
	case n > 0:
		s.pos += n
	case rest[0] == '\n':
		if s.depth == 0 {
			s.end()
		}
		s.pos++
	case strings.IndexByte(" \t\r", rest[0]) >= 0:
		s.pos++
	default:
		return s.comment(rest)
	}
	return true
}

// separator passes over what is between statements.
func (s *scanner) separator(rest string) bool {
	switch c := rest[0]; {
	case c == ';' && s.d != batch && s.depth == 0, c == '|', strings.HasPrefix(rest, "&&"):
		s.end()
		s.pos += 1 + strings.IndexFunc(rest[1:]+" ", func(r rune) bool { return r != '|' && r != '&' })
	case c == '&':
		if len(s.words) > 0 && s.depth == 0 {
			s.end()
		}
		s.pos++
	case c == ';', c == '>':
		s.pos++
	default:
		return false
	}
	return true
}

// bracket reads the brackets of blocks and arrays, and the commas of arrays.
func (s *scanner) bracket(rest string) bool {
	switch c := rest[0]; {
	case c == ',':
		s.mark(',')
		s.pos++
	case c == '(':
		s.openBracket()
	case c == ')':
		s.closeBracket()
	case !s.power():
		return false
	case c == '{':
		s.open()
	case c == '}':
		s.close()
	case strings.HasPrefix(rest, "@("):
		s.mark('(')
		s.words[len(s.words)-1].text = "@("
		s.depth++
		s.pos += 2
	default:
		return false
	}
	return true
}

func (s *scanner) openBracket() {
	switch s.d {
	case powerShell:
		s.mark('(')
		s.depth++
	case batch, shell:
		s.end()
	}
	s.pos++
}

func (s *scanner) closeBracket() {
	switch {
	case s.depth > 0:
		s.depth--
		s.mark(')')
	case s.d == batch || s.d == shell:
		s.end()
	}
	s.pos++
}

// close ends a block.
func (s *scanner) close() {
	s.end()
	if n := len(s.blocks); n > 0 {
		s.pending = s.blocks[n-1].header
		s.blocks = s.blocks[: n-1 : n-1]
	}
	s.pos++
}

// open begins a block. An else belongs to the condition before it.
func (s *scanner) open() {
	var header []string
	if n := len(s.out); len(s.words) == 0 && n > 0 {
		// The brace is on the line after its condition.
		last := s.out[n-1]
		if keyword[strings.ToLower(last.words[0].text)] && len(last.blocks) == len(s.blocks) {
			s.words = last.words
			s.out = s.out[:n-1]
		}
	}
	for _, w := range s.words {
		header = append(header, w.text)
	}
	h := strings.ToLower(strings.Join(header, " "))
	if strings.HasPrefix(h, "else") && !strings.Contains(h, "(") {
		h = "else of " + s.pending
	}
	s.end()
	s.ids++
	s.blocks = append(s.blocks[:len(s.blocks):len(s.blocks)], block{h, s.ids})
	s.pos++
	if len(s.blocks) > maxDepth {
		s.blocks = nil
	}
}

// keyword are the words that begin what a block belongs to.
var keyword = map[string]bool{
	"if": true, "elseif": true, "else": true, "switch": true, "function": true, "foreach": true, "for": true, "while": true, "try": true,
	"catch": true, "finally": true, "do": true,
}

// continued is the length of a line's end that does not end the statement.
func (s *scanner) continued(rest string) int {
	c := rest[0]
	if c != '`' && c != '^' && c != '\\' {
		return 0
	}
	n := 1
	for n < len(rest) && (rest[n] == ' ' || rest[n] == '\t' || rest[n] == '\r') {
		n++
	}
	if n == len(rest) || rest[n] != '\n' {
		return 0
	}
	switch {
	case c == '`' && s.power(), c == '^' && (s.d == batch || s.d == anyText):
		return n + 1
	case c == '\\' && s.d != powerShell && s.d != batch:
		return n + 1
	}
	return 0
}

// comment skips one.
func (s *scanner) comment(rest string) bool {
	switch {
	case strings.HasPrefix(rest, "<#") && s.power():
		if end := strings.Index(rest, "#>"); end >= 0 {
			s.pos += end + 2
		} else {
			s.pos = len(s.text)
		}
		return true
	case rest[0] == '#' && s.d != batch:
	case s.d == batch && len(s.words) == 0 && (strings.HasPrefix(rest, "::") || len(rest) > 3 && strings.EqualFold(rest[:3], "rem") &&
		strings.IndexByte(" \t\r\n", rest[3]) >= 0):
	default:
		return false
	}
	if end := strings.IndexByte(rest, '\n'); end >= 0 {
		s.pos += end
	} else {
		s.pos = len(s.text)
	}
	return true
}

// placeholder is what documents write where a reader puts a value.
var placeholder = lazyregexp.New(`^<[A-Za-z][A-Za-z0-9_ ./-]{0,40}>`)

// word reads one word.
func (s *scanner) word() {
	begin := s.pos
	var p wordParts
	for s.pos < len(s.text) && !s.endsWord(&p) {
		p.parts++
		if !s.quotedPart(begin, &p) {
			s.barePart(&p)
		}
	}
	if s.pos == begin { // nothing here begins a word: pass over it
		s.pos++
		return
	}
	s.words = append(s.words, word{text: p.b.String(), at: begin, quoted: p.quotes > 0 && p.quotes == p.parts, here: p.here})
}

// wordParts is the word that is being read: its text, how many parts it has so far, how
// many of them were in quotes, and where a here-string begins, see word.here.
type wordParts struct {
	b                   strings.Builder
	parts, quotes, here int
}

// endsWord reports whether what comes next is not a part of the word.
func (s *scanner) endsWord(p *wordParts) bool {
	rest := s.text[s.pos:]
	switch c := rest[0]; c {
	case ' ', '\t', '\r', '\n', '|', '>':
		return true
	case ';':
		return s.d != batch
	case '(':
		return s.d == powerShell
	case ')':
		return s.d == powerShell || s.depth > 0
	case '{', '}':
		return s.power()
	case '@':
		return s.power() && strings.HasPrefix(rest, "@(")
	case ',':
		return s.depth > 0 || s.d == powerShell && p.quotes == p.parts && p.parts > 0
	case '`', '^':
		return p.parts > 0 && s.continued(rest) > 0
	case '\\':
		return p.parts > 0 && s.continued(rest) > 0 && s.text[s.pos-1] == ' '
	}
	return false
}

// quotedPart reads a part in quotes, if one comes next.
func (s *scanner) quotedPart(begin int, p *wordParts) bool {
	rest := s.text[s.pos:]
	switch rest[0] {
	case '"':
		s.double(&p.b)
	case '\'':
		if s.d == batch || !s.single(rest, &p.b) {
			return false
		}
	case '@':
		if !s.power() || len(rest) == 1 || rest[1] != '"' && rest[1] != '\'' || !s.readHereString(rest, rest[1:2]+"@", &p.b) {
			return false
		}
		p.here = begin + strings.IndexByte(s.text[begin:], '\n') + 2
	default:
		return false
	}
	p.quotes++
	return true
}

// barePart reads a part without quotes: an expression, a placeholder or one byte.
func (s *scanner) barePart(p *wordParts) {
	rest := s.text[s.pos:]
	c := rest[0]
	switch {
	case strings.HasPrefix(rest, "$(") || strings.HasPrefix(rest, "${"):
		p.b.WriteString(s.nested(rest))
		return
	case c == '<' && placeholder.MatchString(rest):
		name := placeholder.FindString(rest)
		p.b.WriteString(name)
		s.pos += len(name)
		return
	case len(rest) > 1 && (c == '`' && s.power() || c == '^' && s.d == batch):
		c = rest[1] // it is escaped
		s.pos++
	}
	p.b.WriteByte(c)
	s.pos++
}

// readHereString reads a here-string, which ends with its mark at the beginning of a line.
func (s *scanner) readHereString(rest, mark string, b *strings.Builder) bool {
	line := strings.TrimRight(rest[2:max(strings.IndexByte(rest, '\n'), 2)], " \t\r")
	if line != "" || s.endless[mark] {
		return false
	}
	end := strings.Index(rest, "\n"+mark)
	if end < 0 {
		if s.endless == nil {
			s.endless = map[string]bool{}
		}
		s.endless[mark] = true
		return false
	}
	b.WriteString(rest[strings.IndexByte(rest, '\n')+1 : max(end, strings.IndexByte(rest, '\n')+1)])
	s.pos += end + 3
	return true
}

// double reads a string in double quotes.
func (s *scanner) double(b *strings.Builder) {
	s.pos++
	escaped := 0
	for s.pos < len(s.text) {
		rest := s.text[s.pos:]
		switch c := rest[0]; {
		case strings.HasPrefix(rest, `""`) && s.d == powerShell:
			b.WriteByte('"')
			s.pos += 2
		case c == '"':
			s.pos++
			return
		case c == '`' && s.power() && len(rest) > 1:
			b.WriteByte(rest[1])
			s.pos += 2
		case strings.HasPrefix(rest, `\"`) && s.d != powerShell:
			// An escaped quote, unless the string is a path that ends with a backslash.
			if escaped%2 == 0 && (len(rest) == 2 || strings.IndexByte(" \t\r\n", rest[2]) >= 0) {
				b.WriteByte('\\')
				s.pos += 2
				return
			}
			escaped++
			b.WriteByte('"')
			s.pos += 2
		case strings.HasPrefix(rest, "$(") && s.d != batch:
			b.WriteString(s.nested(rest))
		case c == '\n' && s.d != powerShell:
			return // a quote without an end
		default:
			b.WriteByte(c)
			s.pos++
		}
	}
}

// single reads a string in single quotes, if it ends; in a text an apostrophe
// is not the beginning of one.
func (s *scanner) single(rest string, b *strings.Builder) bool {
	end := strings.IndexByte(rest[1:], '\'')
	if end < 0 || s.d != powerShell && strings.Contains(rest[1:1+end], "\n") {
		return false
	}
	b.WriteString(rest[1 : 1+end])
	s.pos += end + 2
	return true
}

// nested reads $(...) or ${...} unchanged.
func (s *scanner) nested(rest string) string {
	begin, end := rest[1], byte(')')
	if begin == '{' {
		end = '}'
	}
	depth := 0
	for i := 1; i < len(rest) && i < 1000; i++ {
		switch rest[i] {
		case begin:
			depth++
		case end:
			if depth--; depth == 0 {
				s.pos += i + 1
				return rest[:i+1]
			}
		case '\n':
			if s.d != powerShell {
				i = len(rest)
			}
		}
	}
	s.pos += 2
	return rest[:2]
}
