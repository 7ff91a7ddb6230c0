// Package source reads the files that people hand in: YAML, JSON, lines of
// KEY=VALUE and command lines, many documents to a file. Every value keeps its
// place, and what cannot be read is a mistake with a place, while the rest is
// read on.
//
// It knows how files are written, not what they mean.
package source
