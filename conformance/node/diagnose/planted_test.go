package diagnose_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/conformance/node/bundle"
	"github.com/winlab-dev/winlab/conformance/node/diagnose"
	"github.com/winlab-dev/winlab/reports/findings"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/windows/dump"
)

type object = map[string]any

// state is what a bundle has of a cluster: for each Windows node the documents that
// winlab hns export prints (networks, endpoints, namespaces, load balancers, routes,
// interfaces), and the objects of Kubernetes.
type state struct {
	nodes   map[string][][]object
	objects []object
	// files are others of win1, by their names.
	files map[string]string
}

func stateOf(t *testing.T, c *lab.Cluster) state {
	t.Helper()
	s := state{nodes: map[string][][]object{}}
	for _, m := range c.Machines(cluster.NodeKind) {
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
		podCIDR, podCIDRs := "", []string{}
		for _, p := range k.PodCIDRs {
			podCIDRs = append(podCIDRs, p.String())
			podCIDR = podCIDRs[0]
		}
		if c.Plan.File.Lab.Spec.Network.Plugin == "calico" {
			s.objects = append(s.objects, object{"apiVersion": "crd.projectcalico.org/v1", "kind": "BlockAffinity",
				"metadata": object{"name": k.Name},
				"spec":     object{"cidr": podCIDR, "node": k.Name, "state": "confirmed", "deleted": "false"}})
		}
		s.objects = append(s.objects, object{"apiVersion": "v1", "kind": "Node",
			"metadata": object{"name": k.Name, "annotations": object{
				"flannel.alpha.coreos.com/backend-data": fmt.Sprintf(`{"VNI":4096,"VtepMAC":%q}`, k.VtepMAC)}},
			"spec": object{"podCIDR": podCIDR, "podCIDRs": podCIDRs},
			"status": object{"addresses": []any{object{"type": "InternalIP", "address": k.Address.String()}},
				"nodeInfo": object{"operatingSystem": system, "kernelVersion": kernel, "kubeletVersion": "v" + k.Version.String() + ".0"}}})
	}
	for _, m := range c.Machines(cluster.PodKind) {
		ns, name, _ := strings.Cut(m.Ref.Name, "/")
		var ports []any
		podIPs := []any{object{"ip": m.Address.String()}}
		if a := m.Stack().Address(true); a.IsValid() && a != m.Address && !a.IsLinkLocalUnicast() {
			podIPs = append(podIPs, object{"ip": a.String()})
		}
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
		s.objects = append(s.objects, object{"apiVersion": "v1", "kind": "Pod",
			"metadata": object{"namespace": ns, "name": name, "labels": labels},
			"spec":     object{"nodeName": m.Node.Name, "containers": []any{object{"name": "c", "ports": ports}}},
			"status": object{"phase": "Running", "podIP": m.Address.String(), "podIPs": podIPs,
				"conditions": []any{object{"type": "Ready", "status": "True"}}}})
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
			"spec": object{"clusterIP": k.ClusterIPs[0].String(), "clusterIPs": texts(k.ClusterIPs), "selector": v.Selector, "type": k.Type,
				"ports": ports}})
	}
	if name := c.Plan.File.Lab.Spec.Network.NetConf; name != "" {
		data, err := os.ReadFile(c.Plan.File.PathOf(name))
		if err != nil {
			t.Fatal(err)
		}
		s.objects = append(s.objects, object{"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": object{"namespace": "kube-flannel", "name": "kube-flannel-cfg"}, "data": object{"net-conf.json": string(data)}})
	}
	return s
}

func texts[T fmt.Stringer](all []T) (s []string) {
	for _, a := range all {
		s = append(s, a.String())
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
	for name, text := range s.files {
		if err := os.WriteFile(filepath.Join(dir, "win1", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
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
	nats
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

// removeObjectsWith takes out the objects of win1 whose JSON has a text.
func removeObjectsWith(s state, doc int, text string) bool {
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

// copyOf is a state that can be changed.
func (s state) copyOf(t *testing.T) state {
	t.Helper()
	c := state{nodes: map[string][][]object{}}
	again := func(v, to any) {
		data, err := json.Marshal(v)
		if err == nil {
			err = json.Unmarshal(data, to)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	again(s.objects, &c.objects)
	for node, docs := range s.nodes {
		var all [][]object
		again(docs, &all)
		c.nodes[node] = all
	}
	return c
}

// kubeObject is an object of Kubernetes by its kind and name, nil for none.
func (s state) kubeObject(kind, name string) object {
	for _, o := range s.objects {
		if o["kind"] == kind && o["metadata"].(object)["name"] == name {
			return o
		}
	}
	return nil
}

// addressOf is the IPv4 address of a pod, "" for one that is not there.
func (s state) addressOf(pod string) string {
	if o := s.kubeObject("Pod", pod); o != nil {
		return o["status"].(object)["podIP"].(string)
	}
	return ""
}

// unusedAddressNear is an address that nobody has, in the network of another one.
func unusedAddressNear(address string) string {
	return address[:strings.LastIndex(address, ".")] + ".77"
}

// withoutFirstException takes the first range out of each list of exceptions of win1's endpoints.
func withoutFirstException(s state) bool {
	data, _ := json.Marshal(s.nodes["win1"][endpoints])
	changed := firstException.ReplaceAll(data, []byte(`$1`))
	var docs []object
	if bytes.Equal(data, changed) || json.Unmarshal(changed, &docs) != nil {
		return false
	}
	s.nodes["win1"][endpoints] = docs
	return true
}

var firstException = regexp.MustCompile(`("Exceptions":\[)"[^"]+",`)

// fault is one that the documents describe, planted in win1 of a healthy cluster.
type fault struct {
	name string
	// plant reports whether the design has what the fault takes away.
	plant func(s *state) bool
	// finds are causes, one of which must be found.
	finds string
}

const (
	packetDies = "packet-"
	webserver  = "win-webserver"
	vip        = "10.96.0.50"
)

// everywhere are faults of each design that has what they need; the rest are of one.
var everywhere = []fault{
	{"a Service's load balancer is gone", func(s *state) bool { return removeObjectsWith(*s, balancers, `"`+vip+`"`) },
		"load-balancer-missing"},
	{"all load balancers but one are gone", func(s *state) bool { return removeObjectsWith(*s, balancers, `"10.96.0.5`) },
		"load-balancer-missing"},
	{"a pod of the Service is gone, its backend is not", func(s *state) bool { return withoutPod(s, webserver+"-0") },
		"load-balancer-backends endpoint-without-pod"},
	{"a load balancer names an endpoint that is gone", func(s *state) bool {
		if len(s.nodes["win1"][balancers]) < 2 {
			return false
		}
		id, _ := s.nodes["win1"][balancers][1]["HostComputeEndpoints"].([]any)
		return len(id) > 0 && edit(*s, balancers, fmt.Sprintf("%q", id[0]), `"99999999-1111-2222-3333-444444444444"`, -1)
	}, "load-balancer-backends"},
	{"a load balancer serves another port", func(s *state) bool {
		return edit(*s, balancers, `"ExternalPort":80,`, `"ExternalPort":8099,`,
			-1)
	}, "load-balancer-missing"},
	{"a load balancer is for another protocol", func(s *state) bool { return edit(*s, balancers, `"Protocol":6`, `"Protocol":17`, -1) },
		"load-balancer-missing"},
	{"a load balancer sends to another port", func(s *state) bool {
		return edit(*s, balancers, `"InternalPort":80,`, `"InternalPort":8099,`,
			-1)
	}, "load-balancer-port"},
	{"a backend is not ready any more", func(s *state) bool {
		o := s.kubeObject("Pod", webserver+"-0")
		o["status"].(object)["conditions"] = []any{object{"type": "Ready", "status": "False"}}
		return len(s.nodes["win1"][balancers]) > 0
	}, "load-balancer-backends"},
	{"the Service has another address", func(s *state) bool {
		spec := s.kubeObject("Service", webserver)["spec"].(object)
		if spec["clusterIP"] != vip || len(s.nodes["win1"][balancers]) == 0 {
			return false
		}
		spec["clusterIP"], spec["clusterIPs"] = "10.96.0.99", []any{"10.96.0.99"}
		return true
	}, "load-balancer-missing"},
	{"a pod's endpoint is gone", func(s *state) bool { return removeObjectsWith(*s, endpoints, `"Name":"neighbour`) }, "pod-without-endpoint"},
	{"an endpoint has another pod's old address", func(s *state) bool {
		a := s.addressOf("neighbour")
		return edit(*s, endpoints, `"`+a+`"`, `"`+unusedAddressNear(a)+`"`, 1)
	}, "pod-without-endpoint endpoint-without-pod"},
	{"a pod is on another node", func(s *state) bool {
		s.kubeObject("Pod", "neighbour")["spec"].(object)["nodeName"] = "win2"
		return true
	}, "pod-without-endpoint"},
	{"a pod has come back with another address", func(s *state) bool {
		o := s.kubeObject("Pod", "neighbour")["status"].(object)
		o["podIP"], o["podIPs"] = unusedAddressNear(o["podIP"].(string)), nil
		return true
	}, "pod-without-endpoint endpoint-without-pod"},
	{"all endpoints of pods are gone", func(s *state) bool {
		gone := false
		for _, name := range []string{"neighbour", "client", webserver} {
			gone = removeObjectsWith(*s, endpoints, `"Name":"`+name) || gone
		}
		return gone
	}, "pod-without-endpoint"},
	{"the ExceptionList lacks a range", func(s *state) bool { return withoutFirstException(*s) }, packetDies +
		" exception-misses-range exception-of-old-endpoint endpoint-not-as-configured"},
	{"an endpoint has no OutBoundNAT", func(s *state) bool { return edit(*s, endpoints, `"Type":"OutBoundNAT"`, `"Type":"QOS"`, -1) },
		"outbound-nat-missing endpoint-not-as-configured " + packetDies},
	{"the list of networks was not taken", func(s *state) bool { s.nodes["win1"][networks] = []object{}; return withoutPod(s, "neighbour") },
		"endpoint-without-pod"},
	{"HNS has lost all that it had", func(s *state) bool {
		for _, doc := range []int{networks, endpoints, namespaces, balancers} {
			s.nodes["win1"][doc] = []object{}
		}
		return true
	}, "no-hns-network pod-without-endpoint"},
}

// notFound are planted faults that nothing finds, with why.
var notFound = map[string]string{}

var planted = map[string][]fault{
	"l2bridge-flannel-host-gw": {
		{"the route to the other node's pods is gone", func(s *state) bool { return removeObjectsWith(*s, routes, `"10.244.2.0/24"`) },
			packetDies + " route-to-pods"},
		{"the route to the other node's pods leads to a third machine", func(s *state) bool {
			return edit(*s, routes, `"NextHop":"192.168.1.12"`, `"NextHop":"192.168.1.10"`, 1)
		}, packetDies + " route-to-pods"},
		{"the host's interfaces do not forward", func(s *state) bool { return edit(*s, interfaces, `"Forwarding":1`, `"Forwarding":0`, -1) },
			"forwarding-off " + packetDies},
		{"pods have no route for Services to the host", func(s *state) bool {
			return edit(*s, endpoints, `"DestinationPrefix":"10.96.0.0/12"`, `"DestinationPrefix":"10.112.0.0/12"`, -1)
		}, "endpoint-not-as-configured"},
	},
	"overlay-flannel-vxlan": {
		{"the remote subnet has the address of no node", func(s *state) bool {
			return edit(*s, networks, `"ProviderAddress":"192.168.1.12"`, `"ProviderAddress":"192.168.1.99"`, 1)
		}, packetDies + " remote-subnet"},
		{"the remote subnet is that of another node", func(s *state) bool {
			return edit(*s, networks, `"DestinationPrefix":"10.244.2.0/24"`, `"DestinationPrefix":"10.244.9.0/24"`, 1)
		}, packetDies + " remote-subnet"},
		{"the remote subnet has another VNI", func(s *state) bool { return edit(*s, networks, `"IsolationId":4096`, `"IsolationId":4097`, 2) },
			packetDies + " remote-subnet"},
		{"the remote subnet has another MAC address", func(s *state) bool {
			return edit(*s, networks, `"DistributedRouterMacAddress":"02-11-22-00-00-06"`, `"DistributedRouterMacAddress":"02-11-22-00-00-77"`, 1)
		}, packetDies + " remote-subnet"},
	},
	"l2bridge-azure-cni": nil, "l2bridge-azure-cni-dual-stack": nil, "l2bridge-sdnbridge": nil, "l2bridge-win-bridge-udr": nil,
	"l2tunnel-azure-cni": nil, "overlay-win-overlay": nil,
	"nat-winnat": {
		{"the NAT is not active", func(s *state) bool { return edit(*s, nats, `"Active":true`, `"Active":false`, 1) }, "nat-missing " +
			packetDies},
		{"WinNAT has another range", func(s *state) bool { return edit(*s, nats, `172.20.`, `172.30.`, -1) }, "nat-missing " + packetDies},
	},
	"../plugins/l2bridge-azure-cni-overlay": nil, "../plugins/l2bridge-vpc-bridge": nil,
	"../plugins/l2bridge-calico-bgp": {
		{"the route to the other node's block is gone", func(s *state) bool { return removeObjectsWith(*s, routes, `"10.244.2.0/24"`) },
			"route-to-pods"},
		{"the route to the other node's block leads to a third machine", func(s *state) bool {
			return edit(*s, routes, `"NextHop":"192.168.1.12"`, `"NextHop":"192.168.1.10"`, 1)
		}, "route-to-pods"},
	},
	"../plugins/overlay-calico-vxlan": {
		{"the remote subnet has the address of no node", func(s *state) bool {
			return edit(*s, networks, `"ProviderAddress":"192.168.1.12"`, `"ProviderAddress":"192.168.1.99"`, 1)
		}, "remote-subnet"},
		{"the remote subnet is that of another node", func(s *state) bool {
			return edit(*s, networks, `"DestinationPrefix":"10.244.2.0/24"`, `"DestinationPrefix":"10.244.9.0/24"`, 1)
		}, "remote-subnet"},
		{"the remote subnet has another VNI", func(s *state) bool { return edit(*s, networks, `"IsolationId":4096`, `"IsolationId":4097`, 2) },
			"remote-subnet"},
	},
	"../plugins/transparent-antrea": {
		{"the extension of Open vSwitch is off", func(s *state) bool {
			s.files = map[string]string{
				"hnsnetwork.json": `[{"ID": "7cabd69c-8287-5cf0-9143-ee2a75484d6b", "Name": "antrea-hnsnetwork", "Type": "Transparent", "ManagementIP": "192.168.1.11",
				"Extensions": [{"Id": "583CC151-73EC-4A6A-8B47-578297AD7623", "IsEnabled": false, "Name": "Open vSwitch Extension"}]}]`}
			return true
		}, "ovs-extension-off"},
		{"the service of Open vSwitch is stopped", func(s *state) bool {
			s.files = map[string]string{
				"services.txt": "Status   Name               DisplayName\n------   ----               -----------\nRunning  hns                Host Network Service\nStopped  ovs-vswitchd       Open vSwitch\n"}
			return true
		}, "plugin-service-stopped"},
	},
}

var ledger = sync.OnceValues(claims.Load)

func examine(t *testing.T, dir string) *findings.Document {
	t.Helper()
	l, err := ledger()
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
	for design, own := range planted {
		t.Run(path.Base(design), func(t *testing.T) {
			t.Parallel()
			f, err := lab.Load("../../../fixtures/labs/" + design + ".yaml")
			if err != nil {
				t.Fatal(err)
			}
			c, err := lab.Build(t.Context(), f, lab.Options{})
			if err != nil {
				t.Fatal(err)
			}
			healthy := stateOf(t, c)
			d := examine(t, healthy.copyOf(t).write(t, c))
			for _, x := range d.Findings {
				if x.Level != "info" {
					t.Errorf("it is healthy, and there is %s: %s %q", x.CauseID, x.Message, x.Evidence)
				}
			}
			for _, m := range d.Mistakes {
				t.Errorf("%+v", m)
			}
			for _, n := range d.NotExamined {
				if strings.Contains(n, "not in a list of the cluster's nodes") {
					t.Errorf("the bundle has the nodes: %s", n)
				}
			}
			hits, all := 0, 0
			for _, x := range append(slices.Clone(own), everywhere...) {
				s := healthy.copyOf(t)
				if !x.plant(&s) {
					t.Logf("%s: it has nothing of the kind", x.name)
					continue
				}
				all++
				got := causes(examine(t, s.write(t, c)))
				found := slices.ContainsFunc(got, func(id string) bool {
					return slices.ContainsFunc(strings.Fields(x.finds), func(want string) bool {
						return id == want || want == packetDies && strings.HasPrefix(id, packetDies)
					})
				})
				why := cmp.Or(notFound[path.Base(design)+": "+x.name], notFound[x.name])
				if found {
					hits++
				}
				if found != (why == "") {
					t.Errorf("%s: found %q, want one of %q (%s)", x.name, got, x.finds, why)
				}
			}
			if all < 10 {
				t.Errorf("only %d faults are planted", all)
			}
			t.Logf("%d of %d planted faults found", hits, all)
		})
	}
}
