package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A mutant is one change of one file: the bytes from From to To become New.
type mutant struct {
	File     string // absolute
	Line     int
	From, To int
	New      string
	// What says it to a reader: "a < b -> <=".
	What string
	// fn is the function around it; nil in a declaration of the package.
	fn *function
	// number is its place among the package's, from 1.
	number int
	key    [sha256.Size]byte
}

// find returns the mutants of a package's files that belong to its build, in the
// order of the source.
func find(dir string, files []string) ([]mutant, error) {
	var all []mutant
	for _, name := range files {
		path := filepath.Join(dir, name)
		src, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		ms, err := findIn(path, src)
		if err != nil {
			return nil, err
		}
		all = append(all, ms...)
	}
	for i := range all {
		all[i].number = i + 1
	}
	return all, nil
}

// findIn returns the mutants of one file.
func findIn(path string, src []byte) ([]mutant, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	v := &finder{fset: fset, src: src, path: path, seen: map[string]int{}}
	for _, d := range f.Decls {
		if g, ok := d.(*ast.GenDecl); ok && (g.Tok == token.IMPORT || g.Tok == token.CONST && isIota(g)) {
			continue
		}
		v.fn = nil
		if fd, ok := d.(*ast.FuncDecl); ok {
			v.fn = newFunction(fset, fd)
		}
		ast.Inspect(d, v.visit)
	}
	slices.SortStableFunc(v.found, func(a, b mutant) int { return cmp.Compare(a.From, b.From) })
	return v.found, nil
}

// isIota reports whether a block of constants counts: adding one to all of them
// changes nothing that a test should notice.
func isIota(g *ast.GenDecl) (found bool) {
	ast.Inspect(g, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && id.Name == "iota"
		return !found
	})
	return found
}

type finder struct {
	fset  *token.FileSet
	src   []byte
	path  string
	found []mutant
	fn    *function
	// seen counts mutants with the same text, so that their keys differ.
	seen map[string]int
}

func (v *finder) add(from, to token.Pos, replacement, what string) {
	a, b := v.fset.Position(from), v.fset.Position(to)
	line := v.line(a.Offset)
	text := filepath.Base(v.path) + "\x00" + line + "\x00" + what
	v.seen[text]++
	v.found = append(v.found, mutant{File: v.path, Line: a.Line, From: a.Offset, To: b.Offset, New: replacement, What: what, fn: v.fn,
		key: sha256.Sum256([]byte(text + strconv.Itoa(v.seen[text])))})
}

// line is the text of the line at an offset, without indentation, so that a mutant
// keeps its key when lines above it change.
func (v *finder) line(at int) string {
	from := bytes.LastIndexByte(v.src[:at], '\n') + 1
	to := len(v.src)
	if i := bytes.IndexByte(v.src[at:], '\n'); i >= 0 {
		to = at + i
	}
	return strings.TrimSpace(string(v.src[from:to]))
}

func (v *finder) replace(n ast.Node, with string) {
	v.add(n.Pos(), n.End(), with, v.short(n)+" -> "+with)
}

// short is the source of a node on one line, cut.
func (v *finder) short(n ast.Node) string {
	var b strings.Builder
	_ = printer.Fprint(&b, v.fset, n)
	s := strings.Join(strings.Fields(b.String()), " ")
	if r := []rune(s); len(r) > 70 {
		s = string(r[:67]) + "..."
	}
	return s
}

// operators are what an operator is replaced by.
var operators = map[token.Token][]token.Token{
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL},
	token.LSS: {token.LEQ, token.GEQ}, token.LEQ: {token.LSS, token.GTR},
	token.GTR: {token.GEQ, token.LEQ}, token.GEQ: {token.GTR, token.LSS},
	token.LAND: {token.LOR}, token.LOR: {token.LAND},
	token.ADD: {token.SUB}, token.SUB: {token.ADD}, token.MUL: {token.QUO}, token.QUO: {token.MUL}, token.REM: {token.MUL},
	token.AND: {token.OR}, token.OR: {token.AND}, token.SHL: {token.SHR}, token.SHR: {token.SHL}, token.AND_NOT: {token.AND},
}

var assignments = map[token.Token]string{
	token.ADD_ASSIGN: "-=", token.SUB_ASSIGN: "+=", token.OR_ASSIGN: "&=", token.AND_ASSIGN: "|=", token.AND_NOT_ASSIGN: "|=",
}

func (v *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		for _, op := range operators[n.Op] {
			v.add(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), op.String(), v.short(n)+" -> "+op.String())
		}
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			v.add(n.OpPos, n.OpPos+1, "", v.short(n)+" -> without !")
		}
	case *ast.BasicLit:
		if n.Kind == token.INT {
			v.replace(n, "("+n.Value+" + 1)")
		}
	case *ast.Ident:
		if other := map[string]string{"true": "false", "false": "true"}[n.Name]; other != "" {
			v.replace(n, other)
		}
	case *ast.IfStmt:
		v.condition(n.Cond)
	case *ast.ForStmt:
		if n.Cond != nil {
			v.replace(n.Cond, "false && ("+v.text(n.Cond)+")")
		}
	case *ast.CompositeLit:
		v.fields(n)
	case *ast.BlockStmt:
		v.statements(n.List)
	case *ast.CaseClause:
		v.statements(n.Body)
		if len(n.Body) > 1 { // of one statement, removing that is the same
			v.remove(n.Body[0].Pos(), n.Body[len(n.Body)-1].End(), "the branch "+v.label(n))
		}
	case *ast.BranchStmt:
		if other := map[token.Token]string{token.BREAK: "continue", token.CONTINUE: "break"}[n.Tok]; other != "" && n.Label == nil {
			v.replace(n, other)
		}
	case *ast.AssignStmt:
		if other := assignments[n.Tok]; other != "" {
			v.add(n.TokPos, n.TokPos+2, other, v.short(n)+" -> "+other)
		}
	case *ast.IncDecStmt:
		other := "--"
		if n.Tok == token.DEC {
			other = "++"
		}
		v.add(n.TokPos, n.TokPos+2, other, v.short(n)+" -> "+other)
	}
	return true
}

func (v *finder) text(n ast.Node) string {
	return string(v.src[v.fset.Position(n.Pos()).Offset:v.fset.Position(n.End()).Offset])
}

// condition forces a condition to each value. The names in it stay in use, so that
// the change compiles.
func (v *finder) condition(c ast.Expr) {
	v.add(c.Pos(), c.End(), "true || ("+v.text(c)+")", "if "+v.short(c)+" -> always")
	v.add(c.Pos(), c.End(), "false && ("+v.text(c)+")", "if "+v.short(c)+" -> never")
}

// fields removes each named field of a literal, but not texts.
func (v *finder) fields(c *ast.CompositeLit) {
	if _, isMap := c.Type.(*ast.MapType); isMap {
		return // the tables of a package; their numbers are changed
	}
	for i, e := range c.Elts {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		if _, ok := kv.Key.(*ast.Ident); !ok || isText(kv.Value) {
			continue
		}
		end := kv.End()
		if i+1 < len(c.Elts) {
			end = c.Elts[i+1].Pos()
		}
		v.remove(kv.Pos(), end, v.short(kv))
	}
}

func isText(e ast.Expr) bool {
	l, ok := e.(*ast.BasicLit)
	return ok && l.Kind == token.STRING
}

// statements removes those that do something and declare nothing.
func (v *finder) statements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt, *ast.IncDecStmt, *ast.SendStmt, *ast.DeferStmt, *ast.GoStmt, *ast.BranchStmt:
			v.remove(s.Pos(), s.End(), v.short(s))
		case *ast.AssignStmt:
			if s.Tok != token.DEFINE {
				v.remove(s.Pos(), s.End(), v.short(s))
			}
		case *ast.ReturnStmt:
			if len(s.Results) == 0 {
				v.remove(s.Pos(), s.End(), "return")
			}
		}
	}
}

func (v *finder) remove(from, to token.Pos, what string) {
	// Line breaks stay: the removed code may stand between two that need one.
	a, b := v.fset.Position(from).Offset, v.fset.Position(to).Offset
	v.add(from, to, strings.Repeat("\n", bytes.Count(v.src[a:b], []byte("\n"))), "without "+what)
}

func (v *finder) label(c *ast.CaseClause) string {
	if c.List == nil {
		return "default"
	}
	return fmt.Sprintf("case %s", v.short(c.List[0]))
}

// sample returns n of the mutants, in the order of the source; which, their keys
// decide. Zero is all.
func sample(ms []mutant, n int) []mutant {
	if n <= 0 || n >= len(ms) {
		return ms
	}
	by := slices.Clone(ms)
	slices.SortFunc(by, func(a, b mutant) int { return bytes.Compare(a.key[:], b.key[:]) })
	by = by[:n]
	slices.SortStableFunc(by, func(a, b mutant) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.From, b.From))
	})
	return by
}
