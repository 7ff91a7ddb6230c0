package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/internal/input"
	"github.com/winlab-dev/winlab/reports/clean"
	"github.com/winlab-dev/winlab/sim/windows/hcn"
	"github.com/winlab-dev/winlab/sim/windows/hcn/shims"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

func (a *app) hnsCallCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "call METHOD PATH [REQUEST]",
		Short: "Make one call of HNS v1",
		Long: `Make one call of HNS v1, as Invoke-HnsRequest does, and print the output of the
reply. REQUEST is JSON; - reads it from standard input. Exit code 1 when HNS refuses.`,
		Example: `  winlab hns call GET /globals/version
  winlab hns call POST /networks/ '{"Name":"cbr0","Type":"l2bridge","Subnets":[{"AddressPrefix":"10.244.1.0/24"}]}'`,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			switch len(args) {
			case 0:
				return []string{"GET", "POST", "DELETE"}, cobra.ShellCompDirectiveNoFileComp
			case 1:
				return []string{"/networks/", "/endpoints/", "/policylists/", "/namespaces/", "/endpointstats/", "/globals/version", "/accelnet/"},
					cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 3 {
				args = args[:2] // REQUEST may be left out
			}
			return exactly("METHOD", "PATH")(cmd, args)
		},
	}
	client := a.hnsClient(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		request := ""
		if len(args) == 3 {
			request = args[2]
		}
		if request == "-" {
			text, err := input.ReadAll(cmd.Context(), "standard input", cmd.InOrStdin(), input.Text)
			if err != nil {
				return err
			}
			request = string(text)
		}
		c, err := client()
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }()
		reply, err := c.HNSCall(args[0], args[1], request)
		var refused *hcn.CallError
		if errors.As(err, &refused) {
			return unexpected{"winlab: " + clean.Text(refused.Error())}
		}
		if err != nil || len(reply) == 0 {
			return err
		}
		return writeJSON(a.out, reply)
	}
	return cmd
}

func (a *app) hnsWatchCmd() *cobra.Command {
	var count int
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Print the calls that programs make, as they are made",
		Long: `Print the calls that programs make, as they are made: who called what, what HNS answered,
and which objects changed. With -o json each line is an entry of the call log, with
the arguments and the answer.`,
		Example: `  winlab hns watch
  winlab hns watch -o json --count 1`,
		Args:              exactly(),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	out := output(cmd, "text", "json")
	client := a.hnsClient(cmd)
	cmd.Flags().IntVar(&count, "count", 0, "end after this `number` of calls; 0 means no end")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := client()
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }()
		w := bufio.NewWriter(a.out)
		seen := 0
		var bad error
		begun := func() { fmt.Fprintln(a.err, "winlab hns: watching") }
		err = c.Watch(begun, func(line []byte) bool {
			var e hcn.Entry
			if bad = json.Unmarshal(line, &e); bad != nil {
				return false
			}
			if e.HResult == "" {
				return true // a client connected or disconnected
			}
			if *out == "json" {
				fmt.Fprintf(w, "%s\n", line)
			} else {
				printEntry(w, &e)
			}
			seen++
			bad = w.Flush()
			return bad == nil && (count == 0 || seen < count)
		})
		return errors.Join(bad, err)
	}
	return cmd
}

func printEntry(w io.Writer, e *hcn.Entry) {
	what := e.Call
	if e.Method != "" {
		what += " " + e.Method + " " + e.Path
	}
	fmt.Fprintf(w, "%d %s %s %s", e.Seq, clean.Line(e.Client), clean.Line(what), e.HResult)
	if e.Object != "" {
		fmt.Fprintf(w, " %s", e.Object)
	}
	for _, c := range e.Changes {
		fmt.Fprintf(w, " [%s %s %s]", c.What, c.Kind, c.ID)
	}
	fmt.Fprintln(w)
	if len(e.Record) > 0 {
		fmt.Fprintf(w, "    %s\n", clean.Line(string(e.Record)))
	}
}

func (a *app) hnsReplayCmd() *cobra.Command {
	var f nodeFlags
	cmd := &cobra.Command{
		Use:   "replay LOG",
		Short: "Repeat the calls of a call log on a new HNS",
		Long: `Repeat the calls of a call log on a new HNS without objects, and list those whose
answer differs from the log's. With a --build other than the log's, this shows how that
build would answer the same program. Exit code 1 when an answer differs.`,
		Example: `  winlab hns replay calls.jsonl
  winlab hns replay calls.jsonl --build 2019`,
		Args:              exactly("LOG"),
		ValidArgsFunction: files(false, []string{"jsonl", "json", "log"}),
	}
	f.add(cmd)
	allowEmpty := allowEmptyFlag(cmd)
	out := output(cmd, "text", "json")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		in, _, err := input.OpenRegular(args[0], input.Stream)
		if err != nil {
			return err
		}
		defer func() { _ = in.Close() }()
		if f.build == "" {
			if f.build, err = buildOfLog(args[0], in); err != nil {
				return err
			}
		}
		b, node, err := f.get()
		if err != nil {
			return err
		}
		s, err := hcn.Start(b, node, hcn.Options{Log: log.New(a.err, "winlab hns: ", 0)})
		if err != nil {
			return err
		}
		calls, different, err := s.Replay(cmd.Context(), args[0], in)
		if err != nil {
			return err
		}
		if *out == "json" {
			s.With(func(svc *hns.Service) {
				var text []byte
				if text, err = svc.Export(); err == nil {
					_, err = a.out.Write(text)
				}
			})
		} else {
			fmt.Fprintf(a.out, "%d calls on %s, %d answered differently\n", calls, b, len(different))
			for _, d := range different {
				fmt.Fprintln(a.out, clean.Line(d.String()))
			}
		}
		switch {
		case err != nil:
		case len(different) > 0:
			return unexpected{}
		case calls == 0 && !*allowEmpty:
			return nothingExamined("%s has no calls", args[0])
		}
		return err
	}
	return cmd
}

func (a *app) hnsDLLsCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "dlls DIR",
		Short: "Build the DLLs through which Windows programs reach the service",
		Long: `Build computenetwork.dll, vmcompute.dll, bcryptprimitives.dll and iphlpapi.dll into a
folder, with the C compiler mingw-w64. Copy them into drive_c/windows/system32 of a
64-bit Wine prefix, and programs there reach the service that WINLAB_HCN names.
iphlpapi.dll shows them the adapters of WINLAB_ADAPTERS (NAME|MAC|ADDRESS/BITS,...;...);
it needs Wine's own DLL in the same folder under the name wine_iphlpapi.dll, and is optional.`,
		Example: `  winlab hns dlls ~/.wine/drive_c/windows/system32`,
		Args:    exactly("DIR"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			built, err := shims.Build(cmd.Context(), args[0])
			for _, name := range built {
				fmt.Fprintln(a.out, name)
			}
			return err
		},
	}
}

// buildOfLog reads the build from the first line of a log and goes back to its
// beginning.
func buildOfLog(name string, in io.ReadSeeker) (string, error) {
	line, err := bufio.NewReader(in).ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	var e hcn.Entry
	if json.Unmarshal(line, &e) != nil || e.Build == "" {
		return "", fmt.Errorf("%s:1: the log does not begin with the start of a service, which names the build; give it with --build", name)
	}
	_, err = in.Seek(0, io.SeekStart)
	return e.Build, err
}
