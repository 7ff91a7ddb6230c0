// Package images is the registry and the image store of a simulated node: a table says
// what a container of an image runs on Linux and on Windows, and the store holds what has
// been pulled.
//
// An image here has no layers. Its programs are real ones: those pinned by the project
// (agnhost is the agnhost of Kubernetes' module, built for both systems), those of this
// machine (busybox, nginx), and on Windows nodes what Wine has in its system folder. What
// an image's containers lack against the real one stands in the table, too. An image
// that is not in the table cannot be pulled, as from a registry that does not have it.
//
// The package must not know pods, containers or networks.
package images
