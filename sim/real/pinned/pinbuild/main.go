// Command pinbuild builds the programs of pinned modules into the cache:
//
//	go run ./sim/real/pinned/pinbuild fixtures/windows-binaries/*/
//
// and prints where they are. It must not know what they are for.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/winlab-dev/winlab/sim/real/pinned"
	"github.com/winlab-dev/winlab/sim/real/wine"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ifWine := flag.Bool("if-wine", false, "build only where Wine can run what is built, and say only what was built")
	link := flag.String("link", "", "a `file` that becomes a link to the program with its name: bin/kubectl")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: pinbuild [-if-wine] [-link FILE] FOLDER...; a folder holds go.mod, go.sum and binaries.yaml")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	if *ifWine {
		if _, err := wine.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
	}
	failed := false
	for _, dir := range flag.Args() {
		b, err := pinned.Build(ctx, dir)
		switch {
		case ctx.Err() != nil:
			fmt.Fprintln(os.Stderr, "pinbuild: interrupted")
			os.Exit(130)
		case err != nil:
			fmt.Fprintln(os.Stderr, err)
			failed = true
		case *link != "" && slices.Contains(b.Names, filepath.Base(*link)):
			if err := linkTo(b.Path(filepath.Base(*link)), *link); err != nil {
				fmt.Fprintln(os.Stderr, err)
				failed = true
			}
			fallthrough
		default:
			say(filepath.Base(filepath.Clean(dir)), b, *ifWine)
		}
	}
	if failed {
		os.Exit(1)
	}
}

// linkTo makes a link and replaces an existing one.
func linkTo(program, link string) error {
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		return err
	}
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(program, link)
}

// say prints what became of a folder; quiet leaves out what came from the cache.
func say(name string, b *pinned.Binaries, quiet bool) {
	switch {
	case quiet && b.Built > 0:
		fmt.Printf("%s built in %s\n", name, b.Built.Round(time.Second))
	case quiet:
	default:
		how := "from the cache"
		if b.Built > 0 {
			how = fmt.Sprintf("built in %s", b.Built.Round(time.Second))
		}
		for _, file := range b.Names {
			fmt.Printf("%s %s: %s\n", name, how, b.Path(file))
		}
	}
}
