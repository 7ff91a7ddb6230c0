package importer

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"path"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/winlab-dev/winlab/conformance/node/bundle"
	"github.com/winlab-dev/winlab/internal/outfile"
	"github.com/winlab-dev/winlab/internal/strict"
	"github.com/winlab-dev/winlab/sim/kube/cni"
	"github.com/winlab-dev/winlab/sim/windows/dump"
)

// importing is a bundle while it is read.
type importing struct {
	b     *bundle.Bundle
	r     *Result
	nodes []*collected
	kube  []kubeNode
	pods  []kubePod
	// services, slices and others are objects that go into the lab's manifest.
	services, slices, others []object
	config                   []object // ConfigMaps
	calico                   calicoObjects
	// agent is antrea-agent.conf.
	agent *cni.AntreaAgent
	// prefixes are the networks of the nodes.
	prefixes []netip.Prefix
	// vni is the virtual network that HNS of a node has in an overlay, with its place, and tunnelPort
	// its port where that is not the usual one.
	vni        uint32
	vniFrom    string
	tunnelPort uint16
	// cluster are the files with objects of Kubernetes.
	cluster map[string]bool
	read    map[string]*dump.Node
	// guess says what of the network plugin nothing in the bundle says, "" where all is there.
	guess string
	// noPolicies says why NetworkPolicies were not read, "" where they were: the ACLs of nodes that
	// were seen are theirs, those of others are not known.
	noPolicies string
	// ref is how the lab names a file of the bundle, and beside how one of [Result.Extra].
	ref, beside func(string) string
}

type (
	kubeNode struct {
		corev1.Node
		at object
	}
	kubePod struct {
		corev1.Pod
		at object
		// table says that it is known from a table of kubectl, which shows no ports, unlabelled that
		// no table showed its labels either.
		table, unlabelled bool
		// unsure is a STATUS of a table that pods have which run and pods which never will again: ""
		// where the phase is known.
		unsure string
	}
)

// Import makes a lab of a bundle. name is the lab's, ref how the lab file names a file of the
// bundle (a path relative to the lab's folder, or absolute), and beside one of [Result.Extra]. The error is about the bundle as a
// whole; what of it could not be read is in the result.
func Import(ctx context.Context, b *bundle.Bundle, name string, ref, beside func(string) string) (*Result, error) {
	im := &importing{b: b, r: &Result{Extra: map[string][]byte{}}, cluster: map[string]bool{}, read: map[string]*dump.Node{}, ref: ref,
		beside: beside}
	for _, n := range b.Notices {
		im.r.LeftOut = append(im.r.LeftOut, n.Path+": "+n.Why)
		if n.Damaged {
			im.r.Damaged = append(im.r.Damaged, strict.Mistake{File: n.Path, Message: n.Why})
		}
	}
	if b.Manifest != nil {
		for _, s := range b.Manifest.Steps {
			if s.Error != "" && s.Node == "" {
				im.notRead(s)
			} else if s.Error != "" {
				im.r.LeftOut = append(im.r.LeftOut, fmt.Sprintf("%s: step %s of node %s failed: %s", bundle.Name, s.Name, s.Node, comment(s.Error)))
			}
		}
	}
	for _, f := range b.Files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		im.clusterFile(f)
	}
	for _, f := range b.Files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		im.tables(f)
	}
	im.podsOfHosts()
	im.r.Cluster = im.cluster
	im.r.HasCluster = len(im.kube)+len(im.pods) > 0
	im.kubeNodes()
	im.nodeFolders()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(im.nodes) == 0 && len(im.kube) == 0 {
		return nil,
			fmt.Errorf(
				"%s has neither objects of HNS nor nodes of Kubernetes; take it with winlab.exe collect on a node, or give the output of: kubectl get nodes,pods,services,endpointslices -A -o json%s", b.Path, im.describeUnusable())
	}
	return im.r, im.lab(name)
}

// In makes a lab of a bundle for somebody who reads it at once: files of the bundle are named where they
// are, and those of [Result.Extra] are written into dir, a folder that is there.
func In(ctx context.Context, b *bundle.Bundle, dir string) (*Result, error) {
	base, err := filepath.Abs(b.Dir) // the lab is in another folder
	if err != nil {
		return nil, err
	}
	r, err := Import(ctx, b, "bundle", func(f string) string { return filepath.Join(base, filepath.FromSlash(f)) },
		func(s string) string { return s })
	if err != nil {
		return nil, err
	}
	for name, data := range r.Extra {
		if err := outfile.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// kubeNodes tells the result which nodes Kubernetes has.
func (im *importing) kubeNodes() {
	for i := range im.kube {
		k := &im.kube[i]
		n := KubeNode{Name: k.Name, System: systemOf(&k.Node), Kernel: k.Status.NodeInfo.KernelVersion, Version: k.Status.NodeInfo.KubeletVersion,
			Address: internalIP(&k.Node), File: k.at.File, Line: k.at.Line}
		for _, text := range append([]string{k.Spec.PodCIDR}, k.Spec.PodCIDRs...) {
			if p, err := netip.ParsePrefix(text); err == nil && !slices.Contains(n.Pods, p) {
				n.Pods = append(n.Pods, p)
			}
		}
		for _, c := range k.Status.Conditions {
			if c.Type == corev1.NodeReady {
				n.Ready, n.Reason = string(c.Status), strings.TrimSuffix(c.Reason+": "+c.Message, ": ")
			}
		}
		im.r.Kube = append(im.r.Kube, n)
	}
}

// notRead notes what could not be read of the cluster. The lab has nothing of it, which is not
// the same as a cluster that has none.
func (im *importing) notRead(s bundle.Step) {
	settle := "winlab collect --cluster, as a user who may read it"
	switch s.Name {
	case "pods", "remove", "events", "version",
		"runtimeclasses": // of Windows nodes, which say themselves what is missing, or nothing that a lab has
		im.r.LeftOut = append(im.r.LeftOut, fmt.Sprintf("%s: step %s failed: %s", bundle.Name, s.Name, comment(s.Error)))
		if s.Name != "pods" {
			return
		}
	}
	if s.Name == "networkpolicies" || s.Name == "otherpolicies" {
		im.noPolicies = s.What + " could not be read (" + comment(s.Error) + "), and what they block there is not known"
	}
	im.r.miss(s.What, "step "+s.Name+" failed ("+comment(s.Error)+"): the lab has nothing of it, and a verdict is as if the cluster had none",
		settle)
}

// clusterFile takes the objects of Kubernetes out of a file.
func (im *importing) clusterFile(f string) {
	if e := path.Ext(f); e != ".json" && e != ".yaml" && e != ".yml" {
		return
	}
	if m, ok := im.b.Manifest.Find(f); ok && m.Node != "" {
		return
	}
	data, err := im.b.Read(f)
	if err != nil {
		im.r.damaged(strict.Mistake{File: f, Message: comment(err.Error())})
		return
	}
	if _, ok := dump.Decode(data); !ok {
		im.r.damaged(strict.Mistake{File: f, Message: "this is not text: nothing in it was read; collect it again"})
		return
	}
	all, found := objects(im.b.Shown(f), data)
	if len(all) == 0 {
		return // what a node prints, perhaps
	}
	im.cluster[f] = true
	for _, m := range found {
		im.r.damaged(m)
		im.r.miss("objects of "+m.File, "the file cannot be read from line "+fmt.Sprint(m.Line)+
			" on: pods, Services or nodes may be missing from the lab", "kubectl get nodes,pods,services,endpointslices,networkpolicies -A -o json")
	}
	for _, o := range all {
		im.take(o)
	}
}

// take keeps an object.
func (im *importing) take(o object) {
	bad := func(err error) {
		im.r.LeftOut = append(im.r.LeftOut, fmt.Sprintf("%s:%d: a %s that cannot be read: %s", o.File, o.Line, o.Kind, comment(err.Error())))
	}
	switch o.Kind {
	case "Node":
		n := kubeNode{at: o}
		if err := json.Unmarshal(o.raw, &n.Node); err != nil {
			bad(err)
			return
		}
		im.kube = append(im.kube, n)
	case "Pod":
		p := kubePod{at: o}
		if err := json.Unmarshal(o.raw, &p.Pod); err != nil {
			bad(err)
			return
		}
		im.pods = append(im.pods, p)
	case "Service":
		im.services = append(im.services, o)
	case "EndpointSlice":
		var s discoveryv1.EndpointSlice
		if err := json.Unmarshal(o.raw, &s); err != nil {
			bad(err)
			return
		}
		// That of the API server itself is part of every lab, as its Service is.
		if own := s.Namespace == "default" && s.Labels[discoveryv1.LabelServiceName] == "kubernetes"; !own &&
			s.Labels[discoveryv1.LabelManagedBy] != "endpointslice-controller.k8s.io" {
			im.slices = append(im.slices, o)
		}
	case "NetworkPolicy", "Namespace", "Ingress", "AdminNetworkPolicy", "BaselineAdminNetworkPolicy", "ClusterNetworkPolicy",
		"GlobalNetworkPolicy":
		im.others = append(im.others, o)
	case "ConfigMap":
		im.config = append(im.config, o)
	default:
		im.takeCalico(o, bad)
	}
}

// sorted puts what was read into an order that does not depend on the files'.
func (im *importing) sorted() {
	slices.SortStableFunc(im.kube, func(a, b kubeNode) int { return strings.Compare(a.Name, b.Name) })
	slices.SortStableFunc(im.pods, func(a, b kubePod) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	slices.SortStableFunc(im.nodes, func(a, b *collected) int { return strings.Compare(a.name, b.name) })
}
