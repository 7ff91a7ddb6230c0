package dump

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/winlab-dev/winlab/internal/lazyregexp"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

var klogForm = lazyregexp.New(`^(?:[IWEF]\d{4} \d\d:\d\d:\d\d|time="?\d{4}-|\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d)`)

// isLog reports whether a file is a log.
func isLog(l Lines) bool {
	n := 0
	for i := 0; i < len(l.Text) && i < 500; i++ {
		if klogForm.MatchString(l.Text[i]) {
			n++
		}
	}
	return n >= 2
}

// hnsInLog are texts before objects of HNS in logs of kube-proxy, flanneld and
// plugins. kube-proxy names what it has made, in JSON or in Go's notation
// (kubernetes/kubernetes pkg/proxy/winkernel, 1.20 to 1.37); hcsshim logs requests and
// answers (hcn/hcnglobals.go and internal/hns/hnsfuncs.go), flanneld networks that it found.
var hnsInLog = []string{"Hns loadbalancer policy resource", "Hns Endpoint resource", "Network Response ", "HNS network [",
	"hcsshim::HNSEndpoint", "hcsshim::HNSNetwork", "Result :", "[HNSCall]", "Network Request Json", "Endpoint Request Json"}

// goneInLog are texts before an object that kube-proxy is about to delete.
var goneInLog = []string{"Removing Policy", "Remove Policy"}

var deletedLB = lazyregexp.New(`(?i)deleted\s+Hns\s+loadbalancer.*?"?([0-9a-f]{8}-[0-9a-f-]{27})`)

// log takes the objects that a log shows HNS to have answered with. A log says
// what was at some time: an object that it shows later replaces one with the
// same id, and one that it says was deleted is gone.
func (r *reader) log(l Lines) {
	r.addForm("a log")
	seen := &hns.Dump{}
	for i, text := range l.Text {
		if m := deletedLB.FindStringSubmatch(text); m != nil {
			seen.Remove(m[1])
			continue
		}
		gone := HasAny(text, goneInLog...)
		if !HasAny(text, "{\"", "[{", `{\"`, "&{") || !gone && !HasAny(text, hnsInLog...) || strings.Contains(text, "Error deleting") {
			continue
		}
		for _, d := range objectsIn(l.File, text, l.First+i) {
			for _, id := range d.IDs() {
				seen.Remove(id)
			}
			if !gone {
				seen.Add(d)
			}
		}
	}
	if len(seen.Networks)+len(seen.Endpoints)+len(seen.LoadBalancers) > 0 {
		r.addForm("objects of HNS")
		r.n.notice("objects of HNS in a log", "the objects are as the log shows them last; changes that the log does not show are not known",
			Place{File: l.File, Line: l.First})
		r.n.hnsDump().Add(seen)
	}
}

// objectsIn are the objects of HNS in a line of a log. What cannot be read is left out:
// logs cut long lines, and requests have no ids.
func objectsIn(file, text string, line int) []*hns.Dump {
	var out []*hns.Dump
	at := func(int) (int, int) { return line, 1 }
	for _, raw := range jsonIn(text) {
		if d, err := (hns.DumpText{Name: file, JSON: raw, Position: at}).Parse(); err == nil {
			out = append(out, d)
		}
	}
	for _, o := range goStructs(text, line) {
		if !isHNS(o) || Str(o, "ID") == "" {
			continue
		}
		w := &treeWriter{}
		w.write(o, 0)
		if d, err := (hns.DumpText{Name: file, JSON: w.buf.Bytes(), Words: true, Position: at}).Parse(); err == nil {
			out = append(out, d)
		}
	}
	return out
}

// besides are the lines of a file that are not of the log in it, at their numbers:
// people paste a log and what a command printed into one file.
func besides(l Lines) Lines {
	out := Lines{File: l.File, First: l.First, Text: make([]string, len(l.Text))}
	for i, text := range l.Text {
		if !klogForm.MatchString(text) {
			out.Text[i] = text
		}
	}
	return out
}

// jsonIn are the objects and lists of objects in a line of a log.
func jsonIn(text string) [][]byte {
	if strings.Contains(text, `\"`) {
		text = strings.ReplaceAll(text, `\"`, `"`)
	}
	var out [][]byte
	for tries := 0; tries < 8; tries++ {
		at := strings.IndexAny(text, "{[")
		if at < 0 {
			return out
		}
		dec := json.NewDecoder(strings.NewReader(text[at:]))
		var raw json.RawMessage
		if dec.Decode(&raw) != nil {
			text = text[at+1:]
			continue
		}
		if bytes.Contains(raw, []byte(`"`)) {
			out = append(out, raw)
		}
		text = text[at+int(dec.InputOffset()):]
	}
	return out
}
