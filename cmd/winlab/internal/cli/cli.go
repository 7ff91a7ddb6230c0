// Package cli is the command line of winlab: it reads arguments, calls the
// packages that do the work, prints what they return and chooses the exit code.
// It must not hold behaviour of the simulator or of the conformance checks.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/winlab-dev/winlab/internal/input"
	"github.com/winlab-dev/winlab/internal/strict"
	"github.com/winlab-dev/winlab/reports/clean"
)

// The exit codes.
const (
	exitOK          = 0   // as expected
	exitUnexpected  = 1   // not as expected
	exitUsage       = 2   // bad input or usage
	exitInterrupted = 130 // ended by Ctrl-C: 128 and the number of SIGINT, as shells have it
)

// unexpected is an outcome that is not as expected: exit code 1. The text goes
// to standard error when it is not empty.
type unexpected struct{ text string }

func (e unexpected) Error() string { return e.text }

// app is what a run of the program needs from outside.
type app struct {
	out, err io.Writer
	// outTerm and errTerm say that a person looks at the writer.
	outTerm, errTerm bool
	getenv           func(string) string
	args             []string
	// name is how the program is called: winlab, or kubectl winlab where it runs as a plugin.
	name string
}

// Main runs the program with the arguments of the process and returns its exit
// code.
func Main() int {
	a := &app{out: os.Stdout, err: os.Stderr, outTerm: terminal(os.Stdout), errTerm: terminal(os.Stderr), getenv: os.Getenv, args: os.Args[1:],
		name: calledAs(os.Args[0])}
	return a.run()
}

// pluginName is how people call the program when kubectl starts it: its file is kubectl-winlab
// then (https://kubernetes.io/docs/tasks/extend-kubectl/kubectl-plugins/).
const pluginName = "kubectl winlab"

// calledAs is the name of the program by its file.
func calledAs(file string) string {
	base := file[strings.LastIndexAny(file, `/\`)+1:]
	if base = strings.ToLower(base); strings.TrimSuffix(base, ".exe") == "kubectl-winlab" {
		return pluginName
	}
	return "winlab"
}

func (a *app) run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second Ctrl-C ends the program at once; but timeout of GNU coreutils sends one signal to the
	// program and one to its group in the same instant, and what was begun is to be undone then.
	context.AfterFunc(ctx, func() { time.AfterFunc(time.Second, stop) })
	collectLate()
	input.Forget()
	root := a.root()
	root.SetArgs(a.args)
	root.SetOut(a.out)
	root.SetErr(a.err)
	cmd, err := root.ExecuteContextC(ctx)
	var u unexpected
	var ms strict.Mistakes
	var exit exitWith
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &exit):
		if exit.text != "" {
			fmt.Fprintln(a.err, a.name+": "+exit.text)
		}
		return exit.code
	case ctx.Err() != nil:
		fmt.Fprintln(a.err, a.name+": interrupted")
		return exitInterrupted
	case errors.As(err, &u):
		if u.text != "" {
			fmt.Fprintln(a.err, u.text)
		}
		return exitUnexpected
	case errors.As(err, &ms):
		// The messages begin with file and line, for editors.
		fmt.Fprintln(a.err, printable(err))
		if n := strings.Count(err.Error(), "\n") + 1; n > 1 {
			fmt.Fprintf(a.err, "%s: %d mistakes\n", a.name, n)
		}
	default:
		fmt.Fprintf(a.err, "%s: %s\n", a.name, printable(err))
		var use usageError
		if errors.As(err, &use) {
			fmt.Fprintf(a.err, "try: %s --help\n", cmd.CommandPath())
		}
	}
	return exitUsage
}

// printable is the text of an error, which may quote anything: control characters are shown, and
// long lines are cut.
func printable(err error) string {
	const most = 1000
	lines := strings.Split(clean.Text(err.Error()), "\n")
	for i, l := range lines {
		if len(l) > most {
			lines[i] = strings.ToValidUTF8(l[:most], "") + "..."
		}
	}
	return strings.Join(lines, "\n")
}

// usageError is a wrong use of the command line.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// root is the program with all its verbs.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "winlab",
		Short: "A lab for Windows nodes in Kubernetes that runs on Linux",
		Long: `winlab replays packets through a simulated Windows node (HNS, VFP, kube-proxy, the
network plugin) and explains what happened to them. It compares what documents say
about Windows nodes with what the simulator does.

Exit codes: 0 as expected, 1 not as expected, 2 bad input or usage, 130 interrupted.`,
		Example: `  winlab run
  winlab trace fixtures/labs/l2bridge-flannel-host-gw.yaml --from pod/client --to svc/win-webserver:80
  winlab explain icmp-not-translated`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return noCommand(cmd, args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.PersistentPreRunE = refuseEmptyFlags
	root.SuggestionsMinimumDistance = 2
	root.SetFlagErrorFunc(flagError)
	root.CompletionOptions.HiddenDefaultCmd = false
	root.AddCommand(a.verbs()...)
	if a.name == pluginName {
		asPlugin(root)
	}
	return root
}

// asPlugin shows the commands as they are typed when kubectl starts the program.
func asPlugin(root *cobra.Command) {
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: pluginName}
	var show func(*cobra.Command)
	show = func(c *cobra.Command) {
		c.Example = strings.ReplaceAll("\n"+c.Example, "\n  winlab ", "\n  "+pluginName+" ")[1:]
		for _, sub := range c.Commands() {
			show(sub)
		}
	}
	show(root)
}

// verbs are the commands of the program: the one that the arguments begin with, or all where
// they begin with something else. Flags of verbs offer versions and names that are read from
// tables; other verbs should not wait for them.
func (a *app) verbs() []*cobra.Command {
	of := []struct {
		name string
		make func() *cobra.Command
	}{
		{"run", a.runCmd},
		{"diff", a.diffCmd},
		{"site", a.siteCmd},
		{"trace", a.traceCmd},
		{"reach", a.reachCmd},
		{"whatif", a.whatifCmd},
		{"up", a.upCmd},
		{"exec", a.execCmd},
		{"watch", a.watchCmd},
		{"ps", a.psCmd},
		{"logs", a.logsCmd},
		{"apply", a.applyCmd},
		{"delete", a.deleteCmd},
		{"restart", a.restartCmd},
		{"link", a.linkCmd},
		{"capture", a.captureCmd},
		{"down", a.downCmd},
		{"replay", a.replayCmd},
		{"resolve", a.resolveCmd},
		{"explain", a.explainCmd},
		{"check", a.checkCmd},
		{"collect", a.collectCmd},
		{"import", a.importCmd},
		{"doctor", a.doctorCmd},
		{"compare", a.compareCmd},
		{"claims", a.claimsCmd},
		{"known", a.knownCmd},
		{"hns", a.hnsCmd},
		{"version", a.versionCmd},
	}
	var all []*cobra.Command
	for _, v := range of {
		if len(a.args) > 0 && a.args[0] == v.name {
			return []*cobra.Command{v.make()}
		}
	}
	for _, v := range of {
		all = append(all, v.make())
	}
	return all
}

// noCommand is the error for a command that does not exist below cmd.
func noCommand(cmd *cobra.Command, name string) error {
	parents := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().DisplayName())
	text := fmt.Sprintf("there is no command %q", strings.TrimPrefix(parents+" "+name, " "))
	if s := cmd.SuggestionsFor(name); len(s) > 0 {
		text += "; did you mean " + s[0] + "?"
	}
	return usagef("%s", text)
}

// flagError says in plain words what is wrong with a flag.
func flagError(cmd *cobra.Command, err error) error {
	var value *pflag.InvalidValueError
	var unknown *pflag.NotExistError
	switch {
	case errors.As(err, &value):
		f := value.GetFlag()
		return usagef("--%s %s: write %s", f.Name, value.GetValue(), flagForm(f))
	case errors.As(err, &unknown):
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, "--"+f.Name)
			}
		})
		return usagef("%w%s", err, near("--"+unknown.GetSpecifiedName(), names))
	}
	return usageError{err}
}

// refuseEmptyFlags refuses --flag "": a variable that a script did not set would switch off what the
// flag asks for.
func refuseEmptyFlags(cmd *cobra.Command, _ []string) error {
	var errs []error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Value.String() == "" && f.Value.Type() == "string" {
			errs = append(errs, fmt.Errorf("--%s is empty; write a value, or leave the flag out", f.Name))
		}
	})
	if err := errors.Join(errs...); err != nil {
		return usageError{err}
	}
	return nil
}

// flagForm says how the value of a flag is written.
func flagForm(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "uint8":
		return "a number from 0 to 255"
	case "uint16":
		return "a number from 0 to 65535"
	case "int":
		return "a whole number"
	case "duration":
		return "a number with a unit, such as 5s or 4m"
	case "bool":
		return "true or false, or the flag alone"
	}
	return "a " + f.Value.Type()
}

// exclusive makes a command refuse more than one of some flags.
func exclusive(cmd *cobra.Command, names ...string) {
	cmd.MarkFlagsMutuallyExclusive(names...) // so that completion knows
	before := cmd.PreRunE
	cmd.PreRunE = func(c *cobra.Command, args []string) error {
		var given []string
		for _, n := range names {
			if c.Flags().Changed(n) {
				given = append(given, "--"+n)
			}
		}
		switch {
		case len(given) > 1:
			return usagef("%s cannot be combined; write one of them", strings.Join(given, " and "))
		case before != nil:
			return before(c, args)
		}
		return nil
	}
}

// exactly is cobra.ExactArgs with the names of what is missing.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return usagef("%s is missing; write %s", names[len(args)], cmd.UseLine())
		case len(args) > len(names):
			return usagef("%q is one argument too many; write %s", args[len(names)], cmd.UseLine())
		}
		return nil
	}
}
