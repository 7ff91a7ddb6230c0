//go:build unix

package input

import "syscall"

// nonblock lets opening a pipe return although no program writes to it.
const nonblock = syscall.O_NONBLOCK
