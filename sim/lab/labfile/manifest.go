package labfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/winlab-dev/winlab/internal/input"
	"github.com/winlab-dev/winlab/internal/strict"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Workload is one pod that a manifest asks for, before it has a node.
type Workload struct {
	Namespace, Name string
	Labels          map[string]string
	// OS is from nodeSelector or spec.os, Node from spec.nodeName.
	OS, Node    string
	HostNetwork bool
	Listen      []ListenPort
	HostPorts   []kube.HostPort
	// Ports are the named ports of its containers.
	Ports map[string]uint16
	// Hostname and Subdomain are its name below a Service with that name.
	Hostname, Subdomain string
	// DNSPolicy and DNS are dnsPolicy and dnsConfig.
	DNSPolicy string
	DNS       DNSConfig
	// Owner is what makes it, "Deployment default/web"; "" for a pod of its own.
	Owner  string
	Origin *trace.Origin
	// daemon is the DaemonSet that has one such pod on each node.
	daemon string
}

// DNSConfig is a pod's dnsConfig.
type DNSConfig struct {
	Servers []netip.Addr
	Search  []string
	Ndots   int // 0: not said
}

// ListenPort is one port that a program serves.
type ListenPort struct {
	Proto packet.Proto
	Port  uint16
}

// Service is a Service of a manifest. It has no endpoints yet.
type Service struct {
	kube.Service
	Selector map[string]string
	// TargetNames are named target ports, by the names of the Service's ports.
	TargetNames map[string]string
	// Families are ipFamilies and FamilyPolicy ipFamilyPolicy, as the manifest has
	// them; plan decides on the addresses.
	Families     []string
	FamilyPolicy string
	// PublishNotReady counts pods that are not ready as ready.
	PublishNotReady bool
	// NoNodePorts says that a Service of type LoadBalancer gets no node ports.
	NoNodePorts bool
}

// HasFamily reports whether the Service is one of a family: it has an address of it, or
// as a headless one is to have endpoints of it.
func (s *Service) HasFamily(v6 bool) bool {
	if len(s.ClusterIPs) > 0 {
		return slices.ContainsFunc(s.ClusterIPs, func(a netip.Addr) bool { return a.Is6() == v6 })
	}
	name := "IPv4"
	if v6 {
		name = "IPv6"
	}
	return slices.Contains(s.Families, name) || len(s.Families) == 0 && !v6
}

// Manifests are the objects of a lab's manifests that have a meaning for the
// data plane.
type Manifests struct {
	Workloads []*Workload
	// Owners are the Deployments and their like, also those without replicas.
	Owners   []string
	Services []*Service
	Policies []*Policy
	// AdminPolicies are those of whoever administers the cluster.
	AdminPolicies []*AdminPolicy
	// OwnPolicies are those of a plugin's own kinds.
	OwnPolicies []*OwnPolicy
	Slices      []*Slice
	// Ingresses are kept so that a flow to one is recognized; nothing here serves them.
	Ingresses []*Ingress
	// Namespaces are the labels of namespaces that a manifest describes.
	Namespaces map[string]map[string]string
	// NotModelled are objects that have no effect in the simulation.
	NotModelled []trace.Notice
	noted       map[noticed]bool
}

// noticed tells notices apart.
type noticed struct{ what, why, place string }

// note adds a notice unless it is already there.
func (m *Manifests) note(n trace.Notice) {
	if m.noted == nil {
		m.noted = map[noticed]bool{}
	}
	key := noticed{n.What, n.Why, n.Place()}
	if !m.noted[key] {
		m.noted[key] = true
		m.NotModelled = append(m.NotModelled, n)
	}
}

// maxReplicas bounds the pods of one workload: a node has room for some 100.
const maxReplicas = 1000

// Manifests reads all manifests of the lab. Other kinds are skipped; an object
// that cannot be read is an error.
func (f *File) Manifests() (*Manifests, error) {
	if f.man != nil {
		if m := f.man.Swap(nil); m != nil {
			return m, nil
		}
	}
	return f.readManifests()
}

func (f *File) readManifests() (*Manifests, error) {
	m := &Manifests{}
	var found strict.Mistakes
	for _, name := range f.Lab.Spec.Manifests {
		found = append(found, m.read(f.PathOf(name), f.Shown(f.PathOf(name)))...)
	}
	m.daemons(f.Lab.Spec.Nodes)
	return m, found.AsError()
}

// read adds all documents of a file; file is how it is named to people.
func (m *Manifests) read(path, file string) strict.Mistakes {
	data, err := input.ReadFile(path, input.Document)
	if err != nil {
		return strict.Mistakes{{File: file, Message: err.Error()}}
	}
	return m.readText(file, data)
}

func (m *Manifests) readText(file string, data []byte) strict.Mistakes {
	var found strict.Mistakes
	next := documents(data)
	line := 1
	for {
		doc, err := next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			return append(found, strict.Mistake{File: file, Line: line, Column: 1, Message: err.Error()})
		}
		var placed strict.Mistakes
		if err := m.add(file, line, doc); errors.As(err, &placed) {
			found = append(found, placed...)
		} else if err != nil {
			found = append(found, strict.Mistake{File: file, Line: line, Column: 1, Message: err.Error()})
		}
		line += strings.Count(string(doc), "\n") + 1
	}
}

// documents returns a function that returns the documents of a file one after the other, then
// [io.EOF]. A file of a single one, as kubectl writes a List, is taken whole: Kubernetes' reader
// copies it line by line, which is a tenth of what it takes to build a large cluster.
func documents(data []byte) func() ([]byte, error) {
	const separator = "---"
	if bytes.HasPrefix(data, []byte(separator)) || bytes.Contains(data, []byte("\n"+separator)) || bytes.IndexByte(data, '\r') >= 0 {
		return yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))).Read
	}
	return func() ([]byte, error) {
		doc := data
		if data = nil; len(doc) == 0 {
			return nil, io.EOF
		}
		if doc[len(doc)-1] != '\n' {
			doc = append(doc, '\n')
		}
		return doc, nil
	}
}

// add adds one document.
func (m *Manifests) add(file string, line int, text []byte) error {
	doc := newObject(text)
	var head struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
	}
	if err := doc.decode(&head); err != nil {
		return fmt.Errorf("not a Kubernetes object: %w", err)
	}
	origin := &trace.Origin{What: head.Kind + " " + head.Name, File: file, Line: line}
	if done, err := m.otherPolicy(head.APIVersion, head.Kind, head.Name, doc, origin); done {
		return err
	}
	m.fields(head.Kind, doc, origin)
	switch head.Kind {
	case "List":
		return m.list(file, line, text)
	case "Service":
		s, err := readService(doc, origin)
		if err != nil {
			return fmt.Errorf("service %s: %w", head.Name, err)
		}
		m.Services = append(m.Services, s)
	case "Pod":
		var p corev1.Pod
		if err := doc.decodeStrict(&p); err != nil {
			return fmt.Errorf("pod %s: %w", head.Name, err)
		}
		w := newWorkload(p.Namespace, p.Name, p.Labels, &p.Spec, origin)
		if err := w.readDNS(&p.Spec); err != nil {
			return fmt.Errorf("pod %s: %w", head.Name, err)
		}
		m.Workloads = append(m.Workloads, w)
	case "Deployment", "ReplicaSet", "DaemonSet", "StatefulSet":
		pods, err := readReplicas(doc, origin)
		if err != nil {
			return fmt.Errorf("%s %s: %w", strings.ToLower(head.Kind), head.Name, err)
		}
		owner := head.Kind + " " + namespaceOr(head.Namespace) + "/" + head.Name
		for _, p := range pods {
			p.Owner = owner
		}
		m.Owners = append(m.Owners, owner)
		m.Workloads = append(m.Workloads, pods...)
	case "EndpointSlice":
		s, err := readSlice(doc, origin)
		if err != nil {
			return fmt.Errorf("EndpointSlice %s: %w", head.Name, err)
		}
		m.Slices = append(m.Slices, s)
	case "Endpoints":
		all, err := readEndpoints(doc, origin)
		if err != nil {
			return fmt.Errorf("Endpoints %s: %w", head.Name, err)
		}
		m.Slices = append(m.Slices, all...)
	case "NetworkPolicy":
		p, err := readPolicy(doc, origin)
		if err != nil {
			return fmt.Errorf("NetworkPolicy %s: %w", head.Name, err)
		}
		m.Policies = append(m.Policies, p)
	case "Namespace":
		if m.Namespaces == nil {
			m.Namespaces = map[string]map[string]string{}
		}
		m.Namespaces[head.Name] = head.Labels
	default:
		if head.Kind == "Ingress" {
			in, err := readIngress(doc, origin)
			if err != nil {
				return fmt.Errorf("Ingress %s: %w", head.Name, err)
			}
			m.Ingresses = append(m.Ingresses, in)
		}
		if why := withoutEffect(head.APIVersion, head.Kind); why != "" {
			what := strings.TrimSpace(head.Kind + " " + namespaceOr(head.Namespace) + "/" + head.Name)
			m.note(trace.Notice{What: what, Why: why, At: &trace.Origin{What: what, File: file, Line: line}})
		}
	}
	return nil
}

// otherPolicy reads a policy that is not a Kubernetes NetworkPolicy; done says that the object is
// one.
func (m *Manifests) otherPolicy(apiVersion, kind, name string, doc *object, origin *trace.Origin) (done bool, err error) {
	if plugin := ownKind(apiVersion, kind); plugin != "" {
		p, err := readOwnPolicy(plugin, doc, origin)
		if err != nil {
			return true, fmt.Errorf("%s of %s %s: %w", kind, plugin, name, err)
		}
		m.OwnPolicies = append(m.OwnPolicies, p)
		return true, nil
	}
	if !isAdminPolicy(apiVersion, kind) {
		return false, nil
	}
	p, err := readAdminPolicy(doc, origin)
	if err != nil {
		return true, fmt.Errorf("%s %s: %w", kind, name, err)
	}
	m.AdminPolicies = append(m.AdminPolicies, p)
	return true, nil
}

// readReplicas makes the pods of a Deployment or of a kind like it: the fields
// that matter are the same in all four.
func readReplicas(doc *object, origin *trace.Origin) ([]*Workload, error) {
	var d appsv1.Deployment
	if err := doc.decode(&d); err != nil {
		return nil, err
	}
	template, replicas := d.Spec.Template, 1
	if d.Spec.Replicas != nil {
		replicas = int(*d.Spec.Replicas)
	}
	if replicas < 0 || replicas > maxReplicas {
		return nil, fmt.Errorf("%d replicas; write 0 to %d", replicas, maxReplicas)
	}
	if d.Spec.Selector != nil {
		sel, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
		if err == nil && !sel.Matches(labels.Set(template.Labels)) {
			return nil, errors.New("the selector does not match the template's labels")
		}
	}
	var pods []*Workload
	for i := range replicas {
		w := newWorkload(d.Namespace, fmt.Sprintf("%s-%d", d.Name, i), template.Labels, &template.Spec, origin)
		if err := w.readDNS(&template.Spec); err != nil {
			return nil, err
		}
		switch d.Kind {
		case "DaemonSet":
			w.daemon = d.Name
		case "StatefulSet":
			// The controller gives the pod its name as hostname, and the governing
			// Service as subdomain.
			var s appsv1.StatefulSet
			if err := doc.decode(&s); err != nil {
				return nil, err
			}
			w.Hostname, w.Subdomain = w.Name, s.Spec.ServiceName
		}
		pods = append(pods, w)
	}
	return pods, nil
}

// list adds the objects of a List.
func (m *Manifests) list(file string, line int, doc []byte) error {
	all, err := items(doc, line)
	if err != nil {
		return err
	}
	var errs []error
	var placed strict.Mistakes
	for i, o := range all {
		err := m.add(file, o.line, o.text)
		if err == nil {
			continue
		}
		err = fmt.Errorf("object %d of the list: %w", i+1, err)
		errs = append(errs, err)
		placed = append(placed, strict.Mistake{File: file, Line: o.line, Column: 1, Message: err.Error()})
	}
	if slices.ContainsFunc(all, func(o item) bool { return o.line != line }) && len(placed) > 0 {
		return placed
	}
	return errors.Join(errs...)
}

// daemons gives each node of its system a pod of every DaemonSet.
func (m *Manifests) daemons(nodes []Node) {
	var all []*Workload
	for _, w := range m.Workloads {
		if w.daemon == "" {
			all = append(all, w)
			continue
		}
		for _, n := range nodes {
			if w.OS != "" && w.OS != n.OS || w.Node != "" && w.Node != n.Name {
				continue
			}
			one := *w
			one.Name, one.Node, one.daemon = fmt.Sprintf("%s-%s", w.daemon, n.Name), n.Name, ""
			all = append(all, &one)
		}
	}
	m.Workloads = all
}

func namespaceOr(ns string) string {
	if ns == "" {
		return "default"
	}
	return ns
}

func protoOf(p corev1.Protocol) packet.Proto {
	switch p {
	case corev1.ProtocolUDP:
		return packet.UDP
	case corev1.ProtocolSCTP:
		return sctp
	}
	return packet.TCP
}

// sctp is a protocol that Services can have and no flow of a lab.
const sctp packet.Proto = 132

func newWorkload(ns, name string, l map[string]string, spec *corev1.PodSpec, o *trace.Origin) *Workload {
	w := &Workload{Namespace: namespaceOr(ns), Name: name, Labels: l, Node: spec.NodeName, HostNetwork: spec.HostNetwork,
		Ports: map[string]uint16{}, Origin: o}
	for _, key := range []string{"kubernetes.io/os", "beta.kubernetes.io/os"} {
		if v := spec.NodeSelector[key]; v != "" {
			w.OS = v
		}
	}
	if spec.OS != nil {
		w.OS = string(spec.OS.Name)
	}
	w.Hostname, w.Subdomain = spec.Hostname, spec.Subdomain
	containers := spec.Containers
	for _, c := range spec.InitContainers {
		// One that is restarted runs beside the others.
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			containers = append(containers, c)
		}
	}
	for _, c := range containers {
		for _, cp := range c.Ports {
			proto := protoOf(cp.Protocol)
			w.Listen = append(w.Listen, ListenPort{proto, uint16(cp.ContainerPort)})
			if cp.Name != "" {
				w.Ports[cp.Name] = uint16(cp.ContainerPort)
			}
			if cp.HostPort != 0 {
				w.HostPorts = append(w.HostPorts, kube.HostPort{Proto: proto, HostPort: uint16(cp.HostPort), Container: uint16(cp.ContainerPort),
					HostIP: hostIP(cp.HostIP)})
			}
		}
	}
	return w
}

// hostIP is the node's address that a hostPort is for; the zero Addr is all of them.
func hostIP(text string) netip.Addr {
	a, err := netip.ParseAddr(text)
	if err != nil || a.IsUnspecified() {
		return netip.Addr{}
	}
	return a
}

// readDNS reads what a pod says of its resolver.
func (w *Workload) readDNS(spec *corev1.PodSpec) error {
	w.DNSPolicy = string(spec.DNSPolicy)
	if spec.DNSConfig == nil {
		return nil
	}
	var errs []error
	for _, text := range spec.DNSConfig.Nameservers {
		a, err := netip.ParseAddr(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("dnsConfig: nameserver %q is not an address", text))
			continue
		}
		w.DNS.Servers = append(w.DNS.Servers, a)
	}
	w.DNS.Search = spec.DNSConfig.Searches
	for _, o := range spec.DNSConfig.Options {
		if o.Name == "ndots" && o.Value != nil {
			n, err := strconv.Atoi(*o.Value)
			if err != nil || n < 0 {
				errs = append(errs, fmt.Errorf("dnsConfig: ndots %q is not a number", *o.Value))
			}
			w.DNS.Ndots = n
		}
	}
	return errors.Join(errs...)
}

// readService copies what matters of a Service.
func readService(doc *object, origin *trace.Origin) (*Service, error) {
	var in corev1.Service
	if err := doc.decodeStrict(&in); err != nil {
		return nil, err
	}
	return serviceOf(&in, origin)
}

func serviceOf(in *corev1.Service, origin *trace.Origin) (*Service, error) {
	s := &Service{Selector: in.Spec.Selector, TargetNames: map[string]string{}, PublishNotReady: in.Spec.PublishNotReadyAddresses,
		NoNodePorts: in.Spec.AllocateLoadBalancerNodePorts != nil && !*in.Spec.AllocateLoadBalancerNodePorts}
	s.Service = kube.Service{Namespace: namespaceOr(in.Namespace), Name: in.Name, Type: kube.ServiceType(in.Spec.Type),
		ExternalName: in.Spec.ExternalName, Annotations: in.Annotations,
		ClientIPAffinity:    in.Spec.SessionAffinity == corev1.ServiceAffinityClientIP,
		ExternalLocal:       in.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal,
		InternalLocal:       in.Spec.InternalTrafficPolicy != nil && *in.Spec.InternalTrafficPolicy == corev1.ServiceInternalTrafficPolicyLocal,
		HealthCheckNodePort: uint16(in.Spec.HealthCheckNodePort), Origin: origin}
	if name, ok := in.Labels[labelProxyName]; ok {
		s.ProxyName = &name
	}
	_, s.HeadlessLabel = in.Labels[corev1.IsHeadlessService]
	if s.Type == "" {
		s.Type = kube.ClusterIP
	}
	if err := s.addresses(in); err != nil {
		return nil, err
	}
	for _, sp := range in.Spec.Ports {
		if sp.Port < 1 || sp.Port > 65535 || sp.NodePort < 0 || sp.NodePort > 65535 {
			return nil, fmt.Errorf("port %d, nodePort %d: ports are 1 to 65535", sp.Port, sp.NodePort)
		}
		s.Ports = append(s.Ports, kube.ServicePort{Name: sp.Name, Proto: protoOf(sp.Protocol), Port: uint16(sp.Port),
			NodePort: uint16(sp.NodePort), Target: target(sp)})
		if target(sp) == 0 {
			s.TargetNames[sp.Name] = sp.TargetPort.StrVal
		}
	}
	return s, nil
}

// addresses reads the Service's addresses and of which families it wants them.
func (s *Service) addresses(in *corev1.Service) error {
	for _, f := range in.Spec.IPFamilies {
		if f != corev1.IPv4Protocol && f != corev1.IPv6Protocol {
			return fmt.Errorf("ipFamilies: there is no family %q; there are IPv4 and IPv6", f)
		}
		s.Families = append(s.Families, string(f))
	}
	if p := in.Spec.IPFamilyPolicy; p != nil {
		switch s.FamilyPolicy = string(*p); *p {
		case corev1.IPFamilyPolicySingleStack, corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack:
		default:
			return fmt.Errorf("ipFamilyPolicy: there is no policy %q; there are SingleStack, PreferDualStack and RequireDualStack", *p)
		}
	}
	ips := in.Spec.ClusterIPs
	if len(ips) == 0 && in.Spec.ClusterIP != "" {
		ips = []string{in.Spec.ClusterIP}
	}
	if slices.Contains(ips, corev1.ClusterIPNone) {
		s.Headless, ips = true, nil
	}
	var ingress []string
	for _, i := range in.Status.LoadBalancer.Ingress {
		if i.IP != "" {
			ingress = append(ingress, i.IP)
		}
	}
	if len(ingress) == 0 && in.Spec.LoadBalancerIP != "" {
		ingress = []string{in.Spec.LoadBalancerIP}
	}
	for _, list := range []struct {
		to   *[]netip.Addr
		from []string
	}{{&s.ClusterIPs, ips}, {&s.ExternalIPs, in.Spec.ExternalIPs}, {&s.IngressIPs, ingress}} {
		for _, text := range list.from {
			a, err := netip.ParseAddr(text)
			if err != nil {
				return fmt.Errorf("%q is not an address", text)
			}
			*list.to = append(*list.to, a)
		}
	}
	return nil
}

// Selects reports whether the Service's selector picks a pod.
func (s *Service) Selects(namespace string, l map[string]string) bool {
	return s.Namespace == namespace && len(s.Selector) > 0 && labels.SelectorFromSet(s.Selector).Matches(labels.Set(l))
}

// target is the backends' port of a Service port, by number; 0 for a named one, which
// each pod has under its own number, or not at all.
func target(sp corev1.ServicePort) uint16 {
	switch n := sp.TargetPort.IntValue(); {
	case n > 0:
		return uint16(n)
	case sp.TargetPort.StrVal != "":
		return 0
	}
	return uint16(sp.Port)
}
