// Package builds knows what each Windows Server build can do: its HNS version,
// schema, features, limits and known bugs. What the sources say about the time
// that VFP remembers flows is on record as facts.
//
// All of it is data in builds.yaml, features.yaml and quirks.yaml, each row with
// its source and the strength of that source; every row is registered as a fact.
// What the program has is tables.go, which a test makes of them and holds against them.
// The simulator asks [Build.Has] and [Build.Quirk] and never compares build
// numbers itself. The package must know nothing about packets or Kubernetes.
package builds
