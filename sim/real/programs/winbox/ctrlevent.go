package main

import (
	"context"
	"fmt"
	"strings"
)

// proc is a process of the container.
type proc struct {
	id    uint32
	image string // the name of its file
	start int64
}

// ctrlEvent is winlab-ctrl.exe IMAGE: the first process of a program gets a shutdown event of the
// console, as a container runtime asks a container to end. It is not a program of Windows. Exit
// code 3 says that there is no such process.
func ctrlEvent(_ context.Context, s *system, args []string) int {
	if len(args) != 1 {
		return s.complain(2, "winlab: write winlab-ctrl IMAGE")
	}
	all, err := s.processes()
	if err != nil {
		return s.complain(1, "winlab: %v", err)
	}
	p, ok := first(all, args[0])
	if !ok {
		return s.complain(3, "winlab: no process of %s", args[0])
	}
	if err := s.shutdownEvent(p.id); err != nil {
		return s.complain(1, "winlab: process %d of %s: %v", p.id, p.image, err)
	}
	return 0
}

// first is the process of an image that was there first: a container's own one, and not
// one that it or somebody in it has started.
func first(all []proc, image string) (p proc, ok bool) {
	for _, q := range all {
		if strings.EqualFold(q.image, image) && (!ok || q.start < p.start) {
			p, ok = q, true
		}
	}
	return p, ok
}

// errNotWindows is what these say on a system of which they know nothing.
var errNotWindows = fmt.Errorf("this is for Windows")
