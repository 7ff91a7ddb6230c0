package nodeconf

import (
	"path"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/conformance/check/subject"
)

// program finds the word that calls a component.
func (r *script) program(words []word) int {
	return slices.IndexFunc(words, func(w word) bool { p, _ := programOf(r.resolve(w.text)); return w.mark == 0 && p != "" })
}

// call reads a direct call.
func (r *script) call(st statement, depth int) {
	words := st.words
	i := r.program(words)
	if i >= 0 && i < 12 {
		args := words[i+1:]
		first := strings.ToLower(words[0].text)
		starts := slices.Contains([]string{"start-process", "start", "saps"}, first)
		if starts {
			// Only the argument list belongs to the program.
			if j := slices.IndexFunc(words, func(w word) bool { return strings.HasPrefix(strings.ToLower(w.text), "-arg") }); j >= 0 {
				args = words[j+1:]
			}
			args = slices.DeleteFunc(slices.Clone(args), func(w word) bool {
				return len(w.text) > 1 && w.text[0] == '-' && w.text[1] >= 'A' && w.text[1] <= 'Z'
			})
		}
		if i > 0 && !starts && first != "&" && !callers[first] && r.d == powerShell && words[0].mark == 0 && !strings.HasPrefix(first, "-") {
			// The program is an argument of something else: Get-Process kubelet.
			if !strings.HasPrefix(words[0].text, "$") {
				return
			}
		}
		line := append([]word{words[i]}, args...)
		blocks, at := st.blocks, words[i].at
		r.made = append(r.made, func() []*subject.Subject { return r.command(line, blocks, at, false, nil) })
		return
	}
	// A whole command line in one text: Invoke-Expression "kubelet.exe ...".
	for _, w := range words {
		if w.quoted && strings.Contains(w.text, " -") {
			inner := r.split(w)
			if j := r.program(inner); j >= 0 {
				line, blocks := inner[j:], st.blocks
				r.made = append(r.made, func() []*subject.Subject { return r.command(line, blocks, w.at, false, nil) })
				return
			}
		}
	}
}

// callers are words that may come before a program.
var callers = map[string]bool{"invoke-expression": true, "iex": true, "cmd": true, "cmd.exe": true, "powershell": true,
	"powershell.exe": true, "commandline": true, "exec": true, "call": true, "ps": true}

// split takes a quoted text apart as a program's own parser does.
func (r *script) split(w word) []word {
	cursor := w.at
	var out []word
	for _, p := range scan(w.text, batch) {
		for _, inner := range p.words {
			inner.at = w.at
			// Where the file has the word as it is, that is its place.
			name, _, _ := strings.Cut(inner.text, "=")
			if end := min(cursor+len(w.text)+2, len(r.text)); name != "" && cursor < end {
				if i := strings.Index(r.text[cursor:end], name); i >= 0 {
					inner.at = cursor + i
					cursor = inner.at + len(name)
				} else {
					cursor = len(r.text) // written in another way than it reads
				}
			}
			out = append(out, inner)
		}
	}
	return out
}

// command makes the subject of a command line: words[0] is the program.
func (r *script) command(words []word, blocks []block, at int, incomplete bool, svc *service) []*subject.Subject {
	i := r.program(words)
	if i < 0 {
		return nil
	}
	pathWord := r.resolve(words[i].text)
	program, exe := programOf(pathWord)
	if svc == nil && forLinux(pathWord, exe, r.d) {
		return nil
	}
	c := &commandLine{program: program, path: pathWord, incomplete: incomplete, inPod: r.embedded, branch: branch(blocks)}
	if svc != nil {
		c.service, c.manager = svc.name, svc.manager
	}
	flat, whole := r.flatten(words[i+1:], 0)
	c.incomplete = c.incomplete || !whole
	c.args = arguments(flat)
	flags := slices.DeleteFunc(slices.Clone(c.args), func(a arg) bool { return a.name == "" })
	if svc == nil {
		if len(flags) == 0 || len(flags) == 1 && slices.Contains([]string{"--version", "--help", "-h"}, flags[0].name) {
			return nil
		}
	}
	var env []envVar
	if svc != nil {
		env = svc.env
	}
	for _, e := range r.env {
		if reaches(e.blocks, blocks) && (svc == nil || svc.manager == "sc") {
			env = append(env, e)
		}
	}
	return []*subject.Subject{c.build(r.input, at, env)}
}

// reaches reports whether what is set in some blocks may count in others: all
// but the other ways of a condition.
func reaches(set, used []block) bool {
	for i, b := range set {
		if i < len(used) && used[i].id == b.id {
			continue
		}
		if isCondition(b.header) {
			return false
		}
	}
	return true
}

func isCondition(header string) bool {
	return strings.HasPrefix(header, "if") || strings.HasPrefix(header, "else") || strings.HasPrefix(header, "switch")
}

// branch is the network that the conditions around a line name.
func branch(blocks []block) string {
	for _, b := range slices.Backward(blocks) {
		if !isCondition(b.header) {
			continue
		}
		overlay := strings.Contains(b.header, "overlay") || strings.Contains(b.header, "vxlan")
		bridge := strings.Contains(b.header, "l2bridge") || strings.Contains(b.header, "host-gw")
		not := strings.HasPrefix(b.header, "else of") || strings.Contains(b.header, "-ne ")
		switch {
		case overlay && !bridge && !not, bridge && !overlay && not:
			return "overlay"
		case bridge && !overlay, overlay && !bridge:
			return "l2bridge"
		}
	}
	return ""
}

// flatten puts the lists that a command line names in their place, and reports
// whether all of them are known.
func (r *script) flatten(words []word, depth int) (flat []word, whole bool) {
	whole = true
	for _, w := range words {
		if r.budget--; r.budget < 0 {
			return flat, false
		}
		known := true
		flat, known = r.flattenWord(flat, w, depth)
		whole = whole && known
	}
	return flat, whole
}

// flattenWord adds one word of a command line, or what it names.
func (r *script) flattenWord(flat []word, w word, depth int) (_ []word, known bool) {
	switch {
	case w.mark != 0, w.text == "+", w.text == "--%":
		return flat, true
	case wantsValue(flat) && wholeName.MatchString(w.text):
		w.text = r.resolve(w.text)
		return append(flat, w), true
	case !w.quoted && wholeName.MatchString(w.text) && r.scalars[strings.ToLower(w.text[1:])] == "":
		return r.flattenList(flat, w, depth)
	case w.text == "%*" || w.text == "$*" || w.text == "$@":
		return flat, false
	case w.quoted && strings.Contains(strings.TrimSpace(w.text), " -") && !strings.HasPrefix(strings.TrimSpace(w.text), "--resolv"):
		inner, whole := r.flatten(r.split(w), depth+1)
		return append(flat, inner...), whole
	}
	w.text = strings.TrimSpace(r.resolve(w.text))
	if strings.HasPrefix(w.text, "$") && wholeName.MatchString(w.text) {
		return flat, false // a variable in a text: '$global:KubeletArgs '
	}
	if w.text != "" || w.quoted {
		flat = append(flat, w)
	}
	return flat, true
}

// wantsValue reports whether the next word is the value of a flag: in "--iface $ip" the
// variable is.
func wantsValue(flat []word) bool {
	if len(flat) == 0 {
		return false
	}
	last := flat[len(flat)-1].text
	return strings.HasPrefix(last, "--") && flagWord.MatchString(last) && !strings.Contains(last, "=") && !booleans[last]
}

// flattenList adds the words of a list that has a name.
func (r *script) flattenList(flat []word, w word, depth int) (_ []word, known bool) {
	v := r.lists["$"+strings.ToLower(w.text[1:])]
	if v == nil || depth > 4 {
		return flat, false
	}
	inner, whole := r.flatten(v.words, depth+1)
	if !v.call {
		flat = append(flat, inner...)
	}
	return flat, whole && !v.incomplete
}

// base is the last part of a path, of Windows or of Linux, lower case.
func base(s string) string {
	return strings.ToLower(path.Base(strings.ReplaceAll(s, `\`, "/")))
}
