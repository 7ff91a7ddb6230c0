package collect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// HNS is asked through its DLLs and not through github.com/Microsoft/hcsshim/hcn, which decodes
// objects into its own types and loses the fields that these lack.
var (
	computenetwork = windows.NewLazySystemDLL("computenetwork.dll")
	hnsCall        = windows.NewLazySystemDLL("vmcompute.dll").NewProc("HNSCall")
)

// allFields asks for an object as it is.
const allFields = `{"SchemaVersion":{"Major":2,"Minor":0},"Flags":0}`

// text takes a string that a DLL of HNS has allocated.
func text(p *uint16) string {
	if p == nil {
		return ""
	}
	defer windows.CoTaskMemFree(unsafe.Pointer(p))
	return windows.UTF16PtrToString(p)
}

// errNotImplemented is E_NOTIMPL: Windows Server 2016 has HNS v1 alone.
const errNotImplemented = syscall.Errno(0x80004001)

// failed is the error of a call: a HRESULT, and what HNS says.
func failed(name string, hr uintptr, said string) error {
	if int32(hr) >= 0 {
		return nil
	}
	return fmt.Errorf("%s: 0x%08x: %w %s", name, uint32(hr), syscall.Errno(hr), strings.TrimSpace(said))
}

func hnsV1(ctx context.Context, n *node) error {
	if err := hnsCall.Find(); err != nil {
		return absent{"no HNS: " + err.Error()}
	}
	var errs []error
	for _, q := range []struct{ path, file, what string }{
		{"/globals/version", "", ""}, {"/networks/", "networks", "networks"}, {"/endpoints/", "endpoints", "endpoints"},
		{"/policylists/", "policylists", "policy lists"},
	} {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		answer, err := v1(q.path)
		switch {
		case err != nil:
			errs = append(errs, err)
		case q.file != "":
			n.add("hns/"+q.file+".json", "HNS "+q.what+" (v1)", "HNSCall GET "+q.path, indented(answer))
		}
	}
	return errors.Join(errs...)
}

// v1 makes a GET of HNS v1.
func v1(path string) (string, error) {
	var answer *uint16
	method, _ := windows.UTF16PtrFromString("GET") // none of them has a NUL
	at, _ := windows.UTF16PtrFromString(path)
	body, _ := windows.UTF16PtrFromString("")
	hr, _, _ := hnsCall.Call(uintptr(unsafe.Pointer(method)), uintptr(unsafe.Pointer(at)), uintptr(unsafe.Pointer(body)),
		uintptr(unsafe.Pointer(&answer)))
	said := text(answer)
	if err := failed("HNSCall GET "+path, hr, said); err != nil {
		return "", err
	}
	return said, nil
}

// indented gives JSON a line for each field; a text that is not JSON stays as it is.
func indented(s string) []byte {
	var b bytes.Buffer
	if json.Indent(&b, []byte(s), "", "  ") != nil {
		return []byte(s)
	}
	b.WriteByte('\n')
	return b.Bytes()
}

func hnsV2(ctx context.Context, n *node) error {
	if err := computenetwork.Load(); err != nil {
		return absent{"no HCN v2: " + err.Error()}
	}
	var errs []error
	for _, k := range []struct{ one, many, file, what string }{
		{"Network", "Networks", "networks", "networks"}, {"Endpoint", "Endpoints", "endpoints", "endpoints"},
		{"Namespace", "Namespaces", "namespaces", "namespaces"},
		{"LoadBalancer", "LoadBalancers", "loadbalancers", "load balancers"}, {"SdnRoute", "SdnRoutes", "sdnroutes", "routes"},
	} {
		all, err := v2(ctx, k.one, k.many)
		if errors.Is(err, errNotImplemented) && k.one == "Network" {
			return absent{"no HCN v2: " + err.Error()}
		}
		errs = append(errs, err)
		if all != nil {
			n.add("hcn/"+k.file+".json", "HCN "+k.what+" (v2)", "HcnEnumerate"+k.many+", HcnQuery"+k.one+"Properties",
				indented("["+strings.Join(all, ",")+"]"))
		}
	}
	return errors.Join(errs...)
}

// v2 reads all objects of a kind; nil where the build has no such objects.
func v2(ctx context.Context, one, many string) ([]string, error) {
	enumerate, open := computenetwork.NewProc("HcnEnumerate"+many), computenetwork.NewProc("HcnOpen"+one)
	query, closeIt := computenetwork.NewProc("HcnQuery"+one+"Properties"), computenetwork.NewProc("HcnClose"+one)
	for _, p := range []*windows.LazyProc{enumerate, open, query, closeIt} {
		if p.Find() != nil {
			return nil, nil // older builds lack some
		}
	}
	q, _ := windows.UTF16PtrFromString(allFields) // it has no NUL
	var list, said *uint16
	hr, _, _ := enumerate.Call(uintptr(unsafe.Pointer(q)), uintptr(unsafe.Pointer(&list)), uintptr(unsafe.Pointer(&said)))
	listed := text(list)
	if err := failed("HcnEnumerate"+many, hr, text(said)); err != nil {
		return nil, err
	}
	var ids []string
	if listed != "" {
		if err := json.Unmarshal([]byte(listed), &ids); err != nil {
			return nil, fmt.Errorf("HcnEnumerate%s: %w", many, err)
		}
	}
	all, errs := []string{}, []error(nil)
	for _, id := range ids {
		if ctx.Err() != nil {
			return all, ctx.Err()
		}
		properties, err := object(open, query, closeIt, one, id, q)
		errs = append(errs, err)
		if properties != "" {
			all = append(all, properties)
		}
	}
	return all, errors.Join(errs...)
}

// object reads one object.
func object(open, query, closeIt *windows.LazyProc, one, id string, q *uint16) (string, error) {
	guid, err := windows.GUIDFromString("{" + strings.Trim(id, "{}") + "}")
	if err != nil {
		return "", fmt.Errorf("%s %q: %w", one, id, err)
	}
	var handle uintptr
	var said, properties *uint16
	hr, _, _ := open.Call(uintptr(unsafe.Pointer(&guid)), uintptr(unsafe.Pointer(&handle)), uintptr(unsafe.Pointer(&said)))
	if err := failed("HcnOpen"+one+" "+id, hr, text(said)); err != nil {
		return "", err // it went meanwhile
	}
	defer func() { _, _, _ = closeIt.Call(handle) }()
	said = nil
	hr, _, _ = query.Call(handle, uintptr(unsafe.Pointer(q)), uintptr(unsafe.Pointer(&properties)), uintptr(unsafe.Pointer(&said)))
	found := text(properties)
	return found, failed("HcnQuery"+one+"Properties "+id, hr, text(said))
}
