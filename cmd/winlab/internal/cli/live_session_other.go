//go:build !linux

package cli

import (
	"errors"
	"os"
	"syscall"
)

var errTerminal = errors.New("labs run on Linux only")

func newSession() *syscall.SysProcAttr { return nil }

func openTerminal(*os.File) (ours, theirs *os.File, err error) { return nil, nil, errTerminal }

func sameSize(_, _ *os.File) {}

const resized = syscall.Signal(28)

func rawMode(*os.File) (func(), error) { return nil, errTerminal }
