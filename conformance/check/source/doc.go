// Package source reads the files that users check: YAML, JSON, lines of
// KEY=VALUE and command lines, many documents to a file. Every value keeps its
// place. What cannot be read is reported as a mistake with a place, and reading
// continues after it.
//
// It knows how files are written, not what they mean.
package source
