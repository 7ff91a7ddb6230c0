package hns

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"unicode/utf16"

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
}

// Add appends the objects of another dump.
func (d *Dump) Add(o *Dump) {
	d.Networks = append(d.Networks, o.Networks...)
	d.Endpoints = append(d.Endpoints, o.Endpoints...)
	d.Namespaces = append(d.Namespaces, o.Namespaces...)
	d.LoadBalancers = append(d.LoadBalancers, o.LoadBalancers...)
	d.Routes = append(d.Routes, o.Routes...)
	d.Ignored = append(d.Ignored, o.Ignored...)
	slices.Sort(d.Ignored)
	d.Ignored = slices.Compact(d.Ignored)
}

// ParseDump reads the JSON of Get-HnsNetwork, Get-HnsEndpoint, Get-HnsPolicyList
// (HNS v1), of HCN v2 lists, of an HNS reply {"Success":...,"Output":...}, or of
// [Service.Export]. A file may hold one object, an array or several of either
// one after the other; the kind of each object follows from its fields. UTF-16,
// as Windows PowerShell writes it, is accepted. Errors carry name:line:column,
// and all of them are reported.
func ParseDump(name string, data []byte) (*Dump, error) {
	p := &dumpParser{name: name, text: decodeText(data), dump: &Dump{}, ignored: map[string]bool{}}
	dec := json.NewDecoder(bytes.NewReader(p.text))
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
				at = int64(len(p.text))
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

// decodeText turns UTF-16 with a byte order mark into UTF-8 and drops the mark.
func decodeText(data []byte) []byte {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(data, []byte{0xff, 0xfe}):
		order = binary.LittleEndian
	case bytes.HasPrefix(data, []byte{0xfe, 0xff}):
		order = binary.BigEndian
	default:
		return bytes.TrimPrefix(data, []byte{0xef, 0xbb, 0xbf})
	}
	var units []uint16
	for i := 2; i+1 < len(data); i += 2 {
		units = append(units, order.Uint16(data[i:]))
	}
	return []byte(string(utf16.Decode(units)))
}

type dumpParser struct {
	name    string
	text    []byte
	dump    *Dump
	objects int
	errs    []error
	ignored map[string]bool
}

// position returns line and column, both from 1, of an offset.
func (p *dumpParser) position(at int) (line, column int) {
	at = min(max(at, 0), len(p.text))
	line = 1 + bytes.Count(p.text[:at], []byte{'\n'})
	return line, at - bytes.LastIndexByte(p.text[:at], '\n')
}

func (p *dumpParser) fail(at int, format string, args ...any) {
	line, column := p.position(at)
	p.errs = append(p.errs, fmt.Errorf("%s:%d:%d: %s", p.name, line, column, fmt.Sprintf(format, args...)))
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
		kindNamespace: p.namespace, kindLoadBalancer: p.loadBalancer, kindRoute: p.route, kindPolicyList: p.policyList,
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
	case has(fields, "HostComputeNetwork", "IpConfigurations"):
		return kindEndpointV2
	case has(fields, "PortMappings", "FrontendVIPs"):
		return kindLoadBalancer
	case has(fields, "Setting"):
		return kindRoute
	case isPolicyList(fields):
		return kindPolicyList
	case has(fields, "NamespaceId", "NamespaceGuid"):
		return kindNamespace
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
	return &trace.Origin{What: what, File: p.name, Line: line}
}

// decodeAs decodes an object, notes the fields that T does not have, and passes it to
// use.
func decodeAs[T any](p *dumpParser, kind string, raw json.RawMessage, fields []field, at int, use func(T)) {
	var v T
	if err := json.Unmarshal(raw, &v); err != nil {
		p.failJSON(at, kind, err)
		return
	}
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
