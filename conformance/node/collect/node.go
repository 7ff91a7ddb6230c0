package collect

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/winlab-dev/winlab/conformance/node/bundle"
)

// Step is one thing that is read on a node.
type Step struct {
	// Name is its short name, What what it reads, in words.
	Name, What string
	// How are the calls, commands and files.
	How []string
	run func(context.Context, *node) error
}

// Options say how a bundle is taken.
type Options struct {
	// Node is the node's name in Kubernetes; "" is the computer's, in lower case.
	Node string
	// LogBytes is how much of the end of each log is taken; 0 is 1 MiB.
	LogBytes int64
	// Timeout is how long a step may take; 0 is a minute. Windows' calls cannot be
	// interrupted: a step that is late is left behind, and noted.
	Timeout time.Duration
	// Progress, when set, gets each step when it is done.
	Progress func(bundle.Step)
}

// ErrNotWindows says that this machine is not a Windows node.
var ErrNotWindows = errors.New("this machine does not run Windows: run winlab.exe on a Windows node")

// absent is an error that says that something is not there, which is not a failure.
type absent struct{ why string }

func (a absent) Error() string { return a.why }

// node is the node that is being read. A step gets one of its own, whose files go into the bundle
// when it has ended in time.
type node struct {
	name  string
	o     Options
	files []taken
}

type taken struct {
	file bundle.File
	data []byte
}

// add keeps a file: path is below the node's folder.
func (n *node) add(path, what, from string, data []byte) {
	n.files = append(n.files, taken{bundle.File{Path: "nodes/" + n.name + "/" + path, What: what, Node: n.name, From: from}, data})
}

// addText is add for what may hold secrets.
func (n *node) addText(path, what, from string, data []byte, cutFrom int64) {
	text, count := Redact(string(data))
	n.add(path, what, from, []byte(text))
	f := &n.files[len(n.files)-1].file
	f.Redacted, f.CutFrom = count, cutFrom
}

// Node reads the node that this program runs on. The error is about the bundle or the context;
// what fails on the node is in the bundle's steps.
func Node(ctx context.Context, w *bundle.Writer, o Options) error {
	name, err := nodeName(o.Node)
	if err != nil {
		return err
	}
	for _, s := range Steps() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.take(ctx, w, name, o); err != nil {
			return err
		}
	}
	return nil
}

func (s *Step) take(ctx context.Context, w *bundle.Writer, name string, o Options) error {
	timeout := o.Timeout
	if timeout == 0 {
		timeout = time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	n := &node{name: name, o: o}
	done := make(chan error, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil { // what a node answers must not end the others
				done <- fmt.Errorf("winlab failed here: %v", r)
			}
		}()
		done <- s.run(ctx, n)
	}()
	said := bundle.Step{Name: s.Name, What: s.What, Node: name}
	var files []taken
	select {
	case err := <-done:
		files = n.files
		var a absent
		if errors.As(err, &a) {
			said.Absent = a.why
		} else if err != nil {
			said.Error = err.Error()
		}
	case <-ctx.Done():
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return ctx.Err()
		}
		said.Error = fmt.Sprintf("no answer after %s", timeout)
	}
	for _, f := range files {
		if err := w.Add(f.file, f.data); err != nil {
			return err
		}
		said.Files = append(said.Files, f.file.Path)
	}
	w.Step(said)
	if o.Progress != nil {
		o.Progress(said)
	}
	return nil
}

// safeName makes a part of a path of a text: a name of a node, or of a file.
func safeName(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '_'
	}, s)
}

// tail is the end of a text from the beginning of a line on, and how large the whole was when
// something was left out.
func tail(data []byte, limit int64) ([]byte, int64) {
	size := int64(len(data))
	if size <= limit {
		return data, 0
	}
	end := data[size-limit:]
	for i, c := range end {
		if c == '\n' {
			return end[i+1:], size
		}
	}
	return end, size
}
