// Package house tests the source itself: every package of the module must agree
// with docs/architecture.md, and no text may use a phrase that docs/style.md
// refuses. It has no code of its own and must not be imported.
package house
