// Package doctor looks for the causes that the troubleshooting chapters describe in
// what a folder says about a node (conformance/node/observed). An item is one entry of
// a chapter and has causes; a cause is a check over facts, and it is reported only
// with the lines that show it. The ledger says what users see and what to do: each
// item has a claim with its symptom and its fix.
//
// Where the folder lacks what an item needs, that is said too. Items that are
// limits of the platform (a node that connects to its own NodePort) are reported
// only when the output of a command in the folder shows the symptom.
//
// The package knows neither how files are read nor how findings are printed.
package doctor
