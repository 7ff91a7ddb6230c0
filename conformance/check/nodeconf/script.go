package nodeconf

import (
	"fmt"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/conformance/check/subject"
	"github.com/winlab-dev/winlab/internal/lazyregexp"
)

// envVar is a variable of a process's environment.
type envVar struct {
	name, value string
	at          int
	blocks      []block
}

// variable is a list of words that a script keeps under a name.
type variable struct {
	words      []word
	blocks     []block
	incomplete bool
	// call is set when the words are a call, whose result is not known.
	call bool
	at   int
}

// script reads command lines out of a text.
type script struct {
	*input
	d       dialect
	scalars map[string]string
	lists   map[string]*variable
	env     []envVar
	// order are the services in the order in which they appear, with the
	// commands that are called directly in between.
	services []*service
	made     []func() []*subject.Subject
	// budget is how many more words may be put together: lists that name lists
	// grow fast.
	budget int
}

// maxLines bounds the command lines of one file, and the variables that it sets.
const maxLines = 1000

// script finds the command lines of kubelet, kube-proxy and flanneld in a text.
func (s *input) script(d dialect) []*subject.Subject {
	r := &script{input: s, d: d, scalars: scalars(s.text), lists: map[string]*variable{}, budget: 1 << 20}
	var all []*subject.Subject
	for _, st := range scan(s.text, d) {
		if len(r.made) >= maxLines || len(r.env) >= maxLines {
			s.mistake(st.words[0].at, fmt.Sprintf("more than %d command lines or variables in one file; what follows is not looked at", maxLines))
			break
		}
		r.statement(st, 0)
		for _, w := range st.words {
			if w.here > 0 {
				all = append(all, r.hereString(w)...)
			}
		}
	}
	for _, make := range r.made {
		all = append(all, make()...)
	}
	slices.SortStableFunc(all, func(a, b *subject.Subject) int {
		if a.Root.Line != b.Root.Line {
			return a.Root.Line - b.Root.Line
		}
		return a.Root.Column - b.Root.Column
	})
	return all
}

var scalarSet = lazyregexp.New(`(?i)\$([a-z_][a-z0-9_]*)\s*=\s*(?:"([^"$` + "`" + `\n]*)"|'([^'\n]*)')`)

// scalars are the variables that a PowerShell script gives a plain text, once.
func scalars(text string) map[string]string {
	values := map[string]string{}
	count := map[string]int{}
	for _, m := range scalarSet.FindAllStringSubmatch(text, -1) {
		name := strings.ToLower(m[1])
		values[name] = m[2] + m[3]
		count[name]++
	}
	for name, n := range count {
		if n > 1 {
			delete(values, name)
		}
	}
	return values
}

var variableIn = lazyregexp.New(`(?i)\$\{?([a-z_][a-z0-9_]*)\}?|\$\(\$([a-z_][a-z0-9_]*)\)`)

// resolve puts the values of plain variables into a text.
func (r *script) resolve(text string) string {
	if !strings.Contains(text, "$") {
		return text
	}
	return variableIn.ReplaceAllStringFunc(text, func(v string) string {
		if value, ok := r.scalars[strings.ToLower(strings.Trim(v, "${}()"))]; ok {
			return value
		}
		return v
	})
}

// hereString reads a configuration that a script writes to a file.
func (r *script) hereString(w word) []*subject.Subject {
	line, _ := r.lineAndColumn(w.here - 1)
	inner := newInput(r.file, w.text)
	inner.place = func(l, c int) (int, int) { return line + l - 1, c }
	subjects, ok := inner.read("", true)
	if !ok || len(subjects) == 0 {
		return nil
	}
	r.mistakes = append(r.mistakes, inner.mistakes...)
	return subjects
}

var (
	assignment = lazyregexp.New(`^(\$[A-Za-z_][\w.:]*)\s*(\+?=)?(.*)$`)
	wholeName  = lazyregexp.New(`^[$@][A-Za-z_][\w.:\[\]]*$`)
	setEnv     = lazyregexp.New(`(?i)^\[(system\.)?environment\]::setenvironmentvariable$`)
	envName    = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// say are commands that only print what follows.
var say = []string{"write-host", "write-output", "write-error", "write-warning", "write-verbose", "write-debug", "echo", "throw", "log",
	"rem", "logwrite", "echo."}

func (r *script) statement(st statement, depth int) {
	words := st.words
	if len(words) == 0 || depth > 4 {
		return
	}
	first := strings.ToLower(words[0].text)
	if slices.Contains(say, first) {
		return
	}
	if r.assign(st, depth) || r.environment(st) {
		return
	}
	if r.manager(st) {
		return
	}
	r.call(st, depth)
}

// assign notes a variable.
func (r *script) assign(st statement, depth int) bool {
	name, op, rest := assigned(st.words)
	if op == "" {
		return false
	}
	at := st.words[0].at
	if strings.HasPrefix(strings.ToLower(name), "$env:") {
		if len(rest) > 0 {
			r.env = append(r.env, envVar{name[len("$env:"):], r.resolve(rest[0].text), at, st.blocks})
		}
		return true
	}
	// A value that is itself a call: $p = Start-Process kubelet.exe ...
	if len(rest) > 0 && rest[0].mark == 0 && op == "=" {
		r.statement(statement{rest, st.blocks}, depth+1)
	}
	plain := slices.DeleteFunc(slices.Clone(rest), func(w word) bool { return w.mark != 0 || w.text == "+" })
	v := r.lists[strings.ToLower(name)]
	switch {
	case v == nil || op == "=" && len(st.blocks) <= len(v.blocks):
		// The result of a call is not known, nor what something was before.
		call := isCall(rest)
		v = &variable{words: plain, blocks: st.blocks, at: at, incomplete: op == "+=" || call, call: call}
		r.lists[strings.ToLower(name)] = v
		if i := r.program(plain); i >= 0 && rest[0].mark != 0 {
			r.made = append(r.made, func() []*subject.Subject {
				return r.command(v.words, st.blocks, v.at, v.incomplete, nil)
			})
		}
	case sameBlocks(v.blocks, st.blocks):
		if len(plain) > 0 && strings.EqualFold(plain[0].text, name) { // $x = $x + ...
			plain = plain[1:]
		}
		v.words = append(v.words, plain...)
	default:
		// It depends on something whether these are added.
		v.incomplete = true
	}
	return true
}

// assigned takes an assignment apart: the variable as it is written, = or +=, and the
// words of the value. op is "" when the statement is not one.
func assigned(words []word) (name, op string, value []word) {
	m := assignment.FindStringSubmatch(words[0].text)
	if m == nil || words[0].quoted {
		return "", "", nil
	}
	name, op, first := m[1], m[2], m[3]
	value = words[1:]
	if op == "" {
		if first != "" || len(value) == 0 || value[0].text != "=" && value[0].text != "+=" {
			return "", "", nil
		}
		return name, value[0].text, value[1:]
	}
	if first != "" {
		value = append([]word{{text: first, at: words[0].at + len(name) + len(op)}}, value...)
	}
	return name, op, value
}

// isCall reports whether a value is the result of a call.
func isCall(value []word) bool {
	if len(value) == 0 {
		return false
	}
	first := value[0]
	return first.text == "(" || first.mark == 0 && !first.quoted && !strings.HasPrefix(first.text, "-") && !strings.HasPrefix(first.text, "$")
}

func sameBlocks(a, b []block) bool {
	return slices.EqualFunc(a, b, func(a, b block) bool { return a.id == b.id })
}

// environment notes what sets a variable of the environment.
func (r *script) environment(st statement) bool {
	name, value, at := r.environmentSet(st.words)
	if !envName.MatchString(name) {
		return false
	}
	r.env = append(r.env, envVar{name, r.resolve(value), at, st.blocks})
	return true
}

// environmentSet is the variable that a statement sets; the name is "" when it sets none.
func (r *script) environmentSet(words []word) (name, value string, at int) {
	plain := slices.DeleteFunc(slices.Clone(words), func(w word) bool { return w.mark != 0 })
	for i := 0; i+2 < len(plain); i++ {
		name, value := plain[i+1], plain[i+2]
		switch low := strings.ToLower(plain[i].text); {
		case setEnv.MatchString(low):
			j := slices.IndexFunc(words, func(o word) bool { return o.at == value.at && o.mark == 0 })
			if j > 0 && words[j-1].mark == '(' {
				value.text = "$(" + value.text + ")" // an expression
			}
			return name.text, value.text, name.at
		case strings.Contains(low, "]::setenvironmentvariable"):
			// As a document shows it, outside of PowerShell: ...Variable("NAME", "value")
			return strings.Trim(name.text, `",`), strings.Trim(value.text, `",`), name.at
		}
	}
	if len(plain) == 0 {
		return "", "", 0
	}
	set := -1 // the word NAME=VALUE
	switch first := strings.ToLower(plain[0].text); {
	case first == "set" && r.d != powerShell && len(plain) > 1, first == "export" && len(plain) > 1:
		set = 1
	case (first == "setx" || first == "setx.exe") && len(plain) > 2:
		return plain[1].text, plain[2].text, plain[1].at
	case (r.d == shell || r.d == anyText) && len(plain) == 1:
		set = 0
	}
	if set >= 0 {
		if name, value, ok := strings.Cut(plain[set].text, "="); ok {
			return name, value, plain[set].at
		}
	}
	return "", "", 0
}
