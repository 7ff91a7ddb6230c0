package images

import (
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"

	"sigs.k8s.io/yaml"
)

// ErrNotFound is in the errors of images that no registry has.
var ErrNotFound = errors.New("not found")

// Platform is the system that a node's containers run on.
type Platform struct {
	// OS is "linux" or "windows".
	OS string
	// Build is that of Windows, 20348; 0 takes images of all.
	Build int
}

// Config is what a container of an image begins with, as in the image's own
// configuration.
type Config struct {
	Entrypoint []string `json:"entrypoint,omitempty"`
	Cmd        []string `json:"cmd,omitempty"`
	// User is a number, USER:GROUP, or the name of a Windows user.
	User string   `json:"user,omitempty"`
	Dir  string   `json:"dir,omitempty"`
	Env  []string `json:"env,omitempty"`
	// Ports are those that it exposes, "80/tcp". They open nothing.
	Ports []string `json:"ports,omitempty"`
	// StopSignal is the name of a signal, "SIGQUIT"; "" is SIGTERM.
	StopSignal string `json:"stopSignal,omitempty"`
	// Files are what the image adds to the system of its node, by their path.
	Files map[string]File `json:"files,omitempty"`
	// Builds are those of Windows that the image is made for.
	Builds []int `json:"builds,omitempty"`
	// Lacks says what the real image has and this one does not.
	Lacks string `json:"lacks,omitempty"`
}

// File is a file of an image. One of its fields is set.
type File struct {
	// Program is a program of the project by its name, "agnhost.exe".
	Program string `json:"program,omitempty"`
	// Machine is a program of this machine, and Package what to install for it.
	Machine string `json:"machine,omitempty"`
	Package string `json:"package,omitempty"`
	// Text is the content.
	Text string `json:"text,omitempty"`
	// SelfSigned is "certificate" or "key": those of a server without another
	// certificate authority, the same pair in all images of this process.
	SelfSigned string `json:"selfSigned,omitempty"`
}

// Entry is a row of the table.
type Entry struct {
	// Repositories are names with their registry; Tags are patterns as of path.Match.
	Repositories []string `json:"repositories"`
	Tags         []string `json:"tags"`
	// TagBuilds gives tags that are for one build of Windows: ltsc2022 -> 20348.
	TagBuilds map[string]int `json:"tagBuilds,omitempty"`
	Linux     *Config        `json:"linux,omitempty"`
	Windows   *Config        `json:"windows,omitempty"`
}

// Table says which images there are.
type Table struct {
	Images []Entry `json:"images"`
}

//go:embed images.yaml
var builtin []byte

// Builtin is the table of this package.
func Builtin() (*Table, error) { return ReadTable(builtin) }

// ReadTable reads a table from YAML and names every mistake in it.
func ReadTable(text []byte) (*Table, error) {
	t := &Table{}
	if err := yaml.UnmarshalStrict(text, t); err != nil {
		return nil, fmt.Errorf("image table: %w", err)
	}
	var all []error
	for i, e := range t.Images {
		for _, err := range e.check() {
			all = append(all, fmt.Errorf("image table, row %d (%v): %w", i+1, e.Repositories, err))
		}
	}
	return t, errors.Join(all...)
}

func (e Entry) check() (all []error) {
	if len(e.Repositories) == 0 {
		all = append(all, errors.New("it has no repositories; write a list of names such as docker.io/library/busybox"))
	}
	for _, r := range e.Repositories {
		if ref, err := ParseReference(r + ":x"); err != nil || ref.Repository != r {
			all = append(all, fmt.Errorf("%q is not a whole repository; write its registry, too, as in docker.io/library/busybox", r))
		}
	}
	if len(e.Tags) == 0 {
		all = append(all, errors.New(`it has no tags; write a list of patterns, ["*"] for all`))
	}
	for _, p := range e.Tags {
		if _, err := path.Match(p, "x"); err != nil {
			all = append(all, fmt.Errorf("tag %q is not a pattern: %w", p, err))
		}
	}
	if e.Linux == nil && e.Windows == nil {
		all = append(all, errors.New("it is for no system; write linux or windows"))
	}
	for os, c := range map[string]*Config{"linux": e.Linux, "windows": e.Windows} {
		if c == nil {
			continue
		}
		if len(c.Builds) > 0 && os == "linux" {
			all = append(all, errors.New("linux has builds; they are for windows"))
		}
		for p, f := range c.Files {
			n := 0
			for _, s := range []string{f.Program, f.Machine, f.Text, f.SelfSigned} {
				if s != "" {
					n++
				}
			}
			if n != 1 {
				all = append(all, fmt.Errorf("%s: file %s has %d of program, machine, text and selfSigned; write one", os, p, n))
			}
			if f.SelfSigned != "" && f.SelfSigned != certificate && f.SelfSigned != key {
				all = append(all, fmt.Errorf("%s: file %s: selfSigned %q; write certificate or key", os, p, f.SelfSigned))
			}
		}
	}
	return all
}

// Image is an image for one system.
type Image struct {
	Reference
	Config Config
	// ID is the digest of the configuration, Manifest that of the image in its
	// repository. Both are made from the table's row: equal rows have equal ones, and
	// they are those of no real registry.
	ID, Manifest string
}

// Find is the image that a pull of a reference would get.
func (t *Table) Find(r Reference, p Platform) (*Image, error) {
	named := false
	for _, e := range t.Images {
		if !slices.Contains(e.Repositories, r.Repository) || !e.tagged(r) {
			continue
		}
		im, err := e.image(r, p)
		if err != nil {
			return nil, err
		}
		named = named || r.Digest == "" || im != nil
		if im != nil && (r.Digest == "" || r.Digest == im.Manifest) {
			return im, nil
		}
	}
	switch {
	case r.Digest != "" && named:
		return nil, fmt.Errorf("%s: %w (digests of winlab's images are made from its image table; name the image by its tag)", r.Name,
			ErrNotFound)
	case named:
		// containerd says so of an image list without a fitting manifest.
		return nil, fmt.Errorf("no match for platform in manifest: %w", ErrNotFound)
	}
	return nil, fmt.Errorf("failed to resolve reference %q: %s: %w (winlab's image table has no such image)", r.Name, r.Name, ErrNotFound)
}

// tagged reports whether the row has the reference's tag; a digest can be of any.
func (e Entry) tagged(r Reference) bool {
	return r.Digest != "" || slices.ContainsFunc(e.Tags, func(p string) bool {
		ok, _ := path.Match(p, r.Tag)
		return ok
	})
}

// image is the row's image for a platform, nil for none.
func (e Entry) image(r Reference, p Platform) (*Image, error) {
	c := e.Linux
	if p.OS == "windows" {
		c = e.Windows
	}
	if c == nil {
		return nil, nil
	}
	builds := slices.Clone(c.Builds)
	if b, ok := e.TagBuilds[r.Tag]; ok {
		builds = []int{b}
	}
	build := 0
	if len(builds) > 0 && p.Build != 0 {
		// Of several the newest that the host runs is taken.
		slices.Sort(builds)
		slices.Reverse(builds)
		i := slices.IndexFunc(builds, func(b int) bool { return compatible(p.Build, b) })
		if i < 0 {
			return nil, nil
		}
		build = builds[i]
	}
	// What is the same has the same digest, whatever its tag.
	text, err := json.Marshal(struct {
		OS     string
		Build  int
		Config *Config
	}{p.OS, build, c})
	if err != nil {
		return nil, err
	}
	im := &Image{Reference: r, Config: *c, ID: digest(text)}
	im.Manifest = digest([]byte(im.ID))
	return im, nil
}

func digest(b []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(b)) }

// Runs says why no image of the table runs on a platform, nil when one does.
func (t *Table) Runs(p Platform) error {
	all := map[int]bool{}
	for _, e := range t.Images {
		c := map[string]*Config{"linux": e.Linux, "windows": e.Windows}[p.OS]
		switch {
		case c == nil:
			continue
		case len(c.Builds) == 0 || p.Build == 0 || slices.ContainsFunc(c.Builds, func(b int) bool { return compatible(p.Build, b) }):
			return nil
		}
		for _, b := range c.Builds {
			all[b] = true
		}
	}
	if len(all) == 0 {
		return fmt.Errorf("no image is for %s", p.OS)
	}
	return fmt.Errorf("no image runs on Windows %d: there are some for %v", p.Build, slices.Sorted(maps.Keys(all)))
}
