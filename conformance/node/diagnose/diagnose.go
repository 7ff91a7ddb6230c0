package diagnose

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/conformance/node/bundle"
	"github.com/winlab-dev/winlab/conformance/node/doctor"
	"github.com/winlab-dev/winlab/conformance/node/importer"
	"github.com/winlab-dev/winlab/conformance/node/observed"
	"github.com/winlab-dev/winlab/reports/findings"
	"github.com/winlab-dev/winlab/sim/lab"
	build "github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/trace"
)

// The claims that a cluster breaks in which a Service or a pod is not reached.
const (
	claimService = "service-cluster-ip"
	claimPods    = "verify-pod-to-pod"
)

// maxPorts bounds the ports of Services that are tried from each node.
const maxPorts = 100

// Is reports whether a path is a bundle that says more than the files of one node do: a .zip,
// a folder that winlab collect has written or that holds such, or one with HNS of nodes and
// objects of Kubernetes.
func Is(ctx context.Context, path string) (bool, error) {
	if !bundle.Is(path) {
		return false, nil
	}
	b, err := bundle.Open(ctx, path, bundle.Limits{})
	if err != nil {
		return false, err
	}
	is := b.Unpacked() || b.Manifest != nil
	if !is {
		r, err := importer.Import(ctx, b, "bundle", func(f string) string { return b.File(f) }, func(s string) string { return s })
		is = err == nil && len(r.Nodes) > 0 && r.HasCluster
	}
	return is, errors.Join(ctx.Err(), b.Close())
}

// Bundle says what is wrong in a bundle. What t leaves open is taken from each node's files.
// The error is about the bundle as a whole.
func Bundle(ctx context.Context, b *bundle.Bundle, t claims.Target, l *claims.Ledger) (d *findings.Document, err error) {
	dir, err := os.MkdirTemp("", "winlab-doctor-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r, err := importer.In(ctx, b, dir)
	if err != nil {
		return nil, err
	}
	d = &findings.Document{Schema: findings.Schema}
	notExamined := notExamined{}
	for _, n := range r.Nodes {
		got, err := observed.Read(ctx, b.File(n.Folder))
		if err != nil {
			return nil, err
		}
		got.Known = n.Name
		if n.Folder != "" { // else it has read the file itself
			machines(got, r.Kube)
		}
		of := doctor.Examine(got, t, l)
		add(d, of, n.Folder)
		notExamined.add(n.Name, of.NotExamined)
	}
	d.NotExamined = append(notExamined.list(), r.LeftOut...)
	damaged(d, b, r)
	for _, n := range r.Nodes {
		if n.Why != "" {
			d.NotExamined = append(d.NotExamined, fmt.Sprintf("packets on node %s: %s", n.Name, n.Why))
		}
	}
	x := &tries{d: d, l: l, found: map[string]bool{}}
	c, bad := cluster(ctx, dir, r)
	if x.c = c; bad != nil { // the findings so far stand
		d.NotExamined = append(d.NotExamined, "packets: the lab of the bundle cannot be built: "+
			strings.ReplaceAll(bad.Error(), dir+string(filepath.Separator), ""))
	}
	for _, dr := range r.Drift {
		if err := x.drift(ctx, dr); err != nil {
			return nil, err
		}
	}
	if x.c != nil {
		err = x.packets(ctx, r)
	}
	if err == nil {
		err = x.configured(ctx, dir, r)
	}
	return d, err
}

// damaged adds files whose content is lost, of those that no node's doctor has read: a folder whose
// only list of HNS is damaged is not taken for one of a node.
func damaged(d *findings.Document, b *bundle.Bundle, r *importer.Result) {
	add := func(m findings.Mistake) {
		if !slices.ContainsFunc(d.Mistakes, func(o findings.Mistake) bool { return o.File == m.File || b.Shown(o.File) == m.File }) {
			d.Mistakes = append(d.Mistakes, m)
		}
	}
	for _, m := range r.Damaged {
		add(findings.Mistake{File: m.File, Line: m.Line, Column: m.Column, Message: m.Message})
	}
	const most = 64 << 20
	for _, f := range b.Files {
		inNode := func(n importer.Node) bool { return n.Folder == "" || strings.HasPrefix(f, n.Folder+"/") }
		if r.Cluster[f] || slices.ContainsFunc(r.Nodes, inNode) || b.Size(f) > most {
			continue
		}
		if data, err := b.Head(f, most); err != nil {
			add(findings.Mistake{File: f, Message: "cannot be read: " + err.Error()})
		} else if why := observed.Damaged(f, data); why != "" {
			add(findings.Mistake{File: f, Message: why})
		}
	}
}

// outside begins the names of files that are not the node's own.
const outside = "\x00"

// machines tells the doctor of the nodes of the cluster, which other files of the bundle have.
func machines(n *observed.Node, all []importer.KubeNode) {
	for _, k := range all {
		m := observed.Machine{Name: k.Name, Version: k.Version, Kernel: k.Kernel, OS: k.System, Ready: k.Ready, Reason: k.Reason,
			PodCIDRs: k.Pods,
			Place:    observed.Place{File: outside + k.File, Line: k.Line, Text: "node " + k.Name}}
		if k.Address.IsValid() {
			m.Addresses = []netip.Addr{k.Address}
		}
		n.AddMachine(m)
	}
}

// add adds what the doctor found in a folder.
func add(d, of *findings.Document, folder string) {
	in := func(f string) string {
		if rest, ok := strings.CutPrefix(f, outside); ok {
			return rest
		}
		if folder == "" || f == "" {
			return f
		}
		return path.Join(folder, f)
	}
	d.Files, d.Documents = d.Files+of.Files, d.Documents+of.Documents
	d.CarriedOver = cmp.Or(d.CarriedOver, of.CarriedOver)
	for _, s := range of.Settings {
		if !slices.Contains(d.Settings, s) {
			d.Settings = append(d.Settings, s)
		}
	}
	for _, f := range of.Read {
		d.Read = append(d.Read, in(f))
	}
	for _, k := range of.Known {
		for i := range k.Lines {
			k.Lines[i] = in(k.Lines[i])
		}
		at := slices.IndexFunc(d.Known, func(x findings.KnownIssue) bool { return x.ID == k.ID })
		if at < 0 {
			d.Known = append(d.Known, k)
		} else {
			d.Known[at].Lines = append(d.Known[at].Lines, k.Lines...)
		}
	}
	for _, f := range of.Findings {
		f.File = in(f.File)
		for i := range f.Evidence {
			f.Evidence[i] = in(f.Evidence[i])
		}
		d.Findings = append(d.Findings, f)
	}
	for _, m := range of.Mistakes {
		m.File = in(m.File)
		d.Mistakes = append(d.Mistakes, m)
	}
	for k, n := range of.Passed {
		if d.Passed == nil {
			d.Passed = map[string]int{}
		}
		d.Passed[k] += n
	}
	for _, s := range of.NotUnderstood {
		d.NotUnderstood = append(d.NotUnderstood, in(s))
	}
	for _, s := range of.Healthy {
		if !slices.Contains(d.Healthy, s) {
			d.Healthy = append(d.Healthy, s)
		}
	}
}

// notExamined is what could not be looked at, of which nodes.
type notExamined struct {
	order []string
	nodes map[string][]string
}

func (x *notExamined) add(node string, all []string) {
	if x.nodes == nil {
		x.nodes = map[string][]string{}
	}
	for _, what := range all {
		if x.nodes[what] == nil {
			x.order = append(x.order, what)
		}
		if !slices.Contains(x.nodes[what], node) {
			x.nodes[what] = append(x.nodes[what], node)
		}
	}
}

// list has each once, with its nodes.
func (x *notExamined) list() (all []string) {
	for _, what := range x.order {
		all = append(all, strings.Join(x.nodes[what], ", ")+": "+what)
	}
	return all
}

// cluster builds the lab of an import.
func cluster(ctx context.Context, dir string, r *importer.Result) (*lab.Cluster, error) {
	f, err := lab.Parse(filepath.Join(dir, "bundle.yaml"), r.Lab)
	if err != nil {
		return nil, err
	}
	return lab.Build(ctx, f, lab.Options{})
}

// tries are packets that are sent through the lab of a bundle.
type tries struct {
	c *lab.Cluster // nil where it cannot be built
	d *findings.Document
	l *claims.Ledger
	// found are the reasons and places at which packets died so far.
	found map[string]bool
}

func (x *tries) finding(claim string, f findings.Finding) {
	f.Claim = claim
	if c := x.l.Claim(claim); c != nil {
		f.ClaimTitle = c.Title
	}
	f.Level = cmp.Or(f.Level, "error")
	f.Effect = cmp.Or(f.Effect, "fails")
	f.EffectWords = claims.Effects[f.Effect]
	x.d.Findings = append(x.d.Findings, f)
}

// drift reports a difference between Kubernetes and HNS, with the packet that dies of it
// where there is one.
func (x *tries) drift(ctx context.Context, d importer.Drift) error {
	f := findings.Finding{File: d.File, Line: d.Line, Subject: d.Node, CauseID: d.ID, Message: d.Kubernetes + "; on " + d.Node + " " + d.HNS,
		Cause: d.HNS, Evidence: []string{"Kubernetes: " + d.Kubernetes, "HNS of " + d.Node + ": " + d.HNS}, Symptom: d.Means}
	claim := claimService
	switch d.ID {
	case importer.NoEndpoint:
		claim, f.Write = claimPods, "delete the pod, so that its successor gets a new network"
	case importer.LeftOver:
		claim, f.Level, f.Effect, f.Write = claimPods, "warning", "risk",
			"if no pod has the address, remove the endpoint: Get-HnsEndpoint | ? IPAddress -eq ADDRESS | Remove-HnsEndpoint"
	case importer.OtherRoute, importer.OtherTunnel:
		claim, f.Write = claimPods, "restart "+d.Maker+
			" on the node: it creates its routes again; then compare the node's address and annotations in Kubernetes with those of the machine"
	default:
		f.Write = "restart kube-proxy on the node: it creates its load balancers again"
	}
	if d.Moving != "" {
		f.Level, f.Effect = "warning", "risk"
		f.Evidence, f.Write = append(f.Evidence, d.Moving), "take the bundle again when nothing changes; if it is still so, "+f.Write
	}
	if from := x.podOn(d.Node); from != "" && d.To != "" {
		t, err := x.trace(ctx, from, d.To, "")
		if err != nil {
			return err
		}
		if way := dies(t); way != nil {
			x.found[key(way)] = true
			f.Evidence = append(f.Evidence, packet(t, way))
		}
	}
	x.finding(claim, f)
	return nil
}

// end is where a packet goes.
type end struct{ to, protocol string }

// ends are a pod with a port on each node, and the ports of Services, up to [maxPorts].
func (x *tries) ends() (all []end) {
	for _, n := range x.c.Nodes {
		if p := x.servesOn(n.Name); p != "" {
			all = append(all, end{p, ""})
		}
	}
	tried, more := 0, 0
	for _, s := range x.c.Plan.Services {
		k := x.c.Service(s.Namespace, s.Name)
		if k == nil || !slices.ContainsFunc(k.ClusterIPs, netip.Addr.Is4) {
			continue
		}
		for _, p := range k.Ports {
			if tried == maxPorts {
				more++
				continue
			}
			tried++
			all = append(all, end{fmt.Sprintf("svc/%s/%s:%d", s.Namespace, s.Name, p.Port), strings.ToLower(p.Proto.String())})
		}
	}
	if more > 0 {
		x.d.NotExamined = append(x.d.NotExamined,
			fmt.Sprintf(
				"packets to %d of %d ports of Services: only the first %d are tried; ask with: winlab trace BUNDLE --from pod/NAME --to svc/NAME:PORT",
				more, more+tried, tried))
	}
	return all
}

// packets sends a packet from a pod of each node that was seen to a pod of each node and to
// each port of a Service. One that is certainly lost is a finding, unless a policy has blocked it.
func (x *tries) packets(ctx context.Context, r *importer.Result) error {
	to := x.ends()
	tried := 0
	for _, n := range r.Nodes {
		from := x.podOn(n.Name)
		if n.Why != "" || from == "" {
			continue
		}
		for _, end := range to {
			if strings.HasPrefix(end.to, from+":") {
				continue
			}
			t, err := x.trace(ctx, from, end.to, end.protocol)
			if err != nil {
				return err
			}
			if t == nil {
				continue
			}
			if tried++; dies(t) != nil {
				x.died(n.Name, t, dies(t))
			}
		}
	}
	if tried > 0 && len(x.found) == 0 {
		x.d.Healthy = append(x.d.Healthy,
			fmt.Sprintf("none of %d packets between pods and to Services in the lab of the bundle is certainly lost", tried))
	}
	return nil
}

// died reports a packet, once for each reason and place.
func (x *tries) died(node string, t *trace.Trace, p *trace.Path) {
	if x.found[key(p)] {
		return
	}
	x.found[key(p)] = true
	f := findings.Finding{Subject: node, CauseID: "packet-" + string(p.Reason), Message: packet(t, p), Cause: cmp.Or(p.Cause, p.Summary)}
	e, _ := trace.Explain(p.Reason)
	f.Symptom, f.Write = e.Means, e.Look
	if last := len(p.Steps) - 1; last >= 0 {
		f.Subject = p.Steps[last].Place
		for i := last; i >= 0 && len(f.Evidence) < 3; i-- {
			if o := p.Steps[i].From; o != nil && o.File != "" {
				f.Evidence = append(f.Evidence, o.String())
				f.File, f.Line = o.File, o.Line
			}
		}
	}
	claim := claimPods
	if strings.HasPrefix(t.Flow.To, "svc/") {
		claim = claimService
	}
	x.finding(claim, f)
}

// trace sends a packet; nil where there is no lab, or a name in it is not there.
func (x *tries) trace(ctx context.Context, from, to, protocol string) (*trace.Trace, error) {
	if x.c == nil {
		return nil, nil
	}
	t, err := x.c.Trace(ctx, lab.Request{From: from, To: to, Protocol: protocol})
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		x.d.NotExamined = append(x.d.NotExamined, fmt.Sprintf("the packet %s -> %s: %v", from, to, err))
		return nil, nil
	}
	return t, nil
}

// dies returns the path on which a packet is certainly lost, nil where there is none: a path that
// rests on an unknown answer does not count, nor does a packet that a policy blocks.
func dies(t *trace.Trace) *trace.Path {
	if t == nil {
		return nil
	}
	for i := range t.Paths {
		p := &t.Paths[i]
		switch {
		case p.Verdict == trace.Delivered || p.Verdict == trace.Unknown || p.Reason == trace.ACLBlock || p.Reason == trace.FabricPolicy:
		case slices.ContainsFunc(p.Choices, func(c trace.Choice) bool { return c.Param != "" }) && !t.Fails():
		default:
			return p
		}
	}
	return nil
}

// key is the same for packets that die of one thing.
func key(p *trace.Path) string {
	s := string(p.Reason)
	if last := len(p.Steps) - 1; last >= 0 {
		s += " " + p.Steps[last].Place + " " + p.Steps[last].Rule
	}
	return s
}

// packet says in a line what became of a packet.
func packet(t *trace.Trace, p *trace.Path) string {
	return fmt.Sprintf("packet %s -> %s: %s (%s): %s", t.Flow.From, t.Flow.To, p.Verdict, p.Reason, p.Summary)
}

// podOn is a pod of a node, "" for none.
func (x *tries) podOn(node string) string {
	if x.c == nil {
		return ""
	}
	for _, m := range x.c.Machines(build.PodKind) {
		if m.Node.Name == node {
			return "pod/" + m.Ref.Name
		}
	}
	return ""
}

// servesOn is a pod of a node with a TCP port that it serves, "" for none.
func (x *tries) servesOn(node string) string {
	for _, p := range x.c.Plan.Pods {
		if p.Node != node {
			continue
		}
		for _, l := range p.Listen {
			if l.Proto == 6 {
				return fmt.Sprintf("pod/%s:%d", p.Key(), l.Port)
			}
		}
	}
	return ""
}
