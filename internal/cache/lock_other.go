//go:build !linux

package cache

import (
	"context"
	"errors"
)

// Lock refuses every system but Linux, so nothing is made there.
func Lock(context.Context, string) (func(), error) {
	return nil, errors.New("winlab builds and runs programs of nodes on Linux only")
}
