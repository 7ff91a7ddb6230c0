package diagnose_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/conformance/bundle"
	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/conformance/diagnose"
	"github.com/winlab-dev/winlab/reports/findings"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/build"
	"github.com/winlab-dev/winlab/sim/windows/dump"
)

type object = map[string]any

// state is what a bundle has of a cluster: for each Windows node the documents that
// winlab hns export prints (networks, endpoints, namespaces, load balancers, routes,
// interfaces), and the objects of Kubernetes.
type state struct {
	nodes   map[string][][]object
	objects []object
}

func stateOf(t *testing.T, c *lab.Cluster) state {
	t.Helper()
	s := state{nodes: map[string][][]object{}}
	for _, m := range c.Machines(build.NodeKind) {
		k := m.Node.Plan.Kube
		system, kernel := "linux", "5.15.0"
		if m.Node.Plan.Windows() {
			system, kernel = "windows", m.Node.Plan.Build
			st, err := m.Node.State()
			if err != nil {
				t.Fatal(err)
			}
			files, err := dump.Write("v2", st)
			if err != nil {
				t.Fatal(err)
			}
			dec := json.NewDecoder(bytes.NewReader(files[""]))
			for dec.More() {
				var doc []object
				if err := dec.Decode(&doc); err != nil {
					t.Fatal(err)
				}
				s.nodes[m.Node.Name] = append(s.nodes[m.Node.Name], doc)
			}
		}
		podCIDR := ""
		if len(k.PodCIDRs) > 0 {
			podCIDR = k.PodCIDRs[0].String()
		}
		s.objects = append(s.objects, object{"apiVersion": "v1", "kind": "Node",
			"metadata": object{"name": k.Name, "annotations": object{"flannel.alpha.coreos.com/backend-data": fmt.Sprintf(`{"VNI":4096,"VtepMAC":%q}`, k.VtepMAC)}},
			"spec":     object{"podCIDR": podCIDR}, "status": object{"addresses": []any{object{"type": "InternalIP", "address": k.Address.String()}},
				"nodeInfo": object{"operatingSystem": system, "kernelVersion": kernel, "kubeletVersion": "v" + k.Version.String() + ".0"}}})
	}
	for _, m := range c.Machines(build.PodKind) {
		ns, name, _ := strings.Cut(m.Ref.Name, "/")
		var ports []any
		labels := map[string]string{}
		for _, p := range c.Plan.Pods {
			if p.Key() != m.Ref.Name {
				continue
			}
			labels = p.Labels
			for _, l := range p.Listen {
				ports = append(ports, object{"containerPort": l.Port, "protocol": strings.ToUpper(l.Proto.String())})
			}
		}
		s.objects = append(s.objects, object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"namespace": ns, "name": name, "labels": labels},
			"spec":   object{"nodeName": m.Node.Name, "containers": []any{object{"name": "c", "ports": ports}}},
			"status": object{"phase": "Running", "podIP": m.Address.String(), "conditions": []any{object{"type": "Ready", "status": "True"}}}})
	}
	for _, v := range c.Plan.Services {
		k := c.Service(v.Namespace, v.Name)
		if len(k.ClusterIPs) == 0 {
			continue
		}
		var ports []any
		for _, p := range k.Ports {
			ports = append(ports, object{"name": p.Name, "port": p.Port, "targetPort": p.Target, "nodePort": p.NodePort})
		}
		s.objects = append(s.objects, object{"apiVersion": "v1", "kind": "Service", "metadata": object{"namespace": v.Namespace, "name": v.Name},
			"spec": object{"clusterIP": k.ClusterIPs[0].String(), "clusterIPs": []string{k.ClusterIPs[0].String()}, "selector": v.Selector, "type": k.Type, "ports": ports}})
	}
	if name := c.Plan.File.Lab.Spec.Network.NetConf; name != "" {
		data, err := os.ReadFile(c.Plan.File.PathOf(name))
		if err != nil {
			t.Fatal(err)
		}
		s.objects = append(s.objects, object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"namespace": "kube-flannel", "name": "kube-flannel-cfg"}, "data": object{"net-conf.json": string(data)}})
	}
	return s
}

// write makes a folder as somebody would who has saved what the nodes and kubectl print.
func (s state) write(t *testing.T, c *lab.Cluster) string {
	t.Helper()
	dir := t.TempDir()
	put := func(name string, v ...any) {
		var b bytes.Buffer
		for _, x := range v {
			data, err := json.MarshalIndent(x, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			b.Write(append(data, '\n'))
		}
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for node, docs := range s.nodes {
		var all []any
		for _, d := range docs {
			all = append(all, d)
		}
		put(node+"/hns.json", all...)
		if conf := c.Plan.File.Lab.Spec.Network.Conf; conf != "" {
			data, err := os.ReadFile(c.Plan.File.PathOf(conf))
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, node, "cni.conf"), data, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	put("cluster.json", object{"apiVersion": "v1", "kind": "List", "items": s.objects})
	return dir
}

// The documents of a node.
const (
	networks = iota
	endpoints
	namespaces
	balancers
	routes
	interfaces
)

// edit changes documents of win1 as text, and reports whether that changed anything.
func edit(s state, doc int, old, with string, times int) bool {
	data, _ := json.Marshal(s.nodes["win1"][doc])
	changed := bytes.Replace(data, []byte(old), []byte(with), times)
	var docs []object
	if bytes.Equal(data, changed) || json.Unmarshal(changed, &docs) != nil {
		return false
	}
	s.nodes["win1"][doc] = docs
	return true
}

// without takes out the objects of win1 whose JSON has a text.
func without(s state, doc int, text string) bool {
	var rest []object
	for _, o := range s.nodes["win1"][doc] {
		if data, _ := json.Marshal(o); !strings.Contains(string(data), text) {
			rest = append(rest, o)
		}
	}
	gone := len(rest) < len(s.nodes["win1"][doc])
	s.nodes["win1"][doc] = rest
	return gone
}

// withoutPod takes a pod out of Kubernetes.
func withoutPod(s *state, name string) bool {
	for i, o := range s.objects {
		if o["kind"] == "Pod" && o["metadata"].(object)["name"] == name {
			s.objects = append(s.objects[:i:i], s.objects[i+1:]...)
			return true
		}
	}
	return false
}

// fault is one that the documents describe, planted in win1 of a healthy cluster.
type fault struct {
	name  string
	plant func(s *state) bool
	// finds are causes, one of which must be found; "" is one that nothing finds, with why.
	finds, why string
}

const packetDies = "packet-"

// everywhere are faults of each design; the rest are of one.
var everywhere = []fault{
	{"a Service's load balancer is gone", func(s *state) bool { return without(*s, balancers, `"10.96.0.50"`) }, "load-balancer-missing", ""},
	{"all load balancers but one are gone", func(s *state) bool { return without(*s, balancers, `"10.96.0.5`) }, "load-balancer-missing", ""},
	{"a pod of the Service is gone, its backend is not", func(s *state) bool { return withoutPod(s, "win-webserver-0") }, "load-balancer-backends endpoint-without-pod", ""},
	{"a load balancer names an endpoint that is gone", func(s *state) bool {
		id, _ := s.nodes["win1"][balancers][1]["HostComputeEndpoints"].([]any)
		return len(id) > 0 && edit(*s, balancers, fmt.Sprintf("%q", id[0]), `"99999999-1111-2222-3333-444444444444"`, -1)
	}, "load-balancer-backends", ""},
	{"a pod's endpoint is gone", func(s *state) bool { return without(*s, endpoints, `"Name":"neighbour_`) }, "pod-without-endpoint", ""},
	{"an endpoint has another pod's old address", func(s *state) bool { return edit(*s, endpoints, `"10.244.1.5"`, `"10.244.1.77"`, 1) }, "pod-without-endpoint endpoint-without-pod", ""},
	{"the ExceptionList lacks the pods' range", func(s *state) bool { return edit(*s, endpoints, `"10.244.0.0/16",`, ``, -1) }, packetDies + " exception-misses-range exception-of-old-endpoint", ""},
	{"an endpoint has no OutBoundNAT", func(s *state) bool { return edit(*s, endpoints, `"Type":"OutBoundNAT"`, `"Type":"QOS"`, -1) }, "outbound-nat-missing " + packetDies, ""},
}

var planted = map[string][]fault{
	"l2bridge-flannel-host-gw": append([]fault{
		{"the route to the other node's pods is gone", func(s *state) bool { return without(*s, routes, `"10.244.2.0/24"`) }, packetDies + " route-to-pods", ""},
		{"the route to the other node's pods leads to a third machine", func(s *state) bool {
			return edit(*s, routes, `"NextHop":"192.168.1.12"`, `"NextHop":"192.168.1.10"`, 1)
		}, packetDies + " route-to-pods", ""},
		{"the host's interfaces do not forward", func(s *state) bool { return edit(*s, interfaces, `"Forwarding":1`, `"Forwarding":0`, -1) }, "forwarding-off " + packetDies, ""},
		{"pods have no route for Services to the host", func(s *state) bool {
			return edit(*s, endpoints, `"DestinationPrefix":"10.96.0.0/12"`, `"DestinationPrefix":"10.112.0.0/12"`, -1)
		}, packetDies, "the packet leaves by the gateway, and what that does nobody says; no cause compares an endpoint's routes with the plugin's configuration"},
	}, everywhere...),
	"overlay-flannel-vxlan": append([]fault{
		{"the remote subnet has the address of no node", func(s *state) bool {
			return edit(*s, networks, `"ProviderAddress":"192.168.1.12"`, `"ProviderAddress":"192.168.1.99"`, 1)
		}, packetDies + " remote-subnet", ""},
		{"the remote subnet is that of another node", func(s *state) bool {
			return edit(*s, networks, `"DestinationPrefix":"10.244.2.0/24"`, `"DestinationPrefix":"10.244.9.0/24"`, 1)
		}, packetDies + " remote-subnet", ""},
		{"the remote subnet has another VNI", func(s *state) bool { return edit(*s, networks, `"IsolationId":4096`, `"IsolationId":4097`, 2) }, packetDies + " remote-subnet", ""},
		{"the remote subnet has another MAC address", func(s *state) bool {
			return edit(*s, networks, `"DistributedRouterMacAddress":"02-11-22-00-00-06"`, `"DistributedRouterMacAddress":"02-11-22-00-00-77"`, 1)
		}, packetDies + " remote-subnet", ""},
	}, everywhere...),
}

func examine(t *testing.T, dir string) *findings.Document {
	t.Helper()
	l, err := claims.Load()
	if err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Open(t.Context(), dir, bundle.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := diagnose.Bundle(t.Context(), b, claims.Target{}, l)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func causes(d *findings.Document) []string {
	var all []string
	for _, f := range d.Findings {
		if f.Level != "info" {
			all = append(all, f.CauseID)
		}
	}
	return all
}

// TestPlanted: a healthy cluster gives no finding, and each planted fault one that names it.
func TestPlanted(t *testing.T) {
	for design, faults := range planted {
		f, err := lab.Load("../../fixtures/labs/" + design + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		c, err := lab.Build(t.Context(), f, lab.Options{})
		if err != nil {
			t.Fatal(err)
		}
		healthy := examine(t, stateOf(t, c).write(t, c))
		for _, x := range healthy.Findings {
			if x.Level != "info" {
				t.Errorf("%s is healthy, and there is %s: %s %q", design, x.CauseID, x.Message, x.Evidence)
			}
		}
		for _, m := range healthy.Mistakes {
			t.Errorf("%s: %+v", design, m)
		}
		hits := 0
		for _, x := range faults {
			s := stateOf(t, c)
			if !x.plant(&s) {
				t.Errorf("%s, %s: nothing was planted", design, x.name)
				continue
			}
			got := causes(examine(t, s.write(t, c)))
			found := false
			for _, id := range got {
				for _, want := range strings.Fields(x.finds) {
					found = found || id == want || want == packetDies && strings.HasPrefix(id, packetDies)
				}
			}
			if found {
				hits++
			}
			if found != (x.why == "") {
				t.Errorf("%s, %s: found %q, want one of %q (%s)", design, x.name, got, x.finds, x.why)
			}
		}
		t.Logf("%s: %d of %d planted faults found", design, hits, len(faults))
	}
}
