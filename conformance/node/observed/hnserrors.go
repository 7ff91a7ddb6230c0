package observed

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
	// both "" for a code of HNS that nothing here knows. Code is 0 where a line has words only
	// that belong to no code.
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
	hcnCall   = lazyregexp.New(`\b(?:hcn[A-Z]\w+|Invoke-HnsRequest\b)`)
	// hns.psm1 of microsoft/SDN shows the answer of HNS as PowerShell shows an object, with the
	// code in decimal: "@{Error=An adapter was not found. ; ErrorCode=2151350278; Success=False}".
	answerCode = lazyregexp.New(`(?i)\bErrorCode=(\d{1,10})\b[^}]*\bSuccess=False`)
	// hcsshim before HCN v2 printed the words only (hnsCallRawResponse).
	answerText = lazyregexp.New(`(?i)\bHNS failed with error : ([^"\\]{5,200})`)
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
	for _, m := range answerCode.FindAllStringSubmatch(text, -1) {
		if n, err := strconv.ParseUint(m[1], 10, 32); err == nil {
			codes = append(codes, strconv.FormatUint(win32(n), 16))
		}
	}
	slices.Sort(codes)
	op := hcnCall.FindString(text)
	if m := answerText.FindStringSubmatch(text); m != nil && len(codes) == 0 {
		r.hnsWords(strings.TrimSpace(m[1]), op, r.placeOf(line))
	}
	for _, c := range slices.Compact(codes) {
		n, err := strconv.ParseUint(c, 16, 32)
		if err != nil || n>>16 != 0x803b && op == "" {
			continue // a Win32 code of a call that is not HNS's
		}
		r.hnsError(uint32(n), op, r.placeOf(line))
	}
}

// win32 is the Win32 code that an HRESULT stands for, or the code itself (winerror.h
// HRESULT_FROM_WIN32).
func win32(code uint64) uint64 {
	if code>>16 == 0x8007 {
		return code & 0xffff
	}
	return code
}

// hnsWords takes a refusal of which only the words are there.
func (r *reader) hnsWords(words, op string, p Place) {
	if known, ok := hns.ErrorWithText(words); ok {
		r.hnsError(known.Code, op, p)
		return
	}
	r.addKind("error codes of HNS")
	for i := range r.node.hnsErrors {
		if e := &r.node.hnsErrors[i]; e.Code == 0 && e.Text == words && e.Op == op {
			e.Count++
			return
		}
	}
	r.node.hnsErrors = append(r.node.hnsErrors, HNSError{Text: words, Op: op, Count: 1, Places: []Place{p}})
}

func (r *reader) hnsError(code uint32, op string, p Place) {
	r.addKind("error codes of HNS")
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
func mayHaveHNSErrors(line string) bool {
	return dump.HasAny(line, "0x803b", "failed in win32", "errorcode=", "hns failed with error")
}
