package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/sim/live/control"
	"github.com/winlab-dev/winlab/sim/live/netns"
)

// execArgs are what a lab that is up needs for a program.
type execArgs struct {
	Machine  string
	Command  []string
	Env      []string
	Dir      string
	Terminal bool
}

func (a *app) execCmd() *cobra.Command {
	var terminal bool
	cmd := &cobra.Command{
		Use:   "exec MACHINE -- COMMAND [ARGUMENT...]",
		Short: "Run a program in the network of a pod, node or host of a lab that is up",
		Long: `Run a program in the network of a pod, node or host of a lab that is up. It has the
addresses, name server and host name of that machine, and the files of this one. winlab
exits with the program's exit code.`,
		Example: `  winlab exec pod/client -- curl -s http://win-webserver
  winlab exec --tty pod/client -- bash
  winlab exec host/internet -- ping -c 1 10.240.0.10`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usagef("write winlab exec MACHINE -- COMMAND, such as winlab exec pod/client -- curl -s http://win-webserver")
			}
			return nil
		},
		ValidArgsFunction: a.machines,
	}
	name := a.runningFlag(cmd)
	cmd.Flags().BoolVarP(&terminal, "tty", "t", false, "give the program a terminal of its own")
	cmd.Flags().SetInterspersed(false)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		command := args[1:]
		if command[0] == "--" {
			command = command[1:]
		}
		if len(command) == 0 {
			return usagef("there is no command after --")
		}
		dir, _ := os.Getwd()
		o := execArgs{Machine: args[0], Command: command, Env: os.Environ(), Dir: dir, Terminal: terminal}
		if terminal {
			return a.execTerminal(cmd.Context(), *name, o)
		}
		return a.call(cmd.Context(), *name, verbExec, o)
	}
	return cmd
}

// machines completes the name of a machine.
func (a *app) machines(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	name, err := running(cmd.Flag("name").Value.String())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	go func() {
		_, _ = control.Do(cmd.Context(), name, verbPs, psArgs{Output: "name"}, [3]*os.File{os.Stdin, w, w}, nil)
		_ = w.Close()
	}()
	text, _ := io.ReadAll(r)
	return strings.Fields(string(text)), cobra.ShellCompDirectiveNoFileComp
}

// execTerminal runs a program on a terminal of its own, through which ours is passed.
func (a *app) execTerminal(ctx context.Context, name string, o execArgs) error {
	if !terminal(os.Stdin) {
		return usagef("--tty needs a terminal on standard input")
	}
	name, err := running(name)
	if err != nil {
		return err
	}
	ours, theirs, err := openTerminal(os.Stdin)
	if err != nil {
		return err
	}
	defer func() { _ = ours.Close() }()
	restore, err := rawMode(os.Stdin)
	if err != nil {
		return err
	}
	defer restore()
	sizes := make(chan os.Signal, 1)
	signal.Notify(sizes, resized)
	defer signal.Stop(sizes)
	go func() {
		for range sizes {
			sameSize(ours, os.Stdin)
		}
	}()
	go func() { _, _ = io.Copy(ours, os.Stdin) }()
	printed := make(chan struct{})
	go func() {
		_, _ = io.Copy(os.Stdout, ours) // ends when the other side is closed
		close(printed)
	}()
	code, err := control.Do(ctx, name, verbExec, o, [3]*os.File{theirs, theirs, theirs}, nil)
	_ = theirs.Close()
	select {
	case <-printed:
	case <-time.After(time.Second): // a program in the background has it still
	}
	return ended(code, err)
}

// exec runs a program until it ends or its caller goes.
func (l *liveLab) exec(ctx context.Context, c control.Call, o execArgs) (int, error) {
	// A program of a node looks at the node's network, not at the namespace that it runs in.
	env := append(l.net.HostVariables(o.Machine), o.Env...)
	p, err := l.net.Start(ctx, o.Machine, netns.Command{Args: o.Command, Env: env, Dir: o.Dir, Terminal: o.Terminal}, c.Stdio)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return 127, err // as shells have it
	case err != nil:
		return 2, err
	}
	l.mu.Lock()
	l.programs[p.PID] = &liveProgram{Machine: o.Machine, PID: p.PID, Command: strings.Join(o.Command, " "), Since: time.Now()}
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.programs, p.PID)
		l.mu.Unlock()
	}()
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		for {
			select {
			case n := <-c.Signals:
				_ = p.Signal(syscall.Signal(n))
			case <-ctx.Done():
				_ = p.Signal(syscall.SIGKILL)
				return
			case <-ended:
				return
			}
		}
	}()
	e, err := p.Wait(context.WithoutCancel(ctx))
	if err != nil {
		select {
		case <-l.down:
			return 2, errors.New("the lab went down")
		default:
			return 2, err
		}
	}
	if e.Signal != 0 && e.Signal != int(syscall.SIGINT) && e.Signal != int(syscall.SIGPIPE) {
		fmt.Fprintf(c.Stdio[2], "%s: %s\n", o.Command[0], syscall.Signal(e.Signal))
	}
	return e.Code, nil
}
