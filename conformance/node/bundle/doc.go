// Package bundle is the form in which what was taken from a cluster travels: a folder or a
// .zip with a manifest, bundle.json, that says which file is what, of which node, taken by
// which command, and what could not be taken.
//
//	bundle.json                 the manifest
//	nodes/NAME/...              what was taken on a node, in the forms of package sim/windows/dump
//	cluster/KIND.json           what the API server said, as kubectl get -o json prints it
//
// A reader takes folders without a manifest, too: then every file is what its content says.
//
// What is read was made by others. [Open] bounds what it takes of a disk and of memory, goes
// nowhere outside of the bundle, and executes nothing; what it leaves out it says. The package
// knows files; it must not know what is in them.
package bundle
