package main

import (
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func index(of, at any) any {
	switch of := of.(type) {
	case []any:
		if n, ok := number64(at); ok {
			if n < 0 {
				n += float64(len(of))
			}
			if n >= 0 && int(n) < len(of) {
				return of[int(n)]
			}
		}
		return nil
	case *psTable:
		return of.values[strings.ToLower(show(at))]
	case string:
		if n, ok := number64(at); ok && n >= 0 && int(n) < len(of) {
			return string(of[int(n)])
		}
	default:
		if n, ok := number64(at); ok && (n == 0 || n == -1) {
			return of // one value is a list of one
		}
	}
	return nil
}

// truth of a value (about_Booleans).
func truth(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case []any:
		return len(v) > 1 || len(v) == 1 && truth(v[0])
	}
	return true
}

// show is a value as text.
func show(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case bool:
		if v {
			return "True"
		}
		return "False"
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', 15, 64)
	case []any:
		var all []string
		for _, x := range v {
			all = append(all, show(x))
		}
		return strings.Join(all, " ")
	case *psTable:
		return "System.Collections.Hashtable"
	case fmt.Stringer:
		return v.String()
	case error:
		return v.Error()
	}
	return fmt.Sprint(v)
}

func number64(v any) (float64, bool) {
	switch v := v.(type) {
	case nil:
		return 0, true
	case int64:
		return float64(v), true
	case float64:
		return v, true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case string:
		f, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
		return f, err == nil
	}
	return 0, false
}

// calculate does + - * / %.
func calculate(op string, a, b any) (any, error) {
	if op == "+" {
		switch x := a.(type) {
		case string:
			return x + show(b), nil
		case []any:
			if y, ok := b.([]any); ok {
				return append(slices.Clone(x), y...), nil
			}
			return append(slices.Clone(x), b), nil
		}
	}
	if text, ok := a.(string); ok && op == "*" {
		n, _ := number64(b)
		if n < 0 || n*float64(len(text)) > 1<<24 {
			return nil, &psError{"winlab: that text is too long"}
		}
		return strings.Repeat(text, int(n)), nil
	}
	x, ok1 := number64(a)
	y, ok2 := number64(b)
	if !ok1 || !ok2 {
		return nil, &psError{fmt.Sprintf("Cannot convert value %q to type \"System.Int32\". Error: \"Input string was not in a correct format.\"",
			show(b))}
	}
	var r float64
	switch op {
	case "+":
		r = x + y
	case "-":
		r = x - y
	case "*":
		r = x * y
	case "/", "%":
		if y == 0 {
			return nil, &psError{"Attempted to divide by zero."}
		}
		if r = x / y; op == "%" {
			r = math.Mod(x, y)
		}
	}
	_, float1 := a.(float64)
	_, float2 := b.(float64)
	if r == math.Trunc(r) && math.Abs(r) < 1<<53 && !float1 && !float2 {
		return int64(r), nil
	}
	return r, nil
}

var formatItem = regexp.MustCompile(`\{(\d+)(?:,(-?\d+))?(?::([^}]*))?\}|\{\{|\}\}`)

// format fills {0} and its like in.
func format(form string, args any) string {
	list, ok := args.([]any)
	if !ok {
		list = []any{args}
	}
	return formatItem.ReplaceAllStringFunc(form, func(item string) string {
		if item == "{{" || item == "}}" {
			return item[:1]
		}
		m := formatItem.FindStringSubmatch(item)
		n, _ := strconv.Atoi(m[1])
		if n >= len(list) {
			return ""
		}
		text := show(list[n])
		width, _ := strconv.Atoi(m[2])
		if width < 0 {
			return fmt.Sprintf("%-*s", min(-width, 1000), text)
		}
		return fmt.Sprintf("%*s", min(width, 1000), text)
	})
}

// compare does the comparisons, which do not regard case (about_Comparison_Operators).
func compare(op string, a, b any) (any, error) {
	if l, ok := a.([]any); ok && !slices.Contains([]string{"-contains", "-notcontains", "-join", "-in", "-notin"}, op) {
		found := []any{} // a list on the left is filtered
		for _, x := range l {
			if yes, err := compare(op, x, b); err != nil {
				return nil, err
			} else if truth(yes) {
				found = append(found, x)
			}
		}
		return found, nil
	}
	switch op {
	case "-eq", "-ieq":
		return equal(a, b), nil
	case "-ne", "-ine":
		return !equal(a, b), nil
	case "-ceq":
		return show(a) == show(b), nil
	case "-cne":
		return show(a) != show(b), nil
	case "-gt", "-ge", "-lt", "-le":
		return order(op, a, b), nil
	case "-contains", "-in", "-notcontains", "-notin":
		list, x := a, b
		if op == "-in" || op == "-notin" {
			list, x = b, a
		}
		found := false
		_ = each(list, func(v any) error { found = found || equal(v, x); return nil })
		return found != strings.HasPrefix(op, "-not"), nil
	case "-join":
		var all []string
		_ = each(a, func(v any) error { all = append(all, show(v)); return nil })
		return strings.Join(all, show(b)), nil
	case "-like", "-notlike":
		yes, err := filepath.Match(strings.ToLower(strings.ReplaceAll(show(b), `\`, `\\`)),
			strings.ToLower(strings.ReplaceAll(show(a), "/", "\x00")))
		return yes == (op == "-like") && err == nil, nil
	}
	return patterns(op, a, b)
}

func patterns(op string, a, b any) (any, error) {
	form, with := b, ""
	if l, ok := b.([]any); ok && len(l) == 2 {
		form, with = l[0], show(l[1])
	}
	re, err := regexp.Compile("(?i)" + show(form))
	if err != nil {
		return nil, &psError{fmt.Sprintf("parsing %q: %v", show(form), err)}
	}
	switch op {
	case "-match":
		return re.MatchString(show(a)), nil
	case "-notmatch":
		return !re.MatchString(show(a)), nil
	case "-replace":
		return re.ReplaceAllString(show(a), with), nil
	case "-split":
		all := []any{}
		for _, x := range re.Split(show(a), -1) {
			all = append(all, x)
		}
		return all, nil
	}
	return nil, &psError{"winlab: powershell.exe here does not know the operator " + op}
}

func equal(a, b any) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	if _, text := a.(string); !text {
		x, ok1 := number64(a)
		y, ok2 := number64(b)
		if ok1 && ok2 {
			return x == y
		}
	}
	return strings.EqualFold(show(a), show(b))
}

func order(op string, a, b any) bool {
	c := strings.Compare(strings.ToLower(show(a)), strings.ToLower(show(b)))
	if _, text := a.(string); !text {
		x, ok1 := number64(a)
		y, ok2 := number64(b)
		if ok1 && ok2 {
			c = 0
			if x != y {
				c = 1
			}
			if x < y {
				c = -1
			}
		}
	}
	switch op {
	case "-gt":
		return c > 0
	case "-ge":
		return c >= 0
	case "-lt":
		return c < 0
	}
	return c <= 0
}
