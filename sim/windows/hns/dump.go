package hns

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/trace"
)

// Dump is what a node's HNS held, read from files that a user took there.
type Dump struct {
	Networks      []Network
	Endpoints     []Endpoint
	Namespaces    []Namespace
	LoadBalancers []LoadBalancer
	Routes        []Route
	// Ignored names the fields that the model has no use for, "endpoint.Health",
	// sorted, each once.
	Ignored []string
	// Notices say what the dump does not show and what two files disagree on.
	Notices []trace.Notice
}

// DumpText is a JSON text with HNS objects: a file, a part of one, or the objects
// of a listing, written as JSON.
type DumpText struct {
	// Name is the file's.
	Name string
	JSON []byte
	// Position returns line and column, both from 1, of an offset in JSON; nil
	// counts both in JSON itself.
	Position func(offset int) (line, column int)
	// Words is set for a listing: all values are text there, "True" and "4096",
	// and a list with one entry is the entry.
	Words bool
}

// ParseDump reads the JSON of Get-HnsNetwork, Get-HnsEndpoint, Get-HnsPolicyList
// (HNS v1), of HCN v2 lists, of an HNS reply {"Success":...,"Output":...}, or of
// [Service.Export]. It may hold one object, an array or several of either one
// after the other; the kind of each object follows from its fields. Errors
// carry name:line:column, and all of them are reported. Other forms of output,
// and other encodings, are for sim/windows/dump.
func ParseDump(name string, data []byte) (*Dump, error) {
	return DumpText{Name: name, JSON: data}.Parse()
}

// Parse reads the objects.
func (t DumpText) Parse() (*Dump, error) {
	p := &dumpParser{DumpText: t, dump: &Dump{}, ignored: map[string]bool{}}
	dec := json.NewDecoder(bytes.NewReader(p.JSON))
	for {
		var raw json.RawMessage
		err := dec.Decode(&raw)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			var syn *json.SyntaxError
			at := dec.InputOffset()
			if errors.As(err, &syn) {
				// A decoder counts the offset of a syntax error from the start of the input.
				at = syn.Offset - 1
			}
			if errors.Is(err, io.ErrUnexpectedEOF) {
				at = int64(len(p.JSON))
				err = errors.New("the file ends in the middle of a value")
			}
			p.fail(int(at), "not JSON: %v; write it with: Get-HnsNetwork | ConvertTo-Json -Depth 20", err)
			break
		}
		p.value(raw, int(dec.InputOffset())-len(raw), "")
	}
	if len(p.errs) == 0 && p.objects == 0 {
		p.fail(0, "holds no HNS object")
	}
	p.dump.Ignored = sortedKeys(p.ignored)
	return p.dump, errors.Join(p.errs...)
}

// notice says that something of the dump has no effect, or not all of it.
func (p *dumpParser) notice(at int, what, why string) {
	p.dump.Notices = trace.AddNotice(p.dump.Notices, trace.Notice{What: what, Why: why, At: p.origin(at, what)})
}

type dumpParser struct {
	DumpText
	dump    *Dump
	objects int
	errs    []error
	ignored map[string]bool
	// cut are the fields of the object that is being read that were cut off.
	cut []string
}

// position returns line and column, both from 1, of an offset.
func (p *dumpParser) position(at int) (line, column int) {
	at = min(max(at, 0), len(p.JSON))
	if p.Position != nil {
		return p.Position(at)
	}
	line = 1 + bytes.Count(p.JSON[:at], []byte{'\n'})
	return line, at - bytes.LastIndexByte(p.JSON[:at], '\n')
}

func (p *dumpParser) fail(at int, format string, args ...any) {
	line, column := p.position(at)
	p.errs = append(p.errs, fmt.Errorf("%s:%d:%d: %s", p.Name, line, column, fmt.Sprintf(format, args...)))
}

// failJSON reports a decoding error; the type errors of encoding/json know where
// in the object they happened.
func (p *dumpParser) failJSON(at int, what string, err error) {
	var typ *json.UnmarshalTypeError
	if errors.As(err, &typ) {
		p.fail(at+max(int(typ.Offset)-1, 0), "%s: field %s is a JSON %s; it must be %s", what, typ.Field, typ.Value, jsonName(typ.Type))
		return
	}
	p.fail(at, "%s: %v", what, err)
}

// exportKeys are the lists of an export.
var exportKeys = []string{"Networks", "Endpoints", "Namespaces", "LoadBalancers", "PolicyLists", "Routes"}

// value reads one value; list is the export's list that it is in, "" outside.
func (p *dumpParser) value(raw json.RawMessage, at int, list string) {
	switch raw[0] {
	case '[':
		for _, e := range elements(raw, at) {
			p.value(e.raw, e.at, list)
		}
		if string(bytes.TrimSpace(raw[1:len(raw)-1])) == "" {
			p.objects++ // an empty list says that there is nothing, which is an answer
		}
	case '{':
		p.object(raw, members(raw, at), at, list)
	case 'n': // null: Get-HnsPolicyList without policies
		p.objects++
	default:
		p.fail(at, "%.40s is not an HNS object", raw)
	}
}

func (p *dumpParser) object(raw json.RawMessage, fields []field, at int, list string) {
	if out := find(fields, "Output"); out != nil && has(fields, "Success") {
		p.value(out.raw, out.at, list)
		return
	}
	if e := find(fields, "Error"); e != nil && has(fields, "Success") {
		p.fail(at, "this is a failed HNS call: %s", e.raw)
		return
	}
	if list == "" && has(fields, exportKeys...) && !has(fields, "ID", "Type") {
		for _, f := range fields {
			i := slices.IndexFunc(exportKeys, func(k string) bool { return strings.EqualFold(k, f.key) })
			if i < 0 {
				p.ignored["dump."+f.key] = true
				continue
			}
			p.value(f.raw, f.at, exportKeys[i])
		}
		return
	}
	p.objects++
	read := map[dumpKind]func(json.RawMessage, []field, int){
		kindNetworkV1: p.networkV1, kindNetworkV2: p.networkV2, kindEndpointV1: p.endpointV1, kindEndpointV2: p.endpointV2,
		kindNamespace: p.namespace, kindNamespaceV1: p.namespaceV1, kindLoadBalancer: p.loadBalancer, kindRoute: p.route,
		kindPolicyList: p.policyList,
	}[p.kind(fields, list)]
	if read == nil {
		var keys []string
		for _, f := range fields {
			keys = append(keys, f.key)
		}
		p.fail(at, "this object is not an HNS network, endpoint, namespace, load balancer, policy list or route; it has the fields %s",
			strings.Join(keys, ", "))
		return
	}
	read(raw, fields, at)
}

// dumpKind is what an object of a dump is, and in which version's JSON.
type dumpKind int

const (
	kindUnknown dumpKind = iota
	kindNetworkV1
	kindNetworkV2
	kindEndpointV1
	kindEndpointV2
	kindNamespace
	kindNamespaceV1
	kindLoadBalancer
	kindRoute
	kindPolicyList
)

// kind says what an object is: by the list it is in, else by its fields.
func (p *dumpParser) kind(fields []field, list string) dumpKind {
	switch list {
	case "Networks":
		if isNetworkV1(fields) {
			return kindNetworkV1
		}
		return kindNetworkV2
	case "Endpoints":
		if isEndpointV1(fields) {
			return kindEndpointV1
		}
		return kindEndpointV2
	case "Namespaces":
		if isNamespaceV1(fields) {
			return kindNamespaceV1
		}
		return kindNamespace
	case "Routes":
		return kindRoute
	case "PolicyLists":
		return kindPolicyList
	case "LoadBalancers":
		if isPolicyList(fields) {
			return kindPolicyList
		}
		return kindLoadBalancer
	}
	return kindOf(fields)
}

// kindOf says what an object is by its fields alone.
func kindOf(fields []field) dumpKind {
	switch {
	case isPolicyList(fields): // Windows Server 2022 names the HostComputeNetwork of a policy list, too
		return kindPolicyList
	case has(fields, "PortMappings", "FrontendVIPs", "HostComputeEndpoints") && !has(fields, "Setting"):
		return kindLoadBalancer
	case has(fields, "HostComputeNetwork", "IpConfigurations"):
		return kindEndpointV2
	case has(fields, "Setting"):
		return kindRoute
	case has(fields, "NamespaceId", "NamespaceGuid"):
		return kindNamespace
	case isNamespaceV1(fields):
		return kindNamespaceV1
	case has(fields, "Ipams", "MacPool"):
		return kindNetworkV2
	case isEndpointV1(fields):
		return kindEndpointV1
	case isNetworkV1(fields), has(fields, "Type"):
		return kindNetworkV1
	}
	return kindUnknown
}

func isEndpointV1(fields []field) bool {
	return has(fields, "VirtualNetwork", "IPAddress", "IPv6Address", "IsRemoteEndpoint", "VirtualNetworkName")
}

func isNetworkV1(fields []field) bool { return has(fields, "Subnets", "ManagementIP", "MacPools") }

func isNamespaceV1(fields []field) bool {
	return has(fields, "CompartmentId", "CompartmentGuid", "IsDefault", "ResourceList") &&
		!has(fields, "NamespaceId", "IPAddress", "VirtualNetwork")
}

func isPolicyList(fields []field) bool { return has(fields, "References") || hasELB(fields) }

func hasELB(fields []field) bool {
	ps := find(fields, "Policies")
	if ps == nil {
		return false
	}
	for _, e := range elements(ps.raw, 0) {
		if t := find(members(e.raw, 0), "Type"); t != nil && strings.EqualFold(string(t.raw), `"ELB"`) {
			return true
		}
	}
	return false
}

func (p *dumpParser) origin(at int, what string) *trace.Origin {
	line, _ := p.position(at)
	return &trace.Origin{What: what, File: p.Name, Line: line}
}

// decodeAs decodes an object, notes the fields that T does not have, and passes it to
// use.
func decodeAs[T any](p *dumpParser, kind string, raw json.RawMessage, fields []field, at int, use func(T)) {
	raw, ok := fitted[T](p, kind, raw, at)
	if !ok {
		return
	}
	var v T
	_ = json.Unmarshal(raw, &v) // fitted has seen that it can be
	known := jsonFields(reflect.TypeFor[T]())
	for _, f := range fields {
		if !known[strings.ToLower(f.key)] {
			p.ignored[kind+"."+f.key] = true
		}
	}
	use(v)
}

// policiesOK checks that the policies inside an HCN v2 value are policies, before
// the value is decoded: a policy decodes itself and does not know its place in
// the file.
func (p *dumpParser) policiesOK(kind, path string, raw json.RawMessage, at int) bool {
	ok := true
	list := strings.EqualFold(path, "Policies") || strings.EqualFold(path, "Ipams.Subnets.Policies")
	switch raw[0] {
	case '[':
		for _, e := range elements(raw, at) {
			if list {
				ok = p.policyOK(kind, path, e) && ok
			} else {
				ok = p.policiesOK(kind, path, e.raw, e.at) && ok
			}
		}
	case '{':
		for _, f := range members(raw, at) {
			ok = p.policiesOK(kind, strings.TrimPrefix(path+"."+f.key, "."), f.raw, f.at) && ok
		}
	}
	return ok
}

func (p *dumpParser) policyOK(kind, path string, f field) bool {
	err := json.Unmarshal(f.raw, &policyJSON{})
	var typ *json.UnmarshalTypeError
	if errors.As(err, &typ) {
		typ.Field = strings.TrimSuffix(path+"."+typ.Field, ".")
	}
	if err != nil {
		p.failJSON(f.at, kind, err)
	}
	return err == nil
}

// policies sets the origin of each policy of the list.
func (p *dumpParser) policies(f *field, ps []Policy, of string) []Policy {
	if f == nil {
		return ps
	}
	for i, e := range elements(f.raw, f.at) {
		if i < len(ps) {
			ps[i].Origin = p.origin(e.at, fmt.Sprintf("%s of %s", ps[i].typ, of))
		}
	}
	return ps
}

// v1PoliciesOK checks that each v1 policy converts before the whole object is
// converted, so that the message has its place.
func (p *dumpParser) v1PoliciesOK(f *field, kind string) bool {
	ok := true
	if f == nil {
		return ok
	}
	for i, e := range elements(f.raw, f.at) {
		var text string
		if json.Unmarshal(e.raw, &text) == nil && isCut(text) {
			continue // fitted has said so
		}
		if _, err := FromPolicyV1(e.raw); err != nil {
			p.fail(e.at, "%s: Policies[%d]: %v", kind, i, err)
			ok = false
		}
	}
	return ok
}

func label(kind, name, id string) string {
	if name == "" {
		name = id
	}
	return kind + " " + name
}
