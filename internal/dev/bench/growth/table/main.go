// Command table prints how the work of winlab grows with a cluster, in statements that ran, and exits 1 when
// something grows faster than it may.
//
//	go run ./internal/dev/bench/growth/table [-envelope]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/winlab-dev/winlab/internal/dev/bench/growth"
)

func main() {
	envelope := flag.Bool("envelope", false, "up to the size for which Kubernetes is tested: long, and gigabytes")
	only := flag.String("only", "", "only what grows whose name contains this")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	over, err := print(ctx, *envelope, *only)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "growth:", err)
		os.Exit(2)
	}
	if over > 0 {
		os.Exit(1)
	}
}

func print(ctx context.Context, envelope bool, only string) (over int, err error) {
	dir, err := os.MkdirTemp("", "winlab-growth-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	scale := growth.Small
	if envelope {
		scale = growth.Envelope
	}
	p, err := growth.Build(ctx, ".", dir)
	if err != nil {
		return 0, err
	}
	rows, err := p.Grow(ctx, dir, scale, only)
	if err != nil {
		return 0, err
	}
	return growth.Print(os.Stdout, rows)
}
