package observed

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/conformance/check/subject"
	"github.com/winlab-dev/winlab/internal/input"
	"github.com/winlab-dev/winlab/internal/lazyregexp"
	"github.com/winlab-dev/winlab/internal/strict"
	"github.com/winlab-dev/winlab/sim/windows/dump"
)

// maxFile is the size in bytes up to which a file is read. A kubelet's log of
// a day has some tens of megabytes.
const maxFile = 64 << 20

// maxFiles bounds a folder: a mistaken argument such as C:\ ends here.
const maxFiles = 5000

// Read reads a folder that was taken from a node. The error is about the folder itself or the context; what is
// wrong with its files is in Mistakes.
func Read(ctx context.Context, dir string) (*Node, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is a file; winlab doctor takes a folder with files from one node", dir)
	}
	n, err := readFS(ctx, input.DirFS(dir, input.Stream))
	if err != nil {
		return nil, err
	}
	n.folder = dir
	return n, nil
}

// ReadFS reads the files of a file system in memory as those of one node.
func ReadFS(fsys fs.FS) *Node {
	n, _ := readFS(context.Background(), fsys) // fails when its context ends, which this one does not
	return n
}

func readFS(ctx context.Context, fsys fs.FS) (*Node, error) {
	r := &reader{node: &Node{listed: map[string]Place{}}, seen: map[string]bool{}}
	var names []string
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return fs.SkipAll
		case err != nil:
			r.mistake(name, 0, fmt.Sprintf("cannot be read: %v", err))
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			return nil
		case len(names) >= maxFiles:
			r.mistake(name, 0, fmt.Sprintf("the folder has more than %d files; only the first ones are read. Give a folder with files of one node",
				maxFiles))
			return fs.SkipAll
		case !d.Type().IsRegular():
			r.node.Files = append(r.node.Files, File{Name: name, Skipped: "not a regular file"})
			return nil
		}
		names = append(names, name)
		return nil
	})
	if err != nil {
		r.mistake(".", 0, err.Error())
	}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r.read(fsys, name)
	}
	r.useFlags()
	slices.SortFunc(r.node.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	_ = r.node.Mistakes.AsError() // sorts
	return r.node, ctx.Err()
}

// reader reads one folder, file by file.
type reader struct {
	node *Node
	// file, all and kinds are those of the file that is being read.
	file  string
	all   dump.Lines
	kinds []string
	// whole says that JSON which is cut in the file is a mistake that is not noted yet.
	whole bool
	// printed is set in a part of a file that is text, and no JSON.
	printed bool
	// flags are the flags that components logged.
	flags []*subject.Subject
	// seen are the command lines that were read already.
	seen map[string]bool
	// commands counts the command lines of the file.
	commands int
}

func (r *reader) placeOf(line int) Place {
	p := Place{File: r.file, Line: line}
	if i := line - r.all.First; i >= 0 && i < len(r.all.Text) {
		p.Text = dump.Clip(r.all.Text[i])
	}
	return p
}

func (r *reader) addKind(kind string) {
	if !slices.Contains(r.kinds, kind) {
		r.kinds = append(r.kinds, kind)
	}
}

func (r *reader) mistake(file string, line int, message string) {
	column := 0
	if line > 0 {
		column = 1
	}
	r.node.Mistakes = append(r.node.Mistakes, strict.Mistake{File: file, Line: line, Column: column, Message: message})
}

func (r *reader) read(fsys fs.FS, name string) {
	f := File{Name: name}
	defer func() { r.node.Files = append(r.node.Files, f) }()
	data, size, err := load(fsys, name)
	f.size = size
	switch {
	case err != nil:
		r.mistake(name, 0, fmt.Sprintf("cannot be read: %v", err))
		f.Skipped = "cannot be read"
		return
	case size > maxFile:
		if _, ok := dump.Decode(data); !ok {
			// kubelet.exe and packet traces are large and have nothing to read.
			f.Skipped = "binary"
			return
		}
		f.Skipped = "too large"
		r.mistake(name, 0,
			fmt.Sprintf("the file has %d bytes; up to %d are read. Cut the part around the fault out, for example: Get-Content FILE -Tail 100000",
				size, maxFile))
		return
	case len(strings.TrimSpace(string(data[:min(len(data), 64)]))) == 0 && len(data) <= 64:
		f.Skipped = "empty"
		if strings.EqualFold(path.Ext(name), ".json") {
			r.mistake(name, 0, emptyJSON)
		}
		return
	}
	f.As, f.Skipped = r.content(name, data)
}

// load reads a file up to maxFile; of a larger one it reads the beginning, and
// size is more than was read.
func load(fsys fs.FS, name string) (data []byte, size int64, err error) {
	h, err := fsys.Open(name)
	if err != nil {
		return nil, 0, err
	}
	defer h.Close()
	limit := int64(maxFile + 1)
	if info, err := h.Stat(); err == nil && info.Size() > maxFile {
		size, limit = info.Size(), 64<<10
	}
	data, err = io.ReadAll(io.LimitReader(h, limit))
	return data, max(size, int64(len(data))), err
}

// textual are the endings of files that programs of a node, and winlab collect, write as text.
var textual = []string{".json", ".jsonl", ".txt", ".log", ".yaml", ".yml", ".conf", ".conflist", ".env", ".toml", ".csv"}

const emptyJSON = "the file is empty, which JSON never is: nothing can be said of what it would show; " +
	"collect it again, or remove it if the command printed nothing"

// Damaged says what is wrong with a file that should be text, or JSON, and is not, "" for others.
// What such a file would have shown is unknown, which is not the same as nothing.
func Damaged(name string, data []byte) string {
	isJSON := strings.EqualFold(path.Ext(name), ".json")
	if !slices.Contains(textual, strings.ToLower(path.Ext(name))) {
		return ""
	}
	if text, ok := dump.Decode(data); ok {
		if isJSON && strings.TrimSpace(text) == "" {
			return emptyJSON
		}
		if !isJSON {
			return ""
		}
		if _, err := dump.JSONTrees(dump.Split(name, text)); err != nil {
			return fmt.Sprintf("not JSON: %v; nothing can be said of what it would show; collect it again", err)
		}
		return ""
	}
	why := "it has characters that no text has"
	if i := bytes.IndexByte(data, 0); i >= 0 {
		why = fmt.Sprintf("byte %d is 0", i)
	}
	return "this is not text (" + why + "): nothing in it was read, and nothing can be said of what it would show; collect it again"
}

// content recognises and reads one file.
func (r *reader) content(name string, data []byte) (as []string, skipped string) {
	text, ok := dump.Decode(data)
	if !ok {
		if why := Damaged(name, data); why != "" {
			r.mistake(name, 0, why)
		}
		return nil, "binary"
	}
	r.file, r.kinds, r.commands = name, nil, 0
	r.all = dump.Split(name, text)
	defer func() {
		slices.Sort(r.kinds)
		as = r.kinds
	}()
	if script(name) {
		if strings.ToLower(path.Ext(name)) != ".md" {
			r.conf(name, data)
		}
		return nil, ""
	}
	r.symptomsIn()
	known := r.conf(name, data)
	if isYAML(text) {
		return nil, r.yaml(name, text, known)
	}
	if dump.OnlyPackets(r.all) {
		return nil, "packets recorded by pktmon; read them with winlab compare"
	}
	broken := dump.BrokenJSON(r.all)
	r.node.Mistakes = append(r.node.Mistakes, broken...)
	r.whole = len(broken) == 0 && !isLog(r.all)
	for _, s := range dump.Sections(r.all) {
		if s.Command != nil {
			r.node.Commands = append(r.node.Commands, *s.Command)
			r.addKind(listTranscripts)
			r.empty(s)
		}
		r.section(s)
	}
	if head := strings.TrimSpace(text[:min(len(text), 4096)]); len(broken) == 0 && len(r.kinds) == 0 && !known && head != "" &&
		(head[0] == '{' || head[0] == '[' || strings.EqualFold(path.Ext(name), ".json")) {
		if _, err := dump.JSONTrees(r.all); err != nil {
			r.mistake(name, 1, fmt.Sprintf("not JSON: %v; take it again, for example with Get-HnsNetwork | ConvertTo-Json -Depth 20", err))
		}
	}
	return nil, ""
}

// section reads what one command printed.
func (r *reader) section(s dump.Section) {
	if s.Command != nil && s.Command.From == "pod" {
		// What a container prints is not about the node, but its trials count.
		r.trials(s.Command, s.Lines)
		for _, o := range dump.ListObjects(s.Lines) {
			r.testNetConnection(s.Command, o)
		}
		r.findSigns(s.Lines)
		return
	}
	for _, p := range dump.Parts(s.Lines) {
		r.printed = !p.JSON
		if p.JSON {
			r.json(s.Command, p.Lines)
			continue
		}
		if r.whole {
			r.node.Mistakes = append(r.node.Mistakes, dump.CutPart(p)...)
		}
		r.text(s.Command, p.Lines)
	}
}

func (r *reader) json(c *Command, l dump.Lines) {
	trees, err := dump.JSONTrees(l)
	if err != nil {
		r.mistake(l.File, l.First, fmt.Sprintf("not JSON: %v", err))
		return
	}
	for _, t := range trees {
		list := []*yaml.Node{t}
		if t.Kind == yaml.SequenceNode {
			list = t.Content
		}
		for _, o := range list {
			if o.Kind == yaml.MappingNode {
				r.object(c, o)
			}
		}
	}
	r.findSigns(l)
}

// object takes an object, however it was printed.
func (r *reader) object(c *Command, o *yaml.Node) bool {
	return r.kubeObject(o) || r.sourceVIP(o) || r.adapter(o) || r.running(o) || r.netRoute(o) || r.testNetConnection(c, o) ||
		r.hostFact(c, o) || r.hostObject(o) || r.hnsObject(o)
}

// hostFact takes what is shown of interfaces, NAT, ranges of ports and the switch.
func (r *reader) hostFact(c *Command, o *yaml.Node) bool {
	kind := r.node.ReadObject(c, r.all, o)
	if kind != "" {
		r.node.list(kind, r.placeOf(o.Line))
		r.addKind(kind)
	}
	return kind != ""
}

func (r *reader) text(c *Command, l dump.Lines) {
	rows := dump.Tables(l)
	if !r.envTable(rows) {
		for _, o := range rows {
			r.object(c, o)
		}
	}
	for _, o := range dump.CapitalTables(l, "NAME", "REASON") {
		r.kubectlRow(o)
	}
	r.trials(c, l)
	for _, o := range dump.ListObjects(l) {
		r.object(c, o)
	}
	all := l.Join()
	if dump.IsIPConfig(all) {
		r.ipconfig(l)
	}
	if dump.HasAny(all, "255.255.255.255") {
		r.routePrint(l)
	}
	if dump.HasAny(all, "SERVICE_NAME:") {
		r.scQuery(l)
	}
	if dump.HasAny(all, "Networks:", "Endpoints:", "Network : ", "Endpoint : ", "Endpoint  ", "Network  ") {
		r.hnsdiag(l)
	}
	if dump.HasAny(all, "Namespace:", "Kubelet Version:") {
		r.describe(l)
	}
	for _, kind := range r.node.ReadText(c, l) {
		r.node.list(kind, l.Place(0))
		r.addKind(kind)
	}
	r.setList(l)
	r.small(l)
	r.typed(l)
	r.findSigns(l)
	r.flagLines(l)
	if isLog(l) {
		r.node.list(ListLogs, Place{File: l.File})
		r.addKind(ListLogs)
	}
}

var typedForm = lazyregexp.New(`(?i)^\s*(?:\.\\|[a-z]:\\\S*\\)?(start|start-kubelet|start-kubeproxy|install)\.ps1\s+-\w+`)

// typed finds the commands that start a node where they are without a
// prompt, as people write them down.
func (r *reader) typed(l dump.Lines) {
	for i, text := range l.Text {
		if strings.Contains(text, ".ps1") && typedForm.MatchString(text) {
			r.node.Commands = append(r.node.Commands, Command{Text: strings.TrimSpace(text), From: "node", Place: l.Place(i)})
			r.addKind("command lines")
		}
	}
}

// empty notes lists that a command printed nothing for.
func (r *reader) empty(s dump.Section) {
	for _, text := range s.Text {
		if !dump.Blank(text) {
			return
		}
	}
	low := strings.ToLower(s.Command.Text)
	for _, e := range []struct{ command, kind string }{
		{"get-hnsnetwork", ListNetworks}, {"get-hnsendpoint", listEndpoints}, {"get-netadapter", ListAdapters}, {"get-service", ListServices},
		{"get-process", ListProcesses},
		{"get-netnat", ListNAT}, {"get-hnspolicylist", ListLoadBalancers},
	} {
		if strings.HasPrefix(low, e.command) {
			r.node.list(e.kind, s.Command.Place)
			r.addKind(e.kind)
		}
	}
}

var klogForm = lazyregexp.New(`^(?:[IWEF]\d{4} \d\d:\d\d:\d\d|time="?\d{4}-|\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d)`)

func isLog(l dump.Lines) bool {
	n := 0
	for i := 0; i < len(l.Text) && i < 500; i++ {
		if klogForm.MatchString(l.Text[i]) {
			n++
		}
	}
	return n >= 2
}

var yamlForm = lazyregexp.New(`(?m)^(?:- )?apiVersion: \S`)

func isYAML(text string) bool { return yamlForm.MatchString(text[:min(len(text), 64<<10)]) }

// yaml reads Kubernetes objects.
func (r *reader) yaml(name, text string, known bool) string {
	docs, mistakes := strict.Read(name, strings.NewReader(text))
	r.node.Mistakes = append(r.node.Mistakes, mistakes...)
	for _, d := range docs {
		if !r.kubeObject(d.Root) && !known {
			r.addKind("Kubernetes objects")
		}
	}
	r.findSigns(r.all)
	return ""
}
