package claims

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Condition is what a rule asks of a field.
type Condition struct {
	// Op is one of [conditionOps].
	Op string
	// Values are what the field is compared with: one, or many for "in" and "not in".
	Values []string
	// Pattern is set for "matches" and "not matches".
	Pattern *regexp.Regexp
}

// conditionOps are the words that a condition begins with:
//
//	set, unset                    the field is there and not null, or is not
//	empty, not empty              it is there and holds nothing, or something
//	is X, is not X                it is there, and its text is X, or is not
//	in X, Y    not in X, Y        the same with several
//	matches RE, not matches RE    the same with a regular expression of Go
//	below N, above N              it is a number or quantity (500m, 2Gi) below or above N
var conditionOps = []string{"set", "unset", "empty", "not empty", "is", "is not", "in", "not in", "matches", "not matches", "below",
	"above"}

// ParseCondition reads a condition; "" is "set". Values may be quoted.
func ParseCondition(s string) (Condition, error) {
	s = strings.TrimSpace(s)
	switch s {
	case "":
		return Condition{Op: "set"}, nil
	case "set", "unset", "empty", "not empty":
		return Condition{Op: s}, nil
	}
	for _, op := range []string{"is not", "is", "not in", "in", "not matches", "matches", "below", "above"} {
		rest, ok := strings.CutPrefix(s, op+" ")
		if !ok {
			continue
		}
		c := Condition{Op: op}
		rest = strings.TrimSpace(rest)
		switch op {
		case "matches", "not matches":
			re, err := regexp.Compile(unquote(rest))
			if err != nil {
				return c, fmt.Errorf("in the condition %q: %w", s, err)
			}
			c.Pattern = re
		case "in", "not in":
			for v := range strings.SplitSeq(rest, ",") {
				c.Values = append(c.Values, unquote(strings.TrimSpace(v)))
			}
		default:
			c.Values = []string{unquote(rest)}
		}
		return c, nil
	}
	return Condition{}, fmt.Errorf("%q is not a condition; write one of %s and a value", s, strings.Join(conditionOps, ", "))
}

func unquote(s string) string {
	if u, err := strconv.Unquote(s); err == nil {
		return u
	}
	return s
}

// Meets compares a text with the condition, for all conditions but those on
// presence and size.
func (c Condition) Meets(text string) bool {
	switch c.Op {
	case "is", "in":
		return slices.Contains(c.Values, text)
	case "is not", "not in":
		return !slices.Contains(c.Values, text)
	case "matches":
		return c.Pattern.MatchString(text)
	case "not matches":
		return !c.Pattern.MatchString(text)
	}
	return false
}

// SplitUnless cuts "FIELD CONDITION" into its parts. The field ends at the
// first space outside of quotes.
func SplitUnless(s string) (field, condition string) {
	quoted := false
	for i, r := range s {
		switch {
		case r == '"':
			quoted = !quoted
		case r == ' ' && !quoted:
			return s[:i], strings.TrimSpace(s[i:])
		}
	}
	return s, ""
}
