//go:build unix

package outfile

import "syscall"

// nonblock lets opening a pipe fail, instead of waiting, where no program reads from it.
const nonblock = syscall.O_NONBLOCK
