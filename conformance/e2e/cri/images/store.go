package images

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sort"
	"strings"
	"sync"
)

// Programs finds programs of the project by their name, "agnhost.exe". An error says how
// to get the program.
type Programs func(ctx context.Context, name string) (path string, err error)

// Folder is Programs for those that lie in a folder.
func Folder(dir string) Programs {
	return func(_ context.Context, name string) (string, error) {
		p := dir + string(os.PathSeparator) + name
		if _, err := os.Stat(p); err != nil {
			return "", fmt.Errorf("the program %s is not built: %w", name, err)
		}
		return p, nil
	}
}

// Store has the images that a node has pulled.
type Store struct {
	table    *Table
	platform Platform
	programs Programs

	mu     sync.Mutex
	pulled map[string]*Pulled // by ID
}

// Pulled is an image of a store.
type Pulled struct {
	ID     string
	Config Config
	// Tags and Digests are its references.
	Tags, Digests []string
	// Files are where its files come from: paths of this machine, by the path in the
	// container. Those with a text are not among them.
	Files map[string]string
	// Size is what its files take on this machine, in bytes.
	Size uint64
}

// NewStore makes an empty store for a node.
func NewStore(t *Table, p Platform, programs Programs) *Store {
	return &Store{table: t, platform: p, programs: programs, pulled: map[string]*Pulled{}}
}

// Pull gets an image and returns its ID. Pulling again is not an error.
func (s *Store) Pull(ctx context.Context, ref string) (string, error) {
	r, err := ParseReference(ref)
	if err != nil {
		return "", err
	}
	// The texts are containerd's, up to the parentheses.
	im, err := s.table.Find(r, s.platform)
	if err != nil {
		return "", fmt.Errorf("failed to pull and unpack image %q: %w", r.Name, err)
	}
	files, size, err := s.collect(ctx, im.Config)
	if err != nil {
		return "", fmt.Errorf("failed to pull and unpack image %q: %w", r.Name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// A tag that named another image until now moves to this one.
	for _, other := range s.pulled {
		if other.ID != im.ID {
			other.Tags = slices.DeleteFunc(other.Tags, func(t string) bool { return r.Tag != "" && t == r.Name })
		}
	}
	p := s.pulled[im.ID]
	if p == nil {
		p = &Pulled{ID: im.ID, Config: im.Config, Files: files, Size: size}
		s.pulled[im.ID] = p
	}
	if r.Tag != "" {
		p.Tags = add(p.Tags, r.Name)
	}
	p.Digests = add(p.Digests, r.Repository+"@"+im.Manifest)
	return p.ID, nil
}

func add(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	list = append(slices.Clone(list), s)
	sort.Strings(list)
	return list
}

// collect finds an image's files on this machine.
func (s *Store) collect(ctx context.Context, c Config) (map[string]string, uint64, error) {
	files, size := map[string]string{}, uint64(0)
	var missing []error
	for to, f := range c.Files {
		var from string
		var err error
		switch {
		case f.Program != "":
			from, err = s.programs(ctx, f.Program)
		case f.Machine != "":
			if from, err = exec.LookPath(f.Machine); err != nil {
				err = fmt.Errorf("this machine has no program %s; install the package %s", f.Machine, f.Package)
			}
		default:
			text, _, err := f.Content()
			if err != nil {
				missing = append(missing, err)
			}
			size += uint64(len(text))
			continue
		}
		if err != nil {
			missing = append(missing, err)
			continue
		}
		st, err := os.Stat(from)
		if err != nil {
			missing = append(missing, err)
			continue
		}
		files[to] = from
		size += uint64(st.Size())
	}
	sort.Slice(missing, func(i, j int) bool { return missing[i].Error() < missing[j].Error() })
	// An image of the bare system takes the row that describes it.
	return files, max(size, uint64(len(c.Lacks)), 1), errors.Join(missing...)
}

// Get is a pulled image by its ID, the beginning of it, or a reference; nil if it is not
// there.
func (s *Store) Get(name string) *Pulled {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.get(name).clone()
}

func (s *Store) get(name string) *Pulled {
	if p := s.pulled[name]; p != nil {
		return p
	}
	if p := s.pulled["sha256:"+name]; p != nil {
		return p
	}
	r, err := ParseReference(name)
	if err != nil {
		return nil
	}
	for _, p := range s.pulled {
		if slices.Contains(p.Tags, r.Name) || slices.Contains(p.Digests, r.Name) {
			return p
		}
	}
	return nil
}

// clone is a copy that the store does not change.
func (p *Pulled) clone() *Pulled {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

// List is all that is pulled, by ID.
func (s *Store) List() []*Pulled {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*Pulled
	for _, p := range s.pulled {
		all = append(all, p.clone())
	}
	sort.Slice(all, func(i, j int) bool { return strings.Compare(all[i].ID, all[j].ID) < 0 })
	return all
}

// Remove takes an image away, with all its references. One that is not there is no error.
func (s *Store) Remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.get(name); p != nil {
		delete(s.pulled, p.ID)
	}
}
