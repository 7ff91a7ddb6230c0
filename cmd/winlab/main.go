// Command winlab is a lab for Windows nodes in Kubernetes that runs on Linux.
// `winlab help` lists its verbs; docs/cli.md is the same as a page.
package main

import (
	"os"

	"github.com/winlab-dev/winlab/cmd/winlab/internal/cli"
)

func main() { os.Exit(cli.Main()) }
