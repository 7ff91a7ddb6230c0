package bundle

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxName is the length of a path in bytes, and maxDepth the number of its folders: Windows
// and Linux end at 255 for a part.
const (
	maxName  = 1024
	maxDepth = 32
)

// cleanName is the path that a name of a bundle stands for: below the bundle, with slashes.
// Windows PowerShell 5 and older .NET write backslashes into a .zip, which are separators.
func cleanName(name string) (string, error) {
	switch {
	case name == "":
		return "", errors.New("a file without a name")
	case len(name) > maxName:
		return "", fmt.Errorf("%s: the name has %d bytes; up to %d are read", quote(name), len(name), maxName)
	case !utf8.ValidString(name):
		return "", fmt.Errorf("%s: the name is not UTF-8", quote(name))
	case strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }):
		return "", fmt.Errorf("%s: the name has characters that do not show", quote(name))
	}
	slashed := strings.ReplaceAll(name, `\`, "/")
	if strings.HasPrefix(slashed, "/") || len(slashed) > 1 && slashed[1] == ':' {
		return "", fmt.Errorf("%s: the name is absolute", quote(name))
	}
	parts := strings.Split(slashed, "/")
	if len(parts) > maxDepth {
		return "", fmt.Errorf("%s: %d folders deep; up to %d are read", quote(name), len(parts), maxDepth)
	}
	for _, p := range parts {
		switch {
		case p == "..":
			return "", fmt.Errorf("%s: the name leads out of the bundle", quote(name))
		case strings.Contains(p, ":"):
			return "", fmt.Errorf("%s: the name has a colon, which is a stream of a file on Windows", quote(name))
		case len(p) > 255:
			return "", fmt.Errorf("%s: a part of the name has %d bytes", quote(name), len(p))
		}
	}
	clean := path.Clean(slashed)
	if clean == "." {
		return "", fmt.Errorf("%s: no file", quote(name))
	}
	return clean, nil
}

// quote shows a name from outside: nothing in it reaches a terminal as it is.
func quote(name string) string { return fmt.Sprintf("%+q", clip(name)) }
