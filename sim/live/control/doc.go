// Package control lets other processes of the same user reach a network that runs:
// a call names a verb, hands over three open files as its standard input, output and
// error, and ends with an exit code.
//
// The sockets are abstract ones: they have no file, and are gone with the process.
// The package must not know what the verbs do.
package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/winlab-dev/winlab/internal/lazyregexp"
)

// Call is what another process asks for.
type Call struct {
	Verb string
	// Args are the verb's arguments as JSON.
	Args json.RawMessage
	// Stdio are the caller's standard input, output and error. They are closed when
	// the handler returns.
	Stdio [3]*os.File
	// Signals are those that the caller passes on.
	Signals <-chan int
}

// Handler does what a call asks for. The context ends with the caller. The error is
// shown to the caller; with one the code counts only when it is not 0.
type Handler func(ctx context.Context, c Call) (code int, err error)

// ErrNone says that no network of that name runs.
var ErrNone = errors.New("no such network runs")

var goodName = lazyregexp.New(`^[a-z0-9]([-a-z0-9.]{0,60}[a-z0-9])?$`)

// CheckName says what is wrong with the name of a network.
func CheckName(name string) error {
	if !goodName.MatchString(name) {
		return fmt.Errorf("%q is not a valid name for a running lab: use lower-case letters, digits, - and ., at most 62 bytes", name)
	}
	return nil
}
