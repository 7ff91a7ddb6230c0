package hcn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// verb is what a call does.
type verb uint8

// The verbs of the wire protocol. Watch and Snapshot are winlab's own.
const (
	verbEnumerate verb = 1 + iota
	verbCreate
	verbOpen
	verbModify
	verbQuery
	verbDelete
	verbClose
	verbHNSCall
	verbWatch
	verbSnapshot
)

// Kind is the kind of object that a call of HCN v2 or of the Host Compute Service
// is about; zero for HNSCall.
type Kind uint8

// The kinds of the wire protocol.
const (
	Network Kind = 1 + iota
	Endpoint
	Namespace
	LoadBalancer
	SdnRoute
	computeSystem // a container or virtual machine: see compute.go
)

var (
	verbNames = [...]string{"", "Enumerate", "Create", "Open", "Modify", "Query", "Delete", "Close", "HNSCall", "Watch", "Snapshot"}
	kindNames = [...]string{"", "Network", "Endpoint", "Namespace", "LoadBalancer", "SdnRoute", "ComputeSystem"}
)

// Each verb and each kind has a name, or this does not compile.
var (
	_ = [1]int{}[len(verbNames)-1-int(verbSnapshot)]
	_ = [1]int{}[len(kindNames)-1-int(computeSystem)]
)

// callName returns the name of the exported function, "HcnEnumerateNetworks".
func callName(v verb, k Kind) string {
	if int(v) >= len(verbNames) || int(k) >= len(kindNames) || v == 0 {
		return fmt.Sprintf("call %d/%d", v, k)
	}
	prefix, suffix := "Hcn", ""
	switch {
	case v >= verbHNSCall:
		return verbNames[v]
	case k == computeSystem && v == verbQuery:
		return "HcsGetComputeSystemProperties"
	case k == computeSystem:
		prefix = "Hcs"
	case v == verbEnumerate:
		suffix = "s"
	case v == verbQuery:
		suffix = "Properties"
	}
	return prefix + verbNames[v] + kindNames[k] + suffix
}

// Limits of the wire protocol, in bytes of one frame.
const (
	maxRequest  = 16 << 20
	maxResponse = 256 << 20
	maxTexts    = 3
	maxName     = 256
	// A method, a path of HNS v1 or the id of a compute system. The longest path that
	// a program makes has some 60 characters.
	maxPath = 4096
)

const (
	wireMagic   = "WHCN"
	wireVersion = 1
)

// request is one call.
type request struct {
	Seq    uint32
	Verb   verb
	Kind   Kind
	Handle uint64
	ID     GUID
	Texts  []string
}

// text returns the i-th text, "" when the request has fewer.
func (r *request) text(i int) string {
	if i < len(r.Texts) {
		return r.Texts[i]
	}
	return ""
}

// response is the answer to one call. Record is the JSON error record; it is
// empty when the call succeeded.
type response struct {
	Seq     uint32
	HResult uint32
	Handle  uint64
	Output  string
	Record  string
}

// appendRequest appends the frame of a request.
func appendRequest(b []byte, r *request) []byte {
	at := len(b)
	b = binary.LittleEndian.AppendUint32(append(b, 0, 0, 0, 0), r.Seq)
	b = append(b, byte(r.Verb), byte(r.Kind))
	b = binary.LittleEndian.AppendUint64(b, r.Handle)
	b = append(b, r.ID[:]...)
	return finish(b, at, r.Texts)
}

// appendResponse appends the frame of a response.
func appendResponse(b []byte, r *response) []byte {
	at := len(b)
	b = binary.LittleEndian.AppendUint32(append(b, 0, 0, 0, 0), r.Seq)
	b = binary.LittleEndian.AppendUint32(b, r.HResult)
	b = binary.LittleEndian.AppendUint64(b, r.Handle)
	return finish(b, at, []string{r.Output, r.Record})
}

// finish adds the texts and writes the length in front.
func finish(b []byte, at int, texts []string) []byte {
	b = append(b, byte(len(texts)))
	for _, t := range texts {
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(t))), t...)
	}
	binary.LittleEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	return b
}

var errMalformed = errors.New("malformed frame")

// parseRequest reads the body of a request, what follows its length.
func parseRequest(body []byte) (*request, error) {
	if len(body) < 31 {
		return nil, fmt.Errorf("%w: a request of %d bytes", errMalformed, len(body))
	}
	r := &request{Seq: binary.LittleEndian.Uint32(body), Verb: verb(body[4]), Kind: Kind(body[5]),
		Handle: binary.LittleEndian.Uint64(body[6:])}
	copy(r.ID[:], body[14:30])
	var err error
	r.Texts, err = parseTexts(body[30:])
	return r, err
}

// parseResponse reads the body of a response.
func parseResponse(body []byte) (*response, error) {
	if len(body) < 17 {
		return nil, fmt.Errorf("%w: a response of %d bytes", errMalformed, len(body))
	}
	r := &response{Seq: binary.LittleEndian.Uint32(body), HResult: binary.LittleEndian.Uint32(body[4:]),
		Handle: binary.LittleEndian.Uint64(body[8:])}
	texts, err := parseTexts(body[16:])
	if err != nil || len(texts) != 2 {
		return nil, fmt.Errorf("%w: a response with %d texts: %v", errMalformed, len(texts), err)
	}
	r.Output, r.Record = texts[0], texts[1]
	return r, nil
}

func parseTexts(b []byte) ([]string, error) {
	count := int(b[0])
	if count > maxTexts {
		return nil, fmt.Errorf("%w: %d texts", errMalformed, count)
	}
	var texts []string
	b = b[1:]
	for range count {
		if len(b) < 4 || uint64(binary.LittleEndian.Uint32(b)) > uint64(len(b)-4) {
			return nil, fmt.Errorf("%w: a text is longer than the frame", errMalformed)
		}
		n := int(binary.LittleEndian.Uint32(b))
		texts = append(texts, string(b[4:4+n]))
		b = b[4+n:]
	}
	if len(b) > 0 {
		return nil, fmt.Errorf("%w: %d bytes after the last text", errMalformed, len(b))
	}
	return texts, nil
}

func unexpectedEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func appendHello(b []byte, name string) []byte {
	if len(name) > maxName {
		name = name[:maxName]
	}
	b = binary.LittleEndian.AppendUint16(append(b, wireMagic...), wireVersion)
	return append(binary.LittleEndian.AppendUint16(b, uint16(len(name))), name...)
}

// readHello reads the first bytes of either side.
func readHello(r io.Reader) (version uint16, name string, err error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, "", err
	}
	if string(head[:4]) != wireMagic {
		return 0, "", fmt.Errorf("%w: the connection does not begin with %s", errMalformed, wireMagic)
	}
	n := binary.LittleEndian.Uint16(head[6:])
	if n > maxName {
		return 0, "", fmt.Errorf("%w: a name of %d bytes", errMalformed, n)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return 0, "", unexpectedEOF(err)
	}
	return binary.LittleEndian.Uint16(head[4:]), string(text), nil
}
