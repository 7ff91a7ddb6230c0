package wine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/winlab-dev/winlab/internal/cache"
)

// template returns a bare prefix from the cache, as wineboot makes it. That takes
// seconds and, as distributions package Wine, 700 MB of copies of its own files;
// here these copies become links to the originals.
//
// With a program that takes the place of wineboot in copies, the template also has what
// Wine's wineboot has found out about this machine, which lets the copies start fast.
func (w *Wine) template(ctx context.Context, boot string) (string, error) {
	k := &cache.Key{}
	k.Add("format", "2") // raise when the way of making it changes
	if boot != "" {
		text, err := os.ReadFile(boot)
		if err != nil {
			return "", err
		}
		k.Add("boot", string(text))
		k.Add("processor", processor())
	}
	k.Add("version", w.version)
	k.Add("user", strconv.Itoa(os.Getuid())) // a prefix belongs to one user and has a folder of its name
	for _, f := range []string{w.loader, w.server} {
		info, err := os.Stat(f)
		if err != nil {
			return "", err
		}
		k.Add(f, fmt.Sprint(info.Size(), info.ModTime().UnixNano()))
	}
	dir, made, err := cache.Entry(ctx, "wine", "prefix-"+k.String(), func(tmp string) error { return w.boot(ctx, tmp, boot) })
	if made {
		cache.RemoveUnused("wine")
	}
	return dir, err
}

// boot makes a bare prefix.
func (w *Wine) boot(ctx context.Context, dir, program string) error {
	if err := os.Mkdir(filepath.Join(dir, "home"), 0o755); err != nil {
		return err
	}
	g, err := w.guard(dir)
	if err != nil {
		return err
	}
	if err := w.wineboot(ctx, dir, program); err != nil {
		return errors.Join(err, g.release(false))
	}
	if err := g.release(false); err != nil {
		return err
	}
	if err := prepareRegistry(dir, program != ""); err != nil {
		return fmt.Errorf("wineboot has made no registry: %w", err)
	}
	// Wine must never bring the prefix up to date: it would write through the links.
	if err := os.WriteFile(filepath.Join(dir, ".update-timestamp"), []byte("disable\n"), 0o644); err != nil {
		return err
	}
	users := filepath.Join(dir, "drive_c", "users")
	if err := errors.Join(ownFolders(users), nameFolders(users)); err != nil {
		return err
	}
	return w.linkCopies(ctx, dir)
}

func (w *Wine) wineboot(ctx context.Context, dir, program string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	var out bytes.Buffer
	commands := [][]string{{w.loader, "wineboot", "--init"}}
	if program != "" {
		commands = append(commands, []string{w.loader, Path(program), "--save"})
	}
	for _, c := range append(commands, []string{w.server, "-w"}) {
		cmd := exec.CommandContext(ctx, c[0], c[1:]...)
		cmd.Env = w.env(dir)
		cmd.Dir = dir
		cmd.Stdout, cmd.Stderr = &out, &out
		cmd.WaitDelay = time.Second
		ownGroup(cmd)
		if err := cmd.Run(); err != nil && !errors.Is(err, exec.ErrWaitDelay) {
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			return fmt.Errorf("no Wine prefix could be made: %s: %w\n%s", strings.Join(c, " "), err, tail(out.String(), 10))
		}
	}
	return nil
}

// ownFolders replaces the links to folders outside, which Wine makes for a user's
// documents, by empty folders.
func ownFolders(users string) error {
	return filepath.WalkDir(users, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type() != fs.ModeSymlink {
			return err
		}
		if to, err := os.Readlink(path); err != nil || !filepath.IsAbs(to) {
			return err
		}
		return errors.Join(os.Remove(path), os.Mkdir(path, 0o755))
	})
}

// linkCopies replaces every file below drive_c that is a copy of one of Wine's own
// by a link to it.
func (w *Wine) linkCopies(ctx context.Context, dir string) error {
	own := map[string][]string{} // by name
	for _, root := range w.dataDirs() {
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				own[d.Name()] = append(own[d.Name()], path)
			}
			return nil
		})
	}
	return filepath.WalkDir(filepath.Join(dir, "drive_c"), func(path string, d fs.DirEntry, err error) error {
		if err := errors.Join(err, ctx.Err()); err != nil || !d.Type().IsRegular() {
			return err
		}
		for _, o := range own[d.Name()] {
			if sameContent(path, o) {
				return errors.Join(os.Remove(path), os.Symlink(o, path))
			}
		}
		return nil
	})
}

// dataDirs are where Wine's own files may be: below the folders of its loader.
func (w *Wine) dataDirs() []string {
	dir := filepath.Dir(filepath.Dir(w.loader)) // /usr/lib of /usr/lib/wine/wine64, /opt/wine-stable of .../bin/wine64
	var all []string
	for _, pattern := range []string{"wine", "*/wine", "lib*/wine", "lib*/*/wine", "share/wine", "../share/wine"} {
		found, _ := filepath.Glob(filepath.Join(dir, pattern))
		all = append(all, found...)
	}
	return all
}

// sameContent reports whether two files have the same content.
func sameContent(a, b string) bool {
	ia, err1 := os.Stat(a)
	ib, err2 := os.Stat(b)
	if err1 != nil || err2 != nil || ia.Size() != ib.Size() {
		return false
	}
	ta, err1 := os.ReadFile(a)
	tb, err2 := os.ReadFile(b)
	return err1 == nil && err2 == nil && bytes.Equal(ta, tb)
}

// tail returns the last lines of a text.
func tail(s string, lines int) string {
	all := strings.Split(strings.TrimSpace(s), "\n")
	if n := len(all) - lines; n > 0 {
		all = append([]string{fmt.Sprintf("... (%d lines before)", n)}, all[n:]...)
	}
	return strings.Join(all, "\n")
}
