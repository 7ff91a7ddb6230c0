//go:build !unix

package outfile

// nonblock is not needed: files of Windows have no named pipes among them.
const nonblock = 0
