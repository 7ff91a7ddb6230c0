package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/conformance/known"
	"github.com/winlab-dev/winlab/conformance/known/consult"
	"github.com/winlab-dev/winlab/internal/capture"
	"github.com/winlab-dev/winlab/internal/outfile"
	"github.com/winlab-dev/winlab/reports/html"
	"github.com/winlab-dev/winlab/sim/kube/dns"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/text"
	"github.com/winlab-dev/winlab/sim/windows/dump"
)

// traceOptions are the flags of trace.
type traceOptions struct {
	*labOptions
	req              lab.Request
	udp, ping        bool
	tuple, tool      string
	protocol         string // no flag of trace, but the error says which is
	expect, capture  string
	connection       string
	live             string
	verbose, showHex bool
	output           *string
}

func (a *app) traceCmd() *cobra.Command {
	o := &traceOptions{}
	cmd := &cobra.Command{
		Use:   "trace LAB|--live NAME --from X --to Y",
		Short: "Send one flow through a lab and explain every step",
		Long: `Send one flow through a lab and explain every step.

Endpoints are written pod/[NAMESPACE/]NAME, svc/[NAMESPACE/]NAME:PORT, node/NAME:PORT,
host/NAME:PORT, name/DNSNAME:PORT, or an address with a port. Where a load balancer
may pick among backends, every pick is followed.

--tuple takes the arguments of vfpctrl /process-tuples in their order:
[encapsulation count] protocol, source and its port, destination and its port,
direction (in or out), flags (1 is SYN).

With --live NAME instead of LAB the flow is traced in a lab that is up, as it is now: with
the flows of its switches, its translations, and the programs that listen. Packets of its
programs wait meanwhile; nothing in it is changed or counted.`,
		Example: `  winlab trace fixtures/labs/l2bridge-flannel-host-gw.yaml --from pod/client --to svc/win-webserver:80
  winlab trace fixtures/labs/l2bridge-flannel-host-gw.yaml --from pod/client --to host/internet --ping
  winlab trace fixtures/labs/overlay-win-overlay.yaml --from host/lan --to node/win1:30080 -o summary
  winlab trace fixtures/labs/nat-winnat.yaml --from pod/client --to host/internet:443 -o json --expect delivered
  winlab trace fixtures/labs/l2bridge-flannel-host-gw.yaml --tuple "6 10.244.1.4 40000 10.96.0.50 80 out 1"
  winlab trace fixtures/labs/overlay-flannel-vxlan.yaml --from pod/client --to pod/peer:80 -o html > trace.html
  winlab trace --live l2bridge-flannel-host-gw --from pod/client --to svc/win-webserver:80`,
		ValidArgsFunction: files(false, labExts),
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if o.live != "" {
			return exactly()(cmd, args)
		}
		return exactly("LAB")(cmd, args)
	}
	o.labOptions = a.labFlags(cmd)
	o.output = output(cmd, "text", "summary", "json", "html")
	f := cmd.Flags()
	f.StringVar(&o.req.From, "from", "", "the sender: pod/NAME, node/NAME, host/NAME or an address")
	f.StringVar(&o.req.To, "to", "",
		"the destination: pod/NAME:PORT, svc/NAME:PORT, node/NAME:PORT, host/NAME:PORT, name/DNSNAME:PORT or an address")
	f.BoolVar(&o.udp, "udp", false, "a UDP datagram instead of a TCP connection")
	f.BoolVar(&o.ping, "ping", false, "an ICMP echo request instead of a TCP connection")
	f.StringVar(&o.tuple, "tuple", "", "the flow as vfpctrl /process-tuples takes it")
	f.StringVar(&o.expect, "expect", "", "exit with 1 unless the outcome is this `verdict`")
	f.Uint16Var(&o.req.SrcPort, "source-port", 0, "the sender's `port` (default: the first ephemeral one)")
	f.Uint8Var(&o.req.TTL, "ttl", 0, "time to live of the packet (default 128)")
	f.IntVar(&o.req.Size, "size", 0,
		"payload of a datagram or echo request in `bytes` (default 32); on TCP, what is written when the connection is open")
	f.BoolVar(&o.req.DontFragment, "dont-fragment", false, "set DF on a datagram or echo request, as ping -f on Windows")
	f.DurationVar(&o.req.Idle, "idle", 0, "trace a second packet of the same connection, this much `time` after the first")
	f.StringVar(&o.req.At, "at", "", "send the flow after this `step` of the lab (spec.steps); start is before the first (default: start)")
	f.StringVar(&o.connection, "connection", "", "trace what the lab sends on this `connection` of its own at --at, from its opening on")
	f.StringVar(&o.live, "live", "", "trace in this `lab` that is up, as it is now")
	f.BoolVar(&o.req.IPv6, "ipv6", false, "use the IPv6 addresses of both endpoints")
	f.StringVar(&o.tool, "tool", "", "the `program` that resolves name/ targets: "+toolNames())
	f.BoolVarP(&o.verbose, "verbose", "v", false, "every path in full, with the evidence behind each step")
	f.BoolVar(&o.showHex, "hex", false, "print the frames in hexadecimal")
	f.StringVarP(&o.capture, "write", "w", "", "write the frames to a pcapng `FILE`, one interface for each place")
	a.fromLab(cmd, "from", o.labOptions, func(c *lab.Cluster) []string { from, _ := c.Names(); return from })
	a.fromLab(cmd, "to", o.labOptions, func(c *lab.Cluster) []string { _, to := c.Names(); return to })
	fixed(cmd, "tool", tools()...)
	fixed(cmd, "expect", verdicts()...)
	completeRunning(cmd, "live")
	for _, other := range []string{"at", "connection", "variant", "kubernetes", "windows", "components"} {
		exclusive(cmd, "live", other)
	}
	// People who know kubectl and nmap try this one.
	f.StringVar(&o.protocol, "protocol", "", "")
	_ = f.MarkHidden("protocol")
	for _, other := range []string{"from", "to", "tuple", "udp", "ping", "idle", "source-port"} {
		exclusive(cmd, "connection", other)
	}
	fromFile(cmd, "at", func(s *labfile.Spec) []string { return append([]string{labfile.Start}, s.StepNames()...) })
	exclusive(cmd, "udp", "ping", "tuple")
	exclusive(cmd, "from", "tuple")
	exclusive(cmd, "to", "tuple")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if o.live != "" {
			return a.traceLive(cmd.Context(), o)
		}
		return a.trace(cmd.Context(), args[0], o)
	}
	return cmd
}

func tools() []string {
	var names []string
	for _, t := range dns.Tools {
		names = append(names, string(t))
	}
	return names
}

func verdicts() []string {
	var ids []string
	for _, v := range trace.Verdicts {
		ids = append(ids, string(v.ID))
	}
	return ids
}

// request checks the flags and makes the request of them.
func (o *traceOptions) request() (lab.Request, error) {
	r := o.req
	var errs []error
	if o.expect != "" {
		if _, err := trace.ParseVerdict(o.expect); err != nil {
			errs = append(errs, fmt.Errorf("--expect: %w", err))
		}
	}
	if o.protocol != "" {
		errs = append(errs, errors.New("there is no flag --protocol: write --udp or --ping; without them the flow is TCP"))
	}
	tool, err := parseTool(o.tool)
	r.Tool = tool
	errs = append(errs, err)
	if r.Size < 0 || r.Size > labfile.MaxSize {
		errs = append(errs, fmt.Errorf("--size %d: write 0 to %d bytes", r.Size, labfile.MaxSize))
	}
	if r.Idle < 0 {
		errs = append(errs, fmt.Errorf("--idle %s: write a time of 0 or more", r.Idle))
	}
	switch {
	case o.tuple != "":
		t, err := dump.ParseTuple(o.tuple)
		errs = append(errs, err)
		r.From, r.To, r.Protocol, r.SrcPort = t.Src.Addr().String(), t.Dst.String(), t.Protocol(), t.Src.Port()
		r.IPv6 = t.Src.Addr().Is6()
		if r.Protocol == "ping" {
			r.To = t.Dst.Addr().String()
		}
	case o.connection != "":
	case r.From == "" || r.To == "":
		errs = append(errs, errors.New("say which flow: --from pod/client --to svc/web:80, or --tuple"))
	case o.udp:
		r.Protocol = "udp"
	case o.ping:
		r.Protocol = "ping"
	}
	if err := errors.Join(errs...); err != nil {
		return r, usageError{err}
	}
	return r, nil
}

func (a *app) trace(ctx context.Context, path string, o *traceOptions) error {
	r, err := o.request()
	if err != nil {
		return err
	}
	o.anyBuild = true
	c, err := o.build(ctx, path)
	if err != nil {
		return err
	}
	var t *trace.Trace
	if o.connection != "" {
		t, err = c.TraceConnection(ctx, o.connection, r.At)
	} else {
		t, err = c.Trace(ctx, r)
	}
	if o.verbose { // also of nodes that the packet was the first to come to
		for _, l := range c.Log {
			fmt.Fprintln(a.err, "note:", l)
		}
	}
	if err != nil {
		return err
	}
	consult.Trace(c, known.Load().Entries, t)
	return showTrace(a.out, t, o.shown(a))
}

// traceShown is how a trace is shown.
type traceShown struct {
	Output, Expect, Capture string
	Text                    text.Options
}

func (o *traceOptions) shown(a *app) traceShown {
	s := traceShown{Output: *o.output, Expect: o.expect, Capture: o.capture,
		Text: text.Options{Color: a.colour(), Width: a.width(), Hex: o.showHex, Detail: text.Normal}}
	switch {
	case o.verbose:
		s.Text.Detail = text.Verbose
	case s.Output == "summary":
		s.Text.Detail = text.Summary
	}
	return s
}

// showTrace writes a trace, and complains where its verdict is not the expected one.
func showTrace(w io.Writer, t *trace.Trace, s traceShown) error {
	if s.Capture != "" {
		if err := writeTrace(s.Capture, t); err != nil {
			return err
		}
	}
	if err := printTrace(w, t, s); err != nil {
		return err
	}
	if want, _ := trace.ParseVerdict(s.Expect); s.Expect != "" && want != t.Verdict {
		return unexpected{fmt.Sprintf("expected %s, got %s (%s)", want, t.Verdict, t.Reason)}
	}
	return nil
}

func printTrace(w io.Writer, t *trace.Trace, s traceShown) error {
	switch s.Output {
	case "json":
		b, err := t.MarshalIndent()
		if err == nil {
			_, err = w.Write(b)
		}
		return err
	case "html":
		b, err := html.Trace(t)
		if err == nil {
			_, err = w.Write(b)
		}
		return err
	}
	return text.Render(w, t, s.Text)
}

// writeTrace writes the frames of a trace. Each path begins a second later than
// the one before, each step a microsecond later.
func writeTrace(name string, t *trace.Trace) error {
	var places []string
	index := map[string]int{}
	for _, p := range t.Paths {
		for _, s := range p.Steps {
			key := s.Place + " " + s.Object
			if _, ok := index[key]; s.Frame != nil && !ok {
				index[key] = len(places)
				places = append(places, key)
			}
		}
	}
	if len(places) == 0 {
		return fmt.Errorf("%s is not written: the flow has no frame", name)
	}
	return outfile.Write(name, 0o666, func(f io.Writer) error {
		w, err := capture.NewWriter(f, places...)
		if err != nil {
			return err
		}
		for i, p := range t.Paths {
			for _, s := range p.Steps {
				if s.Frame == nil {
					continue
				}
				at := time.Unix(int64(i), int64(s.N)*1000)
				if err := w.Write(index[s.Place+" "+s.Object], at, s.Frame, fmt.Sprintf("%s: %s", p.Verdict, s.Text())); err != nil {
					return err
				}
			}
		}
		return w.Close()
	})
}
