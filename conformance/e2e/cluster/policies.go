package cluster

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/trace"
)

// policies hands the API server's NetworkPolicies to the lab, with the labels of pods and
// namespaces as they are now. It ends with the cluster.
func (c *Cluster) policies() {
	f := informers.NewSharedInformerFactory(c.Client, 0)
	policies, pods, namespaces := f.Networking().V1().NetworkPolicies(), f.Core().V1().Pods(), f.Core().V1().Namespaces()
	had := false
	c.follow(f, "NetworkPolicies of the lab", []cache.SharedIndexInformer{policies.Informer(), pods.Informer(), namespaces.Informer()},
		func() error {
			list, err := policies.Lister().List(labels.Everything())
			if err != nil {
				return err
			}
			if len(list) == 0 && !had {
				return nil // most clusters have none, and all have pods that come and go
			}
			had = len(list) > 0
			all, err1 := pods.Lister().List(labels.Everything())
			spaces, err2 := namespaces.Lister().List(labels.Everything())
			if err := errors.Join(err1, err2); err != nil {
				return err
			}
			p := cluster.Policies{Namespaces: map[string]map[string]string{}, Pods: map[string]cluster.PolicyPod{}}
			if p.List, err = labfile.PoliciesOf(list); err != nil {
				c.say(fmt.Sprintf("not for the lab: %v", err))
			}
			for _, n := range spaces {
				p.Namespaces[n.Name] = n.Labels
			}
			for _, o := range all {
				p.Pods[o.Namespace+"/"+o.Name] = cluster.PolicyPod{Labels: o.Labels, Ports: namedPorts(o)}
			}
			return c.Net.SetPolicies(c.life, p)
		}, nil)
}

// namedPorts are the ports to which a pod's containers give names.
func namedPorts(p *corev1.Pod) map[string]uint16 {
	all := map[string]uint16{}
	for _, c := range append(p.Spec.InitContainers, p.Spec.Containers...) {
		for _, port := range c.Ports {
			if port.Name != "" {
				all[port.Name] = uint16(port.ContainerPort)
			}
		}
	}
	return all
}

// Notices are what objects of the API server and the lab say and nothing follows.
func (c *Cluster) Notices() (all []trace.Notice) {
	_ = c.Net.Do(func(l *lab.Cluster) error { all = l.Notices(); return nil })
	return all
}
