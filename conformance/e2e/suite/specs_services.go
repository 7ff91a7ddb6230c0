package suite

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
)

// serviceSpecs look at what Services and the API server's streams give a pod.
var serviceSpecs = []written{
	{name: "service-variables", title: "a pod has the variables of a Service that was there before it",
		claims: []string{"service-environment-variables"}, try: serviceVariables},
	{name: "port-forward", title: "a port of a pod is forwarded to this machine", claims: []string{"port-forward"}, try: portForward},
	{name: "session-affinity", title: "with ClientIP a client's connections meet one pod",
		claims: []string{"session-affinity", "dispute-session-affinity-build", "dispute-session-affinity-tests"}, try: sessionAffinity},
}

// listens is a probe of a port.
func listens(port int32) *v1.Probe {
	return &v1.Probe{PeriodSeconds: 1, ProbeHandler: v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Port: intstr.FromInt32(port)}}}
}

// serve makes a Service of pods that say their names on port 80.
func (e *Env) serve(ctx context.Context, name string, backends int, change func(*v1.ServiceSpec)) (*v1.Service, error) {
	for i := range backends {
		pod := windowsPod(fmt.Sprintf("%s-%d", name, i), "netexec", "--http-port=80")
		pod.Labels = map[string]string{"app": name}
		pod.Spec.Containers[0].ReadinessProbe = listens(80)
		must(e.create(ctx, pod))
	}
	if _, err := e.readyPods(ctx, name, backends); err != nil {
		return nil, orSkip(err)
	}
	s := &v1.Service{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1.ServiceSpec{Selector: map[string]string{"app": name}, Ports: []v1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(80)}}}}
	if change != nil {
		change(&s.Spec)
	}
	return e.ClientSet.CoreV1().Services(e.ns()).Create(ctx, s, metav1.CreateOptions{})
}

func serviceVariables(ctx context.Context, e *Env) error {
	e.needWindows(1)
	s := must(e.ClientSet.CoreV1().Services(e.ns()).Create(ctx,
		&v1.Service{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Spec: v1.ServiceSpec{Ports: []v1.ServicePort{{Port: 8765}}}},
		metav1.CreateOptions{}))
	p, err := e.run(ctx, windowsPod("variables", "pause"))
	if err != nil {
		return orSkip(err)
	}
	return e.prints(ctx, p, "main", "echo %SHOP_SERVICE_HOST% %SHOP_SERVICE_PORT%", s.Spec.ClusterIP+" 8765")
}

func portForward(ctx context.Context, e *Env) error {
	e.needWindows(1)
	pod := windowsPod("forward", "netexec", "--http-port=8080")
	// The first connection that a program refuses ends the forwarding.
	pod.Spec.Containers[0].ReadinessProbe = listens(8080)
	p, err := e.run(ctx, pod)
	if err != nil {
		return orSkip(err)
	}
	transport, upgrader, err := spdy.RoundTripperFor(e.ClientConfig())
	must(transport, err)
	url := e.ClientSet.CoreV1().RESTClient().Post().Resource("pods").Namespace(p.Namespace).Name(p.Name).SubResource("portforward").URL()
	stop, ready := make(chan struct{}), make(chan struct{})
	defer close(stop)
	forwarder := must(portforward.New(spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, url), []string{"0:8080"},
		stop, ready, io.Discard, io.Discard))
	ended := make(chan error, 1)
	go func() { ended <- forwarder.ForwardPorts() }()
	select {
	case err := <-ended:
		return fmt.Errorf("the forwarding has ended: %w", err)
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Minute):
		return fmt.Errorf("the forwarding is not ready after a minute")
	case <-ready:
	}
	ports := must(forwarder.GetPorts())
	return eventually(ctx, e.Options.Settle, func(ctx context.Context) error {
		select {
		case err := <-ended:
			ended <- err // the next attempt shall say the same
			return fmt.Errorf("the forwarding has ended: %w", err)
		default:
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/hostname", ports[0].Local), nil)
		if err != nil {
			return err
		}
		answer, err := (&http.Client{Timeout: 10 * time.Second}).Do(request)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
		if err == nil && answer.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s", answer.Status, text)
		}
		return err
	})
}

func sessionAffinity(ctx context.Context, e *Env) error {
	e.needWindows(1)
	s := must(e.serve(ctx, "sticky", 3, func(s *v1.ServiceSpec) { s.SessionAffinity = v1.ServiceAffinityClientIP }))
	p, err := e.run(ctx, windowsPod("client", "pause"))
	if err != nil {
		return orSkip(err)
	}
	x := &actor{windows: true}
	met := map[string]int{}
	ask := func(ctx context.Context) error {
		o, err := e.exec(ctx, p, "main", x.curl("http://"+s.Spec.ClusterIP+"/hostname")...)
		if err == nil && o.code != 0 {
			err = fmt.Errorf("%s", o.all())
		}
		if err == nil {
			met[strings.TrimSpace(o.stdout)]++
		}
		return err
	}
	if err := eventually(ctx, e.Options.Settle, ask); err != nil {
		return err
	}
	clear(met)
	for range 20 {
		if err := ask(ctx); err != nil {
			return err
		}
	}
	if len(met) != 1 {
		return fmt.Errorf("20 connections of one client met %d pods: %v", len(met), met)
	}
	return nil
}
