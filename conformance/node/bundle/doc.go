// Package bundle reads and writes bundles: what was collected from a cluster, as a folder or a
// .zip with a manifest, bundle.json, that says which file is what, of which node, collected by
// which command, and what could not be collected.
//
//	bundle.json                 the manifest
//	nodes/NAME/...              what was taken on a node, in the forms of package sim/windows/dump
//	cluster/KIND.json           what the API server said, as kubectl get -o json prints it
//
// A reader accepts folders without a manifest too: then the content of a file says what it is.
//
// Bundles are untrusted input. [Open] limits its use of disk and memory, reads nothing outside
// of the bundle, and executes nothing; it reports what it leaves out. The package
// knows files; it must not know what is in them.
package bundle
