package labfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/internal/input"
	"github.com/winlab-dev/winlab/internal/strict"
	"github.com/winlab-dev/winlab/sim/trace"
)

// File is a lab as it was read: the document with its positions, its base
// merged in, and what it says as Go values. Nothing has been built yet.
type File struct {
	// Path is the file's name as the user gave it.
	Path string
	Lab  *Lab
	node *yaml.Node
	dir  string
	// shown names files of a lab that was made in a moment, nil for one that somebody wrote.
	shown *Shown
	// man is what was read to check the lab. The first caller gets it, because readers change it.
	// Copies with other versions or steps have the same.
	man *atomic.Pointer[Manifests]
}

// maxSize bounds a lab file, in bytes: a hostile one must not fill the memory. The tree of a
// YAML text takes 19 times its length where values are long, 60 times where they are digits
// (measured with 8 MiB of nodes and of lists), so that the limit is 4 GB at worst. A lab that
// is written by a program for Kubernetes' envelope, 5,000 nodes and 150,000 pods of 300 bytes
// each, has 45 MB.
const maxSize = 64 << 20

// maxBases bounds how many bases a lab may have, each the base of the one before.
const maxBases = 8

// Load reads a lab file and its bases. All mistakes are in the error, each with
// file, line and column.
func Load(path string) (*File, error) {
	var found strict.Mistakes
	node := read(path, &found, nil)
	if node == nil {
		return nil, found.AsError()
	}
	return finishAll(place{path, filepath.Dir(path), nil}, node, found)
}

// Shown says how the files of a lab are named to people where the lab was made of something
// else, in a folder that is removed again.
type Shown struct {
	// Lab is what the lab was made of. It stands for the lab file, whose lines a user cannot look
	// up.
	Lab string
	// Files has the names of the files that the lab reads, by their paths as [File.PathOf] has
	// them. Those that it lacks keep their path.
	Files map[string]string
}

// LoadShown is [Load] for a lab that was made of something else, which the origins of its objects
// name.
func LoadShown(path string, shown Shown) (*File, error) {
	var found strict.Mistakes
	node := read(path, &found, nil)
	if node == nil {
		return nil, found.AsError()
	}
	return finishAll(place{shown.Lab, filepath.Dir(path), &shown}, node, found)
}

// place is where a lab is: its name, the folder that names of files are relative to, and how
// those are shown.
type place struct {
	path, dir string
	shown     *Shown
}

// Parse reads a lab from memory; path is its name and place.
func Parse(path string, data []byte) (*File, error) {
	var found strict.Mistakes
	node := parse(path, data, &found, nil)
	if node == nil {
		return nil, found.AsError()
	}
	return finishAll(place{path, filepath.Dir(path), nil}, node, found)
}

// Input is a file that a lab reads.
type Input struct {
	// Path is its name as Shown has it, SHA256 the hash of what it says in hexadecimal
	// digits; that of the lab itself is the hash of its file merged over its bases.
	Path, SHA256 string
}

// Inputs are the lab and the files that it names: manifests, configuration of plugins,
// objects and dumps of nodes. A value is a file's name where there is such a file. It fails
// when one cannot be read.
func (f *File) Inputs() ([]Input, error) {
	text, err := yaml.Marshal(f.node)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path, err)
	}
	all := []Input{{f.Path, sum(text)}}
	names := map[string]bool{}
	scalars(f.node, func(value string) {
		path := f.PathOf(value)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			names[path] = true
		}
	})
	for _, path := range slices.Sorted(maps.Keys(names)) {
		data, err := input.ReadFile(path, input.Document)
		if err != nil {
			return nil, err
		}
		all = append(all, Input{f.Shown(path), sum(data)})
	}
	return all, nil
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// scalars calls f with every text of a document that could name a file.
func scalars(n *yaml.Node, f func(string)) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" && strings.Contains(n.Value, ".") && !strings.ContainsAny(n.Value, "\n\x00") {
		f(n.Value)
	}
	for _, c := range n.Content {
		scalars(c, f)
	}
}

// finishAll finishes a lab and checks all of its variants too.
func finishAll(at place, node *yaml.Node, found strict.Mistakes) (*File, error) {
	f, err := finish(at, node, found)
	if err != nil {
		return nil, err
	}
	var inVariants strict.Mistakes
	for _, v := range f.Lab.Spec.Variants {
		var ms strict.Mistakes
		if _, err := f.Variant(v.Name); errors.As(err, &ms) {
			for _, m := range ms {
				if !slices.Contains(inVariants, m) {
					inVariants = append(inVariants, m)
				}
			}
		} else if err != nil {
			return nil, err
		}
	}
	if err := inVariants.AsError(); err != nil {
		return nil, err
	}
	return f, nil
}

// finish turns a document into a lab and validates its values. Mistakes of form
// are in found already; the rest of such a document is still checked, so that
// all mistakes are reported at once.
func finish(at place, node *yaml.Node, found strict.Mistakes) (*File, error) {
	f := &File{Path: at.path, node: node, dir: at.dir, shown: at.shown, Lab: new(Lab), man: new(atomic.Pointer[Manifests])}
	if len(found) > 0 {
		node = withoutDuplicates(node)
	}
	if err := node.Decode(f.Lab); err != nil {
		var partly *yaml.TypeError
		if len(found) == 0 {
			return nil, strict.Mistakes{{File: at.path, Message: err.Error()}}.AsError()
		}
		if !errors.As(err, &partly) {
			return nil, found.AsError()
		}
	}
	v := newValidator(f, node, found)
	v.lab.Spec.defaults()
	v.check()
	if found = append(found, v.found...); len(found) > 0 {
		return nil, found.AsError()
	}
	return f, nil
}

// withoutDuplicates copies a document and leaves out duplicate keys, with which
// the decoder refuses the whole document.
func withoutDuplicates(n *yaml.Node) *yaml.Node {
	out := *n
	out.Content = nil
	seen := map[string]bool{}
	for i := 0; i < len(n.Content); i++ {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			if k := n.Content[i]; seen[k.Value] && i+1 < len(n.Content) {
				i++
				continue
			} else {
				seen[k.Value] = true
			}
		}
		out.Content = append(out.Content, withoutDuplicates(n.Content[i]))
	}
	return &out
}

// read reads a file, checks its form and merges it over its base.
func read(path string, found *strict.Mistakes, under []string) *yaml.Node {
	data, err := input.ReadFile(path, maxSize)
	if err != nil {
		var large *input.LimitError
		var at *fs.PathError
		m := strict.Mistake{File: path, Message: err.Error()}
		switch {
		case errors.As(err, &large):
			m = tooBig(path, large.Size)
		case errors.Is(err, fs.ErrNotExist):
			m.Message = "there is no such file"
		case errors.As(err, &at):
			m.Message = at.Err.Error()
		}
		*found = append(*found, m)
		return nil
	}
	return parse(path, data, found, under)
}

func tooBig(path string, size int64) strict.Mistake {
	return strict.Mistake{File: path,
		Message: fmt.Sprintf(
			"the lab has %d bytes; the limit is %d. Put Kubernetes objects into files and list them under manifests:; JSON is read fastest", size,
			maxSize)}
}

func parse(path string, data []byte, found *strict.Mistakes, under []string) *yaml.Node {
	root, mistake := document(path, data)
	if mistake != nil {
		*found = append(*found, *mistake)
		return nil
	}
	// Messages do not quote a base that is not a lab: base may name any file of this machine.
	if v := child(root, "apiVersion"); len(under) > 0 && (v == nil || v.Value != APIVersion) {
		*found = append(*found, strict.Mistake{File: path, Message: "this is not a lab: it does not begin with apiVersion: " + APIVersion})
		return nil
	}
	c := &strict.Checker{File: path}
	c.Check(root, reflect.TypeFor[Lab](), "the lab")
	if root.Kind == yaml.MappingNode {
		if v := child(root, "apiVersion"); v == nil || v.Value != APIVersion {
			c.Add(orNode(v, root), "apiVersion must be %s", APIVersion)
		}
		if v := child(root, "kind"); v == nil || v.Value != Kind {
			c.Add(orNode(v, root), "kind must be %s", Kind)
		}
	}
	*found = append(*found, c.Found...)
	if root.Kind != yaml.MappingNode || !isPlainTree(root, 0) {
		return nil
	}
	setFile(root, path)
	base := child(child(root, "spec"), "base")
	if base == nil || base.Value == "" || base.Kind != yaml.ScalarNode {
		return root
	}
	return overBase(path, root, base, found, under)
}

// document reads the tree of a YAML text.
func document(path string, data []byte) (*yaml.Node, *strict.Mistake) {
	if len(data) > maxSize {
		m := tooBig(path, int64(len(data)))
		return nil, &m
	}
	if i := bytes.IndexByte(data, 0); i >= 0 {
		return nil,
			&strict.Mistake{File: path,
				Message: fmt.Sprintf("byte %d is zero: this is not a text file; a lab is YAML and starts with apiVersion: %s", i, APIVersion)}
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		m := strict.SyntaxMistake(path, err)
		return nil, &m
	}
	if len(doc.Content) == 0 {
		return nil, &strict.Mistake{File: path, Message: "the file is empty; a lab starts with apiVersion: " + APIVersion}
	}
	return doc.Content[0], nil
}

// overBase merges a lab over its base.
func overBase(path string, root, base *yaml.Node, found *strict.Mistakes, under []string) *yaml.Node {
	at := strict.Mistake{File: path, Line: base.Line, Column: base.Column}
	to := base.Value
	if !filepath.IsAbs(to) {
		to = filepath.Join(filepath.Dir(path), to)
	}
	for _, u := range append(slices.Clone(under), path) {
		if filepath.Clean(u) == filepath.Clean(to) {
			at.Message = "the lab is its own base: " + strings.Join(append(slices.Clone(under), path, to), " -> ")
			*found = append(*found, at)
			return nil
		}
	}
	if len(under) >= maxBases {
		at.Message = fmt.Sprintf("this is base %d of a chain that begins with %s; up to %d are read: merge some of them", len(under)+1, under[0], maxBases)
		*found = append(*found, at)
		return nil
	}
	if info, err := os.Stat(to); err != nil || info.IsDir() {
		at.Message = fmt.Sprintf("base %s: there is no such file; write the path from this file's folder to another lab", base.Value)
		*found = append(*found, at)
		return nil
	}
	b := read(to, found, append(slices.Clone(under), path))
	if b == nil {
		return nil
	}
	rebase(b, filepath.Dir(path), filepath.Dir(to))
	dropOwn(b)
	return merge(b, root)
}

// maxDepth bounds the nesting of a document.
const maxDepth = 64

// isPlainTree reports whether a document is a tree of moderate depth.
func isPlainTree(n *yaml.Node, depth int) bool {
	if n.Kind == yaml.AliasNode || depth > maxDepth {
		return false
	}
	return !slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return !isPlainTree(c, depth+1) })
}

func orNode(a, b *yaml.Node) *yaml.Node {
	if a != nil {
		return a
	}
	return b
}

// child returns the value of a key of a map, or nil.
func child(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// setFile notes in every node which file it came from. HeadComment is free for
// that: comments have no meaning once the document is read.
func setFile(n *yaml.Node, path string) {
	n.HeadComment, n.LineComment, n.FootComment = path, "", ""
	for _, c := range n.Content {
		setFile(c, path)
	}
}

// pathFields are the fields that hold file names, which are relative to the
// file that names them.
var pathFields = map[string]bool{"conf": true, "netConf": true, "manifests": true, "apply": true, "hnsDump": true}

// rebase makes the file names of a base relative to the lab that has this base.
func rebase(n *yaml.Node, dir, baseDir string) {
	if n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			v := n.Content[i+1]
			if !pathFields[n.Content[i].Value] {
				rebase(v, dir, baseDir)
				continue
			}
			fix := func(s *yaml.Node) {
				if s.Value == "" || filepath.IsAbs(s.Value) {
					return
				}
				to := filepath.Join(baseDir, s.Value)
				if rel, err := filepath.Rel(dir, to); err == nil {
					to = rel
				}
				s.Value = to
			}
			if v.Kind == yaml.SequenceNode {
				for _, s := range v.Content {
					fix(s)
				}
			} else {
				fix(v)
			}
		}
		return
	}
	for _, c := range n.Content {
		rebase(c, dir, baseDir)
	}
}

// merge lays over on top of base: maps by key, lists of named things by name,
// all else is replaced. An item of such a list cannot be removed: a lab says
// what there is.
func merge(base, over *yaml.Node) *yaml.Node {
	switch {
	case base == nil:
		return over
	case over == nil:
		return base
	case base.Kind == yaml.MappingNode && over.Kind == yaml.MappingNode:
		out := *base
		out.Line, out.Column, out.HeadComment = over.Line, over.Column, over.HeadComment
		out.Content = append([]*yaml.Node(nil), base.Content...)
		for i := 0; i+1 < len(over.Content); i += 2 {
			k, v := over.Content[i], over.Content[i+1]
			if j := keyIndex(&out, k.Value); j >= 0 {
				out.Content[j], out.Content[j+1] = k, merge(out.Content[j+1], v)
			} else {
				out.Content = append(out.Content, k, v)
			}
		}
		return &out
	case isNamedList(base) && isNamedList(over):
		out := *base
		out.Content = append([]*yaml.Node(nil), base.Content...)
	next:
		for _, e := range over.Content {
			for i, b := range out.Content {
				if child(b, "name").Value == child(e, "name").Value {
					out.Content[i] = merge(b, e)
					continue next
				}
			}
			out.Content = append(out.Content, e)
		}
		return &out
	}
	return over
}

// ownLists are the lists of a lab that describe one lab only: what is expected
// of a base is not expected of those that change it.
var ownLists = []string{"flows", "steps", "variants", "settings"}

// dropOwn takes out of a base the lists that describe the base only.
func dropOwn(base *yaml.Node) {
	spec := child(base, "spec")
	for _, key := range ownLists {
		if child(spec, key) != nil {
			i := keyIndex(spec, key)
			spec.Content = slices.Delete(spec.Content, i, i+2)
		}
	}
}

func keyIndex(n *yaml.Node, key string) int {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return i
		}
	}
	return -1
}

// isNamedList reports whether a node is a list of maps that all have a name.
func isNamedList(n *yaml.Node) bool {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		return false
	}
	for _, e := range n.Content {
		if v := child(e, "name"); v == nil || v.Value == "" {
			return false
		}
	}
	return true
}

// Variant returns the lab in one of its states: the variant's fields laid over
// the lab's. The empty name is the lab itself.
func (f *File) Variant(name string) (*File, error) {
	if name == "" {
		return f, nil
	}
	var names []string
	for i, v := range f.Lab.Spec.Variants {
		names = append(names, v.Name)
		if v.Name != name {
			continue
		}
		return f.overlaid(child(child(f.node, "spec"), "variants").Content[i])
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: there is no variant %q; this lab has no variants", f.Path, name)
	}
	return nil, fmt.Errorf("%s: there is no variant %q; there are %s", f.Path, name, strings.Join(names, ", "))
}

// notInSet are the parts of a lab that a variant cannot set, and why: nothing would
// follow from them.
var notInSet = map[string]string{
	"base":     "a variant cannot change the base; make another lab with that base",
	"flows":    "write flows beside set; they are merged over the lab's flows",
	"settings": "every variant is evaluated with the lab's settings",
	"variants": "a variant cannot have variants",
}

// overlaid is the lab with a variant laid over it.
func (f *File) overlaid(variant *yaml.Node) (*File, error) {
	spec := child(f.node, "spec")
	if set := child(variant, "set"); set != nil {
		c := &strict.Checker{File: set.HeadComment}
		c.Check(set, reflect.TypeFor[Spec](), "set")
		for i := 0; i+1 < len(set.Content); i += 2 {
			if why := notInSet[set.Content[i].Value]; why != "" {
				c.Add(set.Content[i], "set cannot have %s: %s", set.Content[i].Value, why)
			}
		}
		if len(c.Found) > 0 {
			return nil, c.Found.AsError()
		}
		spec = merge(spec, set)
	}
	over := *spec
	over.Content = append([]*yaml.Node(nil), spec.Content...)
	setChild(&over, "hns", appendNodes(child(spec, "hns"), child(variant, "hns")))
	setChild(&over, "steps", inheritSteps(child(spec, "steps"), child(variant, "steps")))
	setChild(&over, "flows", inheritFlows(child(spec, "flows"), child(variant, "flows")))
	root := *f.node
	root.Content = append([]*yaml.Node(nil), f.node.Content...)
	root.Content[keyIndex(&root, "spec")+1] = &over
	return finish(place{f.Path, f.dir, f.shown}, &root, nil)
}

// PathOf makes a file name of the lab usable from the working folder.
func (f *File) PathOf(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(f.dir, name)
}

// Shown is how a file that PathOf gave is named to people.
func (f *File) Shown(path string) string {
	if f.shown != nil {
		if s := f.shown.Files[path]; s != "" {
			return s
		}
	}
	return path
}

// Dir is the folder of the lab file.
func (f *File) Dir() string { return f.dir }

// Origin is the place of a value in the file, reached by keys and list
// positions; its line is 0 for a value that the file does not have.
func (f *File) Origin(what string, path ...any) *trace.Origin {
	n := f.node
	for _, p := range path {
		switch p := p.(type) {
		case string:
			n = child(n, p)
		case int:
			if n == nil || p >= len(n.Content) {
				n = nil
			} else {
				n = n.Content[p]
			}
		}
	}
	if n == nil || f.shown != nil {
		return &trace.Origin{What: what, File: f.Path}
	}
	return &trace.Origin{What: what, File: n.HeadComment, Line: n.Line}
}
