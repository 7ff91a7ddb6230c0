package suite

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
)

// actors are what the ledger's flows name, on this cluster: the same pods and Services
// as in every lab, in one namespace for the whole run. Each is made when a flow first
// needs it.
type actors struct {
	c       *Cluster
	o       *Options
	client  kubernetes.Interface
	mu      sync.Mutex
	ns      string
	pods    map[string]*actor
	service *v1.Service
}

// actor is a pod that commands are run in.
type actor struct {
	pod       *v1.Pod
	container string
	windows   bool
	// host is set for a pod that stands for its node.
	host bool
	err  error
	// tries is how often its pod was made.
	tries int
}

// errLacks says that the cluster has nothing that could play a part.
type errLacks struct{ what string }

func (e errLacks) Error() string { return e.what }

// namespace makes the namespace of the run.
func (a *actors) namespace(ctx context.Context) (string, error) {
	if a.ns != "" {
		return a.ns, nil
	}
	ns, err := a.client.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "winlab-actors-",
		Labels: map[string]string{"pod-security.kubernetes.io/enforce": "privileged", runLabel: a.o.Run}}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("the namespace of the flows' pods: %w", err)
	}
	// Without this account, which a controller makes, no pod is taken.
	if err := eventually(ctx, a.o.PodStart, func(ctx context.Context) error {
		_, err := a.client.CoreV1().ServiceAccounts(ns.Name).Get(ctx, "default", metav1.GetOptions{})
		return err
	}); err != nil {
		return "", errors.Join(fmt.Errorf("the namespace of the flows' pods has no service account: %w", err),
			a.client.CoreV1().Namespaces().Delete(ctx, ns.Name, metav1.DeleteOptions{}))
	}
	a.ns = ns.Name
	return a.ns, nil
}

// remove deletes the namespace, also when the run was interrupted.
func (a *actors) remove(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ns == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return a.client.CoreV1().Namespaces().Delete(ctx, a.ns, metav1.DeleteOptions{})
}

// node returns the node that plays win1, win2 or linux1.
func (a *actors) node(name string) (*v1.Node, error) {
	nodes, i := a.c.Windows(), 0
	switch name {
	case "linux1":
		nodes = a.c.Linux()
	case "win2":
		i = 1
	}
	if i >= len(nodes) {
		return nil, errLacks{fmt.Sprintf("no node of this cluster can be %s: it has %d Windows nodes and %d Linux nodes that are ready", name,
			len(a.c.Windows()), len(a.c.Linux()))}
	}
	return &nodes[i], nil
}

// homes are the nodes of the ledger's pods.
var homes = map[string]string{"client": "win1", "neighbour": "win1", "peer": "win2", "linux-client": "linux1", "win-webserver-0": "win1",
	"win-webserver-1": "win2"}

// actorFor returns the pod that plays a sender or receiver: pod/NAME, or node/NAME for a pod in
// the network of its node.
func (a *actors) actorFor(ctx context.Context, e *Env, ref string) (*actor, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.locked(ctx, e, ref)
}

func (a *actors) locked(ctx context.Context, e *Env, ref string) (*actor, error) {
	old := a.pods[ref]
	if old != nil && !a.mustRemake(ctx, old) {
		return old, old.err
	}
	x := &actor{tries: 1}
	if old != nil {
		x.tries = old.tries + 1
	}
	x.err = a.start(ctx, e, ref, x)
	if ctx.Err() == nil {
		a.pods[ref] = x
	}
	return x, x.err
}

// actorTries is how often the pod of an actor is made, when it does not start or has gone
// with its node. Each time costs the time that pods have to start.
const actorTries = 3

// mustRemake reports whether an actor is to be made again: its pod could not be made or has not
// started, for another reason than that the cluster has nothing for it, or it has gone.
func (a *actors) mustRemake(ctx context.Context, x *actor) bool {
	var lacks errLacks
	switch {
	case x.tries >= actorTries, errors.As(x.err, &lacks), errors.Is(x.err, errNotPulled):
		return false
	case x.err != nil:
		return true
	}
	p, err := a.client.CoreV1().Pods(x.pod.Namespace).Get(ctx, x.pod.Name, metav1.GetOptions{})
	if err != nil {
		return apierrors.IsNotFound(err)
	}
	return p.DeletionTimestamp != nil || podFinished(p)
}

func (a *actors) start(ctx context.Context, e *Env, ref string, x *actor) error {
	kind, name, _ := strings.Cut(ref, "/")
	home := homes[name]
	switch {
	case kind == "node":
		home = name
	case kind != "pod" || home == "":
		return errLacks{"nothing on a cluster can be " + ref}
	}
	node, err := a.node(home)
	if err != nil {
		return err
	}
	ns, err := a.namespace(ctx)
	if err != nil {
		return err
	}
	x.windows, x.container, x.host = osOf(node) == "windows", "shell", kind == "node"
	pod := pinToNode(windowsPod(strings.ReplaceAll(ref, "/", "-")), node)
	pod.Namespace = ns
	if x.tries > 1 { // the one before may still be there
		pod.Name += fmt.Sprintf("-%d", x.tries)
	}
	pod.Labels = map[string]string{"actor": name}
	if strings.HasPrefix(name, "win-webserver") {
		pod.Labels["app"] = "win-webserver"
	}
	shell := v1.Container{Name: "shell", Image: agnhost(), Args: []string{"pause"}}
	web := v1.Container{Name: "web", Image: agnhost(), Args: []string{"netexec", "--http-port=80", "--udp-port=53"},
		ReadinessProbe: &v1.Probe{ProbeHandler: v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Port: intstr.FromInt32(80)}}}}
	pod.Spec.Containers = []v1.Container{shell, web}
	switch {
	case kind == "node" && x.windows:
		asHost(&pod.Spec)
	case kind == "node":
		pod.Spec.HostNetwork = true
		pod.Spec.Containers = pod.Spec.Containers[:1]
		pod.Spec.Tolerations = []v1.Toleration{{Operator: v1.TolerationOpExists}}
	case !x.windows:
		pod.Spec.Tolerations = []v1.Toleration{{Operator: v1.TolerationOpExists}}
	}
	p, err := a.client.CoreV1().Pods(ns).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("the pod that plays %s: %w", ref, err)
	}
	x.pod, err = e.await(ctx, p, "ready", podReady)
	return err
}

// asHost makes a pod one of HostProcess containers, which is in the network of its node.
// The image's files are below a folder that a variable names; the runtime puts its value
// into command lines (microsoft/hcsshim internal/jobcontainers, CreateProcess).
func asHost(spec *v1.PodSpec) {
	yes, system := true, `NT AUTHORITY\SYSTEM`
	spec.HostNetwork = true
	spec.SecurityContext = &v1.PodSecurityContext{WindowsOptions: &v1.WindowsSecurityContextOptions{HostProcess: &yes, RunAsUserName: &system}}
	spec.Containers = []v1.Container{{Name: "shell", Image: agnhost(), Command: []string{hostAgnhost, "pause"}}}
}

// hostAgnhost are the test programs in a HostProcess container.
const hostAgnhost = `%CONTAINER_SANDBOX_MOUNT_POINT%\agnhost.exe`

// web makes the Service of the guides with its two pods.
func (a *actors) web(ctx context.Context, e *Env) (*v1.Service, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	err := a.startWeb(ctx, e)
	return a.service, err
}

// startWeb makes what is not there yet, and pods again that have gone.
func (a *actors) startWeb(ctx context.Context, e *Env) error {
	backends := 0
	for _, name := range []string{"pod/win-webserver-0", "pod/win-webserver-1"} {
		_, err := a.locked(ctx, e, name)
		if _, lacks := err.(errLacks); lacks && backends > 0 {
			continue // one Windows node: one backend
		} else if err != nil {
			return err
		}
		backends++
	}
	if a.service == nil {
		// The documents ask for "kubernetes" from the namespace that has it.
		if _, err := a.webService(ctx, "kubernetes", v1.ServiceTypeClusterIP); err != nil {
			return err
		}
		s, err := a.webService(ctx, "win-webserver", v1.ServiceTypeNodePort)
		if err != nil {
			return err
		}
		a.service = s
	}
	return eventually(ctx, e.Options.PodStart, func(ctx context.Context) error {
		list, err := a.client.DiscoveryV1().EndpointSlices(a.ns).List(ctx,
			metav1.ListOptions{LabelSelector: discovery.LabelServiceName + "=" + a.service.Name})
		if err != nil {
			return err
		}
		n := map[discovery.AddressType]int{}
		for _, slice := range list.Items {
			n[slice.AddressType] += len(slice.Endpoints)
		}
		for _, family := range a.service.Spec.IPFamilies { // an address type has the name of its family
			if n[discovery.AddressType(family)] < backends {
				return fmt.Errorf("the Service %s has %d %s endpoints of %d", a.service.Name, n[discovery.AddressType(family)], family, backends)
			}
		}
		return nil
	})
}

// webService makes a Service of the web server's pods, if it is not there. It has addresses
// of both families where the cluster has.
func (a *actors) webService(ctx context.Context, name string, t v1.ServiceType) (*v1.Service, error) {
	services, families := a.client.CoreV1().Services(a.ns), v1.IPFamilyPolicyPreferDualStack
	s, err := services.Create(ctx, &v1.Service{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1.ServiceSpec{Type: t, IPFamilyPolicy: &families, Selector: map[string]string{"app": "win-webserver"},
			Ports: []v1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(80)}}}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return services.Get(ctx, name, metav1.GetOptions{})
	}
	return s, err
}

// place is an address that a program is given, and how it was found.
type place struct {
	host, port string
	// balanced says that one of several backends answers.
	balanced bool
}

func (p place) String() string {
	if p.port == "" {
		return p.host
	}
	return net.JoinHostPort(p.host, p.port)
}

// find is where a flow of the ledger goes to.
func (a *actors) find(ctx context.Context, e *Env, to, family string) (place, error) {
	ref, port := to, ""
	if i := strings.LastIndexByte(to, ':'); i >= 0 {
		ref, port = to[:i], to[i+1:]
	}
	if ref == "localhost" {
		return place{host: map[bool]string{false: "127.0.0.1", true: "::1"}[family == "ipv6"], port: port}, nil
	}
	kind, name, _ := strings.Cut(ref, "/")
	switch kind {
	case "pod":
		x, err := a.actorFor(ctx, e, ref)
		if err != nil {
			return place{}, err
		}
		ip, err := address(podAddresses(x.pod), family)
		return place{host: ip, port: port}, err
	case "svc":
		return a.findService(ctx, e, name, port, family)
	case "name":
		host, err := a.name(ctx, e, name)
		return place{host: host, port: port, balanced: strings.HasPrefix(name, "win-webserver")}, err
	case "node":
		return a.findNode(ctx, e, name, port, family)
	case "host":
		if name == "internet" && e.Options.Internet != "" {
			return place{host: e.Options.Internet, port: port}, nil
		}
		return place{}, errLacks{"no machine outside is known that could be " + ref + "; give one with --internet ADDRESS"}
	}
	return place{}, errLacks{"nothing on a cluster can be " + ref}
}

func (a *actors) findService(ctx context.Context, e *Env, name, port, family string) (place, error) {
	switch name {
	case "win-webserver":
	case "win-webserver-lb":
		return a.loadBalancer(ctx, e, port, family)
	default:
		return place{}, errLacks{"nothing on a cluster can be svc/" + name}
	}
	s, err := a.web(ctx, e)
	if err != nil {
		return place{}, err
	}
	ip, err := address(s.Spec.ClusterIPs, family)
	return place{host: ip, port: port, balanced: true}, err
}

// nodePort is the port of the ledger's labs for the web server.
const nodePort = "30080"

func (a *actors) findNode(ctx context.Context, e *Env, name, port, family string) (place, error) {
	node, err := a.node(name)
	if err != nil {
		return place{}, err
	}
	var all []string
	for _, x := range node.Status.Addresses {
		if x.Type == v1.NodeInternalIP {
			all = append(all, x.Address)
		}
	}
	ip, err := address(all, family)
	if err != nil {
		return place{}, err
	}
	switch port {
	case nodePort:
		s, err := a.web(ctx, e)
		if err != nil {
			return place{}, err
		}
		return place{host: ip, port: strconv.Itoa(int(s.Spec.Ports[0].NodePort)), balanced: true}, nil
	case "6443":
		// The API server of a managed cluster is on no node; the kubelet of a Linux node
		// is another program of a Linux node that listens.
		if p := a.apiServerOn(ctx, ip); p != "" {
			return place{host: ip, port: p}, nil
		}
		return place{host: ip, port: "10250"}, nil
	}
	return place{host: ip, port: port}, nil
}

// apiServerOn is the port on which an API server listens at an address.
func (a *actors) apiServerOn(ctx context.Context, ip string) string {
	list, err := a.client.DiscoveryV1().EndpointSlices("default").List(ctx,
		metav1.ListOptions{LabelSelector: discovery.LabelServiceName + "=kubernetes"})
	if err != nil {
		return ""
	}
	for _, s := range list.Items {
		for _, p := range s.Endpoints {
			if slices.Contains(p.Addresses, ip) && len(s.Ports) > 0 && s.Ports[0].Port != nil {
				return strconv.Itoa(int(*s.Ports[0].Port))
			}
		}
	}
	return ""
}

// name is a DNS name of the ledger in the namespace of the run.
func (a *actors) name(ctx context.Context, e *Env, name string) (string, error) {
	if first, rest, ok := strings.Cut(name, ".default"); ok && first == "win-webserver" {
		if _, err := a.web(ctx, e); err != nil {
			return "", err
		}
		return first + "." + a.ns + rest, nil
	}
	if name == "win-webserver" || name == "kubernetes" {
		_, err := a.web(ctx, e)
		return name, err
	}
	return name, nil
}

func podAddresses(p *v1.Pod) []string {
	var all []string
	for _, ip := range p.Status.PodIPs {
		all = append(all, ip.IP)
	}
	return all
}

// address is the first of a family.
func address(all []string, family string) (string, error) {
	for _, a := range all {
		ip := net.ParseIP(a)
		if ip != nil && (ip.To4() == nil) == (family == "ipv6") {
			return a, nil
		}
	}
	return "", errLacks{fmt.Sprintf("there is no %s address; there are %s", map[bool]string{false: "IPv4", true: "IPv6"}[family == "ipv6"],
		strings.Join(all, ", "))}
}
