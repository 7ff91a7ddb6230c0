// Command winbuild builds the Windows binaries of pinned modules into the cache:
//
//	go run ./sim/wine/winbuild fixtures/windows-binaries/*/
//
// and prints where they are. It must not know what they are for.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/winlab-dev/winlab/sim/wine"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: winbuild FOLDER...; a folder holds go.mod, go.sum and binaries.yaml")
		os.Exit(2)
	}
	failed := false
	for _, dir := range os.Args[1:] {
		b, err := wine.Build(ctx, dir)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			failed = true
			continue
		}
		how := "from the cache"
		if b.Built > 0 {
			how = fmt.Sprintf("built in %s", b.Built.Round(time.Second))
		}
		for _, name := range b.Names {
			fmt.Printf("%s %s: %s\n", filepath.Base(filepath.Clean(dir)), how, b.Path(name))
		}
	}
	if failed {
		os.Exit(1)
	}
}
