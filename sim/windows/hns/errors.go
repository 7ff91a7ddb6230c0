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

// forCall returns a copy of a sentinel for one call.
func (e *Error) forCall(op string, details ...string) *Error {
	c := *e
	c.Op, c.Details = op, details
	return &c
}

func (e *Error) withf(op, format string, args ...any) *Error {
	return e.forCall(op, fmt.Sprintf(format, args...))
}

// The codes, with the names and texts of winerror.h (golang.org/x/sys/windows
// holds the same list). Where a text is quoted in a thread, it is that text.
var (
	ErrNetworkNotFound    = &Error{Code: 0x803b0001, Name: "HCN_E_NETWORK_NOT_FOUND", Text: "The network was not found."}
	ErrEndpointNotFound   = &Error{Code: 0x803b0002, Name: "HCN_E_ENDPOINT_NOT_FOUND", Text: "The endpoint was not found."}
	ErrPortNotFound       = &Error{Code: 0x803b0007, Name: "HCN_E_PORT_NOT_FOUND", Text: "The switch-port was not found."}
	ErrPolicyNotFound     = &Error{Code: 0x803b0008, Name: "HCN_E_POLICY_NOT_FOUND", Text: "An expected policy was not found."}
	ErrInvalidNetwork     = &Error{Code: 0x803b000a, Name: "HCN_E_INVALID_NETWORK", Text: "The network was invalid."}
	ErrInvalidNetworkType = &Error{Code: 0x803b000b, Name: "HCN_E_INVALID_NETWORK_TYPE", Text: "The network type is invalid."}
	ErrInvalidEndpoint    = &Error{Code: 0x803b000c, Name: "HCN_E_INVALID_ENDPOINT", Text: "The endpoint was invalid."}
	ErrInvalidPolicy      = &Error{Code: 0x803b000d, Name: "HCN_E_INVALID_POLICY",
		Text: "The provided policy configuration is invalid or missing parameters."}
	ErrInvalidPolicyType       = &Error{Code: 0x803b000e, Name: "HCN_E_INVALID_POLICY_TYPE", Text: "The policy type is invalid."}
	ErrInvalidRemoteEndpointOp = &Error{Code: 0x803b000f, Name: "HCN_E_INVALID_REMOTE_ENDPOINT_OPERATION",
		Text: "This operation is not valid for a remote endpoint."}
	ErrNetworkAlreadyExists = &Error{Code: 0x803b0010, Name: "HCN_E_NETWORK_ALREADY_EXISTS",
		Text: "A network with this name already exists."}
	ErrPortAlreadyExists       = &Error{Code: 0x803b0013, Name: "HCN_E_PORT_ALREADY_EXISTS", Text: "The specified port already exists."}
	ErrEndpointAlreadyAttached = &Error{Code: 0x803b0014, Name: "HCN_E_ENDPOINT_ALREADY_ATTACHED",
		Text: "The endpoint is already attached to the switch."}
	ErrRequestUnsupported = &Error{Code: 0x803b0015, Name: "HCN_E_REQUEST_UNSUPPORTED", Text: "The specified request is unsupported."}
	ErrInvalidJSON        = &Error{Code: 0x803b001b, Name: "HCN_E_INVALID_JSON", Text: "The specified JSON document is invalid."}
	ErrInvalidIP          = &Error{Code: 0x803b001e, Name: "HCN_E_INVALID_IP",
		Text: "The IP address is either invalid or not part of any configured subnet(s)."}
	ErrAddressInvalidReserved = &Error{Code: 0x803b002f, Name: "HCN_E_ADDR_INVALID_OR_RESERVED",
		Text: "An address provided is invalid or reserved."}
	ErrInvalidPrefix = &Error{Code: 0x803b0030, Name: "HCN_E_INVALID_PREFIX", Text: "The prefix provided is invalid."}

	ErrOutOfMemory = &Error{Code: 0xe, Name: "ERROR_OUTOFMEMORY",
		Text: "Not enough memory resources are available to complete this operation."}
	ErrInvalidParam     = &Error{Code: 0x57, Name: "ERROR_INVALID_PARAMETER", Text: "The parameter is incorrect."}
	ErrAlreadyExists    = &Error{Code: 0xb7, Name: "ERROR_ALREADY_EXISTS", Text: "Cannot create a file when that file already exists."}
	ErrSharingViolation = &Error{Code: 0x20, Name: "ERROR_SHARING_VIOLATION",
		Text: "The process cannot access the file because it is being used by another process."}
	ErrObjectExists    = &Error{Code: 0x1392, Name: "ERROR_OBJECT_ALREADY_EXISTS", Text: "The object already exists."}
	ErrElementNotFound = &Error{Code: 0x490, Name: "ERROR_NOT_FOUND", Text: "Element not found."}
	ErrNotImplemented  = &Error{Code: 0x80004001, Name: "E_NOTIMPL", Text: "Not implemented"}
)

// ErrorWithCode finds the error with a code.
func ErrorWithCode(code uint32) (*Error, bool) {
	for _, e := range []*Error{ErrNetworkNotFound, ErrEndpointNotFound, ErrPortNotFound, ErrPolicyNotFound, ErrInvalidNetwork,
		ErrInvalidNetworkType, ErrInvalidEndpoint, ErrInvalidPolicy,
		ErrInvalidPolicyType, ErrInvalidRemoteEndpointOp, ErrNetworkAlreadyExists, ErrPortAlreadyExists, ErrEndpointAlreadyAttached,
		ErrRequestUnsupported, ErrInvalidJSON, ErrInvalidIP,
		ErrAddressInvalidReserved, ErrInvalidPrefix, ErrOutOfMemory, ErrInvalidParam, ErrAlreadyExists, ErrSharingViolation, ErrObjectExists,
		ErrElementNotFound, ErrNotImplemented} {
		if e.Code == code {
			return e, true
		}
	}
	for _, e := range documented() {
		if e.Code == code {
			return e, true
		}
	}
	return nil, false
}

// ErrorWithText finds the error that Windows describes with a text, however it ends: what
// hcsshim printed of HNS v1 before it printed codes.
func ErrorWithText(text string) (*Error, bool) {
	plain := func(s string) string { return strings.TrimRight(strings.TrimSpace(s), ". ") }
	for code := uint32(0x803b0001); code <= lastDocumented; code++ {
		if e, ok := ErrorWithCode(code); ok && strings.EqualFold(plain(e.Text), plain(text)) {
			return e, true
		}
	}
	return nil, false
}

// lastDocumented is the highest of [documented].
const lastDocumented = 0x803b0037

// documented are the codes that no call here answers with, and that logs of nodes have
// (MicrosoftDocs/Virtualization-Documentation, HCN Error Code).
func documented() []*Error {
	return []*Error{
		{Code: 0x803b0003, Name: "HCN_E_LAYER_NOT_FOUND", Text: "The network's underlying layer was not found."},
		{Code: 0x803b0004, Name: "HCN_E_SWITCH_NOT_FOUND", Text: "The virtual switch was not found."},
		{Code: 0x803b0005, Name: "HCN_E_SUBNET_NOT_FOUND", Text: "The network does not have a subnet for this endpoint."},
		{Code: 0x803b0006, Name: "HCN_E_ADAPTER_NOT_FOUND", Text: "An adapter was not found."},
		{Code: 0x803b0009, Name: "HCN_E_VFP_PORTSETTING_NOT_FOUND", Text: "A required VFP port setting was not found."},
		{Code: 0x803b0011, Name: "HCN_E_LAYER_ALREADY_EXISTS", Text: "The layer already exists."},
		{Code: 0x803b0012, Name: "HCN_E_POLICY_ALREADY_EXISTS", Text: "Policy information already exists on this object."},
		{Code: 0x803b0016, Name: "HCN_E_MAPPING_NOT_SUPPORTED", Text: "Port mapping is not supported on the given network."},
		{Code: 0x803b0017, Name: "HCN_E_DEGRADED_OPERATION", Text: "There was an operation attempted on a degraded object."},
		{Code: 0x803b0018, Name: "HCN_E_SHARED_SWITCH_MODIFICATION", Text: "Cannot modify a switch shared by multiple networks."},
		{Code: 0x803b0019, Name: "HCN_E_GUID_CONVERSION_FAILURE", Text: "Failed to interpret a parameter as a GUID."},
		{Code: 0x803b001a, Name: "HCN_E_REGKEY_FAILURE", Text: "Failed to process registry key."},
		{Code: 0x803b001c, Name: "HCN_E_INVALID_JSON_REFERENCE", Text: "The reference is invalid in the JSON document."},
		{Code: 0x803b001d, Name: "HCN_E_ENDPOINT_SHARING_DISABLED", Text: "Endpoint sharing is disabled."},
		{Code: 0x803b001f, Name: "HCN_E_SWITCH_EXTENSION_NOT_FOUND", Text: "The specified switch extension does not exist on this switch."},
		{Code: 0x803b0020, Name: "HCN_E_MANAGER_STOPPED", Text: "Operation cannot be performed while service is stopping."},
		{Code: 0x803b0027, Name: "GCN_E_NETCOMPARTMENT_NOT_FOUND", Text: "Network compartment not found for the given id."},
		{Code: 0x803b0028, Name: "GCN_E_NETINTERFACE_NOT_FOUND", Text: "Network interface not found for the given id."},
		{Code: 0x803b002a, Name: "HCN_E_ICS_DISABLED",
			Text: "Internet Connection Sharing service (SharedAccess) is disabled and cannot be started."},
		{Code: 0x803b002b, Name: "HCN_E_ENDPOINT_NAMESPACE_ALREADY_EXISTS",
			Text: "This requested operation is invalid as endpoint is already part of a network namespace."},
		{Code: 0x803b002c, Name: "HCN_E_ENTITY_HAS_REFERENCES", Text: "The specified entity cannot be removed while it still has references."},
		{Code: 0x803b002d, Name: "HCN_E_INVALID_INTERNAL_PORT", Text: "The internal port must exist and cannot be zero."},
		{Code: 0x803b002e, Name: "HCN_E_NAMESPACE_ATTACH_FAILED", Text: "The requested operation for attach namespace failed."},
		{Code: 0x803b0031, Name: "HCN_E_OBJECT_USED_AFTER_UNLOAD", Text: "A call was performed against an object that was torn down."},
		{Code: 0x803b0032, Name: "HCN_E_INVALID_SUBNET", Text: "The provided subnet configuration is invalid or missing parameters."},
		{Code: 0x803b0033, Name: "HCN_E_INVALID_IP_SUBNET", Text: "The provided IP subnet configuration is invalid or missing parameters."},
		{Code: 0x803b0034, Name: "HCN_E_ENDPOINT_NOT_ATTACHED", Text: "The endpoint must be attached to complete the operation."},
		{Code: 0x803b0035, Name: "HCN_E_ENDPOINT_NOT_LOCAL", Text: "The endpoint must be local to complete the operation."},
		{Code: 0x803b0036, Name: "HCN_INTERFACEPARAMETERS_ALREADY_APPLIED", Text: "Cannot apply more than one InterfaceParameters policy."},
		{Code: lastDocumented, Name: "HCN_E_VFP_NOT_ALLOWED", Text: "A network of this type can not be created because VFP is not available."},
	}
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
	return m.first.forCall(op, m.texts...)
}
