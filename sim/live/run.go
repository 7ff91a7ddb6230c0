package live

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/live/netns"
)

// Program is a program of the lab: of a node, such as kube-proxy, or of a pod (run).
type Program struct {
	// Key names it: "kube-proxy/win1", "pod/default/web". Machine is where it runs,
	// Command what.
	Key, Machine, Command string
	// PID is its process: for a pod in the helper's PID namespace, as in
	// [netns.Process].
	PID   int
	Since time.Time
	// Ended says how it has ended by itself, "" for one that runs.
	Ended string
	// Log is the file that a node's program writes to, "" for one of a pod.
	Log string

	log func(io.Writer) error
}

// WriteLog writes what the program has written so far; of a pod's program the end of it.
func (p *Program) WriteLog(w io.Writer) error { return p.log(w) }

// Programs are those of the lab's nodes that stay, then those of its pods by name.
func (n *Net) Programs() []Program {
	var all []Program
	_ = n.Do(func(c *lab.Cluster) error {
		for _, p := range c.Programs() {
			kind, _, _ := strings.Cut(p.Name, " ")
			all = append(all, Program{Key: kind + "/" + p.Node, Machine: "node/" + p.Node, Command: p.Name, PID: p.PID, Since: p.Since,
				Ended: p.Ended, Log: p.Log,
				log: func(w io.Writer) error {
					f, err := os.Open(p.Log)
					if err != nil {
						return err
					}
					defer func() { _ = f.Close() }()
					_, err = io.Copy(w, f)
					return err
				}})
		}
		for _, m := range c.Machines(cluster.PodKind) {
			if s := n.spaces[n.ports.Entry(m)]; s != nil && s.run != nil {
				all = append(all, s.run.program())
			}
		}
		return nil
	})
	return all
}

// running is the program of a pod.
type running struct {
	mu   sync.Mutex
	p    Program
	text []byte // the end of what it wrote
}

// maxText bounds what is kept of a program's output, in bytes.
const maxText = 1 << 20

func (r *running) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text = append(r.text, b...)
	if over := len(r.text) - maxText; over > 0 {
		r.text = append(r.text[:0], r.text[over:]...)
	}
	return len(b), nil
}

func (r *running) program() Program {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.p
	p.log = func(w io.Writer) error {
		r.mu.Lock()
		text := append([]byte{}, r.text...)
		r.mu.Unlock()
		_, err := w.Write(text)
		return err
	}
	return p
}

func (r *running) ended(how string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.p.Ended = how
}

// runPod starts a pod's program. One that cannot be started, or ends, is noted: the pod's
// network stays, as that of a container that fails.
func (n *Net) runPod(ctx context.Context, s *space, command []string) {
	r := &running{p: Program{Key: s.name, Machine: s.name, Command: strings.Join(command, " "), Since: time.Now()}}
	n.mu.Lock()
	s.run = r
	n.mu.Unlock()
	err := n.startPod(ctx, s, r, command)
	if err != nil {
		r.ended("it does not start: " + err.Error())
		n.o.Log(fmt.Sprintf("run of %s: %s", s.name, r.program().Ended))
	}
}

func (n *Net) startPod(ctx context.Context, s *space, r *running, command []string) error {
	dir := n.c.Plan.File.Dir()
	c := netns.Command{Args: append([]string{}, command...), Dir: dir}
	if strings.Contains(command[0], "/") && !filepath.IsAbs(command[0]) {
		c.Args[0] = filepath.Join(dir, command[0])
	}
	var err error
	if c.Dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	if isWindowsProgram(c.Args[0]) {
		if strings.Contains(c.Args[0], "/") {
			if _, err := os.Stat(c.Args[0]); err != nil {
				return err
			}
		}
		if c, err = n.wineCommand(ctx, s, c); err != nil {
			return err
		}
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer func() { _ = null.Close() }()
	out, in, err := os.Pipe()
	if err != nil {
		return err
	}
	p, err := n.host.Start(ctx, s.name, c, [3]*os.File{null, in, in})
	_ = in.Close()
	if err != nil {
		_ = out.Close()
		return err
	}
	r.mu.Lock()
	r.p.PID = p.PID
	r.mu.Unlock()
	go func() {
		_, _ = io.Copy(r, out)
		_ = out.Close()
	}()
	go func() {
		e, err := p.Wait(n.life)
		if err != nil {
			return // the network is down
		}
		how := fmt.Sprintf("exit code %d", e.Code)
		if e.Signal != 0 {
			how = syscall.Signal(e.Signal).String()
		}
		r.ended(how)
		n.o.Log(fmt.Sprintf("run of %s has ended: %s", s.name, how))
	}()
	return nil
}

// runOf is the program of the pod at a namespace, nil for none.
func (n *Net) runOf(s *space) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if m := n.machine(s.entry); m != nil && !n.o.NoRun {
		return m.Run
	}
	return nil
}
