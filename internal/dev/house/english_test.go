package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// stylePage has the table of refused phrases, below phraseHeading: the only list of them.
const (
	stylePage     = "docs/style.md"
	phraseHeading = "## Refused phrases"
)

// phrase is an expression that our texts do not use, and what to write instead.
type phrase struct {
	text  string
	is    *regexp.Regexp
	write string
}

// gap is what may be between two words of a phrase: spaces, or the end of a line of a comment.
const gap = `(?:\s|//|#)+`

// readPhrases reads the table of the style page. "There is none" and "there is no pod" are correct, so
// a match after "there" does not count.
func readPhrases(t *testing.T) []phrase {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, stylePage))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(data), "\n"+phraseHeading+"\n")
	table, _, _ = strings.Cut(table, "\n## ")
	quoted := regexp.MustCompile("`([^`]+)`")
	var all []phrase
	for row := range strings.Lines(table) {
		cells := strings.Split(row, "|")
		if len(cells) < 4 {
			continue
		}
		for _, m := range quoted.FindAllStringSubmatch(cells[1], -1) {
			words := strings.Fields(regexp.QuoteMeta(m[1]))
			is := regexp.MustCompile(`(?i)(?:\bthere` + gap + `)?\b` + strings.Join(words, gap) + `\b`)
			all = append(all, phrase{m[1], is, strings.TrimSpace(cells[2])})
		}
	}
	if len(all) < 20 {
		t.Fatalf("%s has %d phrases in the table below %q; want the list that this test reads", stylePage, len(all), phraseHeading)
	}
	return all
}

// refused is a phrase in a text, at a line counted from 0.
type refused struct {
	line        int
	text, write string
}

// findRefused finds the phrases in a text.
func findRefused(phrases []phrase, text string) (all []refused) {
	isGap := func(r rune) bool { return unicode.IsSpace(r) || r == '/' || r == '#' }
	words := strings.Join(strings.FieldsFunc(strings.ToLower(text), isGap), " ")
	for _, p := range phrases {
		if !strings.Contains(words, p.text) {
			continue // faster than the expression
		}
		for _, at := range p.is.FindAllStringIndex(text, -1) {
			match := text[at[0]:at[1]]
			if strings.HasPrefix(strings.ToLower(match), "there") {
				continue
			}
			all = append(all, refused{strings.Count(text[:at[0]], "\n"), strings.Join(regexp.MustCompile(gap).Split(match, -1), " "), p.write})
		}
	}
	return all
}

// prose is a piece of a file that people read, with the line where it begins.
type prose struct {
	line int
	text string
}

// proseOf returns the comments and string literals of a Go file, and the whole of another one.
func proseOf(t *testing.T, file string, data []byte) (all []prose) {
	t.Helper()
	if !strings.HasSuffix(file, ".go") {
		return []prose{{1, string(data)}}
	}
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, file, data, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Errorf("%v", err)
		return nil
	}
	add := func(from, to token.Pos) {
		all = append(all, prose{set.Position(from).Line, string(data[set.Position(from).Offset:set.Position(to).Offset])})
	}
	for _, c := range f.Comments {
		add(c.Pos(), c.End())
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
			add(l.Pos(), l.End())
		}
		return true
	})
	return all
}

// isOurProse reports whether a file has texts of ours: Go, pages, and YAML of labs and claims. The list
// itself, the changelog, test data (which quotes other programs) and predictions, which stay as they
// were written before a run, are left out.
func isOurProse(file string) bool {
	switch {
	case file == stylePage, file == "CHANGELOG.md", strings.Contains(file, "testdata/"), filepath.Base(file) == "predictions.md":
		return false
	case strings.HasSuffix(file, ".go"), strings.HasSuffix(file, ".md"):
		return true
	}
	yaml := strings.HasSuffix(file, ".yaml")
	return yaml && (strings.HasPrefix(file, "fixtures/") || strings.HasPrefix(file, "conformance/"))
}

// Texts avoid phrases that a reader stumbles over; the style page says which, and what to write.
func TestEnglish(t *testing.T) {
	phrases := readPhrases(t)
	read := 0
	for _, f := range files(t) {
		if !isOurProse(f) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(root, f))
		if err != nil {
			t.Error(err)
			continue
		}
		read++
		if len(findRefused(phrases, string(data))) == 0 {
			continue // nothing to find: it need not be parsed
		}
		for _, p := range proseOf(t, f, data) {
			for _, r := range findRefused(phrases, p.text) {
				t.Errorf("%s:%d: %q; write %s (%s)", f, p.line+r.line, r.text, r.write, stylePage)
			}
		}
	}
	if read < 500 {
		t.Errorf("only %d files with texts found", read)
	}
}

func TestFindRefused(t *testing.T) {
	phrases := readPhrases(t)
	for text, want := range map[string]int{
		"the range \"x\" is " + "none":            1,
		"\"x\" is no " + "address; write one":     1,
		"// it is\n// no " + "version":            1,
		"# put in the\n# place " + "of a name":    1,
		"nil where there is none":                 0,
		"// there\n// is no " + "pod":             0,
		"as everybody says, it is not a version":  0,
		"no node has an address that is nonempty": 0,
	} {
		if got := findRefused(phrases, text); len(got) != want {
			t.Errorf("%d phrases found in %q, want %d: %v", len(got), text, want, got)
		}
	}
}
