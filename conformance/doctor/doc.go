// Package doctor holds the items of the troubleshooting chapters against what
// a folder says about a node (conformance/nodedump). An item has causes; a
// cause is a check over facts, and it is only reported with the evidence that
// it was found in. What people see, and what to do, are in the ledger: each
// item has a claim with its symptom and its cure.
//
// Where the folder lacks what an item needs, that is said too. Items that are
// limits of the platform (a NodePort asked from its own node) are reported
// only when somebody's trial in the folder shows the symptom.
//
// The package knows neither how files are read nor how findings are printed.
package doctor
