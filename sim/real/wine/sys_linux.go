package wine

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// ownGroup starts a command in a process group of its own, and has the whole group
// killed when its context ends.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if cmd.Cancel != nil {
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	}
}

func ownSession(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// starter is a goroutine on a thread of its own that never ends: the kernel sends a
// child's death signal when the thread ends that has started it.
var starter = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// startMortal starts a command in a group of its own that the kernel kills when
// this program dies.
func startMortal(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	done := make(chan error)
	starter() <- func() { done <- cmd.Start() }
	return <-done
}

// interrupt is Ctrl-C: Wine gives the signal to a console program as the console's
// control event.
func interrupt(pid int) { _ = syscall.Kill(pid, syscall.SIGINT) }

func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

func fileID(path string) (dev, ino uint64, ok bool) {
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		return 0, 0, false
	}
	return uint64(st.Dev), uint64(st.Ino), true
}
