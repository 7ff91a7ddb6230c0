package suite

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/winlab-dev/winlab/sim/trace"
)

// networkSpecs look at what the ledger's flows cannot say: Services of other kinds than
// those of every lab, and what pods ask of the network.
var networkSpecs = []written{
	{name: "external-name", title: "a Service of type ExternalName leads a Windows pod to another name",
		claims: []string{"service-external-name"}, try: externalName},
	{name: "headless", title: "the name of a headless Service has the addresses of its pods", claims: []string{"service-headless"},
		try: headless},
	{name: "pod-by-name", title: "a Windows pod reaches another one by the name that a headless Service gives it",
		claims: []string{"flow-pod-pod-by-name"}, try: podByName},
	{name: "session-affinity-timeout", title: "a client meets another pod once the time of its affinity is over",
		claims: []string{"session-affinity-timeout"}, try: affinityTimeout},
	{name: "external-traffic-policy",
		title:  "with externalTrafficPolicy Local a node port leads to pods of its node only, which see the client",
		claims: []string{"external-traffic-policy-local"}, try: externalPolicy},
	{name: "internal-traffic-policy", title: "with internalTrafficPolicy Local a client meets pods of its node only",
		claims: []string{"dispute-internal-traffic-policy"}, kubernetes: "1.22", try: internalPolicy},
	{name: "many-backends", title: "a Service with 65 pods is served", claims: []string{"dispute-backend-limit"}, slow: true,
		try: manyBackends},
	{name: "target-ports", title: "a named target port is each pod's own", claims: []string{"service-one-target-port"}, try: targetPorts},
	{name: "network-policy", title: "a NetworkPolicy keeps connections from a Windows pod", claims: []string{"network-policy-plugins"},
		try: networkPolicy},
	{name: "host-port", title: "a hostPort of a Windows pod leads to it from another machine", claims: []string{"pod-host-port"},
		try: hostPort},
	{name: "host-network", title: "a Windows pod that is not a HostProcess pod is in the network of its node",
		claims: []string{"host-network-unavailable"}, try: hostNetwork},
	{name: "cluster-first-with-host-net",
		title:  "with ClusterFirstWithHostNet a pod in the network of its Windows node asks the cluster's name server",
		claims: []string{"dns-no-cluster-first-with-host-net"}, kubernetes: "1.22", try: clusterFirstWithHostNet},
	{name: "sctp", title: "a Windows pod connects to a Service by SCTP", claims: []string{"service-sctp"}, kubernetes: "1.20", try: sctp},
}

// client is a pod of the spec that asks others.
type client struct {
	e *Env
	p *v1.Pod
	x actor
}

// windowsClient starts a pod that asks, on a node or on any for nil.
func (e *Env) windowsClient(ctx context.Context, node *v1.Node) (*client, error) {
	pod := windowsPod("client", "pause")
	if node != nil {
		pod = pinToNode(pod, node)
	}
	p, err := e.run(ctx, pod)
	if err != nil {
		return nil, orSkip(err)
	}
	return &client{e: e, p: p, x: actor{windows: true}}, nil
}

// linuxNodeClient starts a pod in the network of a Linux node; without one the spec is
// skipped.
func (e *Env) linuxNodeClient(ctx context.Context) (*client, error) {
	nodes := e.C.Linux()
	if len(nodes) == 0 {
		skip("needs a Linux node, to ask from outside of the Windows nodes")
	}
	pod := pinToNode(windowsPod("from-linux", "pause"), &nodes[0])
	pod.Spec.HostNetwork, pod.Spec.Tolerations = true, []v1.Toleration{{Operator: v1.TolerationOpExists}}
	p, err := e.run(ctx, pod)
	if err != nil {
		return nil, orSkip(err)
	}
	return &client{e: e, p: p}, nil
}

// get asks a web server of the test programs once.
func (c *client) get(ctx context.Context, url string) (string, error) {
	o, err := c.e.exec(ctx, c.p, "main", c.x.curl(url)...)
	if err == nil && o.code != 0 {
		err = fmt.Errorf("%s: %s", url, o.all())
	}
	return strings.TrimSpace(o.stdout), err
}

// first asks until there is an answer: nodes need a moment to be programmed.
func (c *client) first(ctx context.Context, url string) (answer string, err error) {
	err = eventually(ctx, c.e.Options.Settle, func(ctx context.Context) (err error) {
		answer, err = c.get(ctx, url)
		return err
	})
	return answer, err
}

// never asks some times and wants no answer; errors of the program do not count as one.
func (c *client) never(ctx context.Context, url string) error {
	for range tries {
		o, err := c.e.exec(ctx, c.p, "main", c.x.curl(url)...)
		if err != nil {
			return err
		}
		s, err := readCurl(o)
		if err != nil {
			return err
		}
		if s.verdict == trace.Delivered {
			return fmt.Errorf("%s answers: %s", url, o.all())
		}
	}
	return nil
}

// met are the pods that answer n requests.
func (c *client) met(ctx context.Context, n int, url string) (map[string]int, error) {
	if _, err := c.first(ctx, url); err != nil {
		return nil, err
	}
	met := map[string]int{}
	for range n {
		name, err := c.get(ctx, url)
		if err != nil {
			return nil, err
		}
		met[name]++
	}
	return met, nil
}

func urlOf(host string, port int32, path string) string {
	return "http://" + net.JoinHostPort(host, strconv.Itoa(int(port))) + path
}

// webPod is a pod that says its name on port 80.
func webPod(name, app string, node *v1.Node) *v1.Pod {
	pod := windowsPod(name, "netexec", "--http-port=80")
	if node != nil {
		pod = pinToNode(pod, node)
	}
	pod.Labels = map[string]string{"app": app}
	pod.Spec.Containers[0].ReadinessProbe = listens(80)
	return pod
}

// service makes a Service of the pods of an app on port 80.
func (e *Env) service(ctx context.Context, app string, change func(*v1.Service)) (*v1.Service, error) {
	s := &v1.Service{ObjectMeta: metav1.ObjectMeta{Name: app}, Spec: v1.ServiceSpec{Selector: map[string]string{"app": app},
		Ports: []v1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(80)}}}}
	change(s)
	return e.ClientSet.CoreV1().Services(e.ns()).Create(ctx, s, metav1.CreateOptions{})
}

// nodeAddress is the address of a node for other machines of the cluster.
func nodeAddress(n *v1.Node) string {
	for _, a := range n.Status.Addresses {
		if a.Type == v1.NodeInternalIP {
			return a.Address
		}
	}
	return ""
}

func externalName(ctx context.Context, e *Env) error {
	e.needWindows(1)
	const other = "kubernetes.default.svc.cluster.local"
	must(e.service(ctx, "elsewhere", func(s *v1.Service) {
		s.Spec = v1.ServiceSpec{Type: v1.ServiceTypeExternalName, ExternalName: other}
	}))
	c, err := e.windowsClient(ctx, nil)
	if err != nil {
		return err
	}
	return c.connects(ctx, "elsewhere."+e.ns()+".svc.cluster.local:443")
}

// connects wants a connection to an address or name with a port.
func (c *client) connects(ctx context.Context, to string, flags ...string) error {
	return eventually(ctx, c.e.Options.Settle, func(ctx context.Context) error {
		o, err := c.e.exec(ctx, c.p, "main", c.x.agnhost(append(append([]string{"connect", "--timeout=5s"}, flags...), to)...)...)
		if err == nil && o.code != 0 {
			err = fmt.Errorf("%s: %s", to, o.all())
		}
		return err
	})
}

func headless(ctx context.Context, e *Env) error {
	e.needWindows(1)
	must(e.serve(ctx, "many", 2, func(s *v1.ServiceSpec) { s.ClusterIP = v1.ClusterIPNone }))
	c, err := e.windowsClient(ctx, nil)
	if err != nil {
		return err
	}
	_, err = c.first(ctx, "http://many."+e.ns()+".svc.cluster.local/hostname")
	return err
}

func podByName(ctx context.Context, e *Env) error {
	e.needWindows(1)
	pod := webPod("named", "family", nil)
	pod.Spec.Hostname, pod.Spec.Subdomain = "first", "family"
	if _, err := e.run(ctx, pod); err != nil {
		return orSkip(err)
	}
	must(e.service(ctx, "family", func(s *v1.Service) { s.Spec.ClusterIP = v1.ClusterIPNone }))
	c, err := e.windowsClient(ctx, nil)
	if err != nil {
		return err
	}
	_, err = c.first(ctx, "http://first.family."+e.ns()+".svc.cluster.local/hostname")
	return err
}

func affinityTimeout(ctx context.Context, e *Env) error {
	e.needWindows(1)
	const over = 2
	s := must(e.serve(ctx, "short", 3, func(s *v1.ServiceSpec) {
		s.SessionAffinity = v1.ServiceAffinityClientIP
		s.SessionAffinityConfig = &v1.SessionAffinityConfig{ClientIP: &v1.ClientIPConfig{TimeoutSeconds: new(int32(over))}}
	}))
	c, err := e.windowsClient(ctx, nil)
	if err != nil {
		return err
	}
	url := urlOf(s.Spec.ClusterIP, 80, "/hostname")
	met := map[string]int{}
	for range 8 {
		name, err := c.first(ctx, url)
		if err != nil {
			skip("the Service does not answer: %v", err)
		}
		met[name]++
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * over * time.Second):
		}
	}
	if len(met) == 1 {
		return fmt.Errorf("8 connections met one pod, although the affinity of %d seconds was over before each: %v", over, met)
	}
	// Without any affinity the time says nothing.
	if quick, err := c.met(ctx, 10, url); err != nil || len(quick) != 1 {
		return fmt.Errorf("10 connections without a pause met %d pods: there is no affinity (%v)", len(quick), err)
	}
	return nil
}

func externalPolicy(ctx context.Context, e *Env) error {
	nodes := e.needWindows(2)
	if _, err := e.run(ctx, webPod("here", "local", &nodes[0])); err != nil {
		return orSkip(err)
	}
	s := must(e.service(ctx, "local", func(s *v1.Service) {
		s.Spec.Type, s.Spec.ExternalTrafficPolicy = v1.ServiceTypeNodePort, v1.ServiceExternalTrafficPolicyLocal
	}))
	c, err := e.linuxNodeClient(ctx)
	if err != nil {
		return err
	}
	port := s.Spec.Ports[0].NodePort
	sees, err := c.first(ctx, urlOf(nodeAddress(&nodes[0]), port, "/clientip"))
	if err != nil {
		return fmt.Errorf("the node with the pod: %w", err)
	}
	if host, _, err := net.SplitHostPort(sees); err != nil || host != c.p.Status.PodIP {
		return fmt.Errorf("the pod sees %s, and the client has %s", sees, c.p.Status.PodIP)
	}
	if err := c.never(ctx, urlOf(nodeAddress(&nodes[1]), port, "/hostname")); err != nil {
		return fmt.Errorf("the node without the pod: %w", err)
	}
	return nil
}

func internalPolicy(ctx context.Context, e *Env) error {
	nodes := e.needWindows(2)
	for i := range 2 {
		if _, err := e.run(ctx, webPod(fmt.Sprintf("on-%d", i), "inner", &nodes[i])); err != nil {
			return orSkip(err)
		}
	}
	s := must(e.service(ctx, "inner", func(s *v1.Service) {
		s.Spec.InternalTrafficPolicy = new(v1.ServiceInternalTrafficPolicyLocal)
	}))
	c, err := e.windowsClient(ctx, &nodes[0])
	if err != nil {
		return err
	}
	met, err := c.met(ctx, 12, urlOf(s.Spec.ClusterIP, 80, "/hostname"))
	if err == nil && (len(met) != 1 || met["on-0"] == 0) {
		err = fmt.Errorf("the client is on the node of on-0 and met %v", met)
	}
	return err
}

// backends are one more than HNS takes without DSR on older builds.
const backends = 65

func manyBackends(ctx context.Context, e *Env) error {
	e.needWindows(1)
	linux := e.C.Linux()
	if len(linux) == 0 {
		skip("needs a Linux node for %d pods", backends)
	}
	for i := range backends {
		pod := webPod(fmt.Sprintf("of-many-%d", i), "of-many", nil)
		pod.Spec.NodeSelector = map[string]string{v1.LabelOSStable: "linux"}
		pod.Spec.Tolerations = []v1.Toleration{{Operator: v1.TolerationOpExists}}
		must(e.create(ctx, pod))
	}
	if _, err := e.readyPods(ctx, "of-many", backends); err != nil {
		skip("the cluster's Linux nodes do not run %d pods: %v", backends, err)
	}
	s := must(e.service(ctx, "of-many", func(*v1.Service) {}))
	c, err := e.windowsClient(ctx, nil)
	if err != nil {
		return err
	}
	_, err = c.met(ctx, 10, urlOf(s.Spec.ClusterIP, 80, "/hostname"))
	return err
}

func targetPorts(ctx context.Context, e *Env) error {
	e.needWindows(1)
	for name, port := range map[string]int32{"at-80": 80, "at-8080": 8080} {
		pod := webPod(name, "ports", nil)
		pod.Spec.Containers[0].Args = []string{"netexec", "--http-port=" + strconv.Itoa(int(port))}
		pod.Spec.Containers[0].Ports = []v1.ContainerPort{{Name: "web", ContainerPort: port}}
		pod.Spec.Containers[0].ReadinessProbe = listens(port)
		if _, err := e.run(ctx, pod); err != nil {
			return orSkip(err)
		}
	}
	s := must(e.service(ctx, "ports", func(s *v1.Service) { s.Spec.Ports[0].TargetPort = intstr.FromString("web") }))
	c, err := e.windowsClient(ctx, nil)
	if err != nil {
		return err
	}
	met, err := c.met(ctx, 2*balancedTries, urlOf(s.Spec.ClusterIP, 80, "/hostname"))
	if err == nil && len(met) != 2 {
		err = fmt.Errorf("%d connections met %v", 2*balancedTries, met)
	}
	return err
}

func networkPolicy(ctx context.Context, e *Env) error {
	e.needWindows(1)
	p, err := e.run(ctx, webPod("closed", "closed", nil))
	if err != nil {
		return orSkip(err)
	}
	c, err := e.windowsClient(ctx, nil)
	if err != nil {
		return err
	}
	url := urlOf(p.Status.PodIP, 80, "/hostname")
	if _, err := c.first(ctx, url); err != nil {
		skip("the pod does not answer before there is a policy: %v", err)
	}
	must(e.ClientSet.NetworkingV1().NetworkPolicies(e.ns()).Create(ctx,
		&networking.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "closed"},
			Spec: networking.NetworkPolicySpec{PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "closed"}},
				PolicyTypes: []networking.PolicyType{networking.PolicyTypeIngress}}}, metav1.CreateOptions{}))
	return eventually(ctx, e.Options.Settle, func(ctx context.Context) error { return c.never(ctx, url) })
}

func hostPort(ctx context.Context, e *Env) error {
	node := &e.needWindows(1)[0]
	const port = 31280
	pod := webPod("published", "published", node)
	pod.Spec.Containers[0].Ports = []v1.ContainerPort{{ContainerPort: 80, HostPort: port}}
	if _, err := e.run(ctx, pod); err != nil {
		return orSkip(err)
	}
	c, err := e.linuxNodeClient(ctx)
	if err != nil {
		return err
	}
	_, err = c.first(ctx, urlOf(nodeAddress(node), port, "/hostname"))
	return err
}

func hostNetwork(ctx context.Context, e *Env) error {
	node := &e.needWindows(1)[0]
	pod := pinToNode(windowsPod("in-the-nodes-network", "pause"), node)
	pod.Spec.HostNetwork = true
	p, err := e.create(ctx, pod)
	if err != nil {
		return err
	}
	if p, err = e.await(ctx, p, "ready", podReady); err != nil {
		return orSkip(err)
	}
	o, err := e.exec(ctx, p, "main", "ipconfig.exe")
	if err == nil && !strings.Contains(o.stdout, nodeAddress(node)) {
		err = fmt.Errorf("the pod does not have the node's address %s: %s", nodeAddress(node), o.all())
	}
	return err
}

func clusterFirstWithHostNet(ctx context.Context, e *Env) error {
	e.needWindows(1)
	pod := windowsPod("host")
	asHost(&pod.Spec)
	pod.Spec.DNSPolicy = v1.DNSClusterFirstWithHostNet
	p, err := e.run(ctx, pod)
	if err != nil {
		skip("a pod in the network of its Windows node is a HostProcess pod: %v", err)
	}
	x := actor{windows: true, host: true}
	o, err := e.exec(ctx, p, "shell", x.agnhost("connect", "--timeout=5s", "kubernetes.default.svc.cluster.local:9")...)
	if err != nil {
		return err
	}
	// Nothing listens there: any answer but this one means that the name was found.
	if s, err := readConnect(o); err != nil || s.verdict == trace.Unresolved {
		return fmt.Errorf("the name of a Service is not found: %s (%v)", o.all(), err)
	}
	return nil
}

func sctp(ctx context.Context, e *Env) error {
	e.needWindows(1)
	must(e.service(ctx, "stream", func(s *v1.Service) {
		s.Spec.Ports = []v1.ServicePort{{Port: 80, Protocol: v1.ProtocolSCTP, TargetPort: intstr.FromInt32(80)}}
	}))
	pod := windowsPod("stream", "porter")
	pod.Spec.Containers[0].Env = []v1.EnvVar{{Name: "SERVE_SCTP_PORT_80", Value: "x"}}
	pod.Spec.Containers[0].Ports = []v1.ContainerPort{{ContainerPort: 80, Protocol: v1.ProtocolSCTP}}
	if _, err := e.run(ctx, pod); err != nil {
		return orSkip(err)
	}
	c, err := e.windowsClient(ctx, nil)
	if err != nil {
		return err
	}
	return c.connects(ctx, "stream."+e.ns()+".svc.cluster.local:80", "--protocol=sctp")
}

// nodeSystems are the operating systems of nodes, each once.
func nodeSystems(nodes []v1.Node) []string {
	var all []string
	for i := range nodes {
		all = append(all, osOf(&nodes[i]))
	}
	slices.Sort(all)
	return slices.Compact(all)
}
