package hns

import (
	"fmt"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// Error is a failed call with the code that HNS gives. Compare with errors.Is
// and one of the Err values: two errors are the same when their codes are. An error
// whose code sources do not agree on is the same as each of the codes.
type Error struct {
	// Code is the HRESULT or Win32 code, Name its symbol in winerror.h, Text
	// what Windows says for it.
	Code uint32
	Name string
	Text string
	// Op is the call, "hcnCreateEndpoint". Details say what was wrong, every
	// mistake of the object; they are winlab's words.
	Op      string
	Details []string
	// Or are the codes that other sources name for this refusal, Question what is
	// asked there and the lab parameter that pins it. Both are nil where sources
	// agree, and where a lab has pinned the code.
	Or       []*Error
	Question *evidence.Question
	disagree string
}

// Error returns the message in hcsshim's form, with every code that it may have, then
// the details.
func (e *Error) Error() string {
	codes := fmt.Sprintf("0x%x", e.Code)
	for _, o := range e.Or {
		codes += fmt.Sprintf(" or 0x%x", o.Code)
	}
	s := fmt.Sprintf("failed in Win32: %s (%s%s)", e.Text, codes, e.disagree)
	if e.Op != "" {
		s = e.Op + " " + s
	}
	if len(e.Details) > 0 {
		s += ": " + strings.Join(e.Details, "; ")
	}
	return s
}

// Is reports whether target has the same code, or one that this error may have.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && (t.Code == e.Code || slices.ContainsFunc(e.Or, func(o *Error) bool { return o.Code == t.Code }))
}

// with returns a copy of a sentinel for one call.
func (e *Error) with(op string, details ...string) *Error {
	c := *e
	c.Op, c.Details = op, details
	return &c
}

func (e *Error) withf(op, format string, args ...any) *Error {
	return e.with(op, fmt.Sprintf(format, args...))
}

// The codes, with the names and texts of winerror.h (golang.org/x/sys/windows
// holds the same list). Where a text is quoted in a thread, it is that text.
var (
	ErrNetworkNotFound         = &Error{Code: 0x803b0001, Name: "HCN_E_NETWORK_NOT_FOUND", Text: "The network was not found."}
	ErrEndpointNotFound        = &Error{Code: 0x803b0002, Name: "HCN_E_ENDPOINT_NOT_FOUND", Text: "The endpoint was not found."}
	ErrPortNotFound            = &Error{Code: 0x803b0007, Name: "HCN_E_PORT_NOT_FOUND", Text: "The switch-port was not found."}
	ErrPolicyNotFound          = &Error{Code: 0x803b0008, Name: "HCN_E_POLICY_NOT_FOUND", Text: "An expected policy was not found."}
	ErrInvalidNetwork          = &Error{Code: 0x803b000a, Name: "HCN_E_INVALID_NETWORK", Text: "The network was invalid."}
	ErrInvalidNetworkType      = &Error{Code: 0x803b000b, Name: "HCN_E_INVALID_NETWORK_TYPE", Text: "The network type is invalid."}
	ErrInvalidEndpoint         = &Error{Code: 0x803b000c, Name: "HCN_E_INVALID_ENDPOINT", Text: "The endpoint was invalid."}
	ErrInvalidPolicy           = &Error{Code: 0x803b000d, Name: "HCN_E_INVALID_POLICY", Text: "The provided policy configuration is invalid or missing parameters."}
	ErrInvalidPolicyType       = &Error{Code: 0x803b000e, Name: "HCN_E_INVALID_POLICY_TYPE", Text: "The policy type is invalid."}
	ErrInvalidRemoteEndpointOp = &Error{Code: 0x803b000f, Name: "HCN_E_INVALID_REMOTE_ENDPOINT_OPERATION", Text: "This operation is not valid for a remote endpoint."}
	ErrNetworkAlreadyExists    = &Error{Code: 0x803b0010, Name: "HCN_E_NETWORK_ALREADY_EXISTS", Text: "A network with this name already exists."}
	ErrPortAlreadyExists       = &Error{Code: 0x803b0013, Name: "HCN_E_PORT_ALREADY_EXISTS", Text: "The specified port already exists."}
	ErrEndpointAlreadyAttached = &Error{Code: 0x803b0014, Name: "HCN_E_ENDPOINT_ALREADY_ATTACHED", Text: "The endpoint is already attached to the switch."}
	ErrRequestUnsupported      = &Error{Code: 0x803b0015, Name: "HCN_E_REQUEST_UNSUPPORTED", Text: "The specified request is unsupported."}
	ErrInvalidJSON             = &Error{Code: 0x803b001b, Name: "HCN_E_INVALID_JSON", Text: "The specified JSON document is invalid."}
	ErrInvalidIP               = &Error{Code: 0x803b001e, Name: "HCN_E_INVALID_IP", Text: "The IP address is either invalid or not part of any configured subnet(s)."}
	ErrAddressInvalidReserved  = &Error{Code: 0x803b002f, Name: "HCN_E_ADDR_INVALID_OR_RESERVED", Text: "An address provided is invalid or reserved."}
	ErrInvalidPrefix           = &Error{Code: 0x803b0030, Name: "HCN_E_INVALID_PREFIX", Text: "The prefix provided is invalid."}

	ErrOutOfMemory      = &Error{Code: 0xe, Name: "ERROR_OUTOFMEMORY", Text: "Not enough memory resources are available to complete this operation."}
	ErrInvalidParam     = &Error{Code: 0x57, Name: "ERROR_INVALID_PARAMETER", Text: "The parameter is incorrect."}
	ErrAlreadyExists    = &Error{Code: 0xb7, Name: "ERROR_ALREADY_EXISTS", Text: "Cannot create a file when that file already exists."}
	ErrSharingViolation = &Error{Code: 0x20, Name: "ERROR_SHARING_VIOLATION", Text: "The process cannot access the file because it is being used by another process."}
	ErrObjectExists     = &Error{Code: 0x1392, Name: "ERROR_OBJECT_ALREADY_EXISTS", Text: "The object already exists."}
	ErrElementNotFound  = &Error{Code: 0x490, Name: "ERROR_NOT_FOUND", Text: "Element not found."}
	ErrNotImplemented   = &Error{Code: 0x80004001, Name: "E_NOTIMPL", Text: "Not implemented"}
)

// ErrorWithCode finds the error with a code.
func ErrorWithCode(code uint32) (*Error, bool) {
	for _, e := range []*Error{ErrNetworkNotFound, ErrEndpointNotFound, ErrPortNotFound, ErrPolicyNotFound, ErrInvalidNetwork, ErrInvalidNetworkType, ErrInvalidEndpoint, ErrInvalidPolicy,
		ErrInvalidPolicyType, ErrInvalidRemoteEndpointOp, ErrNetworkAlreadyExists, ErrPortAlreadyExists, ErrEndpointAlreadyAttached, ErrRequestUnsupported, ErrInvalidJSON, ErrInvalidIP,
		ErrAddressInvalidReserved, ErrInvalidPrefix, ErrOutOfMemory, ErrInvalidParam, ErrAlreadyExists, ErrSharingViolation, ErrObjectExists, ErrElementNotFound, ErrNotImplemented} {
		if e.Code == code {
			return e, true
		}
	}
	return nil, false
}

// mistakes collects what is wrong with one object. The first code that was
// added is the one the call fails with; the texts of all are reported.
type mistakes struct {
	first *Error
	texts []string
}

func (m *mistakes) add(code *Error, format string, args ...any) {
	if m.first == nil {
		m.first = code
	}
	m.texts = append(m.texts, fmt.Sprintf(format, args...))
}

func (m *mistakes) err(op string) error {
	if m.first == nil {
		return nil
	}
	return m.first.with(op, m.texts...)
}
