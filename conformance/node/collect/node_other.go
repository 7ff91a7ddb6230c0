//go:build !windows

package collect

import "context"

func nodeName(string) (string, error) { return "", ErrNotWindows }

func run(string) func(context.Context, *node) error {
	return func(context.Context, *node) error { return ErrNotWindows }
}

// Possible says why this machine cannot be collected from; nil when it can.
func Possible() error { return ErrNotWindows }
