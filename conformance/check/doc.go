// Package check compares files with the support matrix, without a cluster:
// manifests and the configuration of nodes. It reads the files, evaluates every
// rule of the ledger that applies in the setting, and returns findings.
//
// The ledger's rules say what is a mistake; this package must not know any claim
// by name.
package check
