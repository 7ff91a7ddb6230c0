package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/winlab-dev/winlab/conformance/node/bundle"
)

// Kubectl runs kubectl with arguments, in as its input and out for what it prints. The error has
// what it says on standard error.
type Kubectl func(ctx context.Context, in io.Reader, out io.Writer, args ...string) error

// Client says which kubectl is run, and for which cluster.
type Client struct {
	// Program is its name or path; "" is kubectl.
	Program string
	// Kubeconfig and Context are its flags of these names; "" leaves them out.
	Kubeconfig, Context string
}

// ErrNoKubectl says that there is no kubectl.
var ErrNoKubectl = errors.New("kubectl is not on the PATH; install it (https://kubernetes.io/docs/tasks/tools), or name it with --kubectl")

// flags are those that every command begins with.
func (c Client) flags() (flags []string) {
	if c.Kubeconfig != "" {
		flags = append(flags, "--kubeconfig", c.Kubeconfig)
	}
	if c.Context != "" {
		flags = append(flags, "--context", c.Context)
	}
	return flags
}

func (c Client) name() string {
	if c.Program == "" {
		return "kubectl"
	}
	return c.Program
}

// Shown is a command as it can be typed.
func (c Client) Shown(args ...string) string {
	words := append(append([]string{c.name()}, c.flags()...), args...)
	for i, w := range words {
		if strings.ContainsAny(w, " \t\"'\\$&|;<>()*?#~`") {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// Find finds the program.
func (c Client) Find() (Kubectl, error) {
	path, err := exec.LookPath(c.name())
	if err != nil {
		if c.Program != "" {
			return nil, err
		}
		return nil, ErrNoKubectl
	}
	return func(ctx context.Context, in io.Reader, out io.Writer, args ...string) error {
		cmd := exec.CommandContext(ctx, path, append(c.flags(), args...)...)
		// A program that it has started to log in may hold its output open.
		cmd.WaitDelay = 2 * time.Second
		var said tailBuffer
		cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, &said
		err := cmd.Run()
		var exit *exec.ExitError
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &exit) && said.String() != "":
			return answer{said.String(), err}
		}
		return err
	}, nil
}

// answer is what kubectl says when it fails.
type answer struct {
	text string
	err  error
}

func (a answer) Error() string { return a.text }
func (a answer) Unwrap() error { return a.err }

// tailBuffer keeps the end of what is written: a message, and not a log.
type tailBuffer struct{ b []byte }

const maxMessage = 8 << 10

func (t *tailBuffer) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if len(t.b) > 2*maxMessage {
		t.b = append([]byte(nil), t.b[len(t.b)-maxMessage:]...)
	}
	return len(p), nil
}

func (t *tailBuffer) String() string {
	return strings.TrimSpace(string(t.b[max(0, len(t.b)-maxMessage):]))
}

// bounded is a buffer that takes as much as a file of a bundle may have.
type bounded struct {
	bytes.Buffer
	limit int64
}

func (b *bounded) Write(p []byte) (int, error) {
	if int64(b.Len()+len(p)) > b.limit {
		return 0, fmt.Errorf("it prints more than %d bytes", b.limit)
	}
	return b.Buffer.Write(p)
}

// output runs kubectl and returns what it prints.
func (k Kubectl) output(ctx context.Context, args ...string) ([]byte, error) {
	out := &bounded{limit: bundle.DefaultLimits.File}
	err := k(ctx, nil, out, args...)
	return out.Bytes(), err
}

// answered reports whether an error comes from the API server, and not from the way to it.
func answered(err error) bool {
	var a answer
	return errors.As(err, &a) && (strings.Contains(a.text, "from server") || strings.Contains(a.text, "(Unauthorized)") ||
		strings.Contains(a.text, "(Forbidden)"))
}
