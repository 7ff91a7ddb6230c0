package html

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"slices"

	// It reads as encoding/json does, once where that goes through the text twice.
	jsonv1 "github.com/go-json-experiment/json/v1"
	"github.com/klauspost/compress/gzip"

	"github.com/winlab-dev/winlab/reports/clean"
	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/reports/support"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

const (
	// partSize is how much JSON goes into one part. The page unpacks a part when
	// something in it is opened, so a part must unpack in a few milliseconds.
	partSize = 512 << 10
	// plainLimit is the sum of all parts up to which they are left unpacked.
	plainLimit = 2 << 20
)

// ref points to an item of a part: part and index.
type ref [2]int

// part is one block of data in the page.
type part struct {
	Packed bool
	JSON   template.JS   // when not packed
	Gzip   template.HTML // base64 of gzip, when packed
}

// packer lays items into parts. An item that is already there is not stored
// again: settings that differ in nothing that a packet sees share their paths.
type packer struct {
	// parts are JSON arrays without the closing bracket, nil where done has the part packed.
	parts [][]byte
	done  []part
	count []int
	// total is the length of all items.
	total int
	seen  map[[32]byte]ref
	// paths are those that are there, by what they hold; heads are traces of documents without
	// lab and command, by content.
	paths map[[32]byte]ref
	heads map[string]ref
	// labs are those of traces of documents, labAt has where, by their numbers in the document.
	labs  []trace.Lab
	labAt map[int]int
	// cited are the facts that traces cite.
	cited map[string]bool

	z bytes.Buffer
	w *gzip.Writer
}

func newPacker() *packer {
	return &packer{seen: map[[32]byte]ref{}, paths: map[[32]byte]ref{}, heads: map[string]ref{}, labAt: map[int]int{},
		cited: map[string]bool{}}
}

func (p *packer) add(v any) (ref, error) {
	b, err := encode(v)
	if err != nil {
		return ref{}, err
	}
	return p.addJSON(b), nil
}

// addJSON is add for what is encoded.
func (p *packer) addJSON(b []byte) ref {
	sum := sha256.Sum256(b)
	if r, ok := p.seen[sum]; ok {
		return r
	}
	n := len(p.parts) - 1
	if n < 0 || len(p.parts[n]) > partSize {
		if p.total > plainLimit {
			p.packAll() // no item comes to these parts, and packed they are a tenth
		}
		var room []byte
		if n >= 0 {
			room = make([]byte, 0, partSize+len(b)) // this page has large parts
		}
		p.parts, p.done, p.count = append(p.parts, room), append(p.done, part{}), append(p.count, 0)
		n++
	}
	sep := byte(',')
	if p.count[n] == 0 {
		sep = '['
	}
	p.parts[n] = append(append(p.parts[n], sep), b...)
	r := ref{n, p.count[n]}
	p.count[n]++
	p.total += len(b) + 1
	p.seen[sum] = r
	return r
}

// path stores a path, in JSON. One that is already there is not looked at again. The page
// draws it when somebody opens it (draw.js).
func (p *packer) path(text json.RawMessage) ref {
	sum := sha256.Sum256(text)
	if r, ok := p.paths[sum]; ok {
		return r
	}
	p.cite(text)
	var safe bytes.Buffer
	safe.Grow(len(text) + len(text)/8)
	json.HTMLEscape(&safe, text)
	p.paths[sum] = p.addJSON(clean.JSON(safe.Bytes()))
	return p.paths[sum]
}

// cite notes the facts that the steps of a path cite. A quote within a string of JSON has a
// backslash before it, so the key is found nowhere else.
func (p *packer) cite(text []byte) {
	key := []byte(`"evidence":"`)
	for {
		i := bytes.Index(text, key)
		if i < 0 {
			return
		}
		text = text[i+len(key):]
		if n := bytes.IndexByte(text, '"'); n >= 0 && !p.cited[string(text[:n])] {
			p.cited[string(text[:n])] = true
		}
	}
}

// traceItem is a trace with references instead of its paths.
type traceItem struct {
	trace.Trace
	Names []lookupItem `json:"names,omitempty"`
	Paths []ref        `json:"paths,omitempty"`
}

type lookupItem struct {
	trace.Lookup
	Queries []queryItem `json:"queries,omitempty"`
}

type queryItem struct {
	trace.Query
	Path *ref `json:"path,omitempty"`
}

// head is what traces share that differ in lab and command, which are not in it.
type head struct {
	*traceItem
	Lab *trace.Lab `json:"lab,omitempty"`
}

// item reads a trace in JSON, and stores its paths.
func (p *packer) item(text []byte) (*traceItem, error) {
	// Paths stay JSON: most are there already.
	var in struct {
		trace.Trace
		Names []struct {
			trace.Lookup
			Queries []struct {
				trace.Query
				Path json.RawMessage `json:"path"`
			} `json:"queries"`
		} `json:"names"`
		Paths []json.RawMessage `json:"paths"`
	}
	if err := jsonv1.Unmarshal(text, &in); err != nil {
		return nil, fmt.Errorf("html: %w", err)
	}
	out := &traceItem{Trace: in.Trace}
	for _, text := range in.Paths {
		out.Paths = append(out.Paths, p.path(text))
	}
	for _, n := range in.Names {
		l := lookupItem{Lookup: n.Lookup}
		for _, q := range n.Queries {
			x := queryItem{Query: q.Query}
			p.cited[q.Evidence] = true
			if len(q.Path) > 0 {
				r := p.path(q.Path)
				x.Path = &r
			}
			l.Queries = append(l.Queries, x)
		}
		out.Names = append(out.Names, l)
	}
	return out, nil
}

// packTrace stores a trace that is in no document.
func (p *packer) packTrace(t *trace.Trace) (ref, error) {
	text, err := json.Marshal(t)
	if err != nil {
		return ref{}, fmt.Errorf("html: %w", err)
	}
	item, err := p.item(text)
	if err != nil {
		return ref{}, err
	}
	return p.add(item)
}

// trace stores a trace of a document.
func (p *packer) trace(raw *result.Raw) (ref, error) {
	of, ok := p.heads[raw.Content]
	if !ok {
		item, err := p.item(raw.JSON())
		if err != nil {
			return ref{}, err
		}
		if of, err = p.add(head{traceItem: item}); err != nil {
			return ref{}, err
		}
		p.heads[raw.Content] = of
	}
	lab, ok := p.labAt[raw.LabAt]
	if !ok {
		lab = len(p.labs)
		p.labs, p.labAt[raw.LabAt] = append(p.labs, raw.Lab), lab
	}
	return p.add(struct {
		Of      ref    `json:"of"`
		Lab     int    `json:"lab"` // among the labs of the index
		Command string `json:"command,omitempty"`
	}{of, lab, raw.Command})
}

// packAll packs the parts that are there and not packed yet.
func (p *packer) packAll() {
	if p.w == nil {
		// The standard library's needs more than twice the time of this one, and saves a
		// twentieth of the page (docs/reference/speed.md).
		p.w, _ = gzip.NewWriterLevel(&p.z, 6) // the error is of levels that there are not
	}
	for i, b := range p.parts {
		if b == nil {
			continue
		}
		p.z.Reset()
		p.w.Reset(&p.z)
		// A buffer takes everything.
		_, _ = p.w.Write(b)
		_, _ = p.w.Write([]byte{']'})
		_ = p.w.Close()
		p.parts[i], p.done[i] = nil, part{Packed: true, Gzip: template.HTML(base64.StdEncoding.EncodeToString(p.z.Bytes()))}
	}
}

// finish closes the parts and packs them when they are many.
func (p *packer) finish() []part {
	if p.total > plainLimit {
		p.packAll()
		return p.done
	}
	for i, b := range p.parts {
		p.done[i] = part{JSON: template.JS(append(b, ']'))}
	}
	return p.done
}

// encode returns v as JSON that is safe in a script element (encoding/json
// escapes <, > and &) and holds no hidden characters.
func encode(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("html: %w", err)
	}
	return clean.JSON(b), nil
}

// check is a check whose trace is a reference.
type check struct {
	result.Check
	Trace *ref `json:"trace,omitempty"`
}

// pack stores the cells and traces of a document and returns the index: what
// the page needs at once.
func pack(p *packer, doc *result.Document) ([]byte, error) {
	traces := map[string]ref{}
	checkOf := func(k result.Check) (check, error) {
		c := check{Check: k}
		if k.Trace == "" {
			return c, nil
		}
		r, ok := traces[k.Trace]
		if !ok {
			raw, _ := doc.Traces.Raw(k.Trace) // there is one: the document is valid
			var err error
			if r, err = p.trace(&raw); err != nil {
				return c, err
			}
			traces[k.Trace] = r
		}
		c.Trace = &r
		return c, nil
	}
	byClaim := map[string][]result.Cell{}
	for _, c := range doc.Cells {
		byClaim[c.Claim] = append(byClaim[c.Claim], c)
	}
	type cell struct {
		result.Cell
		Checks []check `json:"checks"`
	}
	words := newScoper(doc)
	ans := &answers{m: support.New(doc)}
	staticsOf := map[string][]result.Static{}
	for _, k := range doc.Statics {
		staticsOf[k.Claim] = append(staticsOf[k.Claim], k)
	}
	of := result.OfClaims(doc)
	number := map[string]int{}
	type claim struct {
		result.Claim
		Cells   ref     `json:"cells"` // an object, by setting
		Outcome string  `json:"outcome"`
		Scopes  []scope `json:"scopes,omitempty"` // of History
		// Asks are in the item of the answers, as far as the page shows them.
		Asks    *int   `json:"asks,omitempty"`
		Grids   []int  `json:"grids"` // by release
		Answers ref    `json:"answers"`
		Find    string `json:"find"`
		tally
	}
	var claims []claim
	for i, cl := range doc.Claims {
		number[cl.ID] = i
	}
	for _, cl := range doc.Claims {
		cells := map[string]cell{}
		x := claim{Claim: cl, Outcome: of[cl.ID]}
		for _, c := range byClaim[cl.ID] {
			y := cell{Cell: c}
			for _, k := range c.Checks {
				kk, err := checkOf(k)
				if err != nil {
					return nil, err
				}
				y.Checks = append(y.Checks, kk)
			}
			cells[c.Setting] = y
			x.add(c)
		}
		r, err := p.add(cells)
		if err != nil {
			return nil, err
		}
		x.Cells = r
		x.History = slices.Clone(cl.History)
		for j := range x.History {
			x.History[j].Scope = nil // the page has the words
		}
		t := ans.m.Table(cl.ID)
		x.Grids, x.Find = ans.gridNumbers(t), findText(&cl, staticsOf[cl.ID])
		if x.Answers, err = p.add(ans.item(t, number)); err != nil {
			return nil, err
		}
		for _, h := range cl.History {
			x.Scopes = append(x.Scopes, words.parseScope(h.Where))
		}
		claims = append(claims, x)
	}
	statics, err := packStatics(p, doc, number, words)
	if err != nil {
		return nil, err
	}
	type flow struct {
		result.FlowResult
		ID    string `json:"id"`
		Twins []twin `json:"twins,omitempty"`
		Trace *ref   `json:"trace,omitempty"`
	}
	var flows []flow
	ids, others := flowIDs(doc.Flows), &pairs{doc: doc}
	for i, f := range doc.Flows {
		k, err := checkOf(f.Check)
		if err != nil {
			return nil, err
		}
		flows = append(flows, flow{f, ids[i], others.twinsOf(i), k.Trace})
	}
	return encode(map[string]any{"support": ans.axes(doc), "settings": doc.Settings, "labs": p.labs, "areas": doc.Areas, "claims": claims,
		"flows": flows, "statics": statics, "systems": systemClaims(doc, number), "effects": effects, "facts": p.facts(doc.Facts),
		"reasons": reasons(), "verdicts": verdicts()})
}

// facts returns those of the facts that the traces stored so far cite.
func (p *packer) facts(all map[string]*evidence.Fact) map[string]*evidence.Fact {
	out := map[string]*evidence.Fact{}
	for id, f := range all {
		if f != nil && p.cited[id] {
			out[id] = f
		}
	}
	return out
}

// registered are the facts of this program.
func registered() map[string]*evidence.Fact {
	all := map[string]*evidence.Fact{}
	for _, f := range evidence.All() {
		all[f.ID] = f
	}
	return all
}

func reasons() map[string]trace.Explanation {
	m := map[string]trace.Explanation{}
	for _, e := range trace.Reasons {
		m[string(e.Code)] = e
	}
	return m
}

func verdicts() map[string]string {
	m := map[string]string{}
	for _, v := range trace.Verdicts {
		m[string(v.ID)] = v.Means
	}
	return m
}
