// Package serve takes the calls of winlab's verbs (ps, exec, watch, trace, capture, hns,
// down, ...) for a network that another program runs, so that winlab can inspect it like a
// lab of winlab up. It must not have verbs of its own.
package serve

import (
	"github.com/winlab-dev/winlab/cmd/winlab/internal/cli"
	"github.com/winlab-dev/winlab/sim/live"
)

// Lab is a network that winlab's verbs find.
type Lab = cli.Served

// New serves a network that runs under a name, made of the lab of a file. down is called
// when somebody asks for its end. The caller must Close it.
func New(name, file string, n *live.Net, down func()) *Lab { return cli.Serve(name, file, n, down) }
