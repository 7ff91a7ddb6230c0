// Package check holds files against the support matrix without a cluster:
// manifests and the configuration of nodes. It reads the files, asks every
// rule of the ledger that holds in the setting, and returns findings.
//
// What is a mistake is said by the ledger's rules; this package must not know
// any claim by name.
package check
