//go:build !linux

package wine

import (
	"context"
	"errors"
	"os/exec"
)

// Find and lock refuse every system but Linux, so the other functions are never
// called.

var errNotLinux = errors.New("winlab builds and runs Windows programs on Linux only")

func lock(context.Context, string) (func(), error) { return nil, errNotLinux }

func ownGroup(*exec.Cmd) {}

func ownSession(*exec.Cmd) {}

func startMortal(*exec.Cmd) error { return errNotLinux }

func interrupt(int) {}

func killGroup(int) {}

func fileID(string) (dev, ino uint64, ok bool) { return 0, 0, false }
