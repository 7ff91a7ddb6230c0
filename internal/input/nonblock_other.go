//go:build !unix

package input

// nonblock is not needed: files of Windows have no named pipes among them.
const nonblock = 0
