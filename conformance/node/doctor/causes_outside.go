package doctor

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/conformance/check/subject"
	"github.com/winlab-dev/winlab/conformance/node/observed"
	"github.com/winlab-dev/winlab/reports/findings"
)

func pingOutside(x *nodeFacts) look {
	var out look
	for _, t := range x.n.Trials {
		if t.Tool != "ping" || t.OK || !x.fromPod(t) || !x.outside(t.Address) {
			continue
		}
		h := hit{says: fmt.Sprintf("the ping from a pod to %s had no answer; pods have no outbound rule for ICMP, so this is not a fault",
			t.Address), evidence: []observed.Place{t.Place}}
		for _, o := range x.n.Trials {
			if o.OK && o.Tool != "ping" && x.fromPod(o) && o.Address == t.Address {
				h.says += "; TCP to the same address works"
				h.evidence = append(h.evidence, o.Place)
				break
			}
		}
		out.hits = append(out.hits, h)
	}
	return out
}

func exceptionCovers(x *nodeFacts) look {
	var out look
	for _, s := range x.subjects("cni") {
		list, has := exceptions(s)
		if !has {
			continue
		}
		for _, e := range list {
			if e.prefix.Bits() == 0 {
				out.hits = append(out.hits,
					hit{says: fmt.Sprintf("the ExceptionList has %s: no packet of a pod gets the node's address, and nothing outside can answer",
						e.prefix), evidence: []observed.Place{e.place}, subject: s.Name})
				continue
			}
			for _, t := range x.failedPodTrials() {
				if !x.outside(t.Address) || !e.contains(t.Address) || e.prefix == x.cluster.prefix || e.prefix == x.service.prefix {
					continue
				}
				out.hits = append(out.hits,
					hit{
						says: fmt.Sprintf(
							"the ExceptionList has %s, which holds %s: packets there keep the pod's address, and the answer does not find the way back",
							e.prefix, t.Address),
						evidence: []observed.Place{e.place, t.Place}, subject: s.Name})
				break
			}
		}
		if len(out.hits) == 0 && len(list) > 0 && !slices.ContainsFunc(x.n.Trials, x.fromPod) {
			out.lacks = fmt.Sprintf(
				"The ExceptionList holds %s: packets there keep the pod's address, and what is in these ranges and has no route to the pods cannot answer. No trial from a pod says whether that matters; make one in a pod: Test-NetConnection ADDRESS -Port PORT", texts(list))
		}
	}
	return out
}

// texts writes ranges.
func texts(all []known) string {
	var s []string
	for _, k := range all {
		s = append(s, k.prefix.String())
	}
	return strings.Join(s, ", ")
}

// added are the ranges that the plugins put among the exceptions themselves:
// win-bridge its ipMasqNetwork (containernetworking/plugins win-bridge
// processEndpointArgs), which flannel's plugin sets to the cluster's network
// (flannel-io/cni-plugin flannel_windows.go doCmdAdd). win-overlay adds the
// node's own subnet only.
func (x *nodeFacts) added(s *subject.Subject) []known {
	kind := program(text(fold(s.Root, "type")))
	if kind == "flannel" && x.delegate == "win-bridge" && x.cluster.prefix.IsValid() {
		return []known{x.cluster}
	}
	if p, err := netip.ParsePrefix(text(fold(s.Root, "ipMasqNetwork"))); err == nil && kind == "win-bridge" {
		return []known{{prefix: p.Masked()}}
	}
	return nil
}

// serviceFor is the Services' range as far as it concerns a configuration: one
// that another configuration names may be that of another network.
func (x *nodeFacts) serviceFor(s *subject.Subject) known {
	if from := x.service.place.File; from != s.File && slices.ContainsFunc(x.subjects("cni"),
		func(o *subject.Subject) bool { return o.File == from }) {
		return known{}
	}
	return x.service
}

func exceptionMisses(x *nodeFacts) look {
	var out look
	if len(x.subjects("cni")) == 0 {
		return lacks(
			"No CNI configuration to look for the ExceptionList in; take the folder that the kubelet's --cni-conf-dir or containerd's conf_dir names")
	}
	looked, whole := false, true
	for _, s := range x.subjects("cni") {
		kind := program(text(fold(s.Root, "type")))
		if !slices.Contains([]string{"flannel", "win-bridge", "win-overlay", "sdnbridge", "sdnoverlay"}, kind) {
			continue // azure-vnet and calico make the list themselves
		}
		list, has := exceptions(s)
		if !has {
			continue
		}
		looked = true
		effective := append(slices.Clone(list), x.added(s)...)
		type want struct {
			what  string
			known known
			level findings.Level
		}
		wants := []want{{"the cluster's pods", x.cluster, "error"}, {"the Services", x.serviceFor(s), "warning"}}
		if x.network() == "l2bridge" {
			// On an overlay the nodes' network is outside of what pods see.
			wants = append(wants, want{"the nodes' network", x.management, "warning"})
		}
		for _, w := range wants {
			if !w.known.prefix.IsValid() {
				whole = false
				continue
			}
			if covers(effective, w.known.prefix) {
				continue
			}
			at := placeOf(s, "ExceptionList without "+w.known.prefix.String())
			if len(list) > 0 {
				at = list[0].place
				at.Text = "ExceptionList " + prefixes(list)
			}
			out.hits = append(out.hits, hit{says: fmt.Sprintf("the ExceptionList misses %s, %s: pods' packets there get the node's address", w.what,
				w.known.prefix),
				evidence: []observed.Place{at, w.known.place}, level: w.level, subject: s.Name})
		}
	}
	if looked && whole && len(out.hits) == 0 {
		out.healthy = "the ExceptionList has the cluster's networks"
	}
	return out
}

func prefixes(list []known) string {
	var s []string
	for _, k := range list {
		s = append(s, k.prefix.String())
	}
	return strings.Join(s, ", ")
}

func exceptionOld(x *nodeFacts) look {
	var out look
	for _, s := range x.subjects("cni") {
		list, has := exceptions(s)
		if !has || len(list) == 0 {
			continue
		}
		for _, e := range x.n.Endpoints {
			if e.Remote || !e.NAT || !x.ofPods(e) {
				continue
			}
			var lost []string
			var at observed.Place
			for _, k := range list {
				// HNS may hold less specific ranges; what counts is whether the
				// range is an exception.
				if !slices.ContainsFunc(e.Exceptions, func(p netip.Prefix) bool { return p.Bits() <= k.prefix.Bits() && p.Contains(k.prefix.Addr()) }) {
					lost, at = append(lost, k.prefix.String()), k.place
				}
			}
			if len(lost) > 0 {
				out.hits = append(out.hits,
					hit{
						says: fmt.Sprintf(
							"endpoints do not have %s among their exceptions, which the file has: they were made before the file was changed",
							strings.Join(lost, ", ")),
						evidence: []observed.Place{at, e.Place}, subject: s.Name,
						write: "delete the pods of these endpoints, so that their successors' are made from the changed file"})
			}
		}
		break
	}
	return out
}

// ofPods reports whether an endpoint is on a network that pods use.
func (x *nodeFacts) ofPods(e observed.Endpoint) bool {
	return len(x.pods) == 0 || slices.ContainsFunc(x.pods, func(n observed.Network) bool {
		return strings.EqualFold(n.Name, e.Network) || strings.EqualFold(n.ID, e.Network)
	})
}

func nodePortFromNode(x *nodeFacts) look {
	var out look
	for _, t := range x.n.Trials {
		if t.OK || t.Port < 30000 || t.Port > 32767 || !x.fromNode(t) || !x.hasAddress(t.Address) && !t.Address.IsLoopback() &&
			!strings.EqualFold(t.Host, "localhost") {
			continue
		}
		h := hit{says: fmt.Sprintf("the node asked its own address at the NodePort %d; from the node itself that is a limit of the platform",
			t.Port), evidence: []observed.Place{t.Place}}
		if build, place := x.build(); build != "" {
			h.says += fmt.Sprintf(" (Microsoft has it working from build 17763.1432 on; this is %s)", strings.TrimPrefix(x.t.Build, "10.0."))
			h.evidence = append(h.evidence, place)
		}
		out.hits = append(out.hits, h)
	}
	return out
}

func serviceFromNode(x *nodeFacts) look {
	var out look
	for _, t := range x.n.Trials {
		if t.OK || t.Port == 0 || !x.fromNode(t) || !x.service.contains(t.Address) {
			continue
		}
		h := hit{says: fmt.Sprintf("the node asked %s:%d, an address of a Service; from the node itself that is a limit of the platform",
			t.Address, t.Port), evidence: []observed.Place{t.Place}}
		for _, o := range x.n.Trials {
			if o.OK && x.fromPod(o) && o.Address == t.Address && o.Port == t.Port {
				h.says += "; a pod reaches it"
				h.evidence = append(h.evidence, o.Place)
				break
			}
		}
		out.hits = append(out.hits, h)
	}
	return out
}

func dottedName(x *nodeFacts) look {
	domain := "cluster.local"
	for _, s := range x.subjects("kubelet") {
		if v, _, ok := argument(s, "--cluster-domain"); ok && v != "" && !variable(v) {
			domain = v
		}
	}
	namespaces := []string{"default", "kube-system"}
	for _, p := range x.n.Pods {
		if p.Namespace != "" && !slices.Contains(namespaces, p.Namespace) {
			namespaces = append(namespaces, p.Namespace)
		}
	}
	var out look
	for _, t := range x.n.Trials {
		name := strings.ToLower(t.Host)
		labels := strings.Split(name, ".")
		if t.OK || t.Address.IsValid() || !x.fromPod(t) || len(labels) < 2 || len(labels) > 3 {
			continue
		}
		if !slices.Contains(namespaces, labels[1]) || len(labels) == 3 && labels[2] != "svc" {
			continue
		}
		full := labels[0] + "." + labels[1] + ".svc." + domain
		out.hits = append(out.hits, hit{says: fmt.Sprintf("the name %s has a dot: Windows takes it as complete and adds no suffix", t.Host),
			evidence: []observed.Place{t.Place},
			write:    fmt.Sprintf("ask for %s; within the namespace %s alone %s does", full, labels[1], labels[0])})
	}
	return out
}
