package check

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/conformance/check/manifest"
	"github.com/winlab-dev/winlab/conformance/check/nodeconf"
	"github.com/winlab-dev/winlab/conformance/check/subject"
	"github.com/winlab-dev/winlab/internal/ctxio"
	"github.com/winlab-dev/winlab/internal/input"
	"github.com/winlab-dev/winlab/internal/lazyregexp"
	"github.com/winlab-dev/winlab/internal/strict"
	"github.com/winlab-dev/winlab/internal/utf"
)

// Input is one file to check.
type Input struct {
	// name is how findings call it; "-" is standard input.
	name string
	// listed is set when somebody named the file, and not when it was found in a
	// folder, where files that are not manifests are passed over.
	listed bool
	open   func(context.Context) (io.ReadCloser, error)
	// patch is set for what a kustomization merges into other objects.
	patch bool
}

// extensions are the files that are looked into in a folder.
var extensions = []string{".yaml", ".yml", ".json", ".conf", ".conflist", ".env", ".ps1", ".psm1", ".cmd", ".bat", ".txt"}

// Inputs turns arguments into files: "-" is stdin, folders are walked, hidden
// ones left out, and what a pattern of exclude fits. All that does not exist is reported at
// once; what is in a folder and cannot be opened is an input whose Open says so.
func Inputs(args []string, stdin io.Reader, exclude ...string) ([]Input, error) {
	var inputs []Input
	var errs []error
	out, err := excluders(exclude)
	if err != nil {
		return nil, err
	}
	for _, a := range args {
		if a == "-" {
			inputs = append(inputs, Input{name: "-", listed: true, open: func(ctx context.Context) (io.ReadCloser, error) {
				return io.NopCloser(ctxio.Reader(ctx, stdin)), nil
			}})
			continue
		}
		info, err := os.Stat(a)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: there is no such file or folder", a))
			continue
		}
		if !info.IsDir() {
			inputs = append(inputs, file(a, true))
			continue
		}
		found := folder(a, out)
		if len(found) == 0 && len(out) > 0 {
			errs = append(errs, fmt.Errorf("%s: no file in it ends in one of %s and is not excluded", a, strings.Join(extensions, " ")))
			continue
		}
		if len(found) == 0 {
			errs = append(errs, fmt.Errorf("%s: no file in it ends in one of %s; name the files themselves", a, strings.Join(extensions, " ")))
		}
		inputs = append(inputs, found...)
	}
	return inputs, errors.Join(errs...)
}

// folder looks for files in a folder and those below it. Links to files are
// followed, as a mounted ConfigMap has nothing else; links to folders are not.
func folder(root string, out []excluder) []Input {
	var inputs []Input
	patches := map[string]bool{}
	cannot := func(path string, err error) {
		inputs = append(inputs, Input{name: path, listed: true, open: func(context.Context) (io.ReadCloser, error) {
			return nil, err
		}})
	}
	start := root
	if info, err := os.Lstat(root); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		start += string(os.PathSeparator) // what was named is followed
	}
	_ = filepath.WalkDir(start, func(path string, d fs.DirEntry, err error) error { // errors are passed to the function
		name := filepath.Base(path)
		switch {
		case err != nil:
			cannot(path, err)
		case path != start && excluded(out, start, path):
			if d.IsDir() {
				return filepath.SkipDir
			}
		case d.IsDir() && path != start && strings.HasPrefix(name, "."):
			return filepath.SkipDir
		case d.IsDir() && (name == "templates" || name == "charts") && exists(filepath.Join(filepath.Dir(path), "Chart.yaml")):
			if name == "templates" {
				chart := filepath.Dir(path)
				cannot(chart, fmt.Errorf("this is a Helm chart; render it: helm template %s | winlab check -", chart))
			}
			return filepath.SkipDir
		case d.IsDir():
			for _, p := range patchesIn(path) {
				patches[filepath.Join(path, p)] = true
			}
		case slices.Contains(extensions, strings.ToLower(filepath.Ext(path))):
			mode := d.Type()
			if mode&fs.ModeSymlink != 0 {
				info, err := os.Stat(path)
				if err != nil {
					cannot(path, err)
					return nil
				}
				mode = info.Mode()
			}
			if mode.IsRegular() {
				inputs = append(inputs, file(path, false))
			}
		}
		return nil
	})
	for i := range inputs {
		inputs[i].patch = patches[filepath.Clean(inputs[i].name)]
	}
	return inputs
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// patchesIn are the files that the kustomization of a folder merges into its
// objects: parts of objects, of which nothing can be said alone.
func patchesIn(dir string) []string {
	var all []string
	for _, name := range []string{"kustomization.yaml", "kustomization.yml", "Kustomization"} {
		text, err := input.ReadFile(filepath.Join(dir, name), strict.MaxDocument)
		if err != nil {
			continue
		}
		var k struct {
			Patches               []struct{ Path string }
			PatchesStrategicMerge []string                `yaml:"patchesStrategicMerge"`
			PatchesJSON6902       []struct{ Path string } `yaml:"patchesJson6902"`
		}
		if yaml.Unmarshal(text, &k) != nil {
			continue // it is read like any file, which reports what is wrong
		}
		all = append(all, k.PatchesStrategicMerge...)
		for _, p := range append(k.Patches, k.PatchesJSON6902...) {
			all = append(all, p.Path)
		}
	}
	return slices.DeleteFunc(all, func(p string) bool { return p == "" || strings.Contains(p, "\n") })
}

func file(path string, listed bool) Input {
	return Input{name: path, listed: listed, open: func(ctx context.Context) (io.ReadCloser, error) {
		return input.Open(ctx, path, input.Document)
	}}
}

// read is what a file holds.
type read struct {
	subjects  []*subject.Subject
	documents int
	passed    map[string]int
	mistakes  strict.Mistakes
	// unparsed is set when some document is not YAML.
	unparsed bool
	// ignores are the suppressions in its comments.
	ignores []*Suppression
	// foreign is set when nothing in the file was recognised.
	foreign bool
}

var looksLikeManifest = lazyregexp.New(`(?m)^\s*"?(apiVersion|kind)"?\s*:`)

// readInput reads a file as what it is. A file that is larger than one
// document may be is read as a stream of manifests.
func readInput(ctx context.Context, in Input, o manifest.Options) read {
	r, text := readFile(ctx, in, o)
	ignores, mistakes := inComments(in.name, 1, text)
	r.ignores, r.mistakes = append(r.ignores, ignores...), append(r.mistakes, mistakes...)
	if r.isTemplate(text) {
		// Everything else that is said of a template follows from its being one.
		first := slices.MinFunc(r.mistakes, func(a, b strict.Mistake) int { return cmp.Compare(a.Line, b.Line) })
		r = read{documents: 1, mistakes: strict.Mistakes{{File: in.name, Line: first.Line, Column: first.Column, Message: renderFirst(in.name)}}}
	}
	return r
}

// templateAction is an action of Go templates as charts have them.
var templateAction = lazyregexp.New(`\{\{-?\s*[\w.$/(]`)

// isTemplate reports whether a text is not YAML because it is a template of YAML: there are
// actions in it, and it cannot be parsed, or an action stands where something is wrong. A
// ConfigMap may have templates of its own, which do no harm.
func (r *read) isTemplate(text []byte) bool {
	if len(r.mistakes) == 0 || !utf8.Valid(text) || !templateAction.Match(text) {
		return false
	}
	lines := bytes.Split(text, []byte("\n"))
	return r.unparsed || slices.ContainsFunc(r.mistakes, func(m strict.Mistake) bool {
		return m.Line > 0 && m.Line <= len(lines) && bytes.Contains(lines[m.Line-1], []byte("{{"))
	})
}

// renderFirst says what to do with a template.
func renderFirst(name string) string {
	chart := "CHART"
	if dir := filepath.Dir(name); filepath.Base(dir) == "templates" {
		chart = filepath.Dir(dir)
	}
	return fmt.Sprintf(
		"this is a template ({{ ... }}) and not a manifest yet; render it first, a Helm chart with: helm template %s | winlab check -", chart)
}

// readFile reads a file; the text is that of a file that is one document at most in size.
func readFile(ctx context.Context, in Input, o manifest.Options) (r read, text []byte) {
	if in.patch {
		return read{documents: 1, passed: map[string]int{"patch of a kustomization": 1}}, nil
	}
	f, err := in.open(ctx)
	if err != nil {
		if at := (*fs.PathError)(nil); errors.As(err, &at) {
			err = at.Err // the message begins with the file
		}
		r.mistakes = strict.Mistakes{{File: in.name, Message: oneLine(err)}}
		return r, text
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, strict.MaxDocument+1))
	if err != nil {
		r.mistakes = strict.Mistakes{{File: in.name, Message: oneLine(err)}}
		return r, text
	}
	if len(head) > strict.MaxDocument {
		return readManifests(in.name, io.MultiReader(bytes.NewReader(head), f), o), nil
	}
	decoded, _ := utf.Decode(head)
	text = []byte(decoded)
	if len(bytes.TrimSpace(text)) == 0 {
		r.foreign = true
		if in.listed {
			r.mistakes = strict.Mistakes{{File: in.name, Line: 1, Column: 1, Message: "the file is empty"}}
		}
		return r, text
	}
	if looksLikeManifest.Match(text) {
		if r = readManifests(in.name, bytes.NewReader(text), o); !r.foreign {
			return r, text
		}
	}
	c := read{documents: 1}
	var ok bool
	if c.subjects, ok, c.mistakes = nodeconf.Read(in.name, head); ok {
		if len(c.subjects)+len(c.mistakes) == 0 { // a script that starts nothing of Kubernetes, a configuration for Linux
			c.foreign, c.passed = true, map[string]int{"text without a command line or configuration of a Windows node": 1}
		}
		return c, text
	}
	if r.mistakes == nil {
		r = readManifests(in.name, bytes.NewReader(text), o)
	}
	switch {
	case !r.foreign || !in.listed || len(r.mistakes) > 0:
	case r.documents == 0:
		r.mistakes = strict.Mistakes{{File: in.name, Line: 1, Column: 1, Message: "there is nothing in the file but comments"}}
	default:
		r.mistakes = strict.Mistakes{{File: in.name, Line: 1, Column: 1,
			Message: "this is neither a Kubernetes manifest nor a configuration that winlab knows: a CNI configuration, net-conf.json, subnet.env, or command lines of kubelet, kube-proxy, flanneld, nssm or sc"}}
	}
	return r, text
}

func readManifests(name string, in io.Reader, o manifest.Options) (r read) {
	docs, mistakes := strict.Read(name, in)
	r.documents, r.unparsed = len(docs), len(mistakes) > 0
	var rest []strict.Doc
	var more strict.Mistakes
	r.subjects, rest, r.passed, more = manifest.Read(docs, o)
	r.mistakes = append(mistakes, more...)
	if _, file := in.(*bytes.Reader); !file {
		for _, d := range docs { // a stream: the whole text is not kept
			ignores, bad := inComments(name, d.Line, d.Text)
			r.ignores, r.mistakes = append(r.ignores, ignores...), append(r.mistakes, bad...)
		}
	}
	for _, d := range rest {
		// Configuration among manifests; the blank lines keep its places.
		text := append(bytes.Repeat([]byte("\n"), d.Line-1), d.Text...)
		subjects, ok, found := nodeconf.Read(name, text)
		if ok {
			r.subjects = append(r.subjects, subjects...)
			r.mistakes = append(r.mistakes, found...)
			continue
		}
		r.passed["no kind"]++
	}
	r.foreign = len(docs) == len(rest) && len(r.subjects) == 0
	if o.OS != "linux" {
		for i := range docs {
			subjects, found := inConfigMap(name, &docs[i])
			r.subjects = append(r.subjects, subjects...)
			r.mistakes = append(r.mistakes, found...)
		}
	}
	return r
}

// inConfigMap reads the configuration of nodes in a ConfigMap, which is where
// flannel has its net-conf.json and kubeadm what kube-proxy is told.
func inConfigMap(name string, d *strict.Doc) ([]*subject.Subject, strict.Mistakes) {
	if kind := strict.Child(d.Root, "kind"); kind == nil || kind.Value != "ConfigMap" {
		return nil, nil
	}
	// Most ConfigMaps hold nothing of the kind, so the text is given its place in
	// the file only when something was found.
	subjects, found := nodeconf.Embedded(name, nil, d.Root)
	const maxPlaced = 100_000 // lines; beyond them, what is found is placed at the beginning of its entry
	if len(subjects)+len(found) == 0 || d.Line > maxPlaced {
		return subjects, found
	}
	return nodeconf.Embedded(name, append(bytes.Repeat([]byte("\n"), d.Line-1), d.Text...), d.Root)
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
