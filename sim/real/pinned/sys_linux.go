package pinned

import (
	"os/exec"
	"syscall"
)

// ownGroup starts a command in a process group of its own, and has the whole group
// killed when its context ends: the go command leaves compilers behind otherwise.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
