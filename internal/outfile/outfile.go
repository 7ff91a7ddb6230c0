// Package outfile writes the files that a user names. It refuses what would destroy something: an
// input of the same run, a device, a folder. It must not know what is written.
package outfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/winlab-dev/winlab/internal/input"
)

// Write writes a file: whole, or not at all. It is written beside its place and moved there. A new
// file has the mode that perm and the umask give, one that is replaced keeps its own. Pipes,
// standard output and /dev/null are written to as they are.
func Write(name string, perm fs.FileMode, write func(io.Writer) error) error {
	place, old, err := check(name)
	if err != nil {
		return err
	}
	if old != nil && place == "" {
		f, err := openAsIs(name)
		if err != nil {
			return err
		}
		err = buffered(f, write)
		if f != os.Stdout {
			err = errors.Join(err, f.Close())
		}
		return err
	}
	f, err := beside(place, perm)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	err = buffered(f, write)
	if err == nil && old != nil {
		err = f.Chmod(old.Mode().Perm())
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return named(name, err)
	}
	if err := Check(name); err != nil { // what was read meanwhile is an input too
		return err
	}
	return os.Rename(f.Name(), place)
}

// named puts the name that was given before an error that has another, or none.
func named(name string, err error) error {
	if at := (*fs.PathError)(nil); errors.As(err, &at) && strings.Contains(at.Path, temporary) {
		at.Path = name
		return err
	}
	return err
}

func buffered(f *os.File, write func(io.Writer) error) error {
	b := bufio.NewWriterSize(f, 1<<18)
	if err := write(b); err != nil {
		return err
	}
	return b.Flush()
}

// WriteFile is Write for what is in memory.
func WriteFile(name string, data []byte, perm fs.FileMode) error {
	return Write(name, perm, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Stream opens a file that others read while it is written. It is empty from the beginning.
func Stream(name string) (*os.File, error) {
	place, old, err := check(name)
	if err != nil {
		return nil, err
	}
	if old != nil && place == "" {
		return openAsIs(name)
	}
	return os.OpenFile(place, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o666)
}

// openAsIs opens a pipe or a device that check lets pass.
func openAsIs(name string) (*os.File, error) {
	if info, err := os.Stat(name); err == nil && isSame(info, os.Stdout.Stat) {
		return os.Stdout, nil // what was written there before stays
	}
	f, err := os.OpenFile(name, os.O_WRONLY|nonblock, 0)
	if err != nil {
		return nil, fmt.Errorf("%w (for a pipe: start the program that reads from it first)", err)
	}
	return f, nil
}

// Check says whether a file may be written, without touching it: what is wrong is found before the
// work.
func Check(name string) error {
	_, _, err := check(name)
	return err
}

// check refuses inputs, and what checkKind does.
func check(name string) (place string, old fs.FileInfo, err error) {
	place, old, err = checkKind(name)
	if err == nil && place != "" && old != nil {
		if in := input.Named(old); in != "" {
			err = &fs.PathError{Op: "write", Path: name, Err: fmt.Errorf("this is %s, which is read; write another file", in)}
		}
	}
	return place, old, err
}

// checkKind returns where a file is, links followed, and what is there already. The place of what is
// written to as it is is "".
func checkKind(name string) (place string, old fs.FileInfo, err error) {
	refuse := func(format string, args ...any) (string, fs.FileInfo, error) {
		return "", nil, &fs.PathError{Op: "write", Path: name, Err: fmt.Errorf(format, args...)}
	}
	old, err = os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		if info, err := os.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return refuse("this is a link to a file that does not exist; name that file")
		}
		if info, err := os.Stat(filepath.Dir(name)); err != nil || !info.IsDir() {
			return refuse("there is no folder %s; make it first", filepath.Dir(name))
		}
		return name, nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	switch mode := old.Mode(); {
	case mode.IsDir():
		return refuse("this is a folder; name a file")
	case mode&fs.ModeDevice != 0 && !isHarmless(old):
		return refuse("this is a device; name a file, /dev/stdout or /dev/null")
	case mode&fs.ModeSocket != 0:
		return refuse("this is a socket; name a file")
	case !mode.IsRegular() || isSame(old, os.Stdout.Stat):
		return "", old, nil
	}
	place, err = filepath.EvalSymlinks(name)
	return place, old, err
}

// isHarmless reports whether a device is /dev/null or the terminal of this process.
func isHarmless(info fs.FileInfo) bool {
	null := func() (fs.FileInfo, error) { return os.Stat(os.DevNull) }
	return isSame(info, null) || isSame(info, os.Stdout.Stat) || isSame(info, os.Stderr.Stat)
}

func isSame(info fs.FileInfo, stat func() (fs.FileInfo, error)) bool {
	other, err := stat()
	return err == nil && os.SameFile(info, other)
}

// temporary is in the names of files that are being written.
const temporary = ".winlab-"

// beside makes a new file in the folder of another. Its mode is perm less the umask, which
// os.CreateTemp does not ask.
func beside(place string, perm fs.FileMode) (f *os.File, err error) {
	for range 100 {
		base := filepath.Base(place)
		name := filepath.Join(filepath.Dir(place), fmt.Sprintf(".%s%s%d", base[:min(len(base), 200)], temporary, rand.Uint64()))
		if f, err = os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, perm); !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return f, named(place, err)
}
