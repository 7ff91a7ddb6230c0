package netns

import (
	"context"
	"errors"
	"os"
)

// StartContainer starts a container in a namespace with three open files as its standard
// input, output and error, and returns when its program runs. [Process.Signal] is for
// that program only. The container's name is taken until RemoveContainer, also after its
// end. The error wraps exec.ErrNotFound when there is no such program in it, or no source
// of a mount.
func (h *Host) StartContainer(ctx context.Context, name string, c Container, command Command, stdio [3]*os.File) (*Process, error) {
	switch {
	case len(command.Args) == 0:
		return nil, errors.New("no program to start")
	case c.Name == "":
		return nil, errors.New("a container needs a name")
	}
	p, err := h.launch(ctx, request{Op: "contain", Name: name, Container: &c, Command: &command}, stdio)
	if p != nil {
		p.alone = true
	}
	return p, err
}

// ExecContainer starts another program in a container that runs. It ends with the
// container at the latest.
func (h *Host) ExecContainer(ctx context.Context, name, container string, command Command, stdio [3]*os.File) (*Process, error) {
	if len(command.Args) == 0 {
		return nil, errors.New("no program to start")
	}
	return h.launch(ctx, request{Op: "exec", Name: name, Inside: container, Command: &command}, stdio)
}

// RemoveContainer ends all processes of a container and forgets it. One that is not there
// is not an error.
func (h *Host) RemoveContainer(ctx context.Context, name, container string) error {
	_, err := h.ask(ctx, request{Op: "discard", Name: name, Inside: container})
	return err
}

// Usage is what the processes of a container use now.
func (h *Host) Usage(ctx context.Context, name, container string) (Usage, error) {
	r, err := h.ask(ctx, request{Op: "usage", Name: name, Inside: container})
	if err != nil {
		return Usage{}, err
	}
	return *r.Usage, nil
}
