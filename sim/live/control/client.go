package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Select returns the network that a command is for: the one with the name, else the only one.
// start is the command that starts one, for the error.
func Select(name, start string) (string, error) {
	if name != "" {
		return name, CheckName(name)
	}
	names, err := Names()
	switch {
	case err != nil:
		return "", err
	case len(names) == 0:
		return "", fmt.Errorf("nothing is up; %s starts one", start)
	case len(names) > 1:
		return "", fmt.Errorf("several are up: %s; say which with --name", strings.Join(names, ", "))
	}
	return names[0], nil
}

// Ask is [Do] with the names of those that run in the error for one that does not. With
// passSignals, signals go to what the call runs, whose end ends the call.
func Ask(ctx context.Context, name, verb string, args any, stdio [3]*os.File, passSignals bool) (int, error) {
	var signals chan os.Signal
	if passSignals {
		signals = make(chan os.Signal, 8)
		signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
		defer signal.Stop(signals)
		ctx = context.WithoutCancel(ctx)
	}
	code, err := Do(ctx, name, verb, args, stdio, signals)
	if errors.Is(err, ErrNone) {
		names, _ := Names()
		return code, fmt.Errorf("%s is not up; up now: %s", name, cmp.Or(strings.Join(names, ", "), "nothing"))
	}
	return code, err
}

// AwaitEnd waits until a network has ended.
func AwaitEnd(ctx context.Context, name string, within time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("%s is still there after %s", name, within))
	defer cancel()
	for {
		names, err := Names()
		if err != nil || !slices.Contains(names, name) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
