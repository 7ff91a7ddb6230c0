package wine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// Config says what a prefix is like.
type Config struct {
	// Dir is the folder of this run. The prefix is made in it and removed by
	// Close; the programs' output stays in Dir/logs.
	Dir string
	// Build is the Windows build that programs see.
	Build *builds.Build
	// DLLs are files, or folders of files *.dll, that are put into system32 and
	// used instead of Wine's own. Wine's own NAME.dll is then wine_NAME.dll, so
	// that a DLL may forward to it what it does not do itself.
	DLLs []string
	// Programs are files that take the place of Wine's own programs, by their path below
	// system32: "whoami.exe".
	Programs map[string]string
	// Boot is a program that takes the place of Wine's wineboot.exe in the prefix, so
	// that the first program starts as fast as others: wineboot.exe of package shims.
	// Without it Wine starts its services with the first program.
	Boot string
	// HostName is the name of the machine that programs see, by default this one's.
	HostName string
	// Resolver is what the registry says about name servers.
	Resolver Resolver
	// User is what programs take for their user's name ([UserEnv]), by default
	// ContainerAdministrator. For Windows' functions all of a prefix have one user,
	// which is this machine's.
	User string
}

// Prefix is a Wine prefix in which programs can be started. Its methods can be
// called by several goroutines.
type Prefix struct {
	// Dir is the prefix.
	Dir string

	logs  string // the folder with the programs' output
	wine  *Wine
	env   []string
	guard *guard
	// keeper is there where Wine boots by itself: a program that waits for its input to
	// end. While it runs, Wine's services stay up, and a program starts in a tenth of the
	// time.
	keeper      *exec.Cmd
	keeperInput io.Closer
	keeperDone  chan struct{}

	mu      sync.Mutex
	closed  bool
	started int
	running map[*Process]bool
}

// Prefix makes a prefix. The caller must Close it.
func (w *Wine) Prefix(ctx context.Context, c Config) (*Prefix, error) {
	still, err := w.Copy(ctx, c)
	if err != nil {
		return nil, err
	}
	p := &Prefix{Dir: still.Dir, logs: still.logs, wine: w, env: still.Env, guard: still.guard, running: map[*Process]bool{}}
	start := p.startServer
	if c.Boot != "" {
		start = func(ctx context.Context) error { return p.bootServer(ctx, still.Boot) }
	}
	if err := start(ctx); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Copy is a prefix in which nothing runs yet. Others start its programs, for
// example in a network namespace: Wine's server makes the sockets of all programs of a
// prefix, in the namespace in which it was started.
type Copy struct {
	// Dir is the prefix, Env the environment of its programs.
	Dir string
	Env []string
	// Server is the command that starts Wine's server and returns. It comes before
	// the first program.
	Server []string
	// Boot is a command that comes after the server and before the programs. Without it
	// each program that is started while none runs takes longer. nil when
	// [Config] has none.
	Boot []string
	// Services is a command that starts Wine's services, for programs that ask for drives
	// (dir and vol of cmd.exe); others start them when they are needed. nil as Boot is.
	Services []string

	loader, logs string
	guard        *guard
}

// Command is how a Windows program is started: its path is one of this machine or of
// Windows.
func (c *Copy) Command(path string, args ...string) []string {
	return append([]string{c.loader, Path(path)}, args...)
}

// Close ends all programs of the prefix that this process can see, and removes it.
func (c *Copy) Close() error { return errors.Join(c.guard.release(true), os.RemoveAll(c.Dir)) }

// Copy makes a prefix in which nothing runs. The caller must Close it.
func (w *Wine) Copy(ctx context.Context, c Config) (*Copy, error) {
	if c.Build == nil || c.Dir == "" {
		return nil, errors.New("a Wine prefix needs a folder and a Windows build")
	}
	run, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, err
	}
	dlls, err := findDLLs(c.DLLs)
	if err != nil {
		return nil, err
	}
	words, err := w.withMessages(ctx)
	if err != nil {
		return nil, err
	}
	dlls = append(dlls, words)
	bare, err := w.template(ctx, c.Boot)
	if err != nil {
		return nil, err
	}
	p := &Copy{Dir: filepath.Join(run, "prefix"), logs: filepath.Join(run, "logs"), loader: w.loader, Server: []string{w.server}}
	if err := os.MkdirAll(p.logs, 0o755); err != nil {
		return nil, err
	}
	if err := os.Mkdir(p.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("each Wine prefix needs a folder of its own: %w", err)
	}
	if p.guard, err = w.guard(p.Dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(p.Dir))
	}
	values, err := nameValues(c.HostName)
	if err == nil {
		err = fill(p.Dir, bare, dlls, c.programs(), slices.Concat(values, c.Resolver.values(), buildValues(c.Build)))
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	var overrides []string
	for _, name := range slices.Sorted(maps.Keys(c.programs())) {
		overrides = append(overrides, strings.ToLower(filepath.Base(name))+"=n")
	}
	if c.Boot != "" {
		p.Boot = p.Command(`C:\windows\system32\` + bootProgram)
		p.Services = append(slices.Clone(p.Boot), "--services")
	}
	for _, d := range dlls {
		overrides = append(overrides, strings.TrimSuffix(strings.ToLower(filepath.Base(d)), ".dll")+"=n")
	}
	p.Env = append(w.env(p.Dir, overrides...), UserEnv(cmp.Or(c.User, "ContainerAdministrator"))...)
	return p, nil
}

// fill copies the bare prefix and makes it that of the build.
func fill(dir, bare string, dlls []string, programs map[string]string, values []value) error {
	if err := clone(bare, dir); err != nil {
		return fmt.Errorf("copying the bare Wine prefix: %w", err)
	}
	system32 := filepath.Join(dir, "drive_c", "windows", "system32")
	for _, d := range dlls {
		name := strings.ToLower(filepath.Base(d))
		to := filepath.Join(system32, name)
		if err := os.Rename(to, filepath.Join(system32, "wine_"+name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := place(d, to); err != nil {
			return err
		}
	}
	for name, file := range programs {
		to := filepath.Join(system32, filepath.FromSlash(name))
		if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := place(file, to); err != nil {
			return err
		}
	}
	return setRegistry(dir, values)
}

// place puts a program into a prefix: a large one as a link, as Wine's own are.
func place(file, to string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if info.Size() > 1<<20 {
		return os.Symlink(file, to)
	}
	return copyFile(file, to, 0o755)
}

// programs are all that take the place of Wine's.
func (c *Config) programs() map[string]string {
	all := maps.Clone(c.Programs)
	if c.Boot != "" {
		if all == nil {
			all = map[string]string{}
		}
		all[bootProgram] = c.Boot
	}
	return all
}

// findDLLs lists the files that Config.DLLs names.
func findDLLs(paths []string) ([]string, error) {
	var all []string
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			return nil, fmt.Errorf("DLLs for Wine: %w", err)
		}
		if !info.IsDir() {
			all = append(all, p)
			continue
		}
		found, err := filepath.Glob(filepath.Join(p, "*.dll"))
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("DLLs for Wine: no file *.dll in %s", p)
		}
		all = append(all, found...)
	}
	return all, nil
}

// clone copies a bare prefix: a few megabytes, most of it is links. A link to Wine's own
// file is shared, which costs an entry in a folder instead of a file, where both are on one
// file system.
func clone(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil || rel == "." {
			return err
		}
		dst := filepath.Join(to, rel)
		switch {
		case d.IsDir():
			return os.Mkdir(dst, 0o755)
		case d.Type() == fs.ModeSymlink:
			if os.Link(path, dst) == nil {
				return nil
			}
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(target, dst)
		case d.Type().IsRegular():
			return copyFile(path, dst, 0o644)
		}
		return nil
	})
}

// bootServer starts the Wine server for as long as the prefix is there, and boots.
func (p *Prefix) bootServer(ctx context.Context, boot []string) error {
	if err := p.runAlone(ctx, p.wine.server, "-p"); err != nil {
		return fmt.Errorf("the Wine server does not start: %w", err)
	}
	if err := p.runAlone(ctx, boot...); err != nil {
		return fmt.Errorf("Wine does not start: %w", err)
	}
	return nil
}

// runAlone runs a program of Wine that ends by itself. No pipe for its output: what goes on
// in the background would keep it open.
func (p *Prefix) runAlone(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env, cmd.Dir = p.env, p.Dir
	ownGroup(cmd)
	err := cmd.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// startServer starts the Wine server, and the keeper in it. The server comes first and
// alone: programs that each start one at the same time disturb each other (on
// Debian they fail, over the file that names the server's folder).
func (p *Prefix) startServer(ctx context.Context) error {
	if err := p.runAlone(ctx, p.wine.server); err != nil {
		return fmt.Errorf("the Wine server does not start: %w", err)
	}
	cmd := exec.Command(p.wine.loader, "cmd.exe")
	cmd.Env, cmd.Dir = p.env, p.Dir
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	prompt, out, err := os.Pipe()
	if err != nil {
		return err
	}
	defer out.Close()
	cmd.Stdout = out
	if err := startMortal(cmd); err != nil {
		return errors.Join(fmt.Errorf("Wine does not start: %w", err), prompt.Close())
	}
	p.keeper, p.keeperInput, p.keeperDone = cmd, in, make(chan struct{})
	go func() {
		defer close(p.keeperDone)
		_ = cmd.Wait()
	}()
	// Only when it has written its prompt are Wine's services up. The rest of its
	// output does not matter; the reader ends with the prefix.
	up := make(chan struct{})
	go func() {
		defer prompt.Close()
		var one [1]byte
		if n, _ := prompt.Read(one[:]); n > 0 {
			close(up)
		}
		_, _ = io.Copy(io.Discard, prompt)
	}()
	select {
	case <-up:
		return nil
	case <-p.keeperDone:
		return errors.New("Wine has started, and cmd.exe in it ended at once")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close ends every program of the prefix at once (use [Process.Stop] before where a
// program is to end by itself), waits until no process of it is left, and removes
// it. The logs stay.
func (p *Prefix) Close() error {
	p.mu.Lock()
	p.closed = true
	var running []*Process
	for r := range p.running {
		running = append(running, r)
	}
	p.mu.Unlock()
	for _, r := range running {
		r.Kill()
	}
	if p.keeper != nil {
		_ = p.keeperInput.Close()
		killGroup(p.keeper.Process.Pid)
		<-p.keeperDone
	}
	err := p.guard.release(true)
	return errors.Join(err, os.RemoveAll(p.Dir))
}

func copyFile(from, to string, mode os.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
