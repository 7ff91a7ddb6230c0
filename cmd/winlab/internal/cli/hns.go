package cli

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/netip"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/reports/clean"
	"github.com/winlab-dev/winlab/sim/hcn"
	"github.com/winlab-dev/winlab/sim/hcn/shims"
	"github.com/winlab-dev/winlab/sim/hns"
	"github.com/winlab-dev/winlab/sim/windows"
)

// hnsAddress is the environment variable that the DLLs read, too.
const hnsAddress = "WINLAB_HCN"

// hnsLists are the lists that the service answers, in the order of help.
var hnsLists = []struct {
	name string
	kind hcn.Kind
}{
	{"networks", hcn.Network}, {"endpoints", hcn.Endpoint}, {"namespaces", hcn.Namespace},
	{"loadbalancers", hcn.LoadBalancer}, {"routes", hcn.SdnRoute}, {"policylists", 0},
}

func hnsListNames() []string {
	var names []string
	for _, l := range hnsLists {
		names = append(names, l.name)
	}
	return names
}

func (a *app) hnsCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "hns",
		Short: "Serve a simulated HNS to Windows programs, and look into it",
		Long: `Serve the Host Networking Service of one Windows node on loopback, with the calls
of HCN v2 and HNS v1. Windows programs under Wine reach it through winlab's
computenetwork.dll and vmcompute.dll; the verbs below show what it holds.`,
		Example: `  winlab hns serve --build 2022 --state /var/tmp/node1
  WINLAB_HCN=127.0.0.1:40123 winlab hns list endpoints`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.hnsServeCmd(), a.hnsListCmd(), a.hnsGetCmd(), a.hnsCallCmd(), a.hnsWatchCmd(), a.hnsReplayCmd(), a.hnsDLLsCmd())
	return cmd
}

// nodeFlags say which node's HNS it is.
type nodeFlags struct {
	build, node, managementIP string
	without                   []string
}

func (f *nodeFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.build, "build", "", "the node's Windows `build`: 10.0.17763.1432, 17763 or a release such as 2022")
	cmd.Flags().StringVar(&f.node, "node", "node", "the node's `name`; ids depend on it")
	cmd.Flags().StringVar(&f.managementIP, "management-ip", "192.168.1.11", "the node's `address`")
	cmd.Flags().StringSliceVar(&f.without, "without-quirk", nil, "`bugs` of the build that the node is to be without")
	fixed(cmd, "build", windows.Names()...)
	fixed(cmd, "without-quirk", windows.QuirkIDs()...)
}

func (f *nodeFlags) get() (*windows.Build, hns.Options, error) {
	var node hns.Options
	if f.build == "" {
		return nil, node, usagef("--build is missing; write for example --build 10.0.17763.1432 or --build 2022")
	}
	v, err := windows.Parse(f.build)
	if err != nil {
		return nil, node, usageError{fmt.Errorf("--build: %w", err)}
	}
	b, err := windows.Lookup(v)
	if err != nil {
		return nil, node, usageError{fmt.Errorf("--build: %w", err)}
	}
	if len(f.without) > 0 {
		if b, err = b.WithQuirks(nil, f.without); err != nil {
			return nil, node, usageError{fmt.Errorf("--without-quirk: %w", err)}
		}
	}
	node.Node = f.node
	if node.ManagementIP, err = netip.ParseAddr(f.managementIP); err != nil {
		return nil, node, usagef("--management-ip %q is no address", f.managementIP)
	}
	return b, node, nil
}

func (a *app) hnsServeCmd() *cobra.Command {
	var f nodeFlags
	var state, listen, logFile, addressFile string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the HNS of one node on loopback",
		Long: `Serve the HNS of one node on loopback until an interrupt. The address stands alone
on the first line of standard output; give it to programs as WINLAB_HCN.

With --state the objects are kept in a folder and come back as HNS has them after a
restart: without networks that are not persistent, and without handles. With --log
every call is written as a line of JSON; winlab hns replay makes the calls again.`,
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
			out, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
			if err != nil {
				return err
			}
			defer func() { _ = out.Close() }()
			o.CallLog = out
		}
		ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM)
		defer stop()
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
			if err := writeWhole(addressFile, v.Addr()+"\n"); err != nil {
				return errors.Join(err, v.Close())
			}
			defer func() { _ = os.Remove(addressFile) }()
		}
		fmt.Fprintln(a.out, v.Addr())
		fmt.Fprintf(a.err, "winlab hns: %s, %s; set %s=%s for programs\n", node.Node, b, hnsAddress, v.Addr())
		return v.Serve(ctx)
	}
	return cmd
}

// writeWhole writes a file that others wait for: it is whole when it is there.
func writeWhole(name, text string) error {
	if err := os.WriteFile(name+".new", []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// hnsClient adds --address and connects to the service.
func (a *app) hnsClient(cmd *cobra.Command) func() (*hcn.Client, error) {
	address := cmd.Flags().String("address", "", "the service's `address`; the environment's "+hnsAddress+" when it is not given")
	return func() (*hcn.Client, error) {
		at := cmp.Or(*address, a.getenv(hnsAddress))
		if at == "" {
			return nil, usagef("--address is missing and %s is not set; start winlab hns serve and write the address that it prints", hnsAddress)
		}
		return hcn.Dial(at, "winlab")
	}
}

// hnsObjects asks for the JSON of the objects of a list. What another client deletes
// in between is left out.
func hnsObjects(c *hcn.Client, list, query string) ([]json.RawMessage, error) {
	all := []json.RawMessage{}
	i := slices.Index(hnsListNames(), list)
	if i < 0 {
		return nil, usagef("there is no list %q; there are %s", list, strings.Join(hnsListNames(), ", "))
	}
	if hnsLists[i].kind == 0 {
		raw, err := c.HNSCall("GET", "/policylists/", "")
		if err != nil {
			return nil, err
		}
		return all, json.Unmarshal(raw, &all)
	}
	ids, err := c.Enumerate(hnsLists[i].kind, query)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		text, err := c.Get(hnsLists[i].kind, id)
		var gone *hcn.CallError
		if errors.As(err, &gone) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, json.RawMessage(text))
	}
	return all, nil
}

func completeLists(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return hnsListNames(), cobra.ShellCompDirectiveNoFileComp
}

func (a *app) hnsListCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list LIST",
		Short: "List the objects of a kind",
		Long: `List the objects of a kind: networks, endpoints, namespaces, loadbalancers, routes,
or policylists as HNS v1 shows them.`,
		Example: `  winlab hns list networks
  winlab hns list endpoints --filter cbr0_ep -o json`,
		Args:              exactly("LIST"),
		ValidArgsFunction: completeLists,
	}
	out := output(cmd, "text", "json")
	client := a.hnsClient(cmd)
	filter := cmd.Flags().String("filter", "", "only objects with this `name`")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if !slices.Contains(hnsListNames(), args[0]) {
			return usagef("there is no list %q; there are %s", args[0], strings.Join(hnsListNames(), ", "))
		}
		c, err := client()
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }()
		query := ""
		if *filter != "" {
			if args[0] != "networks" && args[0] != "endpoints" {
				return usagef("--filter: %s have no names", args[0])
			}
			query = hcn.FilterBy("Name", *filter)
		}
		all, err := hnsObjects(c, args[0], query)
		if err != nil {
			return err
		}
		if *out == "json" {
			return writeJSON(a.out, all)
		}
		return printObjects(a.out, args[0], all)
	}
	return cmd
}

// printObjects prints the columns that tell the objects of a list apart.
func printObjects(w io.Writer, list string, all []json.RawMessage) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	head := map[string]string{
		"networks": "ID\tNAME\tTYPE\tSUBNETS", "endpoints": "ID\tNAME\tADDRESSES\tMAC\tNETWORK", "namespaces": "ID\tTYPE\tCOMPARTMENT\tHOLDS",
		"loadbalancers": "ID\tFRONTEND\tPORTS\tFLAGS\tBACKENDS", "routes": "ID\tDESTINATIONS\tENDPOINTS", "policylists": "ID\tPOLICIES\tREFERENCES",
	}
	fmt.Fprintln(t, head[list])
	for _, raw := range all {
		row, err := hnsRow(list, raw)
		if err != nil {
			return fmt.Errorf("%s: %w", list, err)
		}
		for i, cell := range row {
			row[i] = cmp.Or(clean.Line(cell), "-")
		}
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	return t.Flush()
}

func hnsRow(list string, raw json.RawMessage) ([]string, error) {
	switch list {
	case "networks":
		var n hns.Network
		err := json.Unmarshal(raw, &n)
		var subnets []string
		for _, s := range n.Subnets() {
			subnets = append(subnets, s.IpAddressPrefix)
		}
		return []string{n.ID, n.Name, n.Type, strings.Join(subnets, ",")}, err
	case "endpoints":
		var e hns.Endpoint
		err := json.Unmarshal(raw, &e)
		var ips []string
		for _, c := range e.IpConfigurations {
			ips = append(ips, fmt.Sprintf("%s/%d", c.IpAddress, c.PrefixLength))
		}
		if e.Remote() {
			e.MacAddress += " (remote)"
		}
		return []string{e.ID, e.Name, strings.Join(ips, ","), e.MacAddress, e.HostComputeNetwork}, err
	case "namespaces":
		var n hns.Namespace
		err := json.Unmarshal(raw, &n)
		var holds []string
		for _, r := range n.Resources {
			holds = append(holds, strings.ToLower(r.Type)+"/"+r.Data.Id)
		}
		return []string{n.ID, n.Type, fmt.Sprint(n.NamespaceId), strings.Join(holds, ",")}, err
	case "loadbalancers":
		var l hns.LoadBalancer
		err := json.Unmarshal(raw, &l)
		var ports []string
		for _, p := range l.PortMappings {
			ports = append(ports, fmt.Sprintf("%d/%d->%d", p.Protocol, p.ExternalPort, p.InternalPort))
		}
		return []string{l.ID, cmp.Or(strings.Join(l.FrontendVIPs, ","), "(node)"), strings.Join(ports, ","), fmt.Sprint(l.Flags), fmt.Sprint(len(l.HostComputeEndpoints))}, err
	case "routes":
		var r hns.Route
		err := json.Unmarshal(raw, &r)
		var to []string
		for _, s := range r.Setting {
			to = append(to, s.DestinationPrefix)
		}
		return []string{r.ID, strings.Join(to, ","), fmt.Sprint(len(r.HostComputeEndpoints))}, err
	}
	var p hns.V1PolicyList
	err := json.Unmarshal(raw, &p)
	var types []string
	for _, raw := range p.Policies {
		var v struct{ Type string }
		err = errors.Join(err, json.Unmarshal(raw, &v))
		types = append(types, v.Type)
	}
	return []string{p.ID, strings.Join(types, ","), fmt.Sprint(len(p.References))}, err
}

func (a *app) hnsGetCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get LIST ID|NAME",
		Short: "Print one object as JSON",
		Long:  "Print one object as HCN v2 JSON (a policy list as HNS v1 has it), by id or by name.",
		Example: `  winlab hns get networks cbr0
  winlab hns get endpoints 6f5c4a4e-8b1c-5a0e-9c3d-2f7d1c0b9a88`,
		Args:              exactly("LIST", "ID|NAME"),
		ValidArgsFunction: completeLists,
	}
	client := a.hnsClient(cmd)
	output(cmd, "json")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if !slices.Contains(hnsListNames(), args[0]) {
			return usagef("there is no list %q; there are %s", args[0], strings.Join(hnsListNames(), ", "))
		}
		c, err := client()
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }()
		query := hcn.FilterBy("Name", args[1])
		if _, err := hcn.ParseGUID(args[1]); err == nil {
			query = hcn.FilterBy("ID", args[1])
		}
		all, err := hnsObjects(c, args[0], query)
		if err != nil {
			return err
		}
		if args[0] == "policylists" {
			all = slices.DeleteFunc(all, func(raw json.RawMessage) bool {
				var v hns.V1PolicyList
				return json.Unmarshal(raw, &v) != nil || !strings.EqualFold(v.ID, strings.Trim(args[1], "{}"))
			})
		}
		switch len(all) {
		case 0:
			return unexpected{fmt.Sprintf("winlab: there is no such object among the %s: %s", args[0], args[1])}
		case 1:
			return writeJSON(a.out, all[0])
		}
		return unexpected{fmt.Sprintf("winlab: %d %s have the name %s; get them by id", len(all), args[0], args[1])}
	}
	return cmd
}

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
				return []string{"/networks/", "/endpoints/", "/policylists/", "/namespaces/", "/endpointstats/", "/globals/version"},
					cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		Args: func(cmd *cobra.Command, args []string) error {
			return exactly("METHOD", "PATH", "REQUEST")(cmd, append(args, "")[:max(len(args), min(len(args)+1, 3))])
		},
	}
	client := a.hnsClient(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		request := ""
		if len(args) == 3 {
			request = args[2]
		}
		if request == "-" {
			text, err := io.ReadAll(cmd.InOrStdin())
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
		Short: "Print the calls that programs make, as they come",
		Long: `Print the calls that programs make, as they come: who called what, what HNS answered,
and which objects changed. With -o json each line is an entry of the call log, with
the arguments and the answer.`,
		Example: `  winlab hns watch
  winlab hns watch -o json --count 1`,
		Args:              exactly(),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	out := output(cmd, "text", "json")
	client := a.hnsClient(cmd)
	cmd.Flags().IntVar(&count, "count", 0, "end after this `number` of calls; 0 goes on")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := client()
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }()
		defer context.AfterFunc(cmd.Context(), func() { _ = c.Close() })()
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
				return true // a client came or went
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
		Short: "Make the calls of a call log again, on a fresh HNS",
		Long: `Make the calls of a call log again, on a fresh HNS without objects, and say which of
them went otherwise. With another --build than the log's, that shows what the same
program would have met there. Exit code 1 when a call went otherwise.`,
		Example: `  winlab hns replay calls.jsonl
  winlab hns replay calls.jsonl --build 2019`,
		Args:              exactly("LOG"),
		ValidArgsFunction: files(false, []string{"jsonl", "json", "log"}),
	}
	f.add(cmd)
	out := output(cmd, "text", "json")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		in, err := os.Open(args[0])
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
		calls, different, err := s.Replay(args[0], in)
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
			fmt.Fprintf(a.out, "%d calls on %s, %d went otherwise\n", calls, b, len(different))
			for _, d := range different {
				fmt.Fprintln(a.out, clean.Line(d.String()))
			}
		}
		if err == nil && len(different) > 0 {
			return unexpected{}
		}
		return err
	}
	return cmd
}

func (a *app) hnsDLLsCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "dlls DIR",
		Short: "Build the DLLs through which Windows programs reach the service",
		Long: `Build computenetwork.dll, vmcompute.dll and bcryptprimitives.dll into a folder, with
the C compiler mingw-w64. Copy them into drive_c/windows/system32 of a 64-bit Wine
prefix, and programs there reach the service that WINLAB_HCN names.`,
		Example: `  winlab hns dlls ~/.wine/drive_c/windows/system32`,
		Args:    exactly("DIR"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(_ *cobra.Command, args []string) error {
			built, err := shims.Build(args[0])
			for _, name := range built {
				fmt.Fprintln(a.out, name)
			}
			return err
		},
	}
}

// buildOfLog reads the build from the first line of a log and goes back to its
// beginning.
func buildOfLog(name string, in *os.File) (string, error) {
	line, err := bufio.NewReader(in).ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	var e hcn.Entry
	if json.Unmarshal(line, &e) != nil || e.Build == "" {
		return "", fmt.Errorf("%s:1: the log does not begin with the start of a service; say --build", name)
	}
	_, err = in.Seek(0, io.SeekStart)
	return e.Build, err
}
