package check

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/conformance/manifest"
	"github.com/winlab-dev/winlab/conformance/nodeconf"
	"github.com/winlab-dev/winlab/conformance/source"
	"github.com/winlab-dev/winlab/conformance/subject"
	"github.com/winlab-dev/winlab/sim/strict"
)

// Input is one file to check.
type Input struct {
	// Name is how findings call it; "-" is standard input.
	Name string
	// Listed is set when somebody named the file, and not when it was found in a
	// folder, where files that are no manifests are passed over.
	Listed bool
	Open   func() (io.ReadCloser, error)
}

// extensions are the files that are looked into in a folder.
var extensions = []string{".yaml", ".yml", ".json", ".conf", ".conflist", ".env", ".ps1", ".psm1", ".cmd", ".bat", ".txt"}

// Inputs turns arguments into files: "-" is stdin, folders are walked, hidden
// ones left out. All that does not exist is told at once.
func Inputs(args []string, stdin io.Reader) ([]Input, error) {
	var inputs []Input
	var errs []error
	for _, a := range args {
		if a == "-" {
			inputs = append(inputs, Input{Name: "-", Listed: true, Open: func() (io.ReadCloser, error) { return io.NopCloser(stdin), nil }})
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
		before := len(inputs)
		err = filepath.WalkDir(a, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				errs = append(errs, err)
				return nil
			case d.IsDir() && path != a && strings.HasPrefix(d.Name(), "."):
				return filepath.SkipDir
			case d.Type().IsRegular() && slices.Contains(extensions, strings.ToLower(filepath.Ext(path))):
				inputs = append(inputs, file(path, false))
			}
			return nil
		})
		if err != nil {
			errs = append(errs, err)
		}
		if len(inputs) == before {
			errs = append(errs, fmt.Errorf("%s: no file in it ends in one of %s; name the files themselves", a, strings.Join(extensions, " ")))
		}
	}
	return inputs, errors.Join(errs...)
}

func file(path string, listed bool) Input {
	return Input{Name: path, Listed: listed, Open: func() (io.ReadCloser, error) { return os.Open(path) }}
}

// read is what a file holds.
type read struct {
	subjects  []*subject.Subject
	documents int
	passed    map[string]int
	mistakes  strict.Mistakes
	// config is set when the file configures a node.
	config bool
	// foreign is set when nothing in the file was recognised.
	foreign bool
}

var looksLikeManifest = regexp.MustCompile(`(?m)^\s*"?(apiVersion|kind)"?\s*:`)

// readInput reads a file as what it is. A file that is larger than one
// document may be is read as a stream of manifests.
func readInput(in Input, o manifest.Options) (r read) {
	f, err := in.Open()
	if err != nil {
		r.mistakes = strict.Mistakes{{File: in.Name, Message: oneLine(err)}}
		return r
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, source.MaxDocument+1))
	if err != nil {
		r.mistakes = strict.Mistakes{{File: in.Name, Message: oneLine(err)}}
		return r
	}
	if len(head) > source.MaxDocument {
		return readManifests(in.Name, io.MultiReader(bytes.NewReader(head), f), o)
	}
	text := source.Text(head)
	if len(bytes.TrimSpace(text)) == 0 {
		if in.Listed {
			r.mistakes = strict.Mistakes{{File: in.Name, Line: 1, Column: 1, Message: "the file is empty"}}
		}
		return r
	}
	if looksLikeManifest.Match(text) {
		if r = readManifests(in.Name, bytes.NewReader(text), o); !r.foreign {
			return r
		}
	}
	c := read{config: true, documents: 1}
	var ok bool
	if c.subjects, ok, c.mistakes = nodeconf.Read(in.Name, head); ok {
		return c
	}
	if r.mistakes == nil {
		r = readManifests(in.Name, bytes.NewReader(text), o)
	}
	if r.foreign && in.Listed && len(r.mistakes) == 0 {
		r.mistakes = strict.Mistakes{{File: in.Name, Line: 1, Column: 1, Message: "this is neither a Kubernetes manifest nor a configuration that winlab knows: a CNI configuration, net-conf.json, subnet.env, or command lines of kubelet, kube-proxy, flanneld, nssm or sc"}}
	}
	return r
}

func readManifests(name string, in io.Reader, o manifest.Options) (r read) {
	docs, mistakes := source.Read(name, in)
	r.documents = len(docs)
	var rest []source.Doc
	var more strict.Mistakes
	r.subjects, rest, r.passed, more = manifest.Read(docs, o)
	r.mistakes = append(mistakes, more...)
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
func inConfigMap(name string, d *source.Doc) ([]*subject.Subject, strict.Mistakes) {
	if kind := source.Child(d.Root, "kind"); kind == nil || kind.Value != "ConfigMap" {
		return nil, nil
	}
	// Most ConfigMaps hold nothing of the kind, so the text is given its place in
	// the file only when something was found.
	subjects, found := nodeconf.Embedded(name, nil, d.Root)
	if len(subjects)+len(found) == 0 {
		return nil, nil
	}
	return nodeconf.Embedded(name, append(bytes.Repeat([]byte("\n"), d.Line-1), d.Text...), d.Root)
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
