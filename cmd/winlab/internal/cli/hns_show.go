package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/reports/clean"
	"github.com/winlab-dev/winlab/sim/windows/hcn"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// hnsClient adds --address and connects to the service.
func (a *app) hnsClient(cmd *cobra.Command) func() (*hcn.Client, error) {
	address := cmd.Flags().String("address", "", "the service's `address` (default: the environment variable "+hnsAddress+")")
	node := cmd.Flags().String("node", "", "a `node` of a lab that is up, instead of a service")
	name := a.runningFlag(cmd)
	exclusive(cmd, "address", "node")
	return func() (*hcn.Client, error) {
		at := cmp.Or(*address, a.getenv(hnsAddress))
		if *node != "" {
			var err error
			if at, err = a.hnsOf(cmd.Context(), *name, *node); err != nil {
				return nil, err
			}
		}
		if at == "" {
			return nil,
				usagef(
					"--address is missing and %s is not set; start winlab hns serve and write the address that it prints, or write --node NODE for a lab that is up", hnsAddress)
		}
		return hcn.Dial(cmd.Context(), at, "winlab")
	}
}

// hnsObjects asks for the JSON of the objects of a list. What another client deletes
// in between is left out.
func hnsObjects(c *hcn.Client, list, query string) ([]json.RawMessage, error) {
	all := []json.RawMessage{}
	i := slices.Index(hnsListNames(), list)
	if i < 0 {
		return nil, usagef("there is no list %q; write one of %s", list, strings.Join(hnsListNames(), ", "))
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
			return usagef("there is no list %q; write one of %s", args[0], strings.Join(hnsListNames(), ", "))
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

// printObjects prints the columns that distinguish the objects of a list.
func printObjects(w io.Writer, list string, all []json.RawMessage) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	head := map[string]string{
		"networks": "ID\tNAME\tTYPE\tSUBNETS", "endpoints": "ID\tNAME\tADDRESSES\tMAC\tNETWORK", "namespaces": "ID\tTYPE\tCOMPARTMENT\tHOLDS",
		"loadbalancers": "ID\tFRONTEND\tPORTS\tFLAGS\tBACKENDS", "routes": "ID\tDESTINATIONS\tENDPOINTS",
		"policylists": "ID\tPOLICIES\tREFERENCES",
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
		return []string{n.ID, n.Name, string(n.Type), strings.Join(subnets, ",")}, err
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
		return []string{l.ID, cmp.Or(strings.Join(l.FrontendVIPs, ","), "(node)"), strings.Join(ports, ","), fmt.Sprint(l.Flags),
			fmt.Sprint(len(l.HostComputeEndpoints))}, err
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
			return usagef("there is no list %q; write one of %s", args[0], strings.Join(hnsListNames(), ", "))
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
			return unexpected{fmt.Sprintf("winlab: there is no object %q among the %s; winlab hns list %s shows them", args[1], args[0], args[0])}
		case 1:
			return writeJSON(a.out, all[0])
		}
		return unexpected{fmt.Sprintf("winlab: %d %s have the name %s; get them by id", len(all), args[0], args[1])}
	}
	return cmd
}
