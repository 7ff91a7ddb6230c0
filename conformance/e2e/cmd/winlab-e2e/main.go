// Command winlab-e2e tries the claims of the ledger on a Kubernetes cluster with Windows
// nodes. It is thin over conformance/e2e/suite, which has the specs and makes the run.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// The exit codes.
const (
	allPassed = iota
	failures
	notRun // wrong usage, or the preflight found something missing
	nothingSelected
	allSkipped // a claim that the documents make here, and no check of it could be tried
)

// exit is an error with an exit code.
type exit struct {
	code int
	err  error
}

func (e exit) Error() string { return e.err.Error() }

func exitf(code int, format string, args ...any) error {
	return exit{code, fmt.Errorf(format, args...)}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:]))
}

func run(ctx context.Context, args []string) int {
	cmd := root()
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	var e exit
	switch {
	case err == nil:
		return allPassed
	case errors.As(err, &e):
		fmt.Fprintln(cmd.ErrOrStderr(), e.err)
		return e.code
	}
	fmt.Fprintln(cmd.ErrOrStderr(), err)
	return notRun
}

func root() *cobra.Command {
	cmd := runCommand()
	cmd.AddCommand(mergeCommand())
	return cmd
}
