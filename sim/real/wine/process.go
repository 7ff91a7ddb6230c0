package wine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Command is a Windows program to run.
type Command struct {
	// Path is the program's file on this machine.
	Path string
	// Args are handed over as they are; see [Path] for those that are files.
	Args []string
	// Env are variables "NAME=value" of the program, beside those that Windows
	// itself sets and those of Wine. The caller's own environment is not
	// handed on.
	Env []string
	// dir is the program's folder, by default the root of drive C, so that a path
	// like \var\lib is one in the prefix.
	dir string
	// Stdin is what the program reads; nil is an empty input.
	Stdin io.Reader
	// Speaks says that the program writes something before it fails, as kube-proxy does,
	// which logs its flags first. One that fails without a word was not started by Wine,
	// which happens on a busy machine and says nothing about the program: it is started
	// again, [Starts] times at most. Stdin must be nil.
	Speaks bool
	// grace is how long Stop waits after Ctrl-C, by default 5 s.
	grace time.Duration
}

// Process is a Windows program that was started.
type Process struct {
	// Stderr is the file that holds its error output, stdout its output.
	Stderr, stdout string

	prefix  *Prefix
	command Command
	grace   time.Duration
	done    chan struct{}
	err     error

	// Under the prefix' lock: the process of Linux, how many there were, and whether
	// there is to be no other.
	cmd     *exec.Cmd
	starts  int
	stopped bool
}

// Starts is how often a program is started that Wine does not start.
const Starts = 3

// NeverBegan reports whether a program that failed did so before its own code ran, when
// that would have written something: it wrote nothing, or Wine could not initialise a DLL
// that every Go program loads first.
func NeverBegan(stdout, stderr string) bool {
	return stdout == "" && (stderr == "" || strings.Contains(stderr, "DLL initialization failed"))
}

// Start starts a program. It is stopped when ctx ends.
func (p *Prefix) Start(ctx context.Context, c Command) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	path, err := filepath.Abs(c.Path)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("no Windows program to start: %w", err)
	}
	for _, kv := range c.Env {
		if name, _, ok := strings.Cut(kv, "="); !ok || strings.HasPrefix(name, "WINE") && name != "WINEDEBUG" {
			return nil, fmt.Errorf("%s: the variable %q: write NAME=value; Wine's own variables are not for programs", filepath.Base(path), kv)
		}
	}
	if c.Speaks && c.Stdin != nil {
		return nil, fmt.Errorf("%s: a program that reads its input cannot be started again", filepath.Base(path))
	}
	c.Path = path
	r := p.process(c)
	if err := r.launch(); err != nil {
		return nil, err
	}
	go r.watch()
	go func() {
		select {
		case <-ctx.Done():
			r.Stop()
		case <-r.done:
		}
	}()
	return r, nil
}

// process prepares a program that is not started yet.
func (p *Prefix) process(c Command) *Process {
	p.mu.Lock()
	p.started++
	number := p.started
	p.mu.Unlock()
	log := filepath.Join(p.logs, fmt.Sprintf("%03d-%s", number, strings.TrimSuffix(filepath.Base(c.Path), ".exe")))
	return &Process{stdout: log + ".stdout", Stderr: log + ".stderr", prefix: p, command: c, grace: cmp.Or(c.grace, 5*time.Second),
		done: make(chan struct{})}
}

// linux is the process of Linux that runs the program.
func (r *Process) linux() *exec.Cmd {
	r.prefix.mu.Lock()
	defer r.prefix.mu.Unlock()
	return r.cmd
}

// launch starts the program, unless it was stopped or the prefix is closed: nothing may
// start after Close has looked for what runs.
func (r *Process) launch() error {
	p, c := r.prefix, r.command
	// Files, not pipes: a child that keeps its output open blocks no reader.
	stdout, err := os.Create(r.stdout)
	if err != nil {
		return err
	}
	defer stdout.Close()
	stderr, err := os.Create(r.Stderr)
	if err != nil {
		return err
	}
	defer stderr.Close()
	cmd := exec.Command(p.wine.loader, append([]string{Path(c.Path)}, c.Args...)...)
	cmd.Env = append(p.env[:len(p.env):len(p.env)], c.Env...)
	cmd.Dir = cmp.Or(c.dir, filepath.Join(p.Dir, "drive_c"))
	cmd.Stdin = c.Stdin
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.WaitDelay = time.Second // when Stdin is a reader that does not end
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return fmt.Errorf("%s: the Wine prefix is closed", filepath.Base(c.Path))
	}
	if r.stopped {
		return fmt.Errorf("%s was stopped", filepath.Base(c.Path))
	}
	if err := startMortal(cmd); err != nil {
		return fmt.Errorf("%s: it does not start: %w", filepath.Base(c.Path), err)
	}
	r.cmd = cmd
	r.starts++
	p.running[r] = true
	return nil
}

func (r *Process) watch() {
	defer close(r.done)
	for {
		cmd := r.linux()
		err := cmd.Wait()
		r.prefix.mu.Lock()
		delete(r.prefix.running, r)
		again := r.command.Speaks && !r.stopped && r.starts < Starts && cmd.ProcessState.ExitCode() != 0
		r.prefix.mu.Unlock()
		if again && r.silent() {
			if r.launch() == nil {
				continue
			}
		}
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
			r.err = err
		}
		return
	}
}

// Silent reports whether a program that [Command.Speaks] has ended with a failure before its
// own code ran. It waits for the end.
func (r *Process) Silent() bool {
	code, _ := r.wait()
	return r.command.Speaks && code != 0 && r.silent()
}

func (r *Process) silent() bool {
	stdout, err1 := os.ReadFile(r.stdout)
	stderr, err2 := os.ReadFile(r.Stderr)
	return err1 == nil && err2 == nil && NeverBegan(string(stdout), string(stderr))
}

// End says how a program has ended, for one that should not have: its code, and how often
// Wine was asked to start it.
func (r *Process) End() string {
	code, err := r.wait()
	s := fmt.Sprintf("code %d", code)
	if err != nil {
		s += ": " + err.Error()
	}
	if r.Silent() {
		s += ", without any output: Wine did not start it"
	}
	r.prefix.mu.Lock()
	defer r.prefix.mu.Unlock()
	if r.starts > 1 {
		s += fmt.Sprintf(", at start %d", r.starts)
	}
	return s
}

// State is what Linux says of the program's process, in one line: its state, its threads
// and what they wait for in the kernel. A program that has ended for Windows can still
// be a process that does not get to its end.
func (r *Process) State() string {
	dir := fmt.Sprintf("/proc/%d", r.linux().Process.Pid)
	text, err := os.ReadFile(dir + "/status")
	if err != nil {
		return err.Error()
	}
	var all []string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "State:") || strings.HasPrefix(line, "Threads:") {
			all = append(all, strings.Join(strings.Fields(line), " "))
		}
	}
	waits := map[string]int{}
	tasks, _ := filepath.Glob(dir + "/task/*/wchan")
	for _, name := range tasks {
		if at, err := os.ReadFile(name); err == nil {
			waits[string(at)]++
		}
	}
	files, _ := filepath.Glob(dir + "/fd/*")
	return fmt.Sprintf("%s, waits %v, %d open files", strings.Join(all, ", "), waits, len(files))
}

// PID is the number of the program's process of Linux.
func (r *Process) PID() int { return r.linux().Process.Pid }

// Done is closed when the program has ended.
func (r *Process) Done() <-chan struct{} { return r.done }

// wait waits for the program's end and returns its exit code. Wine hands on the
// lowest eight bits of it, as Linux does; -1 is a program that was killed.
func (r *Process) wait() (code int, err error) {
	<-r.done
	return r.linux().ProcessState.ExitCode(), r.err
}

// last is the process of Linux after which none is started.
func (r *Process) last() (pid int) {
	r.prefix.mu.Lock()
	defer r.prefix.mu.Unlock()
	r.stopped = true
	return r.cmd.Process.Pid
}

// Stop ends the program: Ctrl-C as on a console, and when it still runs after its
// grace, the program and its children are terminated. It returns when the program
// has ended.
func (r *Process) Stop() {
	select {
	case <-r.done:
		return
	default:
	}
	interrupt(r.last())
	select {
	case <-r.done:
	case <-time.After(r.grace):
		r.Kill()
	}
}

// Kill terminates the program and its children without notice, and waits for its
// end.
func (r *Process) Kill() {
	select {
	case <-r.done:
		return
	default:
	}
	killGroup(r.last())
	<-r.done
}

// Result is what became of a program.
type Result struct {
	Code           int
	Stdout, Stderr string
}

// Run runs a program until it ends, or stops it when ctx ends, which is an error.
// An exit code is not an error.
func (p *Prefix) Run(ctx context.Context, c Command) (*Result, error) {
	r, err := p.Start(ctx, c)
	if err != nil {
		return nil, err
	}
	code, err := r.wait()
	res := &Result{Code: code}
	stdout, err1 := os.ReadFile(r.stdout)
	stderr, err2 := os.ReadFile(r.Stderr)
	res.Stdout, res.Stderr = string(stdout), string(stderr)
	err = errors.Join(err, err1, err2)
	if ctx.Err() != nil {
		err = errors.Join(fmt.Errorf("%s: %w", filepath.Base(c.Path), ctx.Err()), err)
	}
	return res, err
}
