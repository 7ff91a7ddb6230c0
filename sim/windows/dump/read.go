package dump

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/internal/input"
	"github.com/winlab-dev/winlab/internal/strict"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// maxFile is the size in bytes up to which a file is read; a log of a day has
// some tens of megabytes.
const maxFile = 64 << 20

// maxFiles bounds a folder.
const maxFiles = 5000

// Read reads files and folders that were taken from one node. A file that is
// named must say something that is understood; in a folder, files that are not
// understood are listed. The error holds every mistake with its place.
func Read(paths ...string) (*Node, error) {
	return ReadShown(func(path string) string { return path }, paths...)
}

// ReadShown is Read where files have other names for people than their paths: shown says which.
// Files in folders keep theirs.
func ReadShown(shown func(path string) string, paths ...string) (*Node, error) {
	n := &Node{}
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			return nil, err
		}
		if info.IsDir() {
			n.folder(p)
			continue
		}
		data, err := input.ReadFile(p, input.Document)
		if err != nil {
			return nil, err
		}
		name := shown(p)
		if before := len(n.Mistakes); !n.read(name, data) && len(n.Mistakes) == before {
			n.mistake(name, 1, "winlab does not recognize anything in it; collect it, for example, with: Get-HnsNetwork | ConvertTo-Json -Depth 20")
		}
	}
	n.finish()
	return n, n.Mistakes.AsError()
}

// ReadFile reads the text of one file as Read does.
func ReadFile(name string, data []byte) (*Node, error) {
	n := &Node{}
	if !n.read(name, data) && len(n.Mistakes) == 0 {
		n.mistake(name, 1, "winlab does not recognize anything in it; collect it, for example, with: Get-HnsNetwork | ConvertTo-Json -Depth 20")
	}
	n.finish()
	return n, n.Mistakes.AsError()
}

// finish concludes what one file alone does not say.
func (n *Node) finish() {
	if !n.printed {
		n.Routes = append(n.Routes, n.listed...)
	}
	n.listed = nil
	n.Routes = distinct(n.Routes)
	n.gateways()
	if len(n.Interfaces) > 0 && !slices.ContainsFunc(n.Interfaces, func(i Interface) bool { return i.Shown }) {
		n.notice("Get-NetIPInterface",
			"the table has no Forwarding column, so it does not say whether the node forwards packets; collect it again with: "+forwardingCommand,
			n.Interfaces[0].Place)
	}
	n.summaries()
	if n.HNS != nil {
		n.HNS.InferHost()
		for _, err := range n.HNS.Hidden() {
			n.mistakes("", err)
		}
		n.Notices = append(n.Notices, n.HNS.Notices...)
		n.HNS.Notices = nil
	}
}

// forwardingCommand shows whether interfaces forward; the default table does not.
const forwardingCommand = "Get-NetIPInterface | Select-Object ifIndex,InterfaceAlias,AddressFamily,Forwarding | ConvertTo-Json"

// gateways takes the default gateways that ipconfig shows where no file has routes.
func (n *Node) gateways() {
	if len(n.Routes) > 0 {
		return
	}
	for _, a := range n.Adapters {
		for _, gw := range a.Gateways {
			to := netip.PrefixFrom(netip.IPv4Unspecified(), 0)
			if gw.Is6() {
				to = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
			}
			n.Routes = append(n.Routes, Route{To: to, Via: gw, Interface: a.Name, Place: a.Place})
		}
	}
	if n.Routes = distinct(n.Routes); len(n.Routes) > 0 {
		n.OnlyGateways = true
		n.notice("routes of the node", "no file shows them, so the only route is ipconfig's default gateway; add the output of: route print",
			n.Routes[0].Place)
	}
}

func (n *Node) mistake(file string, line int, format string, args ...any) {
	n.Mistakes = append(n.Mistakes, strict.Mistake{File: file, Line: line, Column: min(line, 1), Message: fmt.Sprintf(format, args...)})
}

// folder reads what scripts that gather logs leave: microsoft/SDN
// Kubernetes/windows/debug/collectlogs.ps1, and Azure/AgentBaker
// staging/cse/windows/debug/collect-windows-logs.ps1, which adds logs to it.
func (n *Node) folder(dir string) {
	var names []string
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			n.mistake(name, 0, "cannot be read: %v", err)
			return nil
		case d.IsDir():
			return nil
		case len(names) >= maxFiles:
			n.mistake(dir, 0, "the folder has more than %d files; use one with the files of a single node", maxFiles)
			return fs.SkipAll
		case !d.Type().IsRegular():
			n.Files = append(n.Files, File{Name: name, Skipped: "not a regular file"})
			return nil
		}
		names = append(names, name)
		return nil
	})
	if err != nil {
		n.mistake(dir, 0, "%v", err)
	}
	// HNS v1 shows more of an object than HCN v2, and whole lists come before single
	// lines of logs.
	slices.SortStableFunc(names, func(a, b string) int { return strings.Compare(rank(a)+a, rank(b)+b) })
	for _, name := range names {
		data, err := input.ReadFile(name, maxFile)
		if large := (*input.LimitError)(nil); errors.As(err, &large) {
			n.Files = append(n.Files, File{Name: name, Skipped: fmt.Sprintf("it has %d bytes; the limit is %d", large.Size, large.Limit)})
			continue
		}
		if err != nil {
			n.mistake(name, 0, "cannot be read: %v", err)
			continue
		}
		f := len(n.Files)
		if n.read(name, data); n.Files[f].Skipped == "" && len(n.Files[f].As) == 0 && strings.TrimSpace(string(data)) != "" {
			n.notice("file "+filepath.Base(name), "winlab does not recognize anything in it", Place{File: name, Line: 1})
		}
	}
}

func rank(name string) string {
	if strings.HasSuffix(strings.ToLower(name), ".log") {
		return "1"
	}
	return "0"
}

// reader reads one file.
type reader struct {
	n *Node
	f *File
	// command is what printed the lines that are read; nil where that is not known.
	command *Command
	// inLog is set in the lines of a log that are not of the log itself: only what is
	// certainly of HNS or of the host counts there.
	inLog bool
	// broken says that the file's JSON is known to be damaged.
	broken bool
}

func (r *reader) addForm(kind string) {
	if !slices.Contains(r.f.As, kind) {
		r.f.As = append(r.f.As, kind)
		slices.Sort(r.f.As)
	}
}

// read recognises and reads one file, and reports whether anything was understood.
func (n *Node) read(name string, data []byte) bool {
	n.Files = append(n.Files, File{Name: name})
	r := &reader{n: n, f: &n.Files[len(n.Files)-1]}
	text, ok := Decode(data)
	if !ok {
		r.f.Skipped = "not a text"
		return false
	}
	all := Split(name, text)
	if OnlyPackets(all) {
		r.f.Skipped = "packets recorded by pktmon; read them with winlab compare"
		return false
	}
	if isLog(all) {
		r.log(all)
		r.inLog = true
		r.sections(besides(all))
		return len(r.f.As) > 0
	}
	if whole, ok := wholeJSON(all); ok {
		r.json(whole)
		return len(r.f.As) > 0
	}
	broken := BrokenJSON(all)
	n.Mistakes = append(n.Mistakes, broken...)
	r.broken = len(broken) > 0
	r.sections(all)
	if head := strings.TrimSpace(text); len(broken) == 0 && len(r.f.As) == 0 &&
		(strings.HasPrefix(head, "{") || strings.HasPrefix(head, "[")) {
		r.take(hns.DumpText{Name: name, JSON: []byte(text)}) // for its mistakes
	}
	return len(r.f.As) > 0
}

// sections reads what each command of a transcript printed, or a whole file.
func (r *reader) sections(all Lines) {
	for _, s := range Sections(all) {
		if s.Command != nil && s.Command.From == "pod" {
			continue
		}
		r.command = s.Command
		for _, p := range Parts(s.Lines) {
			if p.JSON {
				r.json(p.Lines)
				continue
			}
			if !r.inLog && !r.broken {
				r.n.Mistakes = append(r.n.Mistakes, CutPart(p)...)
			}
			r.text(p.Lines)
		}
	}
}

// summaries says which objects hnsdiag list all names that no file shows with
// their fields.
func (n *Node) summaries() {
	shown := map[string]bool{}
	if n.HNS != nil {
		for _, id := range n.HNS.IDs() {
			shown[strings.ToLower(id)] = true
		}
	}
	missing := map[string][]Item{}
	for _, i := range n.items {
		if !shown[strings.ToLower(i.ID)] && i.Kind != "Namespace" {
			missing[i.Place.File] = append(missing[i.Place.File], i)
		}
	}
	for _, file := range slices.Sorted(maps.Keys(missing)) {
		all := missing[file]
		why := fmt.Sprintf("%d objects, the first of them %s %s, are shown without their fields; collect it again with: hnsdiag list all -d",
			len(all), strings.ToLower(all[0].Kind), all[0].ID)
		if n.HNS == nil {
			n.mistake(file, all[0].Place.Line, "%s", why)
		} else {
			n.notice("list of HNS", why, all[0].Place)
		}
	}
}

// distinct leaves out routes that are there already: route print shows those that
// survive a restart twice.
func distinct(routes []Route) []Route {
	type key struct{ to, via string }
	seen := map[key]bool{}
	return slices.DeleteFunc(routes, func(r Route) bool {
		k := key{r.To.String(), r.Via.String()}
		known := seen[k]
		seen[k] = true
		return known && r.Via.IsValid()
	})
}
