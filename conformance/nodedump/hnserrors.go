package nodedump

import (
	"slices"
	"strconv"
	"strings"

	"github.com/winlab-dev/winlab/internal/lazyregexp"
	"github.com/winlab-dev/winlab/sim/windows/dump"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// HNSError is a code with which HNS refused a call, as logs have it.
type HNSError struct {
	// Code is the HRESULT or Win32 code, Name its symbol and Text what Windows says for it;
	// both "" for a code of HNS that nothing here knows.
	Code       uint32
	Name, Text string
	// Op is the call, "hcnCreateLoadBalancer", "" where no line names it.
	Op string
	// Count is the number of lines, Places the first one of each file.
	Count  int
	Places []Place
}

// HNSErrors are the codes with which HNS refused calls, by code and call.
func (n *Node) HNSErrors() []HNSError { return n.hnsErrors }

var (
	// A code of HNS itself says what it is; one of Win32 may be anybody's, so that the line
	// must be in hcsshim's form: "hcnCreateEndpoint failed in Win32: Element not found. (0x490)".
	hnsCode   = lazyregexp.New(`(?i)\b0x(803b[0-9a-f]{4})\b`)
	win32Code = lazyregexp.New(`(?i)failed in Win32: [^(]*\(0x([0-9a-f]{1,8})\)`)
	hcnCall   = lazyregexp.New(`\bhcn[A-Z]\w+`)
)

// findHNSErrors looks for codes of HNS in a line. The same words may be in a line twice, as
// one program quotes another; that is one refusal.
func (r *reader) findHNSErrors(line int, text string) {
	var codes []string
	for _, re := range []*lazyregexp.Regexp{hnsCode, win32Code} {
		for _, m := range re.FindAllStringSubmatch(text, -1) {
			codes = append(codes, strings.ToLower(m[1]))
		}
	}
	slices.Sort(codes)
	op := hcnCall.FindString(text)
	for _, c := range slices.Compact(codes) {
		n, err := strconv.ParseUint(c, 16, 32)
		if err != nil || n>>16 != 0x803b && op == "" {
			continue // a Win32 code of a call that is none of HNS's
		}
		r.hnsError(uint32(n), op, r.at(line))
	}
}

func (r *reader) hnsError(code uint32, op string, p Place) {
	r.as("error codes of HNS")
	for i := range r.node.hnsErrors {
		e := &r.node.hnsErrors[i]
		if e.Code != code || e.Op != op {
			continue
		}
		e.Count++
		if !slices.ContainsFunc(e.Places, func(o Place) bool { return o.File == p.File }) {
			e.Places = append(e.Places, p)
		}
		return
	}
	e := HNSError{Code: code, Op: op, Count: 1, Places: []Place{p}}
	if known, ok := hns.ErrorWithCode(code); ok {
		e.Name, e.Text = known.Name, known.Text
	}
	r.node.hnsErrors = append(r.node.hnsErrors, e)
}

// mayHaveHNSErrors is a quick look; line is in lower case.
func mayHaveHNSErrors(line string) bool { return dump.HasAny(line, "0x803b", "failed in win32") }
