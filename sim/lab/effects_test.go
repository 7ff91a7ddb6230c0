package lab_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/conformance/claims/verify"
	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/sim/kube/cni"
	"github.com/winlab-dev/winlab/sim/kube/kubeproxy"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// Nothing that winlab reads is accepted in silence: each item (a field of a lab, of a
// manifest, of a plugin's configuration; a quirk, a feature, a flag of kube-proxy)
// has a case in testdata/effects in which it either changes an outcome or gives a
// notice. What the items are is found by reflection and from the tables of the
// packages, so a new one without a case fails here.

// effectCase is one case: a lab without the item and the same lab with it.
type effectCase struct {
	// Item is what the case is for: "spec.nodes.build". A case may be for several.
	Item  string   `yaml:"item"`
	Items []string `yaml:"items"`
	// Base is the lab of a design that both rest on; "none" for no base.
	Base string `yaml:"base"`
	// Lab is laid over it in both, With in the second only; Without in the first only.
	// They are what stands under "spec:", and metadata under the key "metadata".
	Lab     map[string]any `yaml:"lab"`
	Without map[string]any `yaml:"without"`
	With    map[string]any `yaml:"with"`
	// Files are written beside both labs; FilesWith replace some in the second. m.yaml
	// is a manifest of the lab beside that of the web server.
	Files     map[string]string `yaml:"files"`
	FilesWith map[string]string `yaml:"filesWith"`
	// Conf and NetConf are files of fixtures/cni that the network has, with ConfBoth and
	// NetConfBoth laid over them in both labs, ConfWithout in the first only and ConfWith
	// and NetConfWith in the second only: maps by key, and null takes a key away.
	Conf        string         `yaml:"conf"`
	ConfBoth    map[string]any `yaml:"confBoth"`
	ConfWithout map[string]any `yaml:"confWithout"`
	ConfWith    map[string]any `yaml:"confWith"`
	NetConf     string         `yaml:"netConf"`
	NetConfBoth map[string]any `yaml:"netConfBoth"`
	NetConfWith map[string]any `yaml:"netConfWith"`
	// Flows are sent besides those of the lab; none: the usual ones.
	Flows []string `yaml:"flows"`
	// Notice says that the item gives a notice and nothing else; Refused that the lab
	// with it is refused, with a text of the error.
	Notice bool `yaml:"notice"`
	// Either accepts an effect and a notice alike.
	Either  bool   `yaml:"either"`
	Refused string `yaml:"refused"`
	// Excepted is why the item may change nothing; a user must accept the reason.
	Excepted string `yaml:"excepted"`
}

func (c *effectCase) items() []string {
	if c.Item != "" {
		return append([]string{c.Item}, c.Items...)
	}
	return c.Items
}

// usualFlows are what a cluster is for.
var usualFlows = []string{
	"pod/client -> pod/neighbour:80", "pod/client -> pod/peer:80", "pod/client -> pod/peer ping", "pod/client -> svc/win-webserver:80",
	"pod/client -> host/internet:443", "pod/client -> host/internet ping", "pod/client -> node/linux1:6443", "pod/linux-client -> pod/peer:80",
	"node/win1 -> pod/peer:80", "node/win1 -> svc/win-webserver:80", "host/lan -> node/win1:30080", "pod/client -> svc/kubernetes:443",
	"node/linux1 -> pod/client:80", "pod/linux-client -> svc/win-webserver:80", "host/lan -> pod/client:80",
}

var effectLedger = sync.OnceValues(claims.Load)

// outcome is what a user sees of a lab, as lines: verdicts, steps, HNS objects, what
// `winlab run` says, and apart from them the notices.
type outcome struct {
	lines   []string
	notices []string
	err     error
}

func (c *effectCase) outcome(t *testing.T, with bool) outcome {
	t.Helper()
	dir := t.TempDir()
	for _, files := range []map[string]string{c.Files, c.FilesWith} {
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if !with {
			break
		}
	}
	body := map[string]any{}
	meta := map[string]any{"name": "case"}
	if c.Base != "none" {
		base := c.Base
		if base == "" {
			base = "l2bridge-flannel-host-gw"
		}
		abs, err := filepath.Abs("../../fixtures/labs/" + base + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		if body["base"], err = filepath.Rel(dir, abs); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := c.Files["m.yaml"]; ok {
		web, err := filepath.Abs("../../fixtures/manifests/win-webserver.yaml")
		if err != nil {
			t.Fatal(err)
		}
		body["manifests"] = []any{"m.yaml", web}
	}
	layers := []map[string]any{c.Lab, c.Without}
	confs := [][]map[string]any{{c.ConfBoth, c.ConfWithout}, {c.NetConfBoth, nil}}
	if with {
		layers[1] = c.With
		confs[0][1], confs[1][1] = c.ConfWith, c.NetConfWith
	}
	network := map[string]any{}
	for i, conf := range []struct{ key, file string }{{"conf", c.Conf}, {"netConf", c.NetConf}} {
		if conf.file != "" {
			network[conf.key] = confFile(t, dir, conf.file, confs[i]...)
		}
	}
	if len(network) > 0 {
		body["network"] = network
	}
	for _, l := range layers {
		for k, v := range l {
			if k == "metadata" {
				meta = merged(meta, v).(map[string]any)
			} else {
				body[k] = merged(body[k], v)
			}
		}
	}
	text, err := yaml.Marshal(map[string]any{"apiVersion": labfile.APIVersion, "kind": labfile.Kind, "metadata": meta, "spec": body})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "lab.yaml")
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	o := c.observe(t, path)
	clean := func(s string) string { return strings.ReplaceAll(s, dir, "DIR") }
	for i := range o.lines {
		o.lines[i] = clean(o.lines[i])
	}
	return o
}

// confFile writes a configuration of fixtures/cni with some changes into a folder.
func confFile(t *testing.T, dir, name string, changes ...map[string]any) string {
	t.Helper()
	text, err := os.ReadFile("../../fixtures/cni/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var conf any
	if err := json.Unmarshal(text, &conf); err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		conf = changed(conf, c)
	}
	if text, err = json.MarshalIndent(conf, "", "  "); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// changed lays a value over one of JSON: maps by key, where null takes a key away, and
// in a conflist over its first plugin; all else takes the old value's place.
func changed(old any, change map[string]any) any {
	o, ok := old.(map[string]any)
	if !ok {
		o = map[string]any{}
	}
	o = maps.Clone(o)
	if plugins, ok := o["plugins"].([]any); ok && change["plugins"] == nil {
		o["plugins"] = append([]any{changed(plugins[0], change)}, plugins[1:]...)
		return o
	}
	for k, v := range change {
		if m, ok := v.(map[string]any); ok {
			o[k] = changed(o[k], m)
		} else if o[k] = v; v == nil {
			delete(o, k)
		}
	}
	return o
}

// merged lays a value over another as a lab is laid over its base: lists of named
// things by name, other lists one after the other.
func merged(under, over any) any {
	switch o := over.(type) {
	case map[string]any:
		u, _ := under.(map[string]any)
		all := map[string]any{}
		for k, v := range u {
			all[k] = v
		}
		for k, v := range o {
			all[k] = merged(all[k], v)
		}
		return all
	case []any:
		u, ok := under.([]any)
		if !ok {
			return over
		}
		all := slices.Clone(u)
	next:
		for _, e := range o {
			if m, ok := e.(map[string]any); ok && m["name"] != nil {
				for i := range all {
					if n, ok := all[i].(map[string]any); ok && n["name"] == m["name"] {
						all[i] = merged(n, m)
						continue next
					}
				}
			}
			all = append(all, e)
		}
		return all
	}
	return over
}

// observe loads, builds and runs a lab.
func (c *effectCase) observe(t *testing.T, path string) (o outcome) {
	t.Helper()
	add := func(format string, args ...any) { o.lines = append(o.lines, fmt.Sprintf(format, args...)) }
	f, err := lab.Load(path)
	if err != nil {
		return outcome{err: err}
	}
	cl, err := lab.Build(t.Context(), f, lab.Options{Components: labfile.Model})
	if err != nil {
		return outcome{err: err}
	}
	for _, n := range cl.NotModelled {
		o.notices = append(o.notices, n.What+": "+n.Why)
	}
	cl.SettleAll()
	for _, l := range cl.Log {
		add("log %s", l)
	}
	for _, n := range cl.Nodes {
		if n.HNS == nil {
			continue
		}
		b, err := n.HNS.Export()
		if err != nil {
			t.Fatal(err)
		}
		add("HNS of %s: %s", n.Name, b)
	}
	flows := c.Flows
	if flows == nil {
		flows = usualFlows
	}
	for _, text := range flows {
		o.flow(t, cl, text)
	}
	if s := f.Lab.Spec; len(s.AllFlows())+len(s.Variants)+len(s.Settings) > 0 {
		o.run(t, path)
	}
	return o
}

// flow sends one flow, "FROM -> TO[ PROTOCOL]", or resolves a name, "FROM ? NAME TOOL".
func (o *outcome) flow(t *testing.T, cl *lab.Cluster, text string) {
	t.Helper()
	if from, rest, ok := strings.Cut(text, " ? "); ok {
		name, tool, _ := strings.Cut(rest, " ")
		r, err := cl.Run(t.Context(), labfile.Flow{From: from, To: "name/" + name, Resolve: tool})
		o.lines = append(o.lines, fmt.Sprintf("%s: %s %s %v", text, r.Verdict, r.Summary, err))
		if r.Lookup != nil {
			for _, q := range r.Lookup.Queries {
				o.lines = append(o.lines, fmt.Sprintf("  asks %s %s of %s: %s %v", q.Name, q.Type, q.Server, q.RCode, q.Answers))
			}
		}
		return
	}
	from, rest, _ := strings.Cut(text, " -> ")
	to, proto, _ := strings.Cut(rest, " ")
	proto, v6 := strings.CutSuffix(proto, "6")
	tr, err := cl.Trace(t.Context(), lab.Request{From: from, To: to, Protocol: proto, IPv6: v6})
	if err != nil {
		o.lines = append(o.lines, text+": "+err.Error())
		return
	}
	o.trace(text, tr)
}

// trace adds what a trace says but for places in files, which move with every line.
func (o *outcome) trace(what string, tr *trace.Trace) {
	o.lines = append(o.lines, fmt.Sprintf("%s: %s %s %s", what, tr.Verdict, tr.Reason, tr.Summary))
	for _, p := range tr.Paths {
		for _, s := range p.Steps {
			o.lines = append(o.lines, fmt.Sprintf("  %s %s %s %s %s %s %v", s.Leg, s.Place, s.Object, s.Layer, s.Rule, s.Text(), s.Changes))
		}
		o.lines = append(o.lines, fmt.Sprintf("  ends %s %s, seen %v", p.Verdict, p.Reason, p.Seen))
	}
}

// run adds what `winlab run` says of the lab's own flows, and its notices.
func (o *outcome) run(t *testing.T, path string) {
	t.Helper()
	ledger, err := effectLedger()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := verify.Run(t.Context(), verify.Options{Paths: []string{path}, Ledger: ledger, Components: labfile.Model})
	if err != nil {
		o.err = err
		return
	}
	for _, f := range doc.Flows {
		o.lines = append(o.lines, fmt.Sprintf("run %s %s %s %s %s %s %s: %s, expected %q, pass %v, %s %s", f.Lab, f.Title, f.Incident, f.Variant,
			f.VariantTitle, f.Setting, f.Name, f.Got, f.Expect, f.Pass, f.Reason, f.Summary))
		if tr := doc.Traces.Get(f.Trace); tr != nil {
			o.lines = append(o.lines, fmt.Sprintf("  in Kubernetes %s, proxy %s, Windows %v, %s", tr.Lab.Kubernetes, tr.Lab.Proxy, tr.Lab.Builds,
				tr.Lab.Network))
			o.trace("  "+f.Name, tr)
		}
	}
	o.lines = append(o.lines, fmt.Sprintf("run as a whole: %+v", doc.Summary))
	for _, n := range doc.NotModelled {
		o.notices = append(o.notices, noticeText(n))
	}
}

func noticeText(n result.Notice) string {
	return fmt.Sprintf("%s %v %s: %s", n.Variant, n.Settings, n.What, n.Why)
}

// effectCases are all cases, by file.
func effectCases(t *testing.T) []effectCase {
	t.Helper()
	files, err := filepath.Glob("testdata/effects/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	var all []effectCase
	for _, file := range files {
		fh, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		var cases []effectCase
		d := yaml.NewDecoder(fh)
		d.KnownFields(true)
		err = d.Decode(&cases)
		fh.Close()
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, cases...)
	}
	return all
}

// Every case shows an effect, or a notice where it promises one.
func TestEffects(t *testing.T) {
	t.Parallel()
	for _, c := range effectCases(t) {
		t.Run(strings.Join(c.items(), ","), func(t *testing.T) {
			t.Parallel()
			if c.Excepted != "" {
				return
			}
			for _, item := range c.items() {
				if path, ok := strings.CutPrefix(item, "spec."); ok && !c.Notice && c.Refused == "" && !says(c.With, strings.Split(path, ".")) &&
					!says(c.Without, strings.Split(path, ".")) {
					t.Errorf("the case for %s does not say it", item)
				}
			}
			without, with := c.outcome(t, false), c.outcome(t, true)
			if without.err != nil {
				t.Fatalf("without: %v", without.err)
			}
			if c.Refused != "" {
				if with.err == nil || !strings.Contains(with.err.Error(), c.Refused) {
					t.Errorf("want an error with %q, got %v", c.Refused, with.err)
				}
				return
			}
			if with.err != nil {
				t.Fatalf("with: %v", with.err)
			}
			c.compare(t, without, with)
		})
	}
}

// compare complains when a case has neither the effect nor the notice that it
// promises.
func (c *effectCase) compare(t *testing.T, without, with outcome) {
	t.Helper()
	noticed := !slices.Equal(without.notices, with.notices) && len(with.notices) > 0
	changed := !slices.Equal(without.lines, with.lines)
	switch {
	case c.Notice && !noticed:
		t.Errorf("no notice; notices are %q", with.notices)
	case c.Notice && changed:
		t.Errorf("it has an effect and needs no notice: %s", firstDifference(without.lines, with.lines))
	case !c.Notice && !changed && !(c.Either && noticed):
		t.Errorf("accepted in silence: neither an effect nor a notice; notices with it: %q", with.notices)
	}
	if testing.Verbose() && changed {
		t.Log(firstDifference(without.lines, with.lines))
	}
}

func firstDifference(a, b []string) string {
	for i := range max(len(a), len(b)) {
		at := func(l []string) string {
			if i < len(l) {
				return l[i]
			}
			return "(nothing)"
		}
		if at(a) != at(b) {
			return fmt.Sprintf("\n- %.300s\n+ %.300s", at(a), at(b))
		}
	}
	return ""
}

// says reports whether a document has a value at a path; lists are passed through.
func says(v any, path []string) bool {
	if len(path) == 0 {
		return v != nil
	}
	switch v := v.(type) {
	case map[string]any:
		return says(v[path[0]], path[1:])
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return says(e, path) })
	}
	return false
}

// sameReader lists parts of a lab that are read by the same code as another part.
var sameReader = map[string]string{
	"spec.variants.hns": "spec.hns", "spec.variants.flows": "spec.flows", "spec.flows.meanwhile": "spec.hns",
	"spec.settings.proxy": "spec.proxy",
	"spec.steps.hns":      "spec.hns", "spec.steps.pods": "spec.pods", "spec.steps.flows": "spec.flows", "spec.variants.steps": "spec.steps",
}

// schemaItems walks the lab's types and lists every field by its path.
func schemaItems(typ reflect.Type, path string, items *[]string) {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct {
		return
	}
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, opts, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if strings.Contains(opts, "inline") {
			schemaItems(f.Type, path, items)
			continue
		}
		if name == "-" {
			continue
		}
		at := strings.TrimPrefix(path+"."+name, ".")
		*items = append(*items, at)
		if sameReader[at] == "" {
			schemaItems(f.Type, at, items)
		}
	}
}

// covered compares items with those that have cases.
func covered(t *testing.T, kind string, items []string) {
	t.Helper()
	have := map[string]bool{}
	for _, c := range effectCases(t) {
		for _, i := range c.items() {
			have[i] = true
		}
	}
	for _, i := range items {
		// A part of a lab counts when what is in it does.
		if !have[i] && !slices.ContainsFunc(items, func(o string) bool { return strings.HasPrefix(o, i+".") }) {
			t.Errorf("%s %s: no case in testdata/effects", kind, i)
		}
	}
}

// Every field of a lab has a case.
func TestEveryFieldOfALabHasACase(t *testing.T) {
	t.Parallel()
	var items []string
	schemaItems(reflect.TypeFor[labfile.Lab](), "", &items)
	if len(items) < 100 {
		t.Fatalf("%d fields found", len(items))
	}
	covered(t, "the field", items)
	for from, to := range sameReader {
		if !slices.Contains(items, from) || !slices.ContainsFunc(items, func(i string) bool { return i == to || strings.HasPrefix(i, to+".") }) {
			t.Errorf("%s or %s is not a part of a lab", from, to)
		}
	}
	for _, c := range effectCases(t) {
		for _, i := range c.items() {
			if (strings.HasPrefix(i, "spec.") || strings.HasPrefix(i, "metadata.")) && !slices.Contains(items, i) {
				t.Errorf("a case is for %s, which is not a field of a lab", i)
			}
		}
	}
	if _, err := os.Stat("testdata/effects"); errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// Every field of a manifest that is read has a case; those that are not are compared
// with Kubernetes' types in sim/lab/labfile.
func TestEveryFieldOfAManifestHasACase(t *testing.T) {
	t.Parallel()
	covered(t, "the field", labfile.ManifestFields())
}

// Every bug of a build has a case.
func TestEveryQuirkHasACase(t *testing.T) {
	t.Parallel()
	var items []string
	for _, id := range builds.QuirkIDs() {
		items = append(items, "quirk."+id)
	}
	covered(t, "the bug", items)
}

// Every flag of kube-proxy that is read has a case; the others have a reason there.
func TestEveryFlagHasACase(t *testing.T) {
	t.Parallel()
	var items []string
	for _, f := range kubeproxy.CountedFlags() {
		items = append(items, "flag."+f)
	}
	covered(t, "the flag", items)
}

// Every field of a plugin's configuration that counts has a case; the others have a
// reason or a warning in sim/kube/cni.
func TestEveryFieldOfAPluginHasACase(t *testing.T) {
	t.Parallel()
	var items []string
	for _, f := range cni.Fields() {
		items = append(items, "conf."+f)
	}
	covered(t, "the field", items)
}

// Whatever a build can do has a case.
func TestEveryFeatureHasACase(t *testing.T) {
	t.Parallel()
	var items []string
	for _, f := range builds.Features() {
		items = append(items, "feature."+string(f))
	}
	covered(t, "the feature", items)
}

// Every parameter of a lab has a case.
func TestEveryParameterHasACase(t *testing.T) {
	t.Parallel()
	var items []string
	for _, p := range labfile.Params() {
		items = append(items, "param."+p.Name)
	}
	covered(t, "the parameter", items)
}
