// Package labtest writes labs of any size for tests and benchmarks: a lab file, the
// plugin's configuration and a List of Kubernetes objects as kubectl get -o json
// prints one. The same [Size] gives the same bytes.
//
// It must not know how a lab is read or built.
package labtest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// Size says what is in a lab.
type Size struct {
	// Nodes run Windows; Linux are nodes besides them that run Linux.
	Nodes, Linux int
	// Pods are on each node of either kind.
	Pods int
	// Services have Backends pods each, taken in turn from all pods; 0 is 3. Every
	// pod serves TCP port 80.
	Services, Backends int
	// NodePorts is how many of the Services have the type NodePort.
	NodePorts int
	// Policies are NetworkPolicies, each for the pods of one Service.
	Policies int
	// VXLAN chooses flannel's vxlan instead of host-gw, DSR load balancers with direct
	// server return.
	VXLAN, DSR bool
	// Agent enforces NetworkPolicies, as a lab names it; "" for none.
	Agent string
	// Kubernetes is the version, "" is 1.36; Build that of Windows, "" is Server 2022's.
	Kubernetes, Build string
	// Seed shuffles which pods are behind which Service; 0 leaves them in order.
	Seed uint64
	// Steps is YAML that comes behind the lab's own, indented by two: "  steps: ...".
	Steps string
	// Extra are further objects.
	Extra []map[string]any
}

// Service is a Service for [Size].Extra: with an address, "" for one of its own, for the
// pods of a group ("g0").
func Service(name, address string, port int, group string) map[string]any {
	spec := object{"selector": object{"group": group}, "ports": []object{{"port": port, "targetPort": 80, "protocol": "TCP"}}}
	if address != "" {
		spec["clusterIP"] = address
	}
	return object{"apiVersion": "v1", "kind": "Service", "metadata": object{"name": name, "namespace": "default"}, "spec": spec}
}

// Write writes the lab into a folder that exists, and returns its file's name.
func Write(dir string, s Size) (string, error) {
	if s.Kubernetes == "" {
		s.Kubernetes = "1.36"
	}
	if s.Build == "" {
		s.Build = "10.0.20348.2762"
	}
	if s.Backends == 0 {
		s.Backends = 3
	}
	conf, netConf := "hostgw.conf", `{"Network": "10.128.0.0/9", "Backend": {"Name": "cbr0", "Type": "host-gw"}}`
	network, typ, flags := "cbr0", "win-bridge", ""
	if s.VXLAN {
		conf, netConf = "vxlan.conf", `{"Network": "10.128.0.0/9", "Backend": {"Type": "vxlan", "VNI": 4096, "Port": 4789}}`
		network, typ, flags = "flannel.4096", "win-overlay", `, "--source-vip={{sourceVIP}}"`
	}
	if s.DSR {
		flags += `, "--enable-dsr=true"`
	}
	agent := ""
	if s.Agent != "" {
		agent = "policyAgent: " + s.Agent + ", "
	}
	delegate := fmt.Sprintf(`{"cniVersion": "0.2.0", "name": %q, "type": "flannel", "capabilities": {"portMappings": true, "dns": true},
  "delegate": {"type": %q, "dns": {"nameservers": ["10.96.0.10"], "search": ["svc.cluster.local"]}, "policies": [
    {"name": "EndpointPolicy", "value": {"Type": "OutBoundNAT", "ExceptionList": ["10.128.0.0/9", "10.96.0.0/12", "172.16.0.0/16"]}},
    {"name": "EndpointPolicy", "value": {"Type": "ROUTE", "DestinationPrefix": "10.96.0.0/12", "NeedEncap": true}}
  ]}}
`, network, typ)
	var lab strings.Builder
	fmt.Fprintf(&lab, `apiVersion: winlab.dev/v1alpha1
kind: Lab
metadata: {name: large}
spec:
  kubernetes: %q
  network: {%splugin: flannel, version: 0.13.0, conf: %s, netConf: net-conf.json, clusterCIDR: 10.128.0.0/9}
  proxy: {mode: kernelspace, flags: ["--network-name=%s", "--hostname-override={{nodeName}}"%s]}
  dns: {off: true}
  fabric:
    segments: [{name: nodes, subnet: 172.16.0.0/16}]
    routers: [{name: gw, interfaces: [{segment: nodes, address: 172.16.0.1/16}]}]
  manifests: [objects.json]
`, s.Kubernetes, agent, conf, network, flags)
	lab.WriteString(s.Steps)
	lab.WriteString("  nodes:\n")
	for i := range s.Nodes + s.Linux {
		system := "os: linux"
		if i < s.Nodes {
			system = "os: windows, build: " + s.Build
		}
		fmt.Fprintf(&lab, "    - {name: %s, %s, address: 172.16.%d.%d, podCIDR: 10.%d.%d.0/24}\n", NodeName(i), system, (i+256)>>8, i&255,
			128+i>>8, i&255)
	}
	for name, text := range map[string]string{"lab.yaml": lab.String(), conf: delegate, "net-conf.json": netConf + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	return filepath.Join(dir, "lab.yaml"), s.objects(filepath.Join(dir, "objects.json"))
}

// NodeName is the name of node i: those with Windows come first.
func NodeName(i int) string { return fmt.Sprintf("n%04d", i) }

// PodName is the name of pod j of node i.
func PodName(i, j int) string { return fmt.Sprintf("p%04d-%03d", i, j) }

// ServiceName is the name of Service i.
func ServiceName(i int) string { return fmt.Sprintf("s%05d", i) }

type object = map[string]any

// objects writes the List.
func (s Size) objects(path string) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	w := bufio.NewWriter(f)
	first := true
	add := func(o object) {
		sep := ",\n"
		if first {
			first, sep = false, "\n"
		}
		text, merr := json.MarshalIndent(o, "        ", "    ")
		if merr != nil && err == nil {
			err = merr
		}
		fmt.Fprintf(w, "%s        %s", sep, text)
	}
	fmt.Fprint(w, "{\n    \"apiVersion\": \"v1\",\n    \"items\": [")
	total := (s.Nodes + s.Linux) * s.Pods
	groups := max(1, (total+s.Backends-1)/s.Backends)
	order := make([]int, total)
	for i := range order {
		order[i] = i
	}
	if s.Seed != 0 {
		r := rand.New(rand.NewPCG(s.Seed, 1))
		r.Shuffle(total, func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	for k := range total {
		i, j := k/s.Pods, k%s.Pods
		add(object{"apiVersion": "v1", "kind": "Pod",
			"metadata": object{"name": PodName(i, j), "namespace": "default", "labels": object{"group": fmt.Sprintf("g%d", order[k]%groups)}},
			"spec": object{"nodeName": NodeName(i), "containers": []object{{"name": "web", "image": "web",
				"ports": []object{{"containerPort": 80, "protocol": "TCP"}}}}}})
	}
	for i := range s.Services {
		spec := object{"selector": object{"group": fmt.Sprintf("g%d", i%groups)},
			"ports": []object{{"port": 80, "targetPort": 80, "protocol": "TCP"}}}
		if i < s.NodePorts {
			spec["type"] = "NodePort"
		}
		add(object{"apiVersion": "v1", "kind": "Service", "metadata": object{"name": ServiceName(i), "namespace": "default"}, "spec": spec})
	}
	for _, o := range s.Extra {
		add(o)
	}
	for i := range s.Policies {
		add(object{"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
			"metadata": object{"name": fmt.Sprintf("np%04d", i), "namespace": "default"},
			"spec": object{"podSelector": object{"matchLabels": object{"group": fmt.Sprintf("g%d", i%groups)}}, "policyTypes": []string{"Ingress"},
				"ingress": []object{{"from": []object{{"podSelector": object{"matchLabels": object{"group": fmt.Sprintf("g%d", (i+1)%groups)}}}}}}}})
	}
	fmt.Fprint(w, "\n    ],\n    \"kind\": \"List\"\n}\n")
	if ferr := w.Flush(); err == nil {
		err = ferr
	}
	return err
}
