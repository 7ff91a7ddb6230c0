// Package input opens the files that a user names, which may be anything: a device that never
// ends, a pipe that nobody writes to, a file that does not fit into memory. It must not know what
// is in a file.
package input

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/winlab-dev/winlab/internal/ctxio"
)

// Limits in bytes, for what has no narrower one of its own.
const (
	// Text is for what people or one program of a node write: manifests, configuration, logs.
	Text = 64 << 20
	// Document is for what winlab itself writes: results, findings, state, call logs.
	Document = 1 << 30
	// Stream is for what is read piece by piece and never whole: captures, archives.
	Stream = 64 << 30
)

// File is an input that is open. Reading ends with an error at the limit, and when the context does.
type File struct {
	f    *os.File
	info fs.FileInfo
	// ctx ends reading a pipe; it is nil where a regular file is read.
	ctx  context.Context
	stop func() bool
	// left is how many bytes may still be read.
	left, limit int64
	some        bool
}

// regularOnly is the context of those that read no pipe: nothing would end that.
var regularOnly context.Context

// Open opens a regular file of up to limit bytes, or a pipe that a program writes to, as a shell
// makes it for <(...). Anything else is refused without reading from it.
func Open(ctx context.Context, name string, limit int64) (*File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, opening(name, err)
	}
	return take(ctx, f, name, limit)
}

// OpenRegular opens a regular file, and returns its size.
func OpenRegular(name string, limit int64) (*File, int64, error) {
	in, err := Open(regularOnly, name, limit)
	if err != nil {
		return nil, 0, err
	}
	return in, in.info.Size(), nil
}

// OpenIn opens a regular file in a folder that it does not leave.
func OpenIn(root *os.Root, name string, limit int64) (*File, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, opening(filepath.Join(root.Name(), name), err)
	}
	return take(regularOnly, f, filepath.Join(root.Name(), name), limit)
}

// opening explains an error of open: sockets, and devices without a driver, have one of their own.
func opening(name string, err error) error {
	if info, statErr := os.Stat(name); statErr == nil {
		if why := refused(info.Mode(), true); why != "" {
			return &fs.PathError{Op: "open", Path: name, Err: errors.New(why)}
		}
	}
	return err
}

// refused says why a file of a mode is not read, "" where it is.
func refused(mode fs.FileMode, pipes bool) string {
	switch {
	case mode.IsDir():
		return "this is a folder; name a file"
	case mode&fs.ModeDevice != 0:
		return "this is a device; name a regular file"
	case mode&fs.ModeSocket != 0:
		return "this is a socket; name a regular file"
	case mode&fs.ModeNamedPipe != 0 && !pipes:
		return "this is a pipe; write what comes out of it into a file and name that"
	case !mode.IsRegular() && mode&fs.ModeNamedPipe == 0:
		return "this is not a regular file"
	}
	return ""
}

// take decides by the file that is open, so that what its name leads to cannot change in between.
// Without a context no pipe is read.
func take(ctx context.Context, f *os.File, name string, limit int64) (*File, error) {
	info, err := f.Stat()
	if err == nil {
		if why := refused(info.Mode(), ctx != nil); why != "" {
			err = &fs.PathError{Op: "open", Path: name, Err: errors.New(why)}
		} else if info.Mode().IsRegular() && info.Size() > limit {
			err = &fs.PathError{Op: "read", Path: name, Err: &LimitError{Size: info.Size(), Limit: limit}}
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	note(name, info)
	in := &File{f: f, info: info, left: limit, limit: limit}
	if !info.Mode().IsRegular() {
		in.ctx = ctx
		in.stop = context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Unix(1, 0)) })
	}
	return in, nil
}

// LimitError says that an input is larger than what is read.
type LimitError struct {
	// Size is 0 where it is not known.
	Size, Limit int64
}

func (e *LimitError) Error() string {
	if e.Size > 0 {
		return fmt.Sprintf("the file has %d bytes; up to %d are read; split it, or cut out the part that is needed", e.Size, e.Limit)
	}
	return fmt.Sprintf("there are more than %d bytes, which is the limit; split the input, or cut out the part that is needed", e.Limit)
}

func (in *File) Read(p []byte) (int, error) {
	if in.left < 0 {
		return 0, &fs.PathError{Op: "read", Path: in.f.Name(), Err: &LimitError{Limit: in.limit}}
	}
	if int64(len(p)) > in.left+1 {
		p = p[:in.left+1]
	}
	n, err := in.f.Read(p)
	in.some = in.some || n > 0
	if in.left -= int64(n); in.left < 0 {
		return n - 1, &fs.PathError{Op: "read", Path: in.f.Name(), Err: &LimitError{Limit: in.limit}}
	}
	switch {
	case in.ctx == nil || err == nil:
	case in.ctx.Err() != nil:
		err = in.ctx.Err()
	case errors.Is(err, io.EOF) && !in.some:
		err = &fs.PathError{Op: "read", Path: in.f.Name(), Err: errors.New("this is a pipe that no program writes to; start that program first")}
	}
	return n, err
}

// ReadAt and Seek are for regular files.
func (in *File) ReadAt(p []byte, off int64) (int, error) { return in.f.ReadAt(p, off) }

// Seek goes to a place; the limit counts from there.
func (in *File) Seek(offset int64, whence int) (int64, error) {
	in.left = in.limit
	return in.f.Seek(offset, whence)
}

// Stat describes what is open.
func (in *File) Stat() (fs.FileInfo, error) { return in.info, nil }

// Close closes the file.
func (in *File) Close() error {
	if in.stop != nil {
		in.stop()
	}
	return in.f.Close()
}

// ReadFile reads a regular file of up to limit bytes.
func ReadFile(name string, limit int64) ([]byte, error) {
	return readAll(Open(regularOnly, name, limit))
}

// ReadIn is ReadFile in a folder that it does not leave.
func ReadIn(root *os.Root, name string, limit int64) ([]byte, error) {
	return readAll(OpenIn(root, name, limit))
}

func readAll(in *File, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	data := make([]byte, 0, in.info.Size()+512)
	for {
		n, err := in.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return data, errors.Join(err, in.Close())
		}
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
	}
}

// ReadAll reads what is open already, such as standard input, up to limit bytes or until the context ends.
func ReadAll(ctx context.Context, name string, r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(ctxio.Reader(ctx, r), limit+1))
	if err == nil && int64(len(data)) > limit {
		err = &fs.PathError{Op: "read", Path: name, Err: &LimitError{Limit: limit}}
	}
	return data, err
}

// DirFS is os.DirFS whose files are opened like others.
func DirFS(dir string, limit int64) fs.FS { return dirFS{dir, limit} }

type dirFS struct {
	dir   string
	limit int64
}

func (d dirFS) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	full := filepath.Join(d.dir, filepath.FromSlash(name))
	dir, err := os.OpenFile(full, os.O_RDONLY|nonblock, 0)
	if err == nil {
		var info fs.FileInfo
		if info, err = dir.Stat(); err == nil && info.IsDir() {
			return dir, nil
		}
		var in *File
		if in, err = take(regularOnly, dir, full, d.limit); err == nil {
			return in, nil
		}
	}
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		at.Path = name
	}
	return nil, err
}

// opened are the files that were read, by name, so that no output replaces one of them.
var opened struct {
	sync.Mutex
	files map[string]fs.FileInfo
}

func note(name string, info fs.FileInfo) {
	opened.Lock()
	defer opened.Unlock()
	if opened.files == nil {
		opened.files = map[string]fs.FileInfo{}
	}
	opened.files[name] = info
}

// Named returns the name under which a file was read, "" where it was not: a link to it is it.
func Named(file fs.FileInfo) string {
	opened.Lock()
	defer opened.Unlock()
	for name, info := range opened.files {
		if os.SameFile(file, info) {
			return name
		}
	}
	return ""
}

// Forget begins a new run in the same process: what was read before is no input of it.
func Forget() {
	opened.Lock()
	defer opened.Unlock()
	opened.files = nil
}
