package check

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// excluder is a pattern of files and folders to leave out, as .gitignore has them: without
// a slash it is about any file or folder of that name, with one about a path below the
// folder that was named, or as it was named.
type excluder struct {
	whole *regexp.Regexp
	name  bool
}

func excluders(patterns []string) ([]excluder, error) {
	var all []excluder
	for _, p := range patterns {
		p = strings.TrimSuffix(filepath.ToSlash(strings.TrimSpace(p)), "/")
		if p == "" {
			return nil, fmt.Errorf("an empty pattern excludes nothing; write for example 'vendor' or 'charts/*/templates/**'")
		}
		re, err := regexp.Compile("^" + globRegexp(strings.TrimPrefix(p, "./")) + "$")
		if err != nil {
			return nil,
				fmt.Errorf("%q is not a pattern: * stands for a part of a name, ** for any folders, ? for one character, [ab] for one of some", p)
		}
		all = append(all, excluder{re, !strings.Contains(p, "/")})
	}
	return all, nil
}

// globRegexp is a glob as a regular expression.
func globRegexp(p string) string {
	var b strings.Builder
	for i := 0; i < len(p); i++ {
		switch {
		case strings.HasPrefix(p[i:], "**/"):
			b.WriteString("(?:.*/)?")
			i += 2
		case strings.HasPrefix(p[i:], "**"):
			b.WriteString(".*")
			i++
		case p[i] == '*':
			b.WriteString("[^/]*")
		case p[i] == '?':
			b.WriteString("[^/]")
		case p[i] == '[' || p[i] == ']' || p[i] == '-':
			b.WriteByte(p[i])
		default:
			b.WriteString(regexp.QuoteMeta(p[i : i+1]))
		}
	}
	return b.String()
}

// excluded reports whether a path below a root is left out.
func excluded(all []excluder, root, path string) bool {
	if len(all) == 0 {
		return false
	}
	clean := filepath.ToSlash(filepath.Clean(path))
	below := clean
	if rel, err := filepath.Rel(root, path); err == nil {
		below = filepath.ToSlash(rel)
	}
	for _, e := range all {
		if e.name && e.whole.MatchString(filepath.Base(path)) || !e.name && (e.whole.MatchString(clean) || e.whole.MatchString(below)) {
			return true
		}
	}
	return false
}
