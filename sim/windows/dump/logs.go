package dump

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/winlab-dev/winlab/sim/windows/hns"
)

var klogForm = regexp.MustCompile(`^(?:[IWEF]\d{4} \d\d:\d\d:\d\d|time="?\d{4}-|\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d)`)

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

// hnsInLog are texts before JSON of HNS in logs of kube-proxy, flanneld and
// plugins: hcsshim (hcn, internal/hns) logs requests and answers so, kube-proxy
// what it made.
var hnsInLog = []string{"Network Response ", "Created Hns loadbalancer policy resource", "hcsshim::HNSEndpoint", "hcsshim::HNSNetwork", "Result :", "[HNSCall]", "Network Request Json", "Endpoint Request Json"}

var deletedLB = regexp.MustCompile(`(?i)deleted\s+Hns\s+loadbalancer.*?"?([0-9a-f]{8}-[0-9a-f-]{27})`)

// log takes the objects that a log shows HNS to have answered with. A log says
// what was at some time: an object that it shows later replaces one with the
// same id, and one that it says was deleted is gone.
func (r *reader) log(l Lines) {
	r.as("a log")
	seen := &hns.Dump{}
	for i, text := range l.Text {
		if m := deletedLB.FindStringSubmatch(text); m != nil {
			seen.Remove(m[1])
			continue
		}
		if !HasAny(text, "{\"", "[{", `{\"`) || !HasAny(text, hnsInLog...) {
			continue
		}
		for _, raw := range jsonIn(text) {
			d, err := hns.DumpText{Name: l.File, JSON: raw, Position: func(int) (int, int) { return l.First + i, 1 }}.Parse()
			if err != nil {
				continue // logs cut long lines, and requests have no ids
			}
			for _, id := range d.IDs() {
				seen.Remove(id)
			}
			seen.Add(d)
		}
	}
	if len(seen.Networks)+len(seen.Endpoints)+len(seen.LoadBalancers) > 0 {
		r.as("objects of HNS")
		r.n.notice("objects of HNS in a log", "they are as the log shows them last; what was changed without a line in the log is not known", Place{File: l.File, Line: l.First})
		r.n.hnsDump().Add(seen)
	}
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
