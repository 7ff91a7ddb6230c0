package hns

import (
	"errors"
	"strings"
	"testing"
)

// The codes of winerror.h by their names: programs compare the numbers.
func TestErrorCodes(t *testing.T) {
	all := []struct {
		err  *Error
		code uint32
		name string
	}{
		{ErrNetworkNotFound, 0x803b0001, "HCN_E_NETWORK_NOT_FOUND"},
		{ErrEndpointNotFound, 0x803b0002, "HCN_E_ENDPOINT_NOT_FOUND"},
		{ErrPortNotFound, 0x803b0007, "HCN_E_PORT_NOT_FOUND"},
		{ErrPolicyNotFound, 0x803b0008, "HCN_E_POLICY_NOT_FOUND"},
		{ErrInvalidNetwork, 0x803b000a, "HCN_E_INVALID_NETWORK"},
		{ErrInvalidNetworkType, 0x803b000b, "HCN_E_INVALID_NETWORK_TYPE"},
		{ErrInvalidEndpoint, 0x803b000c, "HCN_E_INVALID_ENDPOINT"},
		{ErrInvalidPolicy, 0x803b000d, "HCN_E_INVALID_POLICY"},
		{ErrInvalidPolicyType, 0x803b000e, "HCN_E_INVALID_POLICY_TYPE"},
		{ErrInvalidRemoteEndpointOp, 0x803b000f, "HCN_E_INVALID_REMOTE_ENDPOINT_OPERATION"},
		{ErrNetworkAlreadyExists, 0x803b0010, "HCN_E_NETWORK_ALREADY_EXISTS"},
		{ErrPortAlreadyExists, 0x803b0013, "HCN_E_PORT_ALREADY_EXISTS"},
		{ErrEndpointAlreadyAttached, 0x803b0014, "HCN_E_ENDPOINT_ALREADY_ATTACHED"},
		{ErrRequestUnsupported, 0x803b0015, "HCN_E_REQUEST_UNSUPPORTED"},
		{ErrInvalidJSON, 0x803b001b, "HCN_E_INVALID_JSON"},
		{ErrInvalidIP, 0x803b001e, "HCN_E_INVALID_IP"},
		{ErrAddressInvalidReserved, 0x803b002f, "HCN_E_ADDR_INVALID_OR_RESERVED"},
		{ErrInvalidPrefix, 0x803b0030, "HCN_E_INVALID_PREFIX"},
		{ErrOutOfMemory, 0xe, "ERROR_OUTOFMEMORY"},
		{ErrInvalidParam, 0x57, "ERROR_INVALID_PARAMETER"},
		{ErrAlreadyExists, 0xb7, "ERROR_ALREADY_EXISTS"},
		{ErrSharingViolation, 0x20, "ERROR_SHARING_VIOLATION"},
		{ErrObjectExists, 0x1392, "ERROR_OBJECT_ALREADY_EXISTS"},
		{ErrElementNotFound, 0x490, "ERROR_NOT_FOUND"},
		{ErrNotImplemented, 0x80004001, "E_NOTIMPL"},
	}
	for i, c := range all {
		if c.err.Code != c.code || c.err.Name != c.name || c.err.Text == "" {
			t.Errorf("%s is %s, 0x%x %q", c.name, c.err.Name, c.err.Code, c.err.Text)
		}
		for j, other := range all {
			if errors.Is(c.err.withf("op", "x"), other.err) != (i == j) {
				t.Errorf("%s is %s", c.name, other.name)
			}
		}
	}
	if got := ErrInvalidParam.forCall("", "a", "b").Error(); got != "failed in Win32: The parameter is incorrect. (0x57): a; b" {
		t.Error(got)
	}
	if errors.Is(ErrInvalidParam, errors.New("x")) {
		t.Error("any error is ErrInvalidParam")
	}
}

// TestDocumentedCodes: every code of HCN's page has one error, found by its code and by its words,
// unless another has the same words.
func TestDocumentedCodes(t *testing.T) {
	seen := map[string]uint32{}
	for code := uint32(0x803b0001); code <= lastDocumented; code++ {
		e, ok := ErrorWithCode(code)
		if !ok {
			if code < 0x803b0021 || code > 0x803b0029 { // GCN_E_: what a guest's agent answers
				t.Errorf("0x%x has no name", code)
			}
			continue
		}
		if e.Code != code || e.Name == "" || e.Text == "" {
			t.Errorf("0x%x is %+v", code, e)
		}
		if seen[e.Text] == 0 {
			seen[e.Text] = code
		}
		if by, ok := ErrorWithText(" " + strings.TrimSuffix(e.Text, ".") + ". "); !ok || by.Code != seen[e.Text] {
			t.Errorf("0x%x by its words: %+v", code, by)
		}
	}
	if _, ok := ErrorWithText("nothing of the kind"); ok {
		t.Error("words of no code have one")
	}
}
