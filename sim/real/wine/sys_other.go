//go:build !linux

package wine

import (
	"errors"
	"os/exec"
)

// Find refuses every system but Linux, so the other functions are never
// called.

var errNotLinux = errors.New("winlab builds and runs Windows programs on Linux only")

func ownGroup(*exec.Cmd) {}

func ownSession(*exec.Cmd) {}

func startMortal(*exec.Cmd) error { return errNotLinux }

func interrupt(int) {}

func killGroup(int) {}

func fileID(string) (dev, ino uint64, ok bool) { return 0, 0, false }
