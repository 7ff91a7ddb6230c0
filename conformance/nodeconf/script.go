package nodeconf

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/conformance/subject"
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
	services []*Service
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

var scalarSet = regexp.MustCompile(`(?i)\$([a-z_][a-z0-9_]*)\s*=\s*(?:"([^"$` + "`" + `\n]*)"|'([^'\n]*)')`)

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

var variableIn = regexp.MustCompile(`(?i)\$\{?([a-z_][a-z0-9_]*)\}?|\$\(\$([a-z_][a-z0-9_]*)\)`)

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
	line, _ := r.at(w.here - 1)
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
	assignment = regexp.MustCompile(`^(\$[A-Za-z_][\w.:]*)\s*(\+?=)?(.*)$`)
	wholeName  = regexp.MustCompile(`^[$@][A-Za-z_][\w.:\[\]]*$`)
	setEnv     = regexp.MustCompile(`(?i)^\[(system\.)?environment\]::setenvironmentvariable$`)
	envName    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// say are commands that only print what follows.
var say = []string{"write-host", "write-output", "write-error", "write-warning", "write-verbose", "write-debug", "echo", "throw", "log", "rem", "logwrite", "echo."}

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
	words := st.words
	m := assignment.FindStringSubmatch(words[0].text)
	if m == nil || words[0].quoted {
		return false
	}
	name, op, rest := strings.ToLower(m[1]), m[2], words[1:]
	value := m[3]
	if op == "" {
		if value != "" || len(rest) == 0 || (rest[0].text != "=" && rest[0].text != "+=") {
			return false
		}
		op, rest = rest[0].text, rest[1:]
	}
	if value != "" {
		rest = append([]word{{text: value, at: words[0].at + len(m[1]) + len(m[2])}}, rest...)
	}
	if env, ok := strings.CutPrefix(name, "$env:"); ok {
		if len(rest) > 0 {
			_ = env
			r.env = append(r.env, envVar{m[1][len("$env:"):], r.resolve(rest[0].text), words[0].at, st.blocks})
		}
		return true
	}
	// A value that is itself a call: $p = Start-Process kubelet.exe ...
	if len(rest) > 0 && rest[0].mark == 0 && op == "=" {
		r.statement(statement{rest, st.blocks}, depth+1)
	}
	plain := slices.DeleteFunc(slices.Clone(rest), func(w word) bool { return w.mark != 0 || w.text == "+" })
	v := r.lists[name]
	switch {
	case v == nil || op == "=" && len(st.blocks) <= len(v.blocks):
		// The result of a call is not known, nor what something was before.
		call := len(rest) > 0 && (rest[0].text == "(" || rest[0].mark == 0 && !rest[0].quoted && !strings.HasPrefix(rest[0].text, "-") && !strings.HasPrefix(rest[0].text, "$"))
		v = &variable{words: plain, blocks: st.blocks, at: words[0].at, incomplete: op == "+=" || call, call: call}
		r.lists[name] = v
		if i := r.program(plain); i >= 0 && rest[0].mark != 0 {
			r.made = append(r.made, func() []*subject.Subject {
				return r.command(v.words, st.blocks, v.at, v.incomplete, nil)
			})
		}
	case sameBlocks(v.blocks, st.blocks):
		if len(plain) > 0 && strings.EqualFold(plain[0].text, m[1]) { // $x = $x + ...
			plain = plain[1:]
		}
		v.words = append(v.words, plain...)
	default:
		// It depends on something whether these are added.
		v.incomplete = true
	}
	return true
}

func sameBlocks(a, b []block) bool {
	return slices.EqualFunc(a, b, func(a, b block) bool { return a.id == b.id })
}

// environment notes what sets a variable of the environment.
func (r *script) environment(st statement) bool {
	words := st.words
	add := func(name, value string, at int) bool {
		if envName.MatchString(name) {
			r.env = append(r.env, envVar{name, r.resolve(value), at, st.blocks})
			return true
		}
		return false
	}
	plain := slices.DeleteFunc(slices.Clone(words), func(w word) bool { return w.mark != 0 })
	for i, w := range plain {
		if setEnv.MatchString(w.text) && i+2 < len(plain) {
			value := plain[i+2].text
			if j := slices.IndexFunc(words, func(o word) bool { return o.at == plain[i+2].at && o.mark == 0 }); j > 0 && words[j-1].mark == '(' {
				value = "$(" + value + ")" // an expression
			}
			return add(plain[i+1].text, value, plain[i+1].at)
		}
		// As a document shows it, outside of PowerShell: ...Variable("NAME", "value")
		if low := strings.ToLower(w.text); strings.Contains(low, "]::setenvironmentvariable") && i+2 < len(plain) {
			return add(strings.Trim(plain[i+1].text, `",`), strings.Trim(plain[i+2].text, `",`), plain[i+1].at)
		}
	}
	switch first := strings.ToLower(plain0(plain)); {
	case first == "set" && r.d != powerShell && len(plain) > 1:
		if name, value, ok := strings.Cut(plain[1].text, "="); ok {
			return add(name, value, plain[1].at)
		}
	case (first == "setx" || first == "setx.exe") && len(plain) > 2:
		return add(plain[1].text, plain[2].text, plain[1].at)
	case first == "export" && len(plain) > 1:
		if name, value, ok := strings.Cut(plain[1].text, "="); ok {
			return add(name, value, plain[1].at)
		}
	case r.d == shell || r.d == anyText:
		if name, value, ok := strings.Cut(plain0(plain), "="); ok && envName.MatchString(name) && len(plain) == 1 {
			return add(name, value, plain[0].at)
		}
	}
	return false
}

func plain0(words []word) string {
	if len(words) == 0 {
		return ""
	}
	return words[0].text
}
