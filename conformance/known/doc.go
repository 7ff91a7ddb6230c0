// Package known is the register of known issues: what people, maintainers and vendors
// have written about networking, names and lifecycle on Windows nodes, one YAML file an
// issue, with its sources. The package reads the register and lints it.
//
// It must not know what a packet does, nor which cluster is asked about: those who consult
// the register bring versions, flow shapes and symptoms, and compare.
package known
