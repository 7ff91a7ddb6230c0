// Package house tests the structure of the source: every package of the module
// must agree with docs/architecture.md. It has no code of its own and must not
// be imported.
package house
