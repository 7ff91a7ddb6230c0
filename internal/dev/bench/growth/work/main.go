// Command work does what people do with a lab, one thing after another, and writes after each
// how often every statement ran; it prints what became of the packets. internal/dev/bench/growth builds it
// with counters and reads them; it is of no use without.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/coverage"

	"github.com/winlab-dev/winlab/conformance/reach"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// usage: work LAB FOLDER FROM POD SERVICE.
func main() {
	if err := work(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "work:", err)
		os.Exit(1)
	}
}

func work(args []string) error {
	if len(args) != 5 {
		return fmt.Errorf("want LAB FOLDER FROM POD SERVICE, have %q", args)
	}
	ctx := context.Background()
	var f *lab.File
	var c *lab.Cluster
	verdicts := map[string]trace.Verdict{}
	send := func(to string) func() error {
		return func() error {
			t, err := c.Trace(ctx, lab.Request{From: args[2], To: to + ":80"})
			if err == nil {
				verdicts[to] = t.Verdict
			}
			return err
		}
	}
	// Some things are made ready for flows that follow only after a few.
	some := func(do func() error) func() error {
		return func() error {
			for range 8 {
				if err := do(); err != nil {
					return err
				}
			}
			return nil
		}
	}
	for _, phase := range []struct {
		name string // "": not counted
		do   func() error
	}{
		{"read", func() (err error) { f, err = lab.Load(args[0]); return err }},
		{"build", func() (err error) { c, err = lab.Build(ctx, f, lab.Options{}); return err }},
		{"first trace", send(args[3])},
		{"", some(send(args[3]))},
		{"trace", send(args[3])},
		{"first to a Service", send(args[4])},
		{"", some(send(args[4]))},
		{"trace to a Service", send(args[4])},
		{"reach of one flow", func() error {
			_, err := reach.Run(ctx, c, reach.Options{From: args[2:3], To: args[3:4]})
			return err
		}},
		{"taken away", func() error { return takeAway(c) }},
	} {
		if err := coverage.ClearCounters(); err != nil {
			return err
		}
		if err := phase.do(); err != nil {
			return fmt.Errorf("%s: %w", phase.name, err)
		}
		if phase.name == "" {
			continue
		}
		dir := filepath.Join(args[1], phase.name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		if err := coverage.WriteMetaDir(dir); err != nil {
			return err
		}
		if err := coverage.WriteCountersDir(dir); err != nil {
			return err
		}
	}
	fmt.Printf("%s to a pod, %s to a Service\n", verdicts[args[3]], verdicts[args[4]])
	return nil
}

// takeAway deletes what kube-proxy made on the first Windows node: all load balancers, then the
// endpoints of other nodes' pods, one call each.
func takeAway(c *lab.Cluster) error {
	for _, n := range c.Nodes {
		s := c.HNS(n.Name)
		if s == nil {
			continue // not Windows
		}
		for _, lb := range s.ListLoadBalancers(nil) {
			if err := s.DeleteLoadBalancer(lb.ID); err != nil {
				return err
			}
		}
		for _, e := range s.ListEndpoints((*hns.Endpoint).Remote) {
			if err := s.DeleteEndpoint(e.ID); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("no node has an HNS")
}
