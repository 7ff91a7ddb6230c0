package lab

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/winlab-dev/winlab/internal/strict"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/trace"
)

// workload is one pod that a manifest asks for, before it has a node.
type workload struct {
	namespace, name string
	labels          map[string]string
	os              string // from nodeSelector or spec.os
	node            string // from spec.nodeName
	hostNetwork     bool
	listen          []listen
	hostPorts       []kube.HostPort
	ports           map[string]uint16 // named container ports
	ready           bool
	terminating     bool
	late            bool
	dns             PodDNS
	address         netip.Addr
	origin          *trace.Origin
}

// listen is one port that a program serves.
type listen struct {
	proto packet.Proto
	port  uint16
}

// maxReplicas bounds the pods of one workload: a node has room for some 100.
const maxReplicas = 1000

// manifests are the objects that a lab's manifests hold.
type manifests struct {
	workloads []*workload
	services  []service
}

type service struct {
	corev1.Service
	origin *trace.Origin
}

// readManifests reads all documents of the files. Kinds that have no meaning
// for the data plane are passed over; a kind that cannot be read is an error.
func readManifests(files []string) (*manifests, error) {
	m := &manifests{}
	var found strict.Mistakes
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			found = append(found, strict.Mistake{File: f, Message: err.Error()})
			continue
		}
		docs := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
		line := 1
		for {
			doc, err := docs.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				found = append(found, strict.Mistake{File: f, Line: line, Column: 1, Message: err.Error()})
				break
			}
			if err := m.add(f, line, doc); err != nil {
				found = append(found, strict.Mistake{File: f, Line: line, Column: 1, Message: err.Error()})
			}
			line += strings.Count(string(doc), "\n") + 1
		}
	}
	return m, found.AsError()
}

func (m *manifests) add(file string, line int, doc []byte) error {
	var head struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
	}
	if err := sigsyaml.Unmarshal(doc, &head); err != nil {
		return fmt.Errorf("not a Kubernetes object: %w", err)
	}
	if head.Kind == "" {
		return nil
	}
	origin := func(what string) *trace.Origin { return &trace.Origin{What: what, File: file, Line: line} }
	var template corev1.PodTemplateSpec
	replicas := 1
	switch head.Kind {
	case "Service":
		s := service{origin: origin("Service " + head.Name)}
		if err := sigsyaml.UnmarshalStrict(doc, &s.Service); err != nil {
			return fmt.Errorf("service %s: %w", head.Name, err)
		}
		for _, sp := range s.Spec.Ports {
			if sp.Port < 1 || sp.Port > 65535 || sp.NodePort < 0 || sp.NodePort > 65535 {
				return fmt.Errorf("service %s: port %d, nodePort %d: ports are 1 to 65535", head.Name, sp.Port, sp.NodePort)
			}
		}
		m.services = append(m.services, s)
		return nil
	case "Pod":
		var p corev1.Pod
		if err := sigsyaml.UnmarshalStrict(doc, &p); err != nil {
			return fmt.Errorf("pod %s: %w", head.Name, err)
		}
		m.workloads = append(m.workloads, newWorkload(p.Namespace, p.Name, p.Labels, &p.Spec, origin("Pod "+p.Name)))
		return nil
	case "Deployment", "ReplicaSet", "DaemonSet", "StatefulSet":
		var d appsv1.Deployment // the fields that matter are the same in all four
		if err := sigsyaml.Unmarshal(doc, &d); err != nil {
			return fmt.Errorf("%s %s: %w", strings.ToLower(head.Kind), head.Name, err)
		}
		template = d.Spec.Template
		if d.Spec.Replicas != nil {
			replicas = int(*d.Spec.Replicas)
		}
		if replicas < 0 || replicas > maxReplicas {
			return fmt.Errorf("%s %s: %d replicas; write 0 to %d", strings.ToLower(head.Kind), head.Name, replicas, maxReplicas)
		}
		if d.Spec.Selector != nil {
			sel, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
			if err == nil && !sel.Matches(labels.Set(template.Labels)) {
				return fmt.Errorf("%s %s: the selector does not match the template's labels", strings.ToLower(head.Kind), head.Name)
			}
		}
	default:
		return nil
	}
	for i := range replicas {
		m.workloads = append(m.workloads, newWorkload(head.Namespace, fmt.Sprintf("%s-%d", head.Name, i), template.Labels, &template.Spec, origin(head.Kind+" "+head.Name)))
	}
	return nil
}

func newWorkload(ns, name string, l map[string]string, spec *corev1.PodSpec, o *trace.Origin) *workload {
	if ns == "" {
		ns = "default"
	}
	w := &workload{namespace: ns, name: name, labels: l, node: spec.NodeName, hostNetwork: spec.HostNetwork, ready: true, ports: map[string]uint16{}, origin: o}
	for _, key := range []string{"kubernetes.io/os", "beta.kubernetes.io/os"} {
		if v := spec.NodeSelector[key]; v != "" {
			w.os = v
		}
	}
	if spec.OS != nil {
		w.os = string(spec.OS.Name)
	}
	for _, c := range spec.Containers {
		for _, cp := range c.Ports {
			proto := packet.TCP
			if cp.Protocol == corev1.ProtocolUDP {
				proto = packet.UDP
			}
			w.listen = append(w.listen, listen{proto, uint16(cp.ContainerPort)})
			if cp.Name != "" {
				w.ports[cp.Name] = uint16(cp.ContainerPort)
			}
			if cp.HostPort != 0 {
				w.hostPorts = append(w.hostPorts, kube.HostPort{Proto: proto, HostPort: uint16(cp.HostPort), Container: uint16(cp.ContainerPort)})
			}
		}
	}
	return w
}

// selects reports whether a Service's selector picks a pod.
func selects(s *corev1.Service, w *workload) bool {
	ns := s.Namespace
	if ns == "" {
		ns = "default"
	}
	return ns == w.namespace && len(s.Spec.Selector) > 0 && labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(w.labels))
}

// target is the backends' port of a Service port, by number where it can be told.
func target(sp corev1.ServicePort) uint16 {
	if n := sp.TargetPort.IntValue(); n > 0 {
		return uint16(n)
	}
	if sp.TargetPort.StrVal != "" {
		if n, err := strconv.ParseUint(sp.TargetPort.StrVal, 10, 16); err == nil {
			return uint16(n)
		}
	}
	return uint16(sp.Port)
}
