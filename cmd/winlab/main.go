// Command winlab is a lab for Windows nodes in Kubernetes that runs on Linux.
package main

import (
	"fmt"
	"os"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/trace/text"
)

func main() {
	f, err := lab.Load(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	c, err := f.Build(lab.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	for _, l := range c.Log {
		fmt.Fprintln(os.Stderr, l)
	}
	proto := "tcp"
	if len(os.Args) > 4 {
		proto = os.Args[4]
	}
	t, err := c.Trace(lab.Request{From: os.Args[2], To: os.Args[3], Protocol: proto})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	text.Render(os.Stdout, t, text.Options{Width: 140})
}
