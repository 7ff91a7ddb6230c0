package cluster

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// loadBalancers gives Services of type LoadBalancer their addresses, as the controller of a
// cloud does. A lab's cloud has the addresses of the lab's own Services of that type: its
// routes lead these, and no others, to nodes. A Service gets the address of the lab's
// Service with its name, else the one that it asks for (spec.loadBalancerIP), else one that
// is free. Where there is none, it stays without, and has an event that says so.
func (c *Cluster) loadBalancers(services []*corev1.Service) {
	taken := map[string]bool{}
	var want []*corev1.Service
	for _, s := range services {
		for _, i := range s.Status.LoadBalancer.Ingress {
			taken[i.IP] = true
		}
		if s.Spec.Type == corev1.ServiceTypeLoadBalancer && len(s.Status.LoadBalancer.Ingress) == 0 && s.Spec.LoadBalancerClass == nil {
			want = append(want, s)
		}
	}
	// Names of the lab come first, so that their addresses are not taken.
	slices.SortFunc(want, func(a, b *corev1.Service) int {
		if x, y := c.addresses[a.Namespace+"/"+a.Name] != "", c.addresses[b.Namespace+"/"+b.Name] != ""; x != y {
			if x {
				return -1
			}
			return 1
		}
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	for _, s := range want {
		key := s.Namespace + "/" + s.Name
		ip, why := c.addressFor(key, s.Spec.LoadBalancerIP, taken)
		if ip == "" {
			c.pending(s, why)
			continue
		}
		taken[ip] = true
		patch,
			err := json.Marshal(map[string]any{"status": map[string]any{"loadBalancer": map[string]any{"ingress": []any{map[string]any{"ip": ip}}}}})
		if err == nil {
			_, err = c.Client.CoreV1().Services(s.Namespace).Patch(c.life, s.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{},
				"status")
		}
		if err != nil && !apierrors.IsNotFound(err) && c.life.Err() == nil {
			c.say(fmt.Sprintf("load balancer of Service %s: %v", key, err))
		}
	}
}

// addressFor is the address of a load balancer, or why there is none.
func (c *Cluster) addressFor(key, asks string, taken map[string]bool) (ip, why string) {
	var all []string
	for _, a := range c.addresses {
		if !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	slices.Sort(all)
	own := c.addresses[key]
	switch {
	case len(all) == 0:
		return "",
			"the lab has no load balancer outside the cluster: none of the Services in its file is one of type LoadBalancer with an address"
	case asks != "" && !slices.Contains(all, asks):
		return "", fmt.Sprintf("it asks for %s, and the lab's load balancers have %v", asks, all)
	case asks != "" && taken[asks]:
		return "", "it asks for " + asks + ", which another Service has"
	case asks != "":
		return asks, ""
	case own != "" && !taken[own]:
		return own, ""
	}
	for _, a := range all {
		if !taken[a] {
			return a, ""
		}
	}
	return "", fmt.Sprintf("the addresses of the lab's load balancers are taken: %v", all)
}

// pending says once why a Service has no address.
func (c *Cluster) pending(s *corev1.Service, why string) {
	if c.toldOf[s.UID] == why {
		return
	}
	if c.toldOf == nil {
		c.toldOf = map[types.UID]string{}
	}
	c.toldOf[s.UID] = why
	now := metav1.NewTime(time.Now())
	_, err := c.Client.CoreV1().Events(s.Namespace).Create(c.life, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: s.Name + "-"},
		InvolvedObject: corev1.ObjectReference{Kind: "Service", APIVersion: "v1", Namespace: s.Namespace, Name: s.Name, UID: s.UID,
			ResourceVersion: s.ResourceVersion},
		Reason: "NoLoadBalancer", Message: why, Type: corev1.EventTypeWarning, Count: 1, FirstTimestamp: now, LastTimestamp: now,
		Source: corev1.EventSource{Component: "winlab-cluster"},
	}, metav1.CreateOptions{})
	if err != nil && c.life.Err() == nil {
		c.say(fmt.Sprintf("load balancer of Service %s/%s: %v", s.Namespace, s.Name, err))
	}
}
