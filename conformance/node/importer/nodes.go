package importer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/winlab-dev/winlab/internal/strict"
	"github.com/winlab-dev/winlab/internal/utf"
	"github.com/winlab-dev/winlab/sim/kube/cni"
	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/dump"
)

// collected is a Windows node of which the bundle has files.
type collected struct {
	name string
	// files are those that a lab loads, paths below the bundle; all those of the node.
	files, all       []string
	dump             *dump.Node
	build, buildFrom string
	conf             string // a CNI configuration, path below the bundle
	why              string // why the node cannot be imported, "" when it can
}

// nodeFolders finds the nodes that the bundle has files of.
func (im *importing) nodeFolders() {
	by := map[string]*collected{}
	for _, f := range im.b.Files {
		name := ""
		if m, ok := im.b.Manifest.Find(f); ok {
			name = m.Node
		} else if rest, ok := strings.CutPrefix(f, "nodes/"); ok && im.b.Manifest == nil {
			name, _, _ = strings.Cut(rest, "/")
		}
		if name == "" {
			continue
		}
		if by[name] == nil {
			by[name] = &collected{name: name}
			im.nodes = append(im.nodes, by[name])
		}
		by[name].all = append(by[name].all, f)
	}
	if len(im.nodes) == 0 {
		im.plainFolders()
	}
	for _, n := range im.nodes {
		folder := ""
		if n.name != "" { // else the bundle is the folder of one node
			folder = folderOf(n.all)
		}
		im.readNode(n)
		im.r.Nodes = append(im.r.Nodes, Node{Name: n.name, Folder: folder, Why: n.why})
	}
}

// folderOf is the folder that has all files.
func folderOf(files []string) string {
	dir := ""
	for i, f := range files {
		if d := path.Dir(f); i == 0 {
			dir = d
		}
		for dir != "." && !strings.HasPrefix(f, dir+"/") {
			dir = path.Dir(dir)
		}
	}
	return strings.TrimPrefix(dir, ".")
}

// plainFolders takes folders that somebody put together: one for each node, or one node alone.
func (im *importing) plainFolders() {
	by := map[string][]string{}
	// Who packs a folder packs its name as well.
	within := folderOf(im.b.Files)
	if within != "" {
		within += "/"
	}
	for _, f := range im.b.Files {
		if im.cluster[f] {
			continue
		}
		top, _, ok := strings.Cut(strings.TrimPrefix(f, within), "/")
		if !ok {
			top = ""
		}
		by[top] = append(by[top], f)
	}
	var tops []string
	for top, files := range by {
		damaged := func(f string) bool { return len(im.brokenJSON(f)) > 0 }
		if top != "" && (slices.ContainsFunc(files, im.showsHNS) || im.knows(top) && slices.ContainsFunc(files, damaged)) {
			tops = append(tops, top)
		}
	}
	slices.Sort(tops)
	if slices.ContainsFunc(by[""], im.showsHNS) || len(tops) < 1 {
		n := &collected{}
		for _, f := range im.b.Files {
			if !im.cluster[f] {
				n.all = append(n.all, f)
			}
		}
		if slices.ContainsFunc(n.all, im.showsHNS) {
			im.nodes = append(im.nodes, n)
		}
		im.cutFiles()
		return
	}
	for _, top := range tops {
		im.nodes = append(im.nodes, &collected{name: strings.ToLower(top), all: by[top]})
	}
	im.cutFiles()
}

// cutFiles notes JSON that is cut in the middle and belongs to no node: it may be why.
func (im *importing) cutFiles() {
	of := map[string]bool{}
	for _, n := range im.nodes {
		for _, f := range n.all {
			of[f] = true
		}
	}
	for _, f := range im.b.Files {
		if !of[f] && !im.cluster[f] {
			im.r.mistakes(im.brokenJSON(f))
		}
	}
}

// showsHNS reports whether a file may have objects of HNS.
func (im *importing) showsHNS(f string) bool {
	n := im.dumped(f)
	return n != nil && n.HNS != nil
}

// dumped reads a file as what a Windows node prints; nil when nothing of it is understood.
func (im *importing) dumped(f string) *dump.Node {
	if n, ok := im.read[f]; ok {
		return n
	}
	var n *dump.Node
	if im.b.Size(f) > maxNodeFile {
		im.read[f] = nil
		return nil
	}
	if data, err := im.b.Read(f); err == nil {
		n, _ = dump.ReadFile(im.b.Shown(f), data)
		if n != nil && (len(n.Files) == 0 || len(n.Files[0].As) == 0) {
			n.HNS = nil
		}
	}
	im.read[f] = n
	return n
}

// maxNodeFile is how large a file of a node may be that is read: HNS of thousands of endpoints has
// some ten megabytes, and what is larger is a log or a trace.
const maxNodeFile = 64 << 20

// hostNetworkOnly are files of a bundle that say nothing that a lab loads.
var hostNetworkOnly = []string{"host.json", "services.json", "processes.json", "variables.txt", "net/neighbours.json"}

// readNode reads the files of a node.
func (im *importing) readNode(n *collected) {
	var paths, nothing []string
	inLog := false
	for _, f := range n.all {
		if slices.ContainsFunc(hostNetworkOnly, func(s string) bool { return strings.HasSuffix(f, "/"+s) || f == s }) {
			im.host(n, f)
			continue
		}
		if conf := im.cniConf(f); conf {
			n.conf = cmp.Or(n.conf, f)
			continue
		}
		if im.noState(f) {
			continue
		}
		switch taken, said := im.stateFile(n, f); {
		case taken:
			n.files = append(n.files, f)
			paths = append(paths, im.b.File(f))
		case !said:
			nothing = append(nothing, f)
			inLog = inLog || slices.Contains(im.read[f].Files[0].As, "objects of HNS")
		}
	}
	if len(paths) > 0 {
		d, err := dump.Read(paths...)
		n.dump = d
		if err != nil && n.why == "" {
			n.why = "its files contradict each other, or lack something: " + err.Error()
		}
	}
	if n.why == "" && (n.dump == nil || n.dump.HNS == nil) {
		n.why = "no file shows objects of HNS"
	}
	if n.why == "" {
		n.why = im.failedStep(n.name)
	}
	if n.name == "" || im.b.Manifest == nil && !im.knows(n.name) {
		n.name = cmp.Or(im.guessName(n), n.name, "win1")
	}
	im.onlyInLog(n, inLog)
	if len(nothing) > 0 && im.b.Manifest == nil {
		im.r.LeftOut = append(im.r.LeftOut, "node "+n.name+": nothing was taken from "+comment(strings.Join(nothing, ", ")))
	}
}

// noState reports whether a file of a bundle is known to say nothing of a node's state.
func (im *importing) noState(f string) bool {
	return strings.Contains(f, "/etc/") || strings.Contains(f, "/logs/") && im.b.Manifest != nil || strings.Contains(f, "/vfp/counters-")
}

// onlyInLog says of a node that its lists show no load balancer, and its logs objects of HNS.
func (im *importing) onlyInLog(n *collected, inLog bool) {
	if inLog && n.why == "" && len(n.dump.HNS.LoadBalancers) == 0 {
		im.r.miss("load balancers of node "+n.name,
			"only a log shows objects of HNS beside the lists, and a log says what was: flows to Services are as if HNS had no load balancer",
			"Get-HnsPolicyList | ConvertTo-Json -Depth 20")
	}
}

// stateFile reports whether a file shows the state of a node, and when it does not, whether that
// has been said.
func (im *importing) stateFile(n *collected, f string) (taken, said bool) {
	d := im.dumped(f)
	switch {
	case d == nil:
		im.r.LeftOut = append(im.r.LeftOut, im.tooLarge(n, f))
		return false, true
	case len(d.Mistakes) > 0 && !onlyNothing(d):
		im.r.mistakes(d.Mistakes)
		n.why = "a file of it cannot be read: " + d.Mistakes[0].String()
		return false, true
	case len(d.Files) == 0:
		return false, true
	case len(d.Files[0].As) == 0:
		return false, false // an empty list, or a text that says nothing
	case slices.Contains(d.Files[0].As, "a log"):
		// It says what HNS had when a line was written: an object that has gone since would be
		// there again.
		return false, false
	}
	if bad := im.brokenJSON(f); len(bad) > 0 {
		im.r.mistakes(bad)
		n.why = "a file of it cannot be read: " + bad[0].String()
		return false, true
	}
	return true, false
}

// knows reports whether Kubernetes has a node of that name.
func (im *importing) knows(name string) bool {
	return slices.ContainsFunc(im.kube, func(k kubeNode) bool { return strings.EqualFold(k.Name, name) })
}

// tooLarge says of a file that it was not read. One that may be JSON may be the HNS of the node,
// which then is not known whole.
func (im *importing) tooLarge(n *collected, f string) string {
	size := im.b.Size(f)
	if head, err := im.b.Head(f, 512); err == nil && size > maxNodeFile && mayBeJSON(head) {
		n.why = fmt.Sprintf("%s has %d bytes; up to %d are read", im.b.Shown(f), size, maxNodeFile)
	}
	return fmt.Sprintf("%s: not read; it has %d bytes", im.b.Shown(f), size)
}

// mayBeJSON reports whether a text begins as JSON does, in any encoding of Windows.
func mayBeJSON(head []byte) bool {
	text, _ := utf.Decode(head)
	s := strings.TrimSpace(text)
	return strings.HasPrefix(s, "{") || strings.HasPrefix(s, "[")
}

// needed are the steps of the collector whose lists a lab takes as all that the node has.
var needed = []string{"hns-v1", "hns-v2"}

// failedStep says that a step of the collector failed whose files would then be a part of what
// the node has; "" for none. A step that wrote nothing leaves a kind of objects unobserved.
func (im *importing) failedStep(node string) string {
	if im.b.Manifest == nil {
		return ""
	}
	for _, s := range im.b.Manifest.Steps {
		if s.Error != "" && s.Node == node && slices.Contains(needed, s.Name) {
			return fmt.Sprintf("step %s of the collector failed there (%s), so its lists may be incomplete", s.Name, comment(s.Error))
		}
	}
	return ""
}

// onlyNothing reports whether all that is wrong with a file is that nothing was understood: a text,
// or JSON that is whole and about something else, such as AKS' kubeclusterconfig.json.
func onlyNothing(d *dump.Node) bool {
	if len(d.Files) > 0 && len(d.Files[0].As) == 0 && !slices.ContainsFunc(d.Mistakes, func(m strict.Mistake) bool {
		return !strings.Contains(m.Message, "this object is not an HNS network")
	}) {
		return true
	}
	return len(d.Mistakes) == 1 && strings.HasPrefix(d.Mistakes[0].Message, "winlab does not recognize anything in it")
}

// host takes the build out of host.json.
func (im *importing) host(n *collected, f string) {
	if path.Base(f) != "host.json" {
		return
	}
	data, err := im.b.Read(f)
	var h struct{ OsVersion string }
	if err != nil || json.Unmarshal(data, &h) != nil {
		return
	}
	n.build = h.OsVersion
	n.buildFrom = fmt.Sprintf("%s:%d", im.b.Shown(f), bytes.Count(data[:max(bytes.Index(data, []byte("OsVersion")), 0)], []byte("\n"))+1)
}

// cniConf reports whether a file is the configuration of a network plugin.
func (im *importing) cniConf(f string) bool {
	if e := path.Ext(f); e != ".conf" && e != ".conflist" {
		return false
	}
	data, err := im.b.Read(f)
	return err == nil && pluginOf(data) != ""
}

// pluginOf is the type of a CNI configuration, "" for another file.
func pluginOf(data []byte) string {
	for _, p := range cni.Outlines(data) {
		return p.Type
	}
	return ""
}

// guessName finds the name of a node whose folder does not say it by its addresses, "" where no
// node of Kubernetes has one of them.
func (im *importing) guessName(n *collected) string {
	if n.dump != nil {
		for i := range im.kube {
			a := internalIP(&im.kube[i].Node)
			if n.dump.HNS != nil && a.IsValid() && slices.ContainsFunc(managementIPs(n.dump), func(m netip.Addr) bool { return m == a }) {
				return im.kube[i].Name
			}
		}
	}
	return ""
}

func managementIPs(d *dump.Node) []netip.Addr {
	var all []netip.Addr
	for _, x := range d.HNS.Networks {
		if x.ManagementIP.IsValid() {
			all = append(all, x.ManagementIP)
		}
	}
	for _, a := range d.Adapters {
		for _, p := range a.Addresses {
			all = append(all, p.Addr())
		}
	}
	return all
}

func internalIP(n *corev1.Node) netip.Addr {
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			if v, err := netip.ParseAddr(a.Address); err == nil && v.Is4() {
				return v
			}
		}
	}
	return netip.Addr{}
}

// windowsBuild is the label in which the kubelet says the build without its revision
// (kubernetes/api core/v1/well_known_labels.go LabelWindowsBuild).
const windowsBuild = "node.kubernetes.io/windows-build"

// buildSource is something that says the build of a node, whole or in part.
type buildSource struct{ text, from string }

// buildSources are what says the build of a node, the most exact first.
func buildSources(n *labNode) []buildSource {
	var all []buildSource
	if n.got != nil {
		all = append(all, buildSource{n.got.build, n.got.buildFrom})
	}
	if n.kube != nil {
		from := fmt.Sprintf("%s:%d", n.kube.at.File, n.kube.at.Line)
		// The kubelet writes it so on Windows: "10.0.17763.1432".
		all = append(all, buildSource{n.kube.Status.NodeInfo.KernelVersion, from}, buildSource{n.kube.Labels[windowsBuild], from})
		for _, b := range builds.OfProduct(n.kube.Status.NodeInfo.OSImage) {
			all = append(all, buildSource{b, from})
		}
	}
	return slices.DeleteFunc(all, func(s buildSource) bool { return strings.TrimSpace(s.text) == "" })
}

// brokenJSON is what is wrong with a file that begins with JSON and goes on as none.
func (im *importing) brokenJSON(f string) strict.Mistakes {
	if head, err := im.b.Head(f, 512); err != nil || !mayBeJSON(head) {
		return nil
	}
	raw, err := im.b.Read(f)
	if err != nil {
		return nil
	}
	text, _ := dump.Decode(raw)
	return dump.BrokenJSON(dump.Split(im.b.Shown(f), text))
}
