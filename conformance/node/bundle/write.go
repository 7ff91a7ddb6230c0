package bundle

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/winlab-dev/winlab/internal/outfile"
)

// Writer writes a bundle. What was added is on the disk at once, so that a collector that is
// interrupted leaves what it has; [Writer.Close] adds the manifest.
type Writer struct {
	manifest Manifest
	dir      string
	zip      *zip.Writer
	file     *os.File
	seen     map[string]bool
}

// Create begins a bundle: a .zip when the name ends so, else a folder, which must not be there
// or be empty.
func Create(name, tool string, made time.Time) (*Writer, error) {
	w := newWriter(tool, made)
	if strings.EqualFold(filepath.Ext(name), ".zip") {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("%s is there already; name a new file", name)
		}
		if err != nil {
			return nil, err
		}
		w.file, w.zip = f, zip.NewWriter(f)
		return w, nil
	}
	if err := os.MkdirAll(name, 0o700); err != nil {
		return nil, err
	}
	if entries, err := os.ReadDir(name); err != nil || len(entries) > 0 {
		if err == nil {
			err = fmt.Errorf("%s is not empty; name a new folder", name)
		}
		return nil, err
	}
	w.dir = name
	return w, nil
}

// Stream begins a bundle that is written as a .zip to a pipe.
func Stream(out io.Writer, tool string, made time.Time) *Writer {
	w := newWriter(tool, made)
	w.zip = zip.NewWriter(out)
	return w
}

func newWriter(tool string, made time.Time) *Writer {
	return &Writer{manifest: Manifest{APIVersion: APIVersion, Kind: Kind, Tool: tool, Made: made.UTC(), Files: []File{}},
		seen: map[string]bool{}}
}

// Add adds a file; its size and its sum are filled in.
func (w *Writer) Add(f File, data []byte) error {
	name, err := cleanName(f.Path)
	if err == nil && (name != f.Path || name == Name || w.seen[strings.ToLower(name)]) {
		err = fmt.Errorf("%s is not a valid path for a file of this bundle", quote(f.Path))
	}
	if err != nil {
		return err
	}
	if err := w.write(name, data); err != nil {
		return err
	}
	w.seen[strings.ToLower(name)] = true
	sum := sha256.Sum256(data)
	f.Bytes, f.SHA256 = int64(len(data)), hex.EncodeToString(sum[:])
	w.manifest.Files = append(w.manifest.Files, f)
	return nil
}

// Step notes what was tried.
func (w *Writer) Step(s Step) { w.manifest.Steps = append(w.manifest.Steps, s) }

// Manifest is what was added so far.
func (w *Writer) Manifest() Manifest { return w.manifest }

func (w *Writer) write(name string, data []byte) error {
	if w.zip != nil {
		f, err := w.zip.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: w.manifest.Made})
		if err == nil {
			_, err = f.Write(data)
		}
		return err
	}
	if err := os.MkdirAll(filepath.Join(w.dir, filepath.FromSlash(path.Dir(name))), 0o700); err != nil {
		return err
	}
	return outfile.WriteFile(filepath.Join(w.dir, filepath.FromSlash(name)), data, 0o600)
}

// Close writes the manifest and ends the bundle.
func (w *Writer) Close() error {
	data, err := json.MarshalIndent(w.manifest, "", "  ")
	if err == nil {
		err = w.write(Name, append(data, '\n'))
	}
	if w.zip != nil {
		err = errors.Join(err, w.zip.Close())
	}
	if w.file != nil {
		err = errors.Join(err, w.file.Close())
	}
	return err
}
