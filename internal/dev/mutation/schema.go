package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Building a test binary takes longer than running it, so all mutants inside functions
// go into one: each is a copy of its function with the change, and the function begins
// with a call of the copy whose number the environment names.

// numberVariable holds the number of the mutant that is on.
const (
	numberVariable = "mutant__"
	environment    = "MUTATION_NUMBER"
)

// function is a declared function whose copies can stand in for it.
type function struct {
	// from is where the declaration begins (its comment left out), to where it ends;
	// name is where its name ends, body where its body begins (behind the brace).
	from, to, name, body int
	// call calls a copy: %s is what goes behind the name.
	call string
	// names are names that parameters and the receiver lack, by offset.
	names []insertion
}

type insertion struct {
	at, to int
	text   string
}

// newFunction returns nil for a function that cannot be copied.
func newFunction(fset *token.FileSet, d *ast.FuncDecl) *function {
	if d.Body == nil || d.Recv == nil && (d.Name.Name == "init" || d.Name.Name == "main" || d.Name.Name == "_") {
		return nil
	}
	at := func(p token.Pos) int { return fset.Position(p).Offset }
	f := &function{from: at(d.Pos()), to: at(d.End()), name: at(d.Name.End()), body: at(d.Body.Lbrace) + 1}
	if d.Doc != nil {
		f.from = at(d.Type.Func)
	}
	call := d.Name.Name + "%s"
	if d.Recv != nil {
		call = f.arguments(at, d.Recv)[0] + "." + call
	} else if tp := d.Type.TypeParams; tp != nil {
		var names []string
		for _, field := range tp.List {
			for _, n := range field.Names {
				names = append(names, n.Name)
			}
		}
		call += "[" + strings.Join(names, ", ") + "]"
	}
	call += "(" + strings.Join(f.arguments(at, d.Type.Params), ", ") + ")"
	if d.Type.Results != nil {
		call = "return " + call
	} else {
		call += "; return"
	}
	f.call = call
	return f
}

// arguments are the names of parameters as a call passes them on.
func (f *function) arguments(at func(token.Pos) int, fields *ast.FieldList) []string {
	var args []string
	name := func() string { return fmt.Sprintf("p%d__", len(args)) }
	for _, field := range fields.List {
		dots := ""
		if _, ok := field.Type.(*ast.Ellipsis); ok {
			dots = "..."
		}
		if len(field.Names) == 0 {
			f.names = append(f.names, insertion{at(field.Type.Pos()), at(field.Type.Pos()), name() + " "})
			args = append(args, name()+dots)
		}
		for _, n := range field.Names {
			if n.Name == "_" {
				f.names = append(f.names, insertion{at(n.Pos()), at(n.End()), name()})
				args = append(args, name()+dots)
				continue
			}
			args = append(args, n.Name+dots)
		}
	}
	return args
}

// apply makes insertions in a text that begins at an offset of its file.
func apply(text string, offset int, all []insertion) string {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b insertion) int { return b.at - a.at })
	for _, i := range all {
		text = text[:i.at-offset] + i.text + text[i.to-offset:]
	}
	return text
}

// copyOf is the function of a mutant with the change, under a name of its own.
func (m *mutant) copyOf(src string) string {
	f := m.fn
	all := append(slices.Clone(f.names), insertion{m.From, m.To, m.New}, insertion{f.name, f.name, suffix(m.number)})
	return apply(src[f.from:f.to], f.from, all)
}

func suffix(n int) string { return "__" + strconv.Itoa(n) }

// schema is a package with all its mutants inside functions in one source.
type schema struct {
	dir, scratch string
	// replace is by the path of the original file.
	replace map[string]string
	// copies are where mutants begin in the written files, in order.
	copies map[string][]copied
}

type copied struct{ line, number int }

// write writes the package's files with the mutants in them.
func (s *schema) write(name string, files []string, ms []mutant) error {
	s.replace, s.copies = map[string]string{}, map[string][]copied{}
	for _, file := range files {
		path := filepath.Join(s.dir, file)
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text, at := inject(string(src), slices.DeleteFunc(slices.Clone(ms), func(m mutant) bool { return m.File != path || m.fn == nil }))
		out := filepath.Join(s.scratch, file)
		if err := os.WriteFile(out, []byte(text), 0o600); err != nil {
			return err
		}
		s.replace[path], s.copies[out] = out, at
	}
	// The number itself is in a file that the package does not have.
	out := filepath.Join(s.scratch, numberVariable+".go")
	text := fmt.Sprintf(
		"package %s\n\nimport (\n\tos__ \"os\"\n\tstrconv__ \"strconv\"\n)\n\nvar %s = func() int { n, _ := strconv__.Atoi(os__.Getenv(%q)); return n }()\n",
		name, numberVariable, environment)
	s.replace[filepath.Join(s.dir, numberVariable+".go")] = out
	return os.WriteFile(out, []byte(text), 0o600)
}

// inject adds mutants to the source of their file.
func inject(src string, ms []mutant) (text string, at []copied) {
	calls := map[*function]string{}
	var order []*function
	for _, m := range ms {
		if calls[m.fn] == "" {
			order = append(order, m.fn)
		}
		calls[m.fn] += fmt.Sprintf(" case %d: %s;", m.number, fmt.Sprintf(m.fn.call, suffix(m.number)))
	}
	var all []insertion
	for _, f := range order {
		all = append(all, f.names...)
		all = append(all, insertion{f.body, f.body, " switch " + numberVariable + " {" + calls[f] + " };"})
	}
	text = apply(src, 0, all)
	var b strings.Builder
	b.WriteString(text)
	line := strings.Count(text, "\n") + 1
	for _, m := range ms {
		c := "\n" + m.copyOf(src) + "\n"
		at = append(at, copied{line + 1, m.number})
		b.WriteString(c)
		line += strings.Count(c, "\n")
	}
	return b.String(), at
}

var compileError = regexp.MustCompile(`(?m)^(.+\.go):(\d+):\d+: `)

var calledCopy = regexp.MustCompile(`__(\d+)\b`)

// broken returns the numbers of the mutants that a compiler's output complains about.
func (s *schema) broken(output string) map[int]bool {
	bad := map[int]bool{}
	byBase := map[string][]copied{}
	for file, at := range s.copies {
		byBase[filepath.Base(file)] = at
	}
	for _, m := range calledCopy.FindAllStringSubmatch(output, -1) {
		number, _ := strconv.Atoi(m[1])
		bad[number] = true // a copy that cannot be called: its signature has changed
	}
	for _, m := range compileError.FindAllStringSubmatch(output, -1) {
		line, _ := strconv.Atoi(m[2])
		at := byBase[filepath.Base(m[1])]
		i, found := slices.BinarySearchFunc(at, line, func(c copied, line int) int { return c.line - line })
		if !found {
			i--
		}
		if i >= 0 {
			bad[at[i].number] = true
		}
	}
	return bad
}
