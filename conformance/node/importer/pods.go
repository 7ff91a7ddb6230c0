package importer

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// labPods writes the pods that run, and the endpoints of HNS that belong to none of them.
func (im *importing) labPods(s tree, nodes []*labNode) {
	var list []tree
	named := map[netip.Addr]bool{}
	there := map[string]*labNode{}
	for _, n := range nodes {
		there[n.name] = n
	}
	for i := range im.pods {
		p := &im.pods[i]
		a, err := netip.ParseAddr(p.Status.PodIP)
		switch {
		case p.Status.Phase == corev1.PodSucceeded, p.Status.Phase == corev1.PodFailed, p.Spec.HostNetwork:
			continue
		case p.unsure != "":
			im.r.LeftOut = append(im.r.LeftOut,
				fmt.Sprintf(
					"%s:%d: pod %s/%s: a pod with the status %s may have its address or not; it is not in the lab, and not compared with HNS (kubectl get pod -n %s %s -o json says its phase)", p.at.File, p.at.Line, p.Namespace, p.Name, comment(p.unsure), p.Namespace, p.Name))
			continue
		case err != nil || p.Spec.NodeName == "":
			im.r.LeftOut = append(im.r.LeftOut, fmt.Sprintf("%s:%d: pod %s/%s has no address (%s)", p.at.File, p.at.Line, p.Namespace, p.Name,
				p.Status.Phase))
			continue
		case there[p.Spec.NodeName] == nil:
			im.r.LeftOut = append(im.r.LeftOut, fmt.Sprintf("%s:%d: pod %s/%s is on node %s, which is not in the lab", p.at.File, p.at.Line,
				p.Namespace, p.Name, p.Spec.NodeName))
			continue
		}
		if n := there[p.Spec.NodeName]; n.got != nil && n.got.why == "" && !n.got.has(a) {
			continue // drift says so
		}
		named[a] = true
		list = append(list, im.pod(p, a))
	}
	if len(im.pods) == 0 {
		im.r.miss("pods", "endpoints of HNS stand for pods, with the names that HNS has; on which ports their programs listen is unknown",
			"kubectl get pods -A -o json")
		for _, n := range nodes {
			list = append(list, im.endpoints(n, named)...)
		}
	}
	s.set("pods", list, "")
}

// pod writes a pod of Kubernetes.
func (im *importing) pod(p *kubePod, a netip.Addr) tree {
	t := newTree()
	t.set("name", p.Name, im.r.fact("pod "+p.Namespace+"/"+p.Name, a.String(), p.at.File, p.at.Line))
	t.set("namespace", p.Namespace, "")
	t.set("node", p.Spec.NodeName, "")
	t.set("address", a.String(), "")
	if len(p.Labels) > 0 {
		t.set("labels", p.Labels, "")
	}
	var listen, host []string
	names := map[string]int32{}
	for _, c := range p.Spec.Containers {
		for _, port := range c.Ports {
			if _, ok := names[port.Name]; !ok && port.Name != "" {
				names[port.Name] = port.ContainerPort
			}
			proto := strings.ToLower(string(port.Protocol))
			if proto == "" {
				proto = "tcp"
			}
			if proto != "tcp" && proto != "udp" {
				continue
			}
			if l := fmt.Sprintf("%s/%d", proto, port.ContainerPort); !slices.Contains(listen, l) {
				listen = append(listen, l)
			}
			if port.HostPort != 0 {
				host = append(host, fmt.Sprintf("%s/%d:%d", proto, port.HostPort, port.ContainerPort))
			}
		}
	}
	if len(listen) > 0 {
		t.set("listen", listen, "")
	}
	if len(host) > 0 {
		t.set("hostPorts", host, "")
	}
	if len(names) > 0 {
		t.set("ports", names, "")
	}
	declares := "declares the ports " + strings.Join(listen, ", ")
	switch {
	case p.table:
		declares = "is known from a table, which shows no ports"
	case len(listen) == 0:
		declares = "declares no port"
	}
	t.set("portsUnknown", fmt.Sprintf("pod %s/%s %s; other listening ports are unknown; find out with: kubectl exec -n %s %s -- netstat -an",
		p.Namespace, p.Name, declares, p.Namespace, p.Name), "")
	if !ready(&p.Pod) {
		t.set("ready", false, "")
	}
	if p.DeletionTimestamp != nil {
		t.set("terminating", true, "")
	}
	return t
}

func ready(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// endpoints are the endpoints of a node's HNS as pods, by the names that HNS has.
func (im *importing) endpoints(n *labNode, named map[netip.Addr]bool) []tree {
	if n.got == nil || n.got.why != "" || n.got.dump == nil {
		return nil
	}
	own := n.got.hostAddresses()
	var list []tree
	seen := map[string]bool{}
	for i := range n.got.dump.HNS.Endpoints {
		e := &n.got.dump.HNS.Endpoints[i]
		a := e.Address(false)
		if e.Remote() || !a.IsValid() || own[a] || named[a] {
			continue
		}
		name := podName(e.Name)
		if name == "" || seen[name] {
			name = "ip-" + strings.ReplaceAll(a.String(), ".", "-")
		}
		seen[name], named[a] = true, true
		t := newTree()
		from := ""
		if e.Origin != nil {
			from = im.r.fact("endpoint "+e.Name, a.String(), e.Origin.File, e.Origin.Line)
		}
		t.set("name", name, from)
		t.set("node", n.name, "")
		t.set("address", a.String(), "")
		t.set("portsUnknown", fmt.Sprintf("endpoint %s of %s: listening ports unknown; find out with: kubectl get pods -A -o json",
			comment(e.Name), n.name), "")
		list = append(list, t)
	}
	return list
}

// podName makes a name that Kubernetes allows of that of an endpoint, "" when nothing is left.
func podName(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-':
			return r
		case r == '_', r == '.', r == ' ':
			return '-'
		}
		return -1
	}, strings.ToLower(s))
	return strings.Trim(s[:min(len(s), 63)], "-")
}

// has reports whether an endpoint of the node itself has an address.
func (c *collected) has(a netip.Addr) bool {
	return slices.ContainsFunc(c.dump.HNS.Endpoints, func(e hns.Endpoint) bool { return !e.Remote() && slices.Contains(e.Addresses(), a) })
}
