package claims

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// neighbours are conditions that differ from c by one step at one of its bounds: a number
// that is one more or less, a digit of a pattern or the end of a range of digits, one of
// several alternatives with a number left out, an end of the text that is not asked for. A
// condition without a number has no neighbours.
func (c Condition) neighbours() []Condition {
	var all []Condition
	switch c.Op {
	case "below", "above":
		if n, err := strconv.Atoi(c.Values[0]); err == nil {
			for _, v := range []int{n - 1, n + 1} {
				all = append(all, Condition{Op: c.Op, Values: []string{strconv.Itoa(v)}})
			}
		}
	case "matches", "not matches":
		for _, p := range patternNeighbours(c.Pattern.String()) {
			if re, err := regexp.Compile(p); err == nil && re.String() != c.Pattern.String() {
				all = append(all, Condition{Op: c.Op, Pattern: re})
			}
		}
	}
	return all
}

// patternNeighbours are the patterns that differ from one with numbers by one step.
func patternNeighbours(pattern string) []string {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil || !hasDigit(re) {
		return nil
	}
	var all []string
	var walk func(node *syntax.Regexp)
	try := func(node *syntax.Regexp, other syntax.Regexp) {
		was := *node
		*node = other
		all = append(all, re.String())
		*node = was
	}
	walk = func(node *syntax.Regexp) {
		switch node.Op {
		case syntax.OpLiteral:
			for i, r := range node.Rune {
				for _, to := range []rune{r - 1, r + 1} {
					if ofNumber(node.Rune, i) && isDigit(to) {
						other := *node
						other.Rune = slices.Clone(node.Rune)
						other.Rune[i] = to
						try(node, other)
					}
				}
			}
		case syntax.OpCharClass:
			for i, r := range node.Rune {
				for _, to := range []rune{r - 1, r + 1} {
					other := *node
					other.Rune = slices.Clone(node.Rune)
					other.Rune[i] = to
					if onlyDigits(node.Rune) && onlyDigits(other.Rune) && other.Rune[i-i%2] <= other.Rune[i-i%2+1] {
						try(node, other)
					}
				}
			}
		case syntax.OpAlternate:
			for i, s := range node.Sub {
				if hasDigit(s) {
					other := *node
					other.Sub = slices.Delete(slices.Clone(node.Sub), i, i+1)
					try(node, other)
				}
			}
		case syntax.OpBeginText, syntax.OpEndText, syntax.OpBeginLine, syntax.OpEndLine:
			try(node, syntax.Regexp{Op: syntax.OpEmptyMatch})
		}
		for _, s := range node.Sub {
			walk(s)
		}
	}
	walk(re)
	return all
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

// ofNumber reports whether a rune of a text is a digit of a number, and not of a word such
// as k8s or amd64.
func ofNumber(text []rune, i int) bool {
	if !isDigit(text[i]) {
		return false
	}
	first, last := i, i
	for first > 0 && isDigit(text[first-1]) {
		first--
	}
	for last < len(text)-1 && isDigit(text[last+1]) {
		last++
	}
	word := func(at int) bool { return at >= 0 && at < len(text) && (unicode.IsLetter(text[at]) && text[at] != 'v') }
	return !word(first-1) && !word(last+1)
}

// onlyDigits reports whether a character class, a list of first and last runes, has digits only.
func onlyDigits(class []rune) bool {
	return !slices.ContainsFunc(class, func(r rune) bool { return !isDigit(r) })
}

// hasDigit reports whether a pattern asks for certain digits.
func hasDigit(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral:
		for i := range re.Rune {
			if ofNumber(re.Rune, i) {
				return true
			}
		}
		return false
	case syntax.OpCharClass:
		return onlyDigits(re.Rune) && !slices.Equal(re.Rune, []rune{'0', '9'})
	}
	return slices.ContainsFunc(re.Sub, hasDigit)
}

// meetsValue compares a value with the condition, numbers too.
func (c Condition) meetsValue(text string) bool {
	if c.Op != "below" && c.Op != "above" {
		return c.Meets(text)
	}
	n, err1 := strconv.Atoi(text)
	bound, err2 := strconv.Atoi(c.Values[0])
	return err1 == nil && err2 == nil && (c.Op == "below" && n < bound || c.Op == "above" && n > bound)
}

// String is the condition as a rule writes it.
func (c Condition) String() string {
	if c.Pattern != nil {
		return c.Op + " " + c.Pattern.String()
	}
	return strings.TrimSpace(c.Op + " " + strings.Join(c.Values, ", "))
}

// ruleValues tries the values that a rule names on both sides of its condition, and wants
// them to tell the condition from every neighbour.
func (n *linter) ruleValues(r *Rule, say func(string, ...any)) {
	c, err := ParseCondition(r.When)
	if err != nil || r.Field == "" {
		if len(r.Found)+len(r.NotFound) > 0 {
			say("found and notFound are values of a field; this rule has none")
		}
		return
	}
	for _, v := range r.Found {
		if !c.meetsValue(v) {
			say("the value %q should be found, and %q does not hold of it", v, c)
		}
	}
	for _, v := range r.NotFound {
		if c.meetsValue(v) {
			say("the value %q should not be found, and %q holds of it", v, c)
		}
	}
	var alike []string
	for _, o := range c.neighbours() {
		told := func(v string) bool { return c.meetsValue(v) != o.meetsValue(v) }
		if !slices.ContainsFunc(r.Found, told) && !slices.ContainsFunc(r.NotFound, told) {
			alike = append(alike, fmt.Sprintf("%q", o))
		}
	}
	if len(alike) == 0 {
		return
	}
	more := ""
	if len(alike) > 3 {
		more = fmt.Sprintf(" and %d more", len(alike)-3)
	}
	say("no value in found or notFound tells %q from %s%s; write values of the field on both sides of each bound", c,
		strings.Join(alike[:min(3, len(alike))], ", "), more)
}
