package plan

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/winlab-dev/winlab/internal/strict"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Step is something that happens to the running cluster, with every name resolved:
// pods and Services are whole, as they are after it.
type Step struct {
	Name string
	Wait time.Duration
	// Links have these states from the step on.
	Links []Link
	// Stop and Restart are programs of nodes.
	Stop, Restart []Program
	// DeletePods and DeleteServices are "namespace/name".
	DeletePods, DeleteServices []string
	// Pods are added, or replace their earlier state. Services too.
	Pods     []*Pod
	Services []*labfile.Service
	// Slices are endpoints that somebody wrote; Policies and Namespaces are those
	// that the step's manifests describe.
	Slices        []*labfile.Slice
	Policies      []*labfile.Policy
	AdminPolicies []*labfile.AdminPolicy
	OwnPolicies   []*labfile.OwnPolicy
	Ingresses     []*labfile.Ingress
	Namespaces    map[string]map[string]string
	Calls         []Call
	Origin        *trace.Origin
	// Does says in words what happens.
	Does []string
}

// Program is a program of a node.
type Program struct{ Program, Node string }

func (p Program) String() string { return p.Program + "/" + p.Node }

// steps reads what happens, one step after the other.
func (p *Plan) steps(s *labfile.Spec) error {
	st := &story{Plan: p, pods: map[string]*Pod{}, pins: map[string]labfile.Pod{}, live: slices.Clone(p.Services)}
	for _, pod := range p.Pods {
		st.pods[pod.Key()] = pod
		st.alive = append(st.alive, pod.Key())
	}
	for _, pod := range s.Pods {
		st.pins[PodKey(joined(pod))] = pod
	}
	for i := range s.Steps {
		step, err := st.step(s, i)
		if err != nil {
			var ms strict.Mistakes
			if errors.As(err, &ms) {
				return err
			}
			o := p.File.Origin("", "spec", "steps", i)
			return strict.Mistakes{{File: o.File, Line: o.Line, Column: 1, Message: fmt.Sprintf("step %s: %v", s.Steps[i].Name, err)}}.AsError()
		}
		p.Steps = append(p.Steps, step)
	}
	return nil
}

func joined(pod labfile.Pod) string {
	if pod.Namespace == "" {
		return pod.Name
	}
	return pod.Namespace + "/" + pod.Name
}

// story is what is known of pods and Services at a time.
type story struct {
	*Plan
	pods  map[string]*Pod // the last state of each, also of those that are gone
	pins  map[string]labfile.Pod
	alive []string
	live  []*labfile.Service
}

func (st *story) step(s *labfile.Spec, i int) (*Step, error) {
	in := s.Steps[i]
	out := &Step{Name: in.Name, Origin: st.File.Origin("step "+in.Name, "spec", "steps", i)}
	var err error
	if out.Wait, err = labfile.ParseWait(in.Wait); err != nil {
		return nil, err
	}
	if out.Links, err = st.links(s, in.Links, "spec", "steps", i, "links"); err != nil {
		return nil, err
	}
	if out.Stop, err = programs(in.Stop); err != nil {
		return nil, err
	}
	if out.Restart, err = programs(in.Restart); err != nil {
		return nil, err
	}
	if out.Calls, err = Calls(in.HNS); err != nil {
		return nil, err
	}
	if err := st.delete(out, in.Delete); err != nil {
		return nil, err
	}
	if err := st.apply(s, out, i); err != nil {
		return nil, err
	}
	for j, pod := range in.Pods {
		if err := st.pod(s, out, pod, st.File.Origin("pod "+pod.Name, "spec", "steps", i, "pods", j)); err != nil {
			return nil, err
		}
	}
	serveTargets(out.Pods, st.live)
	st.serveNew(out)
	out.describe()
	return out, nil
}

func programs(texts []string) ([]Program, error) {
	var all []Program
	for _, t := range texts {
		program, node, err := labfile.ParseProgram(t)
		if err != nil {
			return nil, err
		}
		all = append(all, Program{program, node})
	}
	return all, nil
}

// delete notes the pods and Services that go.
func (st *story) delete(out *Step, targets []string) error {
	for _, text := range targets {
		t, err := labfile.ParseTarget(text)
		if err != nil {
			return err
		}
		key := t.Namespace + "/" + t.Name
		if t.Kind == labfile.PodTarget {
			if err := st.gone(out, key); err != nil {
				return err
			}
			continue
		}
		i := slices.IndexFunc(st.live, func(s *labfile.Service) bool { return s.Key() == key })
		if i < 0 {
			return fmt.Errorf("there is no Service %s to delete at this time", key)
		}
		st.live = slices.Delete(slices.Clone(st.live), i, i+1)
		out.DeleteServices = append(out.DeleteServices, key)
	}
	return nil
}

// gone notes a pod that goes.
func (st *story) gone(out *Step, key string) error {
	i := slices.Index(st.alive, key)
	if i < 0 {
		return fmt.Errorf("there is no pod %s to delete at this time", key)
	}
	st.alive = slices.Delete(st.alive, i, i+1)
	out.DeletePods = append(out.DeletePods, key)
	return nil
}

// apply notes what the objects of a step change.
func (st *story) apply(s *labfile.Spec, out *Step, i int) error {
	man, err := st.File.StepManifests(i)
	if err != nil {
		return err
	}
	for _, svc := range man.Services {
		j := slices.IndexFunc(st.live, func(l *labfile.Service) bool { return l.Key() == svc.Key() })
		if j < 0 {
			st.live = append(st.live, svc)
		} else {
			takeOver(svc, st.live[j])
			st.live = slices.Clone(st.live)
			st.live[j] = svc
		}
		out.Services = append(out.Services, svc)
	}
	out.Slices = st.slices(man.Slices, st.live)
	out.Policies, out.Namespaces, out.Ingresses = man.Policies, man.Namespaces, man.Ingresses
	out.AdminPolicies, out.OwnPolicies = man.AdminPolicies, man.OwnPolicies
	for _, n := range man.NotModelled {
		st.NotModelled = trace.AddNotice(st.NotModelled, n)
	}
	for _, n := range st.Plan.given.complete(out.Services) {
		st.NotModelled = trace.AddNotice(st.NotModelled, n)
	}
	var wanted []string
	for _, w := range man.Workloads {
		key := w.Namespace + "/" + w.Name
		wanted = append(wanted, key)
		if err := st.workload(s, out, w, key); err != nil {
			return err
		}
	}
	for _, key := range slices.Clone(st.alive) {
		if o := st.pods[key].owner; o != "" && slices.Contains(man.Owners, o) && !slices.Contains(wanted, key) {
			if err := st.gone(out, key); err != nil {
				return err
			}
		}
	}
	return nil
}

// takeOver keeps what the API server gave a Service that is applied again.
func takeOver(now, before *labfile.Service) {
	if len(now.ClusterIPs) == 0 && !now.Headless && now.Type != kube.ExternalName {
		now.ClusterIPs = slices.Clone(before.ClusterIPs)
	}
	for i := range now.Ports {
		for _, p := range before.Ports {
			if now.Ports[i].NodePort == 0 && p.Port == now.Ports[i].Port && p.Proto == now.Ports[i].Proto && now.Type != kube.ClusterIP {
				now.Ports[i].NodePort = p.NodePort
			}
		}
	}
}

// workload notes a pod of a manifest: one that is new, or that is made anew because
// its template is another.
func (st *story) workload(s *labfile.Spec, out *Step, w *labfile.Workload, key string) error {
	pod := newPod(w)
	old := st.pods[key]
	if pod.Node == "" && old != nil {
		pod.Node = old.Node
	}
	if in, ok := st.pins[key]; ok {
		var r reader
		pod.pin(&r, in)
		if err := r.err(); err != nil {
			return err
		}
	}
	if slices.Contains(st.alive, key) {
		if sameTemplate(old, pod) {
			return nil
		}
		if err := st.gone(out, key); err != nil {
			return err
		}
	}
	return st.comes(s, out, pod)
}

// sameTemplate reports whether a pod would be made again as it is.
func sameTemplate(a, b *Pod) bool {
	listens := func(p *Pod) []labfile.ListenPort {
		if p.implied {
			return nil
		}
		return p.Listen
	}
	return maps.Equal(a.Labels, b.Labels) && slices.Equal(listens(a), listens(b)) && slices.Equal(a.HostPorts, b.HostPorts) &&
		a.HostNetwork == b.HostNetwork &&
		maps.Equal(a.Ports, b.Ports) && a.Node == b.Node
}

// comes notes a pod that is new.
func (st *story) comes(s *labfile.Spec, out *Step, pod *Pod) error {
	if err := st.schedule(s, []*Pod{pod}); err != nil {
		return err
	}
	st.pods[pod.Key()] = pod
	st.alive = append(st.alive, pod.Key())
	out.Pods = append(out.Pods, pod)
	return nil
}

// pod notes what a step says of a pod.
func (st *story) pod(s *labfile.Spec, out *Step, in labfile.Pod, origin *trace.Origin) error {
	var r reader
	key := PodKey(joined(in))
	old := st.pods[key]
	ns, name, _ := strings.Cut(key, "/")
	if !slices.Contains(st.alive, key) {
		// It is new, or comes again: then it is as before where the step says
		// nothing else.
		pod := &Pod{Pod: kube.Pod{Namespace: ns, Name: name, Origin: origin}, Ready: true}
		if old != nil {
			pod = old.clone()
			pod.Ready, pod.Terminating, pod.Late = true, false, false
		}
		listen, dns := pod.Listen, pod.DNS
		if len(in.Listen) > 0 {
			listen, pod.implied = nil, false
		}
		pod.Listen = nil
		pod.pin(&r, in)
		pod.Listen = append(listen, pod.Listen...)
		if reflect.ValueOf(in.DNS).IsZero() {
			pod.DNS = dns
		}
		err := errors.Join(r.err(), st.comes(s, out, pod))
		if err == nil && in.Run != nil {
			err = st.canRun([]*Pod{pod}, key, origin)
			st.noticeAt("run of pod "+key, notTraced, origin)
		}
		return err
	}
	pod := old.clone()
	switch {
	case in.Node != "" && in.Node != pod.Node:
		return fmt.Errorf("pod %s already runs on %s; delete it first, a pod does not change its node", key, pod.Node)
	case in.Address != "" && r.addr(in.Address) != pod.Address:
		return fmt.Errorf("pod %s already exists; delete it first, a pod does not change its address", key)
	case len(in.HostPorts) > 0:
		return fmt.Errorf("pod %s already exists; delete it first, a pod does not change its host ports", key)
	case in.Run != nil:
		return fmt.Errorf("pod %s already exists; delete it first, a pod does not change its program", key)
	}
	if in.Ready != nil {
		pod.Ready = *in.Ready
	}
	pod.Terminating = pod.Terminating || in.Terminating
	maps.Copy(pod.Labels, in.Labels)
	for _, l := range r.listen(in.Listen) {
		if !slices.Contains(pod.Listen, l) {
			pod.Listen = append(pod.Listen, l)
		}
	}
	if !reflect.ValueOf(in.DNS).IsZero() {
		pod.DNS = in.DNS
	}
	st.pods[key] = pod
	out.Pods = append(out.Pods, pod)
	return r.err()
}

func (p *Pod) clone() *Pod {
	c := *p
	c.Labels, c.Listen, c.HostPorts = maps.Clone(p.Labels), slices.Clone(p.Listen), slices.Clone(p.HostPorts)
	if c.Labels == nil {
		c.Labels = map[string]string{}
	}
	return &c
}

// serveNew lets pods that serve what Services expect serve what new ones do.
func (st *story) serveNew(out *Step) {
	if len(out.Services) == 0 {
		return
	}
	for _, key := range st.alive {
		old := st.pods[key]
		if slices.Contains(out.Pods, old) || len(old.Listen) > 0 && !old.implied {
			continue
		}
		pod := old.clone()
		if serveTargets([]*Pod{pod}, st.live); len(pod.Listen) != len(old.Listen) {
			st.pods[key] = pod
			out.Pods = append(out.Pods, pod)
		}
	}
}

// describe says in words what a step does.
func (s *Step) describe() {
	add := func(format string, args ...any) { s.Does = append(s.Does, fmt.Sprintf(format, args...)) }
	if s.Wait > 0 {
		add("%s pass", s.Wait)
	}
	for _, l := range s.Links {
		add("link %s is %s", l.Of, l.Text)
	}
	for _, p := range s.Stop {
		add("%s stops", p)
	}
	for _, key := range s.DeleteServices {
		add("Service %s is deleted", key)
	}
	for _, key := range s.DeletePods {
		add("pod %s is deleted", key)
	}
	for _, svc := range s.Services {
		add("Service %s is applied", svc.Key())
	}
	for _, sl := range s.Slices {
		add("endpoints of Service %s/%s are written", sl.Namespace, sl.Service)
	}
	for _, np := range s.Policies {
		add("NetworkPolicy %s is applied", np.Key())
	}
	for _, p := range s.AdminPolicies {
		add("%s is applied", p.Key())
	}
	for _, p := range s.OwnPolicies {
		add("%s is applied", p.Key())
	}
	for _, p := range s.Pods {
		switch {
		case p.Terminating:
			add("pod %s terminates", p.Key())
		case p.Ready:
			add("pod %s is ready", p.Key())
		default:
			add("pod %s is not ready", p.Key())
		}
	}
	for _, p := range s.Restart {
		add("%s restarts", p)
	}
	for _, c := range s.Calls {
		add("HNS of %s: %s", c.Node, c.What)
	}
}
