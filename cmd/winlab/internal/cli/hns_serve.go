package cli

import (
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/internal/outfile"
	"github.com/winlab-dev/winlab/sim/windows/hcn"
)

func (a *app) hnsServeCmd() *cobra.Command {
	var f nodeFlags
	var state, listen, logFile, addressFile string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the HNS of one node on loopback",
		Long: `Serve the HNS of one node on loopback until it is interrupted. The first line of
standard output is the address; give it to programs as WINLAB_HCN.

With --state the objects are kept in a folder and loaded from it again, as HNS does
after a restart: without networks that are not persistent, and without handles. With --log
every call is written as a line of JSON; winlab hns replay repeats the calls.`,
		Example: `  winlab hns serve --build 10.0.17763.1432
  winlab hns serve --build 2025 --state /var/tmp/node1 --listen 127.0.0.1:40123 --log calls.jsonl`,
		Args:              exactly(),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f.add(cmd)
	cmd.Flags().StringVar(&state, "state", "", "keep the objects in this `folder`")
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:0", "listen on this loopback `address`; port 0 takes a free one")
	cmd.Flags().StringVar(&logFile, "log", "", "append every call to this `file`")
	cmd.Flags().StringVar(&addressFile, "address-file", "", "write the address into this `file` once the service answers")
	_ = cmd.MarkFlagDirname("state")
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		b, node, err := f.get()
		if err != nil {
			return err
		}
		o := hcn.Options{State: state, Log: log.New(a.err, "winlab hns: ", 0)}
		if logFile != "" {
			out, err := hcn.OpenCallLog(logFile, o.Log)
			if err != nil {
				return err
			}
			defer func() { _ = out.Close() }()
			o.CallLog = out
		}
		s, err := hcn.Start(b, node, o)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.Close()) }()
		v, err := hcn.Listen(s, listen)
		if err != nil {
			return err
		}
		if addressFile != "" {
			if err := outfile.WriteFile(addressFile, []byte(v.Addr()+"\n"), 0o666); err != nil {
				return errors.Join(err, v.Close())
			}
			defer func() { _ = os.Remove(addressFile) }()
		}
		fmt.Fprintln(a.out, v.Addr())
		fmt.Fprintf(a.err, "winlab hns: %s, %s; set %s=%s for programs\n", node.Node, b, hnsAddress, v.Addr())
		return v.Serve(cmd.Context())
	}
	return cmd
}
