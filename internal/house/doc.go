// Package house keeps the house in order: its tests hold every package of the
// module to the structure that docs/architecture.md describes. It has no code
// of its own and must not be imported.
package house
