package hcn

import (
	"encoding/json"
	"errors"

	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// Codes that the service gives beside those of package hns (winerror.h).
var (
	errInvalidHandle = &hns.Error{Code: 6, Name: "ERROR_INVALID_HANDLE", Text: "The handle is invalid."}
	errWriteFault    = &hns.Error{Code: 29, Name: "ERROR_WRITE_FAULT", Text: "The system cannot write to the specified device."}
	errDiskFull      = &hns.Error{Code: 112, Name: "ERROR_DISK_FULL", Text: "There is not enough space on the disk."}
	errUnexpected    = &hns.Error{Code: 0x8000ffff, Name: "E_UNEXPECTED", Text: "Catastrophic failure"}
	errTooLarge      = &hns.Error{Code: 0x8007000e, Name: "E_OUTOFMEMORY",
		Text: "Not enough memory resources are available to complete this operation."}
)

// HResult returns the HRESULT of a code: winerror.h's HRESULT_FROM_WIN32 for a
// Win32 code, the code itself otherwise.
func hresult(code uint32) uint32 {
	if code != 0 && code < 0x10000 {
		return 0x80070000 | code
	}
	return code
}

// errorWith returns the error with what was wrong.
func errorWith(e *hns.Error, op string, details ...string) *hns.Error {
	c := *e
	c.Op, c.Details = op, details
	return &c
}

// hnsError turns any error into one with a code. What package hns refuses
// without a code is JSON that makes no object.
func hnsError(op string, err error) *hns.Error {
	var e *hns.Error
	if errors.As(err, &e) {
		return e
	}
	return errorWith(hns.ErrInvalidJSON, op, err.Error())
}

// record is the JSON that HNS gives with an error (Microsoft Learn, HCN common
// scenarios, ErrorSchema). Details is winlab's: every mistake of the object.
type record struct {
	Success   bool
	Error     string
	ErrorCode uint32
	Details   []string `json:",omitempty"`
}

func recordOf(e *hns.Error) string {
	raw, _ := json.Marshal(record{false, e.Text, hresult(e.Code), e.Details}) // strings and numbers marshal
	return string(raw)
}
