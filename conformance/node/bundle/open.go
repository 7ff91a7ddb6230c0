package bundle

import (
	"archive/zip"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/internal/input"
)

// Limits bound what is taken of a bundle; a field of 0 is that of [DefaultLimits].
type Limits struct {
	// Files is how many files are looked at, Total how many bytes they have unpacked. What is
	// beyond is an error: whoever made it did not make a bundle.
	Files int
	Total int64
	// File is how many bytes a file has at most. Of a larger one in a folder only the name is
	// known; a larger one in a .zip is not unpacked. Either is a notice.
	File int64
	// Ratio is how many times larger than packed a file of a .zip may be, when it has more than
	// a MiB. JSON that repeats itself is packed to a fiftieth.
	Ratio int64
}

// DefaultLimits are enough for a cluster of some thousand nodes.
var DefaultLimits = Limits{Files: 100_000, Total: 8 << 30, File: 512 << 20, Ratio: 400}

func (l Limits) filled() Limits {
	l.Files, l.Total = cmp.Or(l.Files, DefaultLimits.Files), cmp.Or(l.Total, DefaultLimits.Total)
	l.File, l.Ratio = cmp.Or(l.File, DefaultLimits.File), cmp.Or(l.Ratio, DefaultLimits.Ratio)
	return l
}

// Notice is what was left out of a bundle, or is not as its manifest says.
type Notice struct {
	// Path is the file, quoted where it could not be one.
	Path string `json:"path"`
	Why  string `json:"why"`
	// Damaged says that the file is a part of the bundle, and what it says is lost.
	Damaged bool `json:"damaged,omitempty"`
}

// Bundle is one that was opened.
type Bundle struct {
	// Dir is the folder with the files, and Path what [Open] was given.
	Dir, Path string
	// Manifest is nil where there is none: then somebody put the files together. Of several
	// bundles in a folder it is all manifests in one.
	Manifest *Manifest
	// Files are the paths of the regular files below Dir but the manifest's, with slashes, sorted.
	Files []string
	// Notices say what was left out.
	Notices []Notice
	// parts are the .zip files of which the bundle is made: itself, or those in a folder.
	parts []part
}

// part is a .zip that was unpacked into a folder of its own. Its files are those of the bundle
// whose paths begin with prefix.
type part struct{ prefix, dir, name string }

// Is reports whether a path may be a bundle: a folder, or a file whose name or beginning is that
// of a .zip.
func Is(path string) bool {
	i, err := os.Stat(path)
	if err != nil {
		return false
	}
	if i.IsDir() {
		return true
	}
	return isZip(path)
}

// isZip reports whether a file may be a .zip.
func isZip(path string) bool {
	f, _, err := input.OpenRegular(path, input.Stream)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	var head [4]byte
	_, err = io.ReadFull(f, head[:])
	return strings.EqualFold(filepath.Ext(path), ".zip") || err == nil && (string(head[:]) == "PK\x03\x04" || string(head[:]) == "PK\x05\x06")
}

// Open opens a folder or a .zip. A .zip is unpacked into a new folder, which [Bundle.Close]
// removes; so are those that lie in a folder, each as a folder of its name: what was taken on
// several nodes. A .zip in a .zip is a file like others. Links are not followed.
func Open(ctx context.Context, path string, l Limits) (*Bundle, error) {
	l = l.filled()
	i, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	b := &Bundle{Dir: path, Path: path}
	if i.IsDir() {
		err = b.folder(ctx, l)
	} else {
		err = (&unpacking{b: b, l: l}).unpack(ctx, path, "")
		slices.Sort(b.Files)
	}
	if err == nil {
		err = b.manifest()
	}
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// Close removes what Open has unpacked.
func (b *Bundle) Close() error {
	var errs []error
	for _, p := range b.parts {
		errs = append(errs, os.RemoveAll(p.dir))
	}
	b.parts = nil
	return errors.Join(errs...)
}

// Unpacked reports whether the files go with [Bundle.Close].
func (b *Bundle) Unpacked() bool { return len(b.parts) > 0 }

// place is the folder in which a file of the bundle is, its path there, and how the folder is
// shown.
func (b *Bundle) place(path string) (dir, rel, shown string) {
	for _, p := range b.parts {
		if rel, ok := strings.CutPrefix(path, p.prefix); ok {
			return p.dir, rel, p.name
		}
	}
	return b.Dir, path, b.Path
}

// File is where a file of the bundle is on this machine.
func (b *Bundle) File(path string) string {
	dir, rel, _ := b.place(path)
	return filepath.Join(dir, filepath.FromSlash(rel))
}

// Shown is how a file of the bundle is named to people: below what they gave.
func (b *Bundle) Shown(path string) string {
	_, rel, shown := b.place(path)
	return filepath.ToSlash(filepath.Join(shown, rel))
}

// Read reads a file.
func (b *Bundle) Read(path string) ([]byte, error) {
	dir, rel, _ := b.place(path)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	return input.ReadIn(root, filepath.FromSlash(rel), DefaultLimits.File)
}

// Size is how many bytes a file has, and Head its beginning: what is large is not read to learn
// that it is nothing to be read.
func (b *Bundle) Size(path string) int64 {
	i, err := os.Lstat(b.File(path))
	if err != nil {
		return 0
	}
	return i.Size()
}

// Head is the beginning of a file, up to max bytes.
func (b *Bundle) Head(path string, max int64) ([]byte, error) {
	dir, rel, _ := b.place(path)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	f, err := input.OpenIn(root, filepath.FromSlash(rel), input.Stream)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, max))
}

func (b *Bundle) notice(path, format string, args ...any) {
	b.Notices = append(b.Notices, Notice{Path: path, Why: fmt.Sprintf(format, args...)})
}

// damaged is notice for a file that cannot be read.
func (b *Bundle) damaged(path, format string, args ...any) {
	b.Notices = append(b.Notices, Notice{Path: path, Why: fmt.Sprintf(format, args...), Damaged: true})
}

// folder lists a folder.
func (b *Bundle) folder(ctx context.Context, l Limits) error {
	u := &unpacking{b: b, l: l}
	var zips []string
	err := filepath.WalkDir(b.Dir, func(name string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		rel, relErr := filepath.Rel(b.Dir, name)
		if relErr != nil || rel == "." {
			return cmp.Or(err, relErr)
		}
		clean, nameErr := cleanName(filepath.ToSlash(rel))
		if strings.Contains(rel, `\`) && filepath.Separator == '/' {
			nameErr = fmt.Errorf("%s: the name has a backslash", quote(rel))
		}
		switch {
		case nameErr != nil:
			b.notice(quote(rel), "left out: %v", nameErr)
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case err != nil:
			b.damaged(clean, "cannot be read: %v", err)
			return nil
		case d.IsDir():
			return nil
		}
		if u.count++; u.count > l.Files {
			return fmt.Errorf("%s has more than %d files; name a folder with a bundle", b.Path, l.Files)
		}
		info, err := d.Info()
		switch {
		case err != nil:
			b.damaged(clean, "cannot be read: %v", err)
			return nil
		case d.Type()&fs.ModeSymlink != 0:
			b.notice(clean, "left out: a link, and links are not followed")
			return nil
		case !d.Type().IsRegular():
			b.notice(clean, "left out: not a regular file")
			return nil
		case info.Size() > l.File:
			b.notice(clean, "left out: it has %d bytes; the limit is %d", info.Size(), l.File)
			return nil
		}
		if !strings.Contains(clean, "/") && isZip(name) {
			zips = append(zips, clean)
			return nil
		}
		if u.total += info.Size(); u.total > l.Total {
			return fmt.Errorf("%s has more than %d bytes", b.Path, l.Total)
		}
		b.Files = append(b.Files, clean)
		return nil
	})
	for _, name := range zips {
		prefix := strings.TrimSuffix(name, path.Ext(name)) + "/"
		if err != nil {
			return err
		}
		if slices.ContainsFunc(b.Files, func(f string) bool { return strings.HasPrefix(f, prefix) }) {
			b.notice(name, "left out: the folder %s is there already", prefix)
			continue
		}
		if e := u.unpack(ctx, filepath.Join(b.Dir, name), prefix); errors.Is(e, errNotZip) {
			b.notice(name, "left out: %v", e)
		} else {
			err = e
		}
	}
	slices.Sort(b.Files)
	return err
}

var errNotZip = errors.New("not a folder and not a .zip that can be read")

// unpacking is the state of unpack: total counts bytes and count files of all that is read, root,
// prefix and seen are of the .zip that is being unpacked; seen has its names without case.
type unpacking struct {
	b      *Bundle
	l      Limits
	total  int64
	count  int
	root   *os.Root
	prefix string
	seen   map[string]string
}

// unpack unpacks a .zip as the files below prefix.
func (u *unpacking) unpack(ctx context.Context, name, prefix string) (err error) {
	in, size, err := input.OpenRegular(name, input.Stream)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	z, err := zip.NewReader(in, size)
	if err != nil {
		return fmt.Errorf("%s: %w: %w", name, errNotZip, err)
	}
	if u.count += len(z.File); u.count > u.l.Files {
		return fmt.Errorf("%s has %d files; up to %d are read", name, u.count, u.l.Files)
	}
	dir, err := os.MkdirTemp("", "winlab-bundle-")
	if err != nil {
		return err
	}
	u.b.parts = append(u.b.parts, part{prefix, dir, name})
	if prefix == "" {
		u.b.Dir = dir
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	u.root, u.prefix, u.seen = root, prefix, map[string]string{}
	for _, f := range z.File {
		if err := u.file(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

// file unpacks one file; an error ends the unpacking, anything else is a notice.
func (u *unpacking) file(ctx context.Context, f *zip.File) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b := u.b
	name, err := cleanName(f.Name)
	if err != nil {
		b.notice(u.prefix+quote(f.Name), "left out: %v", err)
		return nil
	}
	mode := f.Mode()
	if strings.HasSuffix(f.Name, "/") || strings.HasSuffix(f.Name, `\`) || mode.IsDir() {
		return nil
	}
	if other, ok := u.seen[strings.ToLower(name)]; ok {
		b.notice(u.prefix+name, "left out: %s is there already, and Windows takes both for one file", other)
		return nil
	}
	switch {
	case mode&fs.ModeSymlink != 0:
		b.notice(u.prefix+name, "left out: a link, and links are not followed")
		return nil
	case !mode.IsRegular():
		b.notice(u.prefix+name, "left out: not a regular file")
		return nil
	case f.UncompressedSize64 > uint64(u.l.File):
		b.notice(u.prefix+name, "left out: it says that it has %d bytes; up to %d are unpacked", f.UncompressedSize64, u.l.File)
		return nil
	}
	in, err := f.Open()
	if err != nil {
		b.damaged(u.prefix+name, "cannot be unpacked: %v", err)
		return nil
	}
	defer func() { _ = in.Close() }()
	if dir := path.Dir(name); dir != "." {
		if err := u.root.MkdirAll(filepath.FromSlash(dir), 0o700); err != nil {
			b.notice(u.prefix+name, "left out: %v", err) // a file is where it needs a folder
			return nil
		}
	}
	out, err := u.root.OpenFile(filepath.FromSlash(name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		b.notice(u.prefix+name, "left out: a folder with that name is there already")
		return nil
	}
	if err != nil {
		return err
	}
	why, err := u.copy(ctx, out, in, int64(f.CompressedSize64))
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	u.seen[strings.ToLower(name)] = name
	if why != "" {
		b.damaged(u.prefix+name, "%s", why)
		return u.root.Remove(filepath.FromSlash(name))
	}
	b.Files = append(b.Files, u.prefix+name)
	return nil
}

// copy unpacks the bytes of a file. What the head of the file says of its size counts nothing:
// bytes are counted as they come. why says why it was not unpacked.
func (u *unpacking) copy(ctx context.Context, out io.Writer, in io.Reader, packed int64) (why string, err error) {
	buf := make([]byte, 256<<10)
	var size int64
	for {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		n, readErr := in.Read(buf)
		size += int64(n)
		u.total += int64(n)
		switch {
		case u.total > u.l.Total:
			return "", fmt.Errorf("%s has more than %d bytes unpacked", u.b.Path, u.l.Total)
		case size > u.l.File:
			return fmt.Sprintf("left out: it has more than %d bytes", u.l.File), nil
		case size > 1<<20 && size/u.l.Ratio > max(packed, 1):
			return fmt.Sprintf("left out: it is more than %d times as large as packed", u.l.Ratio), nil
		}
		if _, err := out.Write(buf[:n]); err != nil {
			return "", err
		}
		if errors.Is(readErr, io.EOF) {
			return "", nil
		}
		if readErr != nil {
			return fmt.Sprintf("cannot be unpacked: %v", readErr), nil
		}
	}
}

// maxManifest is enough for some hundred thousand files.
const maxManifest = 64 << 20

// manifest reads the manifest, if there is one, and holds it against the files.
func (b *Bundle) manifest() error {
	var at []string
	for _, f := range b.Files {
		if path.Base(f) == Name {
			at = append(at, f)
		}
	}
	// With a manifest at the top those below it are files like others.
	if slices.Contains(at, Name) {
		at = []string{Name}
	}
	if len(at) == 0 {
		return nil
	}
	for _, name := range at {
		if size := b.Size(name); size > maxManifest {
			return fmt.Errorf("%s: it has %d bytes; a manifest of up to %d is read", b.Shown(name), size, maxManifest)
		}
		data, err := b.Read(name)
		if err != nil {
			return err
		}
		m, err := ReadManifest(b.Shown(name), data)
		if err != nil {
			return err
		}
		b.join(m, strings.TrimSuffix(name, Name))
		b.Files = slices.DeleteFunc(b.Files, func(f string) bool { return f == name })
	}
	noticed := map[string]bool{}
	for _, n := range b.Notices {
		noticed[n.Path] = true
	}
	there := map[string]bool{}
	for _, name := range b.Files {
		there[name] = true
	}
	listed := map[string]bool{}
	for _, f := range b.Manifest.Files {
		listed[f.Path] = true
		if !there[f.Path] {
			if !noticed[f.Path] {
				b.notice(f.Path, "the manifest lists it, and it is not there")
			}
			continue
		}
		if sum, err := b.digest(f.Path); err == nil && f.SHA256 != "" && f.SHA256 != sum {
			b.notice(f.Path, "it was changed after it was collected: its SHA-256 differs from the manifest's")
		}
	}
	for _, name := range b.Files {
		if !listed[name] {
			b.notice(name, "the manifest does not list it: it was added afterwards")
		}
	}
	return nil
}

// join adds a manifest that is in a folder: bundles of several nodes that were put into one folder
// are one bundle, and many programs put the folder itself into a .zip.
func (b *Bundle) join(m *Manifest, folder string) {
	for i := range m.Files {
		m.Files[i].Path = folder + m.Files[i].Path
	}
	for i := range m.Steps {
		for j := range m.Steps[i].Files {
			m.Steps[i].Files[j] = folder + m.Steps[i].Files[j]
		}
	}
	if b.Manifest == nil {
		b.Manifest = m
		return
	}
	b.Manifest.Files, b.Manifest.Steps = append(b.Manifest.Files, m.Files...), append(b.Manifest.Steps, m.Steps...)
}

func (b *Bundle) digest(path string) (string, error) {
	dir, rel, _ := b.place(path)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer func() { _ = root.Close() }()
	f, err := input.OpenIn(root, filepath.FromSlash(rel), input.Stream)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
