// Package suite tries claims of the ledger on a Kubernetes cluster with Windows nodes,
// whatever cluster that is: one spec for each claim and check, in a Ginkgo tree with the
// framework of Kubernetes' own e2e tests.
//
// Most specs are made of the ledger: its flows and names, asked by programs in pods, and
// its rules on fields that the API server refuses. The others, which try what only a
// cluster can show, are written in Go and listed in conformance/claims/specs.yaml. What
// must come out is read from the ledger for the setting that was discovered, never
// written here.
//
// The package writes the document of reports/result with evidence of the level cluster.
// It must not know how a cluster was made: labels of the nodes say that it is simulated.
package suite
